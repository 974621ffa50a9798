package goruntime

import (
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
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
	delveFrame = pattern.New(`^\s*\d{1,3}\s+0x[0-9a-f]{8,16} in (\S+)$`)
	delveAt    = pattern.New(`^\s+at \S.*:\d+$`)
	// A place with blanks in its path, as on Windows.
	delveSpaced = pattern.New(`^(\S[^()\[\]]* [^()\[\]]*\.(?:go|s):\d+) (\S+) \(0x[0-9a-f]+\)`)
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
		st.state = strings.TrimSuffix(place[open+1:], "]")
		if at := strings.LastIndexByte(st.state, ' '); at > 0 { // how long it has waited
			if d, err := time.ParseDuration(st.state[at+1:]); err == nil {
				st.state, st.minutes = st.state[:at], int(d.Minutes())
			}
		}
		st.state = strings.TrimRight(st.state, " 0123456789")
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
	unclocked := unclock(d.stacks)
	pic := lookAt(d)
	r := attach.Reading{Title: fmt.Sprintf("goroutines as delve lists them, %d", len(d.stacks)),
		State: attach.Healthy, Glance: true,
		Facts: []attach.Fact{{Name: FactGoroutines, Value: float64(len(d.stacks))}}}
	r.Figures = []string{pic.kindsText()}
	parked := 0
	for _, st := range d.stacks {
		if len(st.frames) > 0 && st.frames[len(st.frames)-1].fn == "runtime.gopark" {
			parked++
		}
	}
	assists := pic.assists()
	r.Figures = append(r.Figures, assists...)
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
	if len(assists) > 0 && r.State == attach.Healthy {
		r.State = attach.CannotTell
		r.Means = "who allocates waits for GC to mark, if this delve knows the program's version of Go; " + r.Means
		r.Next = []attach.Next{{Command: "(dlv) goroutines -t", Why: "the stack of each goroutine"}}
	}
	if d.total > len(d.stacks) && len(d.stacks) > 0 {
		r.Title += fmt.Sprintf(" of %d (the rest is cut off)", d.total)
		r.State = attach.CannotTell
		r.Means += fmt.Sprintf("; the other %d goroutines are cut off", d.total-len(d.stacks))
	}
	if len(d.stacks) == 1 && r.State == attach.Healthy {
		r.State = attach.CannotTell
		r.Means = "one goroutine says where it is, and nothing of the others"
	}
	r.Not = "how long each has waited: a debugger stops the program at one moment"
	if unclocked {
		r.Not = "how long each has waited: the lengths it prints count from 1970, since a dump has no clock"
	}
	pic.readLocks(&r)
	pic.readTurns(&r)
	if r.State == attach.Healthy { // one moment, which a debugger chose
		r.State = attach.CannotTell
	}
	return r
}

// readTurns names the pools for whose turn goroutines wait, where one place is all that is known of
// each.
func (p *picture) readTurns(r *attach.Reading) {
	for i, what := range byMost(p.pools) {
		line := fmt.Sprintf("%s for %s", waits(p.pools[what]), what)
		r.Figures = append([]string{line}, r.Figures...)
		if i > 0 || p.pools[what] < fewWaiters || len(r.Signs) > 0 {
			continue
		}
		r.State = attach.CannotTell
		r.Means = "goroutines wait for a turn in this moment; who has the others, and for how long, is not in the text"
		r.Signs = append(r.Signs, attach.Sign{Cause: "pool-exhaustion", Grade: attach.Candidate,
			Share: ratio(float64(p.pools[what]), float64(p.n)), Proof: []string{line}})
		r.Next = append(r.Next, attach.Next{Command: "(dlv) goroutines -t",
			Why: "the stack of each goroutine: who has a turn, and what it does"})
	}
}

// longestWait is more minutes than any program has run.
const longestWait = 10 * 365 * 24 * 60

// unclock takes off waits that count from 1970, and reports whether there are any.
func unclock(stacks []*stack) (any bool) {
	for _, s := range stacks {
		if s.minutes > longestWait {
			s.minutes, any = 0, true
		}
	}
	return any
}

// assists names the places that wait for GC to mark, two at most.
func (p *picture) assists() (out []string) {
	n := map[string]int{}
	for i, s := range p.stacks {
		if p.waits[i].kind == waitAssist {
			n[s.own().fn+at(s.own().at)] += s.count
		}
	}
	for _, place := range byMost(n)[:min(2, len(n))] {
		out = append(out, fmt.Sprintf("%d in GC assist wait in %s", n[place], place))
	}
	return out
}

// delveStack is what bt and stack print in delve: one goroutine's frames.
var delveStack = &attach.Kind{
	Name:  "delve stack",
	Hints: []string{"  0x0", " in ", "Thread ", "Goroutine ", "Switched from "},
	Claim: claimDelveStack,
	Read:  readDelveStack,
}

// delvePlace is what goroutine prints: "Goroutine 1:", "\tUser: ./main.go:12 main.main (0x4a5d6f)".
var delvePlace = pattern.New(`^\s*(Thread \d+ at \S+:\d+|Goroutine \d+:|(Runtime|User|Go|Start): \S+:\d+ \S+ \(0x[0-9a-f]+\)|Switched from \d+ to \d+ \(thread \d+\)|\(truncated\)|error: .*)$`)

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

// shownCallers is how many callers tell where a stack is whose frames are all a library's.
const shownCallers = 5

// callers names who called the innermost frame: the first that is no library's, or the nearest ones
// where all are. A switch to the system's stack is no call of anybody's.
func (s *stack) callers() string {
	if own := s.own().fn; own != s.frames[0].fn && !strings.HasPrefix(own, "runtime") {
		return own
	}
	var out []string
	for _, f := range s.frames[1:] {
		if len(out) < shownCallers && !strings.HasPrefix(f.fn, "runtime.systemstack") {
			out = append(out, f.fn)
		}
	}
	return strings.Join(out, ", which is called by ")
}

func readDelveStack(p *attach.Part) attach.Reading {
	st := &stack{count: 1}
	for _, line := range p.Lines {
		if m := delveFrame.FindStringSubmatch(line.Text); m != nil && len(st.frames) < 256 {
			st.frames = append(st.frames, frame{fn: m[1]})
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("a goroutine's stack as delve prints it, %d frames",
		len(st.frames)), State: attach.CannotTell, Glance: true}
	if len(st.frames) == 0 {
		r.Means = "no frame of it could be read"
		return r
	}
	r.Figures = []string{"it is in " + st.frames[0].fn}
	if callers := st.callers(); callers != "" {
		r.Figures = append(r.Figures, "called by "+callers)
	}
	r.Means = "where one goroutine is at one moment; nothing of the others"
	r.Not = "how long it has been there, and whether anybody waits for it: a debugger stops the program at one moment"
	r.Next = []attach.Next{{Command: "goroutines -t, in delve; or kill -QUIT PID",
		Why: "the stacks of all goroutines: who waits for whom"}}
	return r
}
