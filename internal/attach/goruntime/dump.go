package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// goroutineDump is stacks as debug=2, a panic, SIGQUIT and runtime.Stack print them.
var goroutineDump = &attach.Kind{
	Name:  "goroutine dump",
	Hints: []string{"goroutine ", "fatal error: ", "panic: ", "SIG", "("},
	Claim: claimDump,
	Read: func(p *attach.Part) attach.Reading {
		d := parseDump(p.Lines)
		return readDump(p, d)
	},
}

// dump is what a text of stacks holds.
type dump struct {
	stacks []*stack
	crash  string // "fatal error: all goroutines are asleep - deadlock!"; "": none
	signal string // "SIGQUIT: quit"
	total  int    // as a heading says; 0: none
	cut    int    // lines that stand for what was left out
	counts bool   // debug=1: stacks with counts, no states
}

// maxStacks bounds what is held of a dump.
const maxStacks = 100_000

// lineOf says what a line of a dump is.
type lineOf int

const (
	lineOther lineOf = iota
	lineBlank
	lineHeader
	lineCall
	linePlace
	lineCrash  // panic, fatal error
	lineSignal // SIGQUIT: quit
	lineNoise  // registers, "runtime stack:"
	lineCut    // "..."
)

func dumpLine(s string) lineOf {
	t := strings.TrimPrefix(strings.TrimSpace(s), `^\`) // a terminal shows the key that sent the signal
	if t == "" {
		return lineBlank
	}
	if strings.HasPrefix(t, "goroutine ") {
		if _, ok := parseHeader(t); ok {
			return lineHeader
		}
		if strings.HasPrefix(t, "goroutine running on other thread") {
			return lineNoise
		}
	}
	if _, _, ok := parseCall(t); ok {
		return lineCall
	}
	if _, ok := parsePlace(t); ok {
		return linePlace
	}
	switch {
	case t == "...", t == "…", t == "[...]", t == "(...)", strings.HasPrefix(t, "...additional frames elided"), strings.HasPrefix(t, "...") && strings.HasSuffix(t, "elided..."):
		return lineCut
	case strings.HasPrefix(t, "fatal error: "), strings.HasPrefix(t, "panic: "), strings.Contains(t, "http: panic serving "):
		return lineCrash
	case strings.HasPrefix(t, "SIG") && strings.Contains(t, ": ") && len(t) < 60:
		return lineSignal
	case strings.HasPrefix(t, "[signal SIG"), strings.HasPrefix(t, "PC=0x"), strings.HasPrefix(t, "runtime stack:"), strings.HasPrefix(t, "exit status "),
		strings.HasPrefix(t, "unexpected fault address"), strings.HasPrefix(t, "[originating from goroutine"), strings.HasPrefix(t, "goroutine 0 "), isRegister(t), isTail(t), isRuntimeC(t):
		return lineNoise
	}
	return lineOther
}

// isRegister knows "rax    0xca" at the end of a crash.
func isRegister(t string) bool {
	f := strings.Fields(t)
	return len(f) == 2 && len(f[0]) <= 6 && strings.HasPrefix(f[1], "0x") && f[0] == strings.ToLower(f[0])
}

// isRuntimeC knows a call of the runtime's C code, which Go had until 1.4: "stopm()".
func isRuntimeC(t string) bool {
	name, args, ok := strings.Cut(t, "(")
	if !ok || name == "" || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return false
	}
	return args == ")" || strings.HasPrefix(args, "0x") && strings.HasSuffix(args, ")")
}

// isTail knows the rest of a line of hexadecimal arguments that was broken in two.
func isTail(t string) bool {
	return strings.Trim(t, "0123456789abcdefx, ?.{})") == "" && (strings.HasPrefix(t, "0x") || strings.Contains(t, ", 0x"))
}

// claimDump starts at a header, at a crash's first line where a header follows, or in the middle of
// a stack: two calls with their places.
func claimDump(lines []paste.Line) int {
	first := dumpLine(lines[0].Text)
	switch first {
	case lineHeader:
	case lineCrash, lineSignal, lineNoise:
		if isTail(strings.TrimSpace(lines[0].Text)) || !headerNear(lines) {
			return 0
		}
	case lineCall, linePlace:
		if pairs(lines) < 2 {
			return 0
		}
	default:
		return 0
	}
	end, calls := 0, 0
	for i, line := range lines {
		if line.Command != "" {
			break
		}
		what := dumpLine(line.Text)
		if what == lineOther {
			if calls == 0 && i < 12 && first != lineHeader && first != lineCall && first != linePlace && headerNear(lines[i:]) {
				continue // more words of the crash
			}
			if elided(line.Text) {
				end = i + 1
				continue
			}
			break
		}
		if what == lineCall || what == lineHeader {
			calls++
		}
		if what != lineBlank {
			end = i + 1
		}
	}
	return end
}

// elided knows a line that stands for a part of the dump which was taken out.
func elided(s string) bool {
	t := strings.TrimSpace(s)
	return strings.HasPrefix(t, "...") || strings.HasPrefix(t, "[...") || strings.HasPrefix(t, "<snip") || strings.HasPrefix(t, "(snip")
}

func headerNear(lines []paste.Line) bool {
	for i := 0; i < len(lines) && i < 40; i++ { // Go before 1.5 prints the stopped thread's stack first
		switch dumpLine(lines[i].Text) {
		case lineHeader:
			return true
		}
		if lines[i].Command != "" {
			return false
		}
	}
	return false
}

// pairs counts calls that are followed by their places, at the start.
func pairs(lines []paste.Line) (n int) {
	for i := 0; i+1 < len(lines) && i < 12; i++ {
		a, b := dumpLine(lines[i].Text), dumpLine(lines[i+1].Text)
		if f, _, _ := parseCall(lines[i].Text); a == lineCall && (b == linePlace || f.at != "") {
			n++
		}
		if a != lineCall && a != linePlace && a != lineBlank {
			break
		}
	}
	return n
}

func parseDump(lines []paste.Line) *dump {
	d := &dump{}
	var s *stack
	created := false
	for _, line := range lines {
		what := dumpLine(line.Text)
		if what == lineHeader && len(d.stacks) >= maxStacks {
			d.cut++
			break
		}
		switch what {
		case lineHeader:
			h, _ := parseHeader(line.Text)
			s = &h
			d.stacks = append(d.stacks, s)
			created = false
		case lineCall:
			if s == nil {
				s = &stack{count: 1}
				d.stacks = append(d.stacks, s)
			}
			f, isCreated, _ := parseCall(line.Text)
			if created = isCreated; created {
				s.created = f.fn
			} else if len(s.frames) < 256 {
				s.frames = append(s.frames, f)
			}
		case linePlace:
			if place, _ := parsePlace(line.Text); s != nil && len(s.frames) > 0 && !created {
				s.frames[len(s.frames)-1].at = place
			}
		case lineCrash:
			if d.crash == "" {
				d.crash = strings.TrimSpace(line.Text)
			}
		case lineSignal:
			d.signal = strings.TrimPrefix(strings.TrimSpace(line.Text), `^\`)
		case lineCut:
			d.cut++
		case lineOther:
			if elided(line.Text) {
				d.cut++
			}
		}
	}
	return d
}
