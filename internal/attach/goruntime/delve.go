package goruntime

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// delve is what the debugger's command goroutines prints: one place for each goroutine.
var delve = &attach.Kind{
	Name:  "delve goroutines",
	Hints: []string{"Goroutine ", " goroutines]"},
	Claim: claimDelve,
	Read:  readDelve,
}

// With -t, each goroutine has its stack below it: a line of the function, and one of its place.
var (
	delveFrame = regexp.MustCompile(`^\s*\d{1,3}\s+0x[0-9a-f]{8,16} in (\S+)$`)
	delveAt    = regexp.MustCompile(`^\s+at \S.*:\d+$`)
	// A place with blanks in its path, as on Windows.
	delveSpaced = regexp.MustCompile(`^(\S[^()\[\]]* [^()\[\]]*\.(?:go|s):\d+) (\S+) \(0x[0-9a-f]+\)`)
)

func claimDelve(lines []paste.Line) int {
	listed, first := false, true
	n := while(lines, func(s string) bool {
		if _, ok := delveLine(s); ok {
			listed, first = true, false
			return true
		}
		if first { // some versions say first how many there are
			first = false
			return delveTotal(s) > 0
		}
		return listed && (delveFrame.MatchString(s) || delveAt.MatchString(s))
	})
	if !listed {
		return 0
	}
	if n > 0 && n < len(lines) && strings.HasSuffix(strings.TrimSpace(lines[n].Text), " goroutines]") {
		n++
	}
	return n
}

// delveLine parses "* Goroutine 1 - User: ./main.go:12 main.main (0x4a5d6f) [chan receive 5]", also
// with "(thread 7)".
func delveLine(s string) (st stack, ok bool) {
	s = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(s), "* "))
	rest, ok := strings.CutPrefix(s, "Goroutine ")
	d := digits(rest)
	_, place, isDelve := strings.Cut(rest[d:], ": ")
	if !ok || d == 0 || !strings.HasPrefix(rest[d:], " - ") || !isDelve {
		return st, false
	}
	st.id, _ = whole(rest[:min(d, 9)])
	st.count = 1
	f := strings.Fields(place)
	if m := delveSpaced.FindStringSubmatch(place); m != nil { // "c:/program files/go/src/bytes/buffer.go:451 f (0x1)"
		f = []string{m[1], m[2]}
	}
	if len(f) < 2 {
		return st, false
	}
	at, isPlace := parsePlace(f[0])
	if !isPlace && !strings.HasPrefix(f[0], "?:") {
		return st, false
	}
	st.frames = []frame{{fn: f[1], at: at}}
	switch { // a delve that is older than the program's Go gives wrong words for the state
	case strings.Contains(f[0], "/sync/mutex.go"):
		st.frames = []frame{{fn: "sync.(*Mutex).lockSlow"}, st.frames[0]}
	case strings.Contains(f[0], "/sync/rwmutex.go"):
		st.frames = []frame{{fn: "sync.(*RWMutex).Lock"}, st.frames[0]}
	}
	if open := strings.LastIndexByte(place, '['); open >= 0 && len(st.frames) == 1 {
		st.state = strings.TrimRight(strings.TrimSuffix(place[open+1:], "]"), " 0123456789")
	}
	if strings.Contains(place, "(thread ") && st.state == "" {
		st.state = "running"
	}
	return st, true
}

// delveTotal parses "[37 goroutines]"; 0: it is none.
func delveTotal(s string) int {
	s, ok := strings.CutSuffix(strings.TrimPrefix(strings.TrimSpace(s), "["), " goroutines]")
	n, _ := whole(s)
	return attach.ClaimIf(ok, n)
}

func readDelve(p *attach.Part) attach.Reading {
	d := &dump{}
	places := map[string]int{}
	traced := false
	for _, line := range p.Lines {
		if m := delveFrame.FindStringSubmatch(line.Text); m != nil && len(d.stacks) > 0 {
			last := d.stacks[len(d.stacks)-1]
			if !traced {
				last.frames, traced = nil, true
			}
			if len(last.frames) < 256 {
				last.frames = append(last.frames, frame{fn: m[1]})
			}
			continue
		}
		d.total = max(d.total, delveTotal(line.Text))
		if st, ok := delveLine(line.Text); ok && len(d.stacks) < maxStacks {
			traced = false
			d.stacks = append(d.stacks, &st)
			places[st.frames[len(st.frames)-1].fn]++
		}
	}
	pic := lookAt(d)
	r := attach.Reading{Title: fmt.Sprintf("goroutines as delve lists them, %d", len(d.stacks)), State: attach.Healthy, Glance: true,
		Facts: []attach.Fact{{Name: FactGoroutines, Value: float64(len(d.stacks))}}}
	r.Figures = []string{pic.kindsText()}
	states, parked := map[string]int{}, 0
	for _, st := range d.stacks {
		if strings.HasPrefix(st.state, "GC ") && !strings.HasPrefix(st.state, "GC worker") {
			states[st.state]++
		}
		if len(st.frames) > 0 && st.frames[len(st.frames)-1].fn == "runtime.gopark" {
			parked++
		}
	}
	for _, state := range byMost(states)[:min(1, len(states))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%d in the state %q", states[state], state))
	}
	if keys := byMost(places); len(keys) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%d in %s", places[keys[0]], keys[0]))
	}
	if traced {
		r.Means = "where each goroutine is at one moment, with who called it"
	} else {
		r.Means = "one place for each goroutine, without who called it: who waits for whom is not in it"
	}
	if !traced && 2*parked > len(d.stacks) {
		r.State = attach.CannotTell
		r.Means = "all it says of most goroutines is that they wait (runtime.gopark); for what, their stacks say"
		r.Next = []attach.Next{{Command: "(dlv) goroutines -t", Why: "the stack of each goroutine"}}
	}
	if d.total > len(d.stacks) && len(d.stacks) > 0 {
		r.Title += fmt.Sprintf(" of %d (the rest is cut off)", d.total)
		r.State = attach.CannotTell
		r.Means += fmt.Sprintf("; the other %d goroutines are cut off", d.total-len(d.stacks))
	}
	r.Not = "how long each has waited: a debugger stops the program at one moment"
	pic.readLocks(&r)
	return r
}

// delveStack is what bt and stack print in delve: one goroutine's frames.
var delveStack = &attach.Kind{
	Name:  "delve stack",
	Hints: []string{"  0x0", " in ", "Thread ", "Goroutine ", "Switched from "},
	Claim: claimDelveStack,
	Read:  readDelveStack,
}

// delvePlace is what goroutine prints: "Goroutine 1:", "\tUser: ./main.go:12 main.main (0x4a5d6f)".
var delvePlace = regexp.MustCompile(`^\s*(Thread \d+ at \S+:\d+|Goroutine \d+:|(Runtime|User|Go|Start): \S+:\d+ \S+ \(0x[0-9a-f]+\)|Switched from \d+ to \d+ \(thread \d+\)|\(truncated\)|error: .*)$`)

func claimDelveStack(lines []paste.Line) int {
	if !delveFrame.MatchString(lines[0].Text) && !delvePlace.MatchString(lines[0].Text) {
		return 0
	}
	frames, places := 0, 0
	n := while(lines, func(s string) bool {
		switch {
		case delveFrame.MatchString(s):
			frames++
		case delveAt.MatchString(s):
			places++
		default:
			return delvePlace.MatchString(s)
		}
		return true
	})
	if frames == 0 || places == 0 {
		return 0
	}
	return n
}

func readDelveStack(p *attach.Part) attach.Reading {
	st := &stack{count: 1}
	for _, line := range p.Lines {
		if m := delveFrame.FindStringSubmatch(line.Text); m != nil && len(st.frames) < 256 {
			st.frames = append(st.frames, frame{fn: m[1]})
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("a goroutine's stack as delve prints it, %d frames", len(st.frames)), State: attach.CannotTell, Glance: true}
	if len(st.frames) == 0 {
		r.Means = "no frame of it could be read"
		return r
	}
	r.Figures = []string{"it is in " + st.frames[0].fn, "called by " + st.own().fn}
	r.Means = "where one goroutine is at one moment; nothing of the others"
	r.Not = "how long it has been there, and whether anybody waits for it: a debugger stops the program at one moment"
	r.Next = []attach.Next{{Command: "goroutines -t, in delve; or kill -QUIT PID", Why: "the stacks of all goroutines: who waits for whom"}}
	return r
}
