package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// goroutineStates is a count of goroutines by their state, as sort and uniq -c make it of a dump's
// headers: "1910 [semacquire, 3 minutes]:".
var goroutineStates = &attach.Kind{
	Name:    "goroutine states, counted",
	Hints:   []string{" ["},
	Claim:   claimStates,
	Reports: true,
	Read:    readStates,
}

var stateCount = pattern.New(`^\s*([1-9]\d{0,8})\s+(?:goroutine )?\[([A-Za-z][^\[\],]*)((?:, [^\[\],]+)*)\]:?$`)

// counted parses a row of such a table.
func counted(text string) (s stack, ok bool) {
	m := stateCount.FindStringSubmatch(text)
	if m == nil {
		return s, false
	}
	if s, ok = parseHeader("goroutine 0 [" + m[2] + m[3] + "]:"); !ok {
		return s, false
	}
	s.count, _ = whole(m[1])
	return s, strings.HasPrefix(s.state, "sync.") || stateKind(&s) != waitOther
}

// leastStates is how many rows make such a table, and onlyGo how many of them have a state that
// only Go has: other tools count what is running, asleep or idle as well.
const (
	leastStates = 3
	onlyGo      = 2
)

func claimStates(lines []paste.Line) int {
	rows, sure := 0, 0
	end := attach.ClaimWhile(lines, func(_ int, text string) bool {
		s, ok := counted(text)
		if !ok {
			return false
		}
		rows++
		for _, p := range []string{"chan ", "select", "semacquire", "IO wait", "sync.", "GC "} {
			if strings.HasPrefix(s.state, p) {
				sure++
				break
			}
		}
		return true
	})
	return attach.ClaimIf(rows >= leastStates && sure >= onlyGo, end)
}

func readStates(p *attach.Part) attach.Reading {
	byState, oldest, n, rows := map[string]int{}, 0, 0, 0
	for _, l := range p.Lines {
		s, ok := counted(l.Text)
		if !ok {
			continue
		}
		rows++
		n += s.count
		byState[s.state] += s.count
		oldest = max(oldest, s.minutes)
	}
	var parts []string
	for i, state := range byMost(byState) {
		if i == 5 {
			break
		}
		parts = append(parts, fmt.Sprintf("%d in %s", byState[state], state))
	}
	r := attach.Reading{Title: fmt.Sprintf("goroutines counted by state, %d in %d rows", n, rows),
		State: attach.CannotTell, Glance: true, Figures: []string{strings.Join(parts, ", ")},
		Means: "how many goroutines are in which state at one moment; where they are is not in it",
		Not:   "that a state with many is a fault: who waits for work, or for the other side of an idle connection, is in one of them too",
		Next: []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/goroutine?debug=1'",
			Why: "the largest groups, with their stacks"}}}
	if oldest > 0 {
		r.Figures = append(r.Figures, "the longest wait "+count(oldest, "minute", "minutes"))
	}
	if waiting := byState["semacquire"]; waiting >= fewWaiters {
		r.Means += fmt.Sprintf("; the %d in semacquire wait for a lock or for a WaitGroup", waiting)
	}
	locked, names := 0, []string(nil)
	for _, state := range []string{"sync.Mutex.Lock", "sync.RWMutex.Lock", "sync.RWMutex.RLock"} {
		if byState[state] > 0 {
			locked += byState[state]
			names = append(names, fmt.Sprintf("%d in %s", byState[state], state))
		}
	}
	if locked >= manyWaiters {
		r.Signs = []attach.Sign{{Cause: "lock-contention", Grade: attach.Candidate,
			Share: ratio(float64(locked), float64(n)), Proof: []string{strings.Join(names, ", ")}}}
	}
	return r
}
