package stackdump

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// infoLine is a row of gdb's "info threads": a thread, and the frame that it is in.
var infoLine = pattern.New(`^\s*\*?\s*(\d+)\s+(?:Thread|LWP|process) [^"]*?(?:\((?:LWP|process|pid) (\d+)\)?)?\)?(?: ?"([^"]*)"\)?)?\s+(?:(?:(0x[0-9a-f]+) in )?([\w:~<>@., ]*[\w>@.]) \(.*|0x[0-9a-f]+ in ([\w:~<>@.]+))\s*$`)

// infoHalf is a row whose frame a mail has put into the next line.
var infoHalf = pattern.New(`^\s*\*?\s*\d+\s+Thread 0x[0-9a-f]+ \(LWP \d+\)?(?: "[^"]*"\)?)?$`)

// infoCut is the last row, where the text ends before its function or within it.
var infoCut = pattern.New(`^\s*\*?\s*(\d+)\s+Thread 0x[0-9a-f]+ \(LWP \d+\)?(?: "[^"]*"\)?)?(?: +(?:0x[0-9a-f]*(?: in [\w:~<>@.]*)?|[\w:~<>@.]+))?$`)

// infoStart is the start of a row.
var infoStart = pattern.New(`^\s*\*?\s*\d+\s+(?:Thread|LWP|process)\b`)

// infoBare is a row with a function alone, as people shorten the table.
var infoBare = pattern.New(`^\s*\*?\s*\d+\s+Thread 0x[0-9a-f]+ \(LWP \d+\)(?: "[^"]*")?\s+[A-Za-z_][\w:~<>@.]*$`)

// lastBare is the thread of a last row with a function alone. It is whole if another row has the
// same function; nil: it may be cut.
func (d *dump) lastBare(text string) *thread {
	f := strings.Fields(text)
	if !infoBare.MatchString(text) || !slices.ContainsFunc(d.threads, func(t *thread) bool { return t.frames[0].fn == f[len(f)-1] }) {
		return nil
	}
	m := infoLine.FindStringSubmatch(text + " ()")
	if m == nil {
		return nil
	}
	t := &thread{id: atoi(m[2]), num: atoi(m[1]), name: m[3], n: 1, frames: []frame{{fn: f[len(f)-1]}}}
	place(t, native)
	return t
}

// mostOfRow is how many lines one row takes at most.
const mostOfRow = 5

// infoRow is a row of the table, put together where it was broken: before its frame, within its
// arguments or behind them. n is how many lines it has; 0: none starts here.
func infoRow(lines []paste.Line) (text string, n int) {
	text, n = lines[0].Text, 1
	if infoBare.MatchString(text) && len(lines) > 1 && infoStart.MatchString(lines[1].Text) {
		return text + " ()", 1
	}
	if !infoLine.MatchString(text) && !infoHalf.MatchString(text) {
		return "", 0
	}
	for n < min(len(lines), mostOfRow) && lines[n].Command == "" && !infoStart.MatchString(lines[n].Text) {
		next := strings.TrimSpace(lines[n].Text)
		open := strings.Count(text, "(") > strings.Count(text, ")")
		if next == "" || !open && infoLine.MatchString(text) && !strings.HasPrefix(next, "() ") &&
			!strings.HasPrefix(next, "from /") && !strings.HasPrefix(next, "at ") {
			break
		}
		text += " " + next
		n++
	}
	if !infoLine.MatchString(text) {
		return "", 0
	}
	return text, n
}

func infoRows(lines []paste.Line) int {
	_, n := infoRow(lines)
	return n
}

// futexWord is the word that a thread waits at, as gdb prints it among a frame's arguments.
var futexWord = pattern.New(`\bfutex_word=(?:\w+@entry=)?(0x[0-9a-f]+)(?: <([^<>+]+)(?:\+\d+)?>)?`)

var futexValue = pattern.New(`\bexpected(?:@entry)?=(\d+)`)

// futexExpected is the value of its word for which a thread waits at it; 0: none is printed.
func futexExpected(text string) int {
	if m := futexValue.FindStringSubmatch(text); m != nil {
		return atoi(m[1])
	}
	return 0
}

// oneFutex says where most threads wait at one futex: for one condition, or for one lock. In the
// state of Python's interpreter it is the one of the GIL.
func (d *dump) oneFutex(r *attach.Reading) {
	n, of := map[string]float64{}, map[string]string{}
	for _, t := range d.threads {
		if t.addr != "" && t.doing == signal {
			n[t.addr]++
			of[t.addr] = t.sym
		}
	}
	all := attach.Largest(n)
	if len(all) == 0 || n[all[0]] < 2 || n[all[0]] < float64(len(d.threads))/2 {
		return
	}
	line := fmt.Sprintf("%.0f of %s wait at one futex, %s", n[all[0]], threads(len(d.threads)), all[0])
	if sym := of[all[0]]; sym != "" {
		line += ", which is in " + sym
	}
	r.Figures = append([]string{line}, r.Figures...)
	if of[all[0]] == "_PyRuntime" {
		r.Signs = append(r.Signs, attach.Sign{Cause: "interpreter-lock", Grade: attach.Candidate,
			Share: n[all[0]] / float64(len(d.threads)), Proof: []string{line + ", Python's interpreter: its lock waits there"}})
	}
}

// infoThreads reads "info threads". It has one frame for each thread: that a lock is waited
// for, and not which.
var infoThreads = &attach.Kind{
	Name:  "gdb info threads",
	Hints: []string{"Thread ", "LWP ", "Target Id"},
	Claim: func(lines []paste.Line) int {
		n, rows := 0, 0
		for i := 0; i < len(lines); i++ {
			l := lines[i]
			trimmed := strings.TrimSpace(l.Text)
			switch {
			case i > 0 && l.Command != "":
				return done(n, rows)
			case infoRows(lines[i:]) > 0:
				rows++
				i += infoRows(lines[i:]) - 1
				n = i + 1
			case rows == 0 && strings.HasPrefix(trimmed, "Id ") && strings.Contains(trimmed, "Target Id"):
				n = i + 1
			case rows > 0 && i+1 == len(lines) && infoCut.MatchString(l.Text):
				return done(i+1, rows)
			default:
				return done(n, rows)
			}
		}
		return done(n, rows)
	},
	Read: func(p *attach.Part) attach.Reading {
		d, value := &dump{tool: "gdb info threads"}, map[*thread]int{}
		last := len(p.Lines) - 1
		if infoRows(p.Lines[last:]) == 0 && infoCut.MatchString(p.Lines[last].Text) {
			d.bare = 1
		}
		for i := range p.Lines {
			text, _ := infoRow(p.Lines[i:])
			if m := infoLine.FindStringSubmatch(text); m != nil {
				t := &thread{id: atoi(cmp.Or(m[2], m[1])), name: m[3], n: 1,
					frames: []frame{{fn: strings.TrimSpace(m[5] + m[6])}}}
				place(t, native)
				if f := futexWord.FindStringSubmatch(text); f != nil && t.doing == signal {
					t.addr, t.sym = f[1], f[2]
					if t.frames[0].fn == "futex_wait" && futexExpected(text) == 2 {
						t.doing = lock // glibc's mutexes: 2 is held, with threads that wait
					}
				}
				if m[2] != "" {
					t.num = atoi(m[1])
				}
				value[t] = futexExpected(text)
				d.threads = append(d.threads, t)
			}
		}
		if t := d.lastBare(p.Lines[last].Text); t != nil {
			d.bare = 0
			d.threads = append(d.threads, t)
		}
		for _, t := range d.threads {
			if t.doing == signal && slices.ContainsFunc(d.threads, func(o *thread) bool { return o != t && o.id == value[t] }) {
				t.doing, t.joins, t.addr = idle, true, "" // pthread_join waits while its word has the thread's number
			}
		}
		r := d.read()
		if d.bare > 0 {
			r.Title = fmt.Sprintf("%s, %s, of which the last row is cut before its function", d.tool, threads(len(d.threads)+d.bare))
		}
		n := 0
		for _, t := range d.threads {
			if t.doing == lock {
				n++
			}
		}
		if n > 1 && len(r.Signs) == 0 {
			r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Candidate,
				Proof: []string{fmt.Sprintf("%d of %d threads wait for a lock, of one or of several", n, len(d.threads))}}}
		}
		d.oneFutex(&r)
		r.State = worst(r.Signs, attach.CannotTell)
		r.Means = "One frame for each thread: who called it, and so for which lock or for what work it waits, is not in it."
		r.Next = []attach.Next{{Command: "gdb -p PID -batch -ex 'thread apply all bt'",
			Why: "has the whole stacks: which lock, and who holds it"}}
		return r
	},
}
