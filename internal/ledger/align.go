package ledger

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// alignment checks the two clocks and the records against each other: a thread that changes a
// goroutine's state is on a CPU. See docs/join.md, "9. Clocks and controls".
type alignment struct {
	a *sched.Aligner
}

// event takes an event of the trace.
func (x *alignment) event(j *joiner, ev *exectrace.Event) {
	if x.a == nil {
		x.a = j.k.Aligner()
	}
	x.a.Event(ev)
}

// sum is what was found.
func (x *alignment) sum() account.Align {
	if x.a == nil {
		return account.Align{}
	}
	s := x.a.Result()
	return account.Align{Transitions: s.Transitions, OffCPU: s.OffCPU, Dropped: s.Dropped, MinNS: s.MinNS}
}

const (
	longPause = 2e6 // the fair control is made for pauses from this length on
	mostFair  = 50  // lengths, and pairs of each
)

// fair is the fair control for the long stop-the-worlds.
func (x *alignment) fair(list []timeline.STW) account.Fair {
	var lengths []int64
	for i := range list {
		if d := list[i].End - list[i].Begin; list[i].End != 0 && d >= longPause {
			lengths = append(lengths, d)
		}
	}
	if x.a == nil || len(lengths) == 0 {
		return account.Fair{}
	}
	slices.SortFunc(lengths, func(a, b int64) int { return cmp.Compare(b, a) })
	c := x.a.Fair(lengths[:min(len(lengths), mostFair)], mostFair)
	return account.Fair{Pairs: c.N, Covered: c.Covered, Edge: c.Edge}
}
