package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

const (
	leastStandstill = 10e6   // ns; shorter ones every busy machine has
	blip            = 50_000 // ns; a shorter run is no work: a throttled thread is switched out again
)

// Standstills lists the standstills of at least least ns, the longest first: stretches in which no
// thread of the target ran, though one was queued or throttled. A blip ends none, if the target
// waits on after it.
func Standstills(k *sched.Timeline, least int64) (l []account.Standstill) {
	begin, end := k.Span()
	var s account.Standstill // the one under way; Begin is 0 if there is none
	flush := func() {
		if d := s.End - s.Begin; d >= least && d > 0 {
			l = append(l, s)
		}
		s = account.Standstill{}
	}
	for _, t := range k.Process(begin, end, nil) {
		switch {
		case t.State == sched.ProcessThrottled || t.State == sched.ProcessQueued:
			if s.Begin == 0 {
				s.Begin = t.Begin
			}
			s.End = t.End
			if t.State == sched.ProcessThrottled {
				s.ThrottledNS += t.End - t.Begin
			}
		case t.State == sched.ProcessOn && t.End-t.Begin <= blip && s.Begin != 0:
			// it is part of the standstill only if that goes on: s.End does not move yet
		default:
			flush()
		}
	}
	flush()
	slices.SortStableFunc(l, func(a, b account.Standstill) int { return cmp.Compare(b.End-b.Begin, a.End-a.Begin) })
	return l
}
