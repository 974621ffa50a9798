package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

const leastStandstill = 10e6 // shorter ones are every busy machine's

// Standstills lists those of at least least ns, the longest first. A run of up to 50 us does not end one, as that in which a throttled
// thread is switched out again: it is too short for any work.
func Standstills(k *sched.Timeline, least int64) (l []account.Standstill) {
	const blip = 50_000
	lo, hi := k.Span()
	var s account.Standstill
	flush := func() {
		if d := s.End - s.Begin; d >= least && d > 0 {
			l = append(l, s)
		}
		s = account.Standstill{}
	}
	for _, t := range k.Process(lo, hi, nil) {
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
			// it ends the stretch only if nothing waits after it
		default:
			flush()
		}
	}
	flush()
	slices.SortStableFunc(l, func(a, b account.Standstill) int { return cmp.Compare(b.End-b.Begin, a.End-a.Begin) })
	return l
}
