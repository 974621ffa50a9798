package report

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// longest returns the pauses that are printed, and says which of how many they are. They are those
// that cost slow requests most. If none is known to have cost any, the longest shows the scale.
func (r *Report) longest() (bs []Barrier, which string) {
	if r.Kernel == nil || len(r.Kernel.Barriers) == 0 {
		return nil, ""
	}
	bs = slices.Clone(r.Kernel.Barriers)
	slices.SortStableFunc(bs, func(a, b Barrier) int {
		if a.SlowNS != b.SlowNS {
			return int(min(1, max(-1, b.SlowNS-a.SlowNS)))
		}
		return int(min(1, max(-1, (b.End-b.Begin)-(a.End-a.Begin))))
	})
	which = plural(int64(len(bs)), "long stop-the-world or barrier", "long stop-the-worlds and barriers")
	switch {
	case r.Requests.Count == 0 && len(bs) == 1:
		return bs, which
	case r.Requests.Count == 0:
		return bs[:1], "the longest of " + which
	case bs[0].SlowNS == 0 && len(bs) == 1:
		return bs, which + ", which held up no slow request"
	case bs[0].SlowNS == 0:
		return bs[:1], "the longest of " + which + ", none of which held up a slow request"
	case len(bs) > maxBarriers:
		return bs[:maxBarriers], fmt.Sprintf("the %d of %s that cost slow requests most", maxBarriers, which)
	}
	return bs, which
}

func (b *Barrier) words() string {
	at := ""
	if b.UTC != nil {
		at = " at " + timeOfDay(*b.UTC)
	}
	s := fmt.Sprintf("%s%s: %s", finding.Duration(b.End-b.Begin), at, b.Kind)
	if b.Kind != account.SafePoint {
		s += ", world stopped " + finding.Duration(b.StoppedNS)
		if b.DelayedNS > 0 {
			s += ", then only its initiator delayed " + finding.Duration(b.DelayedNS)
		}
	} else {
		s = fmt.Sprintf("%s%s: ragged barrier, the world was not stopped", finding.Duration(b.End-b.Begin), at)
	}
	switch {
	case b.Awaited != 0 && b.ByNote:
		s += fmt.Sprintf("; awaited: thread %d, which woke the initiator", b.Awaited)
	case b.Awaited != 0:
		s += fmt.Sprintf("; awaited: thread %d, which had the last P to stop", b.Awaited)
	}
	if b.SlowNS > 0 {
		s += "; slow requests lost " + finding.Duration(b.SlowNS) + " in all"
	}
	if b.Grade != "" {
		s += "; " + string(b.Grade)
	}
	return s
}

// fairWords says how little a coincidence in time alone would prove.
func fairWords(f *account.Fair) string {
	if f.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("fair control: of %s pairs of events of one thread, as far apart as a pause is long, %s look as if something had held the thread up (%s with it running again just before the end), so the coincidence alone proves nothing; only a recorded wake-up does",
		count(f.Pairs), percent(share(f.Covered, f.Pairs)), percent(share(f.Edge, f.Pairs)))
}
