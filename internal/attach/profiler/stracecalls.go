package profiler

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// callSum is all calls of one name.
type callSum struct {
	name    string
	n       int
	seconds float64
	longest float64 // of a summary, which has no single calls
	each    []float64
	errs    map[string]int
	addr    string // of a futex, if all calls are on one
	mixed   bool
}

// callTrace is the calls of a trace.
type callTrace struct {
	byName  map[string]*callSum
	n       int
	span    float64 // s, by the lines' clock
	timed   bool    // lines have the time that calls took
	threads map[int]bool
	longest tracedCall // of those that do not idle
	pending int
	gap     tracedCall        // of one thread's trace with stamps: the call with most time to the next line
	pid     int               // of the process that was traced; 0: not named
	between float64           // s from calls that wait for work, time or a lock to the next line
	limits  ownLimits         // calls that ended by them
	spin    hangUp            // a hang-up that is reported and left
	ready   readyLoop         // events that are reported and left
	command string            // that made the trace
	open    map[int]string    // by thread: its last call, which did not end
	stuck   map[int]futexWait // by thread: for what it waits without a limit of time, and had not got it at the end
}

func newCallTrace() *callTrace {
	return &callTrace{byName: map[string]*callSum{}, threads: map[int]bool{}, open: map[int]string{},
		stuck: map[int]futexWait{}}
}

func (t *callTrace) add(c *tracedCall) {
	t.threads[c.tid] = true
	delete(t.stuck, c.tid)
	if c.futex.addr != "" && len(t.stuck) < most {
		t.stuck[c.tid] = c.futex
	}
	delete(t.open, c.tid)
	if c.open {
		t.pending++
		if len(t.open) < most {
			t.open[c.tid] = c.name
		}
		return
	}
	if c.restart && len(t.open) < most { // the last call of a thread that strace was told to leave
		t.open[c.tid] = c.name
	}
	if c.resumed && t.pending > 0 {
		t.pending--
	}
	s := t.byName[c.name]
	if s == nil {
		if len(t.byName) >= 4096 {
			return
		}
		s = &callSum{name: c.name, errs: map[string]int{}}
		t.byName[c.name] = s
	}
	t.n++
	s.n++
	s.mixed = s.mixed || s.n > 1 && c.addr != s.addr
	s.addr = c.addr
	if c.errno != "" {
		s.errs[c.errno]++
	}
	if c.seconds < 0 {
		return
	}
	t.timed = true
	s.seconds += c.seconds
	if len(s.each) < most {
		s.each = append(s.each, c.seconds)
	}
	if k := callWaits[c.name]; k != waitIdle && k != waitLock && k != waitChild && c.seconds > t.longest.seconds {
		t.longest = *c
	}
}

// sums lists the calls by the time that they took, or by number where none is said.
func (t *callTrace) sums() []*callSum {
	out := make([]*callSum, 0, len(t.byName))
	for _, s := range t.byName {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *callSum) int {
		return cmp.Or(cmp.Compare(b.seconds, a.seconds), cmp.Compare(b.n, a.n), cmp.Compare(a.name, b.name))
	})
	return out
}

// says is a line about one call.
func (s *callSum) says() string {
	line := fmt.Sprintf("%s: %s", s.name, attach.Plural(s.n, "call"))
	if s.n > 1 && !s.mixed && s.addr != "" {
		line += ", all on " + s.addr
	}
	if len(s.each) > 0 {
		each := slices.Sorted(slices.Values(s.each))
		line += fmt.Sprintf(", median %s, longest %s, %s in all", lasts(attach.Median(each)),
			lasts(each[len(each)-1]), lasts(s.seconds))
	}
	for _, e := range slices.SortedFunc(mapNames(s.errs),
		func(a, b string) int { return cmp.Or(cmp.Compare(s.errs[b], s.errs[a]), cmp.Compare(a, b)) }) {
		line += fmt.Sprintf(", %d (%s) with %s", s.errs[e], pct(float64(s.errs[e])/float64(s.n)), e)
		break
	}
	return line
}
