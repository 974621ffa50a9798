package ledger

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/timeline"
)

// ps adds lanes of who held the Ps. The history keeps no number of a P: a stretch goes to the lane
// whose last holder had the same thread, which seldom changes its P, else to any that is free.
func (t *teller) ps(s *account.Story) {
	var lanes []pLane
	for _, h := range t.holds() {
		i := slices.IndexFunc(lanes, func(l pLane) bool { return l.end <= h.Begin && l.thread == h.Thread })
		if i < 0 {
			i = slices.IndexFunc(lanes, func(l pLane) bool { return l.end <= h.Begin })
		}
		if i < 0 {
			if len(lanes) == account.MostLanes {
				t.Cut = true
				continue
			}
			i = len(lanes)
			lanes = append(lanes, pLane{})
		}
		lanes[i].add(t, h)
	}
	for i := range lanes {
		s.Lanes = append(s.Lanes, account.Lane{Kind: account.LaneP, ID: int64(i), Spans: thread.Spans(lanes[i].spans, t.hi-t.lo)})
	}
}

type pLane struct {
	end            int64
	thread, holder uint32
	spans          []account.Span
}

// add continues the last stretch, which a border of the history may have cut, or starts one.
func (l *pLane) add(t *teller, h timeline.Hold) {
	tl := t.p.tl
	n := len(l.spans)
	if n > 0 && l.end == h.Begin && l.thread == h.Thread && l.holder == h.Holder {
		l.spans[n-1].End = tl.Abs(h.End)
	} else {
		who := t.p.Occupant(h.Holder, nil).Who
		l.spans = append(l.spans, account.Span{Begin: tl.Abs(h.Begin), End: tl.Abs(h.End), State: account.LeafOnCPU, Detail: t.Name(who)})
	}
	l.end, l.thread, l.holder = h.End, h.Thread, h.Holder
}

// holds is who held a P during the request, by their starts.
func (t *teller) holds() (l []timeline.Hold) {
	keep := func(h timeline.Hold) {
		h.Begin, h.End = max(h.Begin, t.lo), min(h.End, t.hi)
		switch {
		case h.Begin >= h.End:
		case len(l) == mostPieces:
			t.Cut = true
		default:
			l = append(l, h)
		}
	}
	t.p.tl.Holds(t.lo, t.hi, func(b *timeline.HoldBlock) {
		for i := range b.Len() {
			keep(b.At(i))
		}
	}, keep)
	slices.SortFunc(l, func(a, b timeline.Hold) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Holder, b.Holder))
	})
	return l
}
