package goruntime

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// goroutineCounts is /debug/pprof/goroutine?debug=1: stacks with how many goroutines have each.
var goroutineCounts = &attach.Kind{
	Name:  "goroutine profile as text",
	Hints: []string{"goroutine profile: total ", " @ 0x", "goroutineleak profile: total "},
	Claim: func(lines []paste.Line) int {
		if countsHead(lines[0].Text, leakHeading) {
			return claimCounts(lines, leakHeading, countLine)
		}
		n := claimCounts(lines, "goroutine profile: total ", countLine)
		if n > 0 && !countsHead(lines[0].Text, "goroutine profile: total ") && ofThreads(lines[:n]) {
			return 0
		}
		return n
	},
	Reports: true,
	Read: func(p *attach.Part) attach.Reading {
		return readDump(p, parseCounts(p.Lines))
	},
}

// threadcreate is the same of threads, /debug/pprof/threadcreate?debug=1.
var threadcreate = &attach.Kind{
	Name:  "threadcreate profile as text",
	Hints: []string{"threadcreate profile: total ", " @ 0x"},
	Claim: func(lines []paste.Line) int {
		n := claimCounts(lines, "threadcreate profile: total ", countLine)
		if n > 0 && !countsHead(lines[0].Text, "threadcreate profile: total ") && !ofThreads(lines[:n]) {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		d := parseCounts(p.Lines)
		n := max(d.total, sumCounts(d.stacks))
		r := attach.Reading{Title: "threadcreate profile of a Go program", State: attach.Context,
			Figures: []string{count(n, "thread was made", "threads were made") + " since the start"},
			Means:   "the runtime makes a thread when all others are in system calls, in C code or locked",
			Not:     "how many threads run: blocked ones cost no CPU"}
		if d.total == 0 {
			r.State = attach.CannotTell
			r.Figures = []string{count(n, "thread", "threads") +
				" in what is shown; the heading, with their sum, is cut off"}
			r.Means = "it says where the runtime made these threads; of how many is not in the text"
		}
		if n >= 1000 {
			r.State = attach.CannotTell
			r.Means = "many threads were made: goroutines that block in system calls or in C code have each a thread of their own, as those have that are locked to one"
			r.Next = []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=2'", Why: "goroutines in state syscall say in which calls"}}
		}
		return r
	},
}

// leakHeading is of the profile of goroutines that nothing can wake, since Go 1.26.
const leakHeading = "goroutineleak profile: total "

// countLine parses "100 @ 0x40380b0 0x4048c80", of which a chat may have cut the end, and as people
// shorten a stack to the function that matters: "100 @ ... main.work".
func countLine(s string) (n int, ok bool) {
	head, rest, ok := strings.Cut(unmarked(s), " @")
	n, isNumber := whole(head)
	return n, ok && isNumber && (strings.HasPrefix(rest, " 0x") || rest == "" || strings.HasPrefix(rest, " ... "))
}

// stackLine parses "#	0x40489e6	sync.(*Mutex).Lock+0x46	/go/src/sync/mutex.go:71".
// A page may have lost the "#"; then only a whole line is one.
func stackLine(s string) (f frame, ok bool) {
	rest, marked := strings.CutPrefix(unmarked(s), "#")
	fields := strings.Fields(rest)
	if len(fields) < 1 || !strings.HasPrefix(fields[0], "0x") || !marked && !wholeStackLine(fields) {
		return f, false
	}
	if len(fields) == 1 { // "#	0x0": nobody knows which function
		return f, true
	}
	f.fn = fields[1]
	if plus := strings.LastIndex(f.fn, "+0x"); plus > 0 {
		f.fn = f.fn[:plus]
	}
	f.fn = goName(f.fn)
	if len(fields) > 2 {
		f.at, _ = parsePlace(fields[len(fields)-1])
	}
	return f, true
}

// wholeStackLine knows an address, a function with an offset and a place.
func wholeStackLine(fields []string) bool {
	if len(fields) < 3 || !strings.Contains(fields[1], "+0x") {
		return false
	}
	_, isPlace := parsePlace(fields[len(fields)-1])
	return isPlace
}

// unmarked takes off what markdown puts around a text that is bold or code.
func unmarked(s string) string { return strings.TrimSpace(strings.Trim(strings.TrimSpace(s), "*`")) }

// claimCounts takes a heading, lines of counts, and the lines with # and blank lines below them.
func claimCounts[T any](lines []paste.Line, heading string, isCount func(string) (T, bool)) int {
	end, stacks, counts := 0, 0, 0
	for i, line := range lines {
		s := strings.TrimSpace(line.Text)
		_, isStack := stackLine(s)
		_, counted := isCount(s)
		switch {
		case line.Command != "":
			return countsEnd(end, stacks, counts, heading, lines)
		case i == 0 && countsHead(s, heading):
			end = 1
		case counted && (end > 0 || strings.Contains(s, " 0x")):
			counts++
			end = i + 1
		case isStack && end > 0:
			stacks++
			end = i + 1
		case strings.HasPrefix(s, "# labels: ") && end > 0, s == "..." && end > 0, s == "…" && end > 0:
			end = i + 1
		case takenOut(lines, i) && end == i && end > 0:
			end = i + 1
		case s == "" && end > 0, end == i && end > 0 && (moreAddresses(s) || restOfPlace(lines[i-1].Text, s)):
			if s != "" {
				end = i + 1
			}
		default:
			return countsEnd(end, stacks, counts, heading, lines)
		}
	}
	return countsEnd(end, stacks, counts, heading, lines)
}

// takenOut reports whether a line stands for frames that a person took out of a stack, in whatever
// words: it is short, and alone between two of the stack's own lines.
func takenOut(lines []paste.Line, i int) bool {
	if i == 0 || i+1 >= len(lines) || lines[i+1].Command != "" || len(lines[i].Text) > 120 {
		return false
	}
	_, above := stackLine(lines[i-1].Text)
	_, below := stackLine(lines[i+1].Text)
	return above && below && strings.HasPrefix(unmarked(lines[i+1].Text), "#")
}

func countsEnd(end, stacks, counts int, heading string, lines []paste.Line) int {
	if end == 0 || stacks == 0 && (counts < 2 && !countsHead(lines[0].Text, heading)) {
		return 0
	}
	return end
}

// countsHead knows the heading, before which a logger may have put a stamp of its own.
func countsHead(s, heading string) bool {
	at := strings.Index(s, heading)
	if at < 0 {
		return false
	}
	before, after := unmarked(s[:at]), unmarked(s[at+len(heading):])
	return digits(after) > 0 && digits(after) == len(after) && len(before) <= 60 &&
		(before == "" || strings.HasSuffix(before, "]") || strings.HasSuffix(before, ":") ||
			strings.HasSuffix(before, "|"))
}

// ofThreads knows a profile of threads without its heading: the runtime made them.
func ofThreads(lines []paste.Line) bool {
	return slices.ContainsFunc(lines, func(l paste.Line) bool {
		f, ok := stackLine(l.Text)
		return ok && madeThread(f.fn)
	})
}

// madeThread reports whether a function is the runtime's that makes a thread. Until Go 1.4 it was
// in C, without a package.
func madeThread(fn string) bool {
	return slices.Contains([]string{"runtime.allocm", "runtime.newm", "runtime.allocm_m", "allocm", "newm"}, fn)
}

// moreAddresses knows the rest of a line of addresses that a terminal broke, also within one.
func moreAddresses(s string) bool {
	return s != "" && strings.Contains(s, "0x") && strings.Trim(s, "0123456789abcdefx ") == "" &&
		!strings.HasPrefix(s, "#")
}

// restOfPlace knows the rest of a stack's line that a terminal broke.
func restOfPlace(before, s string) bool {
	if strings.HasPrefix(s, "#") || strings.ContainsAny(s, " @") || !strings.HasPrefix(strings.TrimSpace(before), "#") {
		return false
	}
	_, isPlace := parsePlace(s)
	return isPlace
}

func parseCounts(lines []paste.Line) *dump {
	d := &dump{counts: true}
	var s *stack
	for i, line := range lines {
		d.lost = d.lost || i == 0 && countsHead(line.Text, leakHeading)
		t := strings.TrimSpace(line.Text)
		if n, ok := countLine(t); ok && len(d.stacks) < maxStacks {
			_, addresses, _ := strings.Cut(t, " @ ")
			s = &stack{count: n, pc: firstWord(addresses), counted: true}
			if short, ok := strings.CutPrefix(addresses, "... "); ok {
				s.pc, s.frames = "", []frame{{fn: firstWord(short)}}
			}
			d.stacks = append(d.stacks, s)
			continue
		}
		if f, ok := stackLine(t); ok && s != nil && len(s.frames) < 256 {
			if f.fn != "" {
				s.frames = append(s.frames, f)
			}
			continue
		}
		if _, total, ok := strings.Cut(t, "profile: total "); ok {
			d.total, _ = strconv.Atoi(unmarked(total))
		}
		if t == "..." || t == "…" || takenOut(lines, i) {
			d.cut++
		}
	}
	park(d.stacks)
	for _, s := range d.stacks {
		s.parked = s.parked || d.lost
	}
	return d
}

// manyAlike is how many goroutines with one stack do not all run, on most machines.
const manyAlike = 32

// park marks the goroutines that the runtime parked. A profile leaves out the runtime's frames, but
// not their addresses: all that wait have the same one on top, in whatever function.
func park(stacks []*stack) {
	at := map[string]bool{}
	first := map[string]string{}
	for _, s := range stacks {
		if s.pc == "" || len(s.frames) == 0 || inC(s) {
			continue
		}
		fn := s.own().fn
		if first[s.pc] != "" && first[s.pc] != fn || s.waitsByName() {
			at[s.pc] = true
		}
		first[s.pc] = fn
	}
	for _, s := range stacks {
		s.parked = at[s.pc] || len(at) == 0 && s.count >= manyAlike && s.pc != ""
		if len(at) == 0 && !s.parked {
			s.pc = "" // no other stack tells where the runtime parks
		}
	}
}

// waitsByName reports whether the innermost function only waits.
func (s *stack) waitsByName() bool {
	fn := s.frames[0].fn
	return pollWait(fn) || fn == "time.Sleep" ||
		strings.Contains(fn, "sync.runtime_Semacquire") || fn == "sync.runtime_notifyListWait"
}

func sumCounts(stacks []*stack) (n int) {
	for _, s := range stacks {
		n += s.count
	}
	return n
}
