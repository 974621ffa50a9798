package stackdump

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pmp reads the poor man's profiler, pt-pmp: a count and the functions of the stack, joined by
// commas, a line for each stack.
var pmp = &attach.Kind{
	Name:  "pt-pmp",
	Hints: []string{",", ":"},
	Claim: claimPMP,
	Read: func(p *attach.Part) attach.Reading {
		d := &dump{tool: "pt-pmp", counted: true}
		for i := 0; i < len(p.Lines); {
			text, n := pmpRow(p.Lines[i:])
			i += n
			m := pmpLine.FindStringSubmatch(text)
			if m == nil {
				continue
			}
			t := &thread{n: min(atoi(m[1]), 1<<24)}
			fns := commas(m[2])
			if i == len(p.Lines) && len(fns) > 2 && !first(fns[len(fns)-1]) {
				fns = fns[:len(fns)-1] // the text may end within a name
			}
			for _, fn := range fns {
				t.frames = append(t.frames, frame{fn: fn})
			}
			place(t, native)
			d.threads = append(d.threads, t)
		}
		return d.read()
	},
}

var (
	pmpLine = pattern.New(`^\s*(\d+)\s+([A-Za-z_?~][^\s,]*(?: const)?(?:,[^,\s]+(?: [^,\s]+)*)+)$`)
	pmpDate = pattern.New(`^\w{3} \w{3} +\d+ \d\d:\d\d:\d\d .*\d{4}$|^\w{3} \d+ \w{3} \d{4} \d\d:\d\d:\d\d`)
	pmpLeaf = pattern.New(`^[\w:~?@.$<>()*& \[\],+-]+$`)
)

func claimPMP(lines []paste.Line) int {
	n := 0
	for n < len(lines) && (n == 0 || lines[n].Command == "") {
		row, of := pmpRow(lines[n:])
		switch {
		case isPMP(row):
			n += of
		case n == 0 && pmpDate.MatchString(row) && len(lines) > 1:
			if next, _ := pmpRow(lines[1:]); !isPMP(next) {
				return 0
			}
			n = 1
		case n > 0 && onePMP.MatchString(row):
			n++
		default:
			return n
		}
	}
	return n
}

// pmpRow is a row, put together where a page wrapped it behind a comma, and its lines.
func pmpRow(lines []paste.Line) (row string, n int) {
	row, n = strings.TrimRight(lines[0].Text, " "), 1
	for strings.HasSuffix(row, ",") && n < min(len(lines), 8) && lines[n].Command == "" {
		row += strings.TrimSpace(lines[n].Text)
		n++
	}
	return row, n
}

// onePMP is a stack of one function, known only among others.
var onePMP = pattern.New(`^\s+\d+ [A-Za-z_?][\w:~@.]*$`)

// isPMP reports whether a line is a count and a stack: the functions are identifiers, and there is
// one that only stacks have.
func isPMP(text string) bool {
	m := pmpLine.FindStringSubmatch(text)
	if m == nil || !pmpLeaf.MatchString(m[2]) {
		return false
	}
	fns := commas(m[2])
	if len(fns) < 2 {
		return false
	}
	for _, fn := range fns {
		s := short(fn)
		if strings.HasPrefix(s, "clone") || s == "start_thread" || s == "main" ||
			s == "libc_start_main" || strings.Contains(fn, "@@") ||
			strings.Contains(fn, "::") || strings.Contains(fn, "pthread_") ||
			primOf(s) != anything && strings.Contains(fn, "_") {
			return true
		}
	}
	return false
}

// first reports whether a function is the first one of a thread or a program.
func first(fn string) bool {
	fn, _, _ = strings.Cut(short(fn), "(")
	return strings.HasPrefix(fn, "clone") || fn == "start_thread" || fn == "start" ||
		fn == "main" || strings.HasPrefix(fn, "libc_start")
}

// commas splits at commas outside of brackets.
func commas(s string) (out []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}
