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
	most := min(account.MostLanes, max(1, t.p.tl.Procs()))
	for _, h := range t.holds() {
		i := slices.IndexFunc(lanes, func(l pLane) bool { return l.end <= h.Begin && l.thread == h.Thread })
		if i < 0 {
			i = slices.IndexFunc(lanes, func(l pLane) bool { return l.end <= h.Begin })
		}
		if i < 0 {
			if len(lanes) == most {
				continue // short ones were joined across it
			}
			i = len(lanes)
			lanes = append(lanes, pLane{})
		}
		lanes[i].end, lanes[i].thread = h.End, h.Thread
		lanes[i].spans = append(lanes[i].spans, t.held(&h))
	}
	for i := range lanes {
		s.Lanes = append(s.Lanes, account.Lane{Kind: account.LaneP, ID: int64(i), Spans: thread.Spans(lanes[i].spans, t.hi-t.lo)})
	}
}

type pLane struct {
	end    int64
	thread uint32
	spans  []account.Span
}

// pHold is a hold, or several short ones of a thread one after another: it is then what the longest
// was.
type pHold struct {
	timeline.Hold
	longest int64
	several int
}

func (t *teller) held(h *pHold) account.Span {
	x := account.Span{Begin: t.p.tl.Abs(h.Begin), End: t.p.tl.Abs(h.End), State: account.LeafOnCPU, Detail: t.Name(t.p.Occupant(h.Holder, nil).Who)}
	if h.several > 1 {
		x.Several = h.several
	}
	return x
}

// mostHolds bounds the holds of a story, once short ones were joined.
const mostHolds = 1 << 12

// holds is who held a P during the request, by their starts. A long request has hundreds of
// thousands, most of them too short to be seen, so they are joined at once.
func (t *teller) holds() (l []pHold) {
	last := map[uint32]int{} // of each thread: its last in l, and one more
	short := max(1, (t.hi-t.lo)/1000)
	keep := func(h timeline.Hold) {
		h.Begin, h.End = max(h.Begin, t.lo), min(h.End, t.hi)
		if h.Begin >= h.End {
			return
		}
		if i := last[h.Thread] - 1; i >= 0 && h.Thread != 0 {
			if x := &l[i]; x.joins(&h, short) {
				return
			}
		}
		if len(l) < mostHolds {
			l = append(l, pHold{h, h.End - h.Begin, 1})
			last[h.Thread] = len(l)
		}
	}
	t.p.tl.Holds(t.lo, t.hi, func(b *timeline.HoldBlock) {
		for i := range b.Len() {
			keep(b.At(i))
		}
	}, keep)
	slices.SortFunc(l, func(a, b pHold) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Holder, b.Holder))
	})
	return l
}

// joins adds h, which is of the same thread and later, if it goes on or both are short.
func (x *pHold) joins(h *timeline.Hold, short int64) bool {
	switch ns, gap := h.End-h.Begin, h.Begin-x.End; {
	case gap == 0 && h.Holder == x.Holder && x.several == 1: // cut by a border of the history
		x.longest += ns
	case gap >= 0 && gap < short/4 && x.longest < short && ns < short && h.End-x.Begin < 4*short:
		x.several++
		if ns > x.longest {
			x.longest, x.Holder = ns, h.Holder
		}
	default:
		return false
	}
	x.End = h.End
	return true
}
