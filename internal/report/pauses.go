package report

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// longest gives the pauses that are printed, and in words which of how many they are: those that cost slow requests
// most, or, where none is known to, the longest for a measure.
func (r *Report) longest() (bs []Barrier, of string) {
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
	of = plural(int64(len(bs)), "long stop-the-world or barrier", "long stop-the-worlds and barriers")
	switch {
	case bs[0].SlowNS == 0 && len(bs) == 1:
		return bs, of + ", which held no slow request up"
	case bs[0].SlowNS == 0:
		return bs[:1], "the longest of " + of + ", none of which held a slow request up"
	case len(bs) > maxBarriers:
		return bs[:maxBarriers], fmt.Sprintf("the %d of %s that cost slow requests most", maxBarriers, of)
	}
	return bs, of
}

func (b *Barrier) words() string {
	at := ""
	if b.UTC != nil {
		at = " at " + timeOfDay(*b.UTC)
	}
	s := fmt.Sprintf("%s%s: %s", finding.Duration(b.End-b.Begin), at, b.Kind)
	if b.Kind != account.SafePoint {
		s += fmt.Sprintf(", world stopped %s, then only its initiator delayed %s", finding.Duration(b.StoppedNS), finding.Duration(b.DelayedNS))
	} else {
		s = fmt.Sprintf("%s%s: ragged barrier, no world stopped", finding.Duration(b.End-b.Begin), at)
	}
	switch {
	case b.Awaited != 0 && b.ByNote:
		s += fmt.Sprintf("; awaited: thread %d, which woke the initiator", b.Awaited)
	case b.Awaited != 0:
		s += fmt.Sprintf("; awaited: thread %d, by the last P that stopped", b.Awaited)
	}
	if b.SlowNS > 0 {
		s += "; slow requests lost " + finding.Duration(b.SlowNS) + " in all"
	}
	if b.Grade != "" {
		s += "; " + string(b.Grade)
	}
	return s
}

// fairWords tells how much a covering alone would prove.
func fairWords(f *account.Fair) string {
	if f.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("fair control: of %s pairs of events of one thread, as far apart as a pause is long, %s look as if something had held the thread up (%s with it running again just before the end): looking so proves nothing, who woke whom does",
		count(f.Pairs), percent(share(f.Covered, f.Pairs)), percent(share(f.Edge, f.Pairs)))
}
