package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/thread"
	"github.com/whystall/whystall/internal/timeline"
)

// ps adds lanes of who held the Ps: those that threads of the chain held, then the busiest.
func (t *teller) ps(s *account.Story) {
	lanes := map[int32]*pLane{}
	for _, h := range t.holds() {
		l := lanes[h.P]
		if l == nil {
			l = &pLane{number: h.P}
			lanes[h.P] = l
		}
		l.ns += h.End - h.Begin
		if t.own[h.Thread] {
			l.own += h.End - h.Begin
		}
		l.spans = append(l.spans, t.held(&h))
	}
	l := slices.SortedFunc(maps.Values(lanes), func(a, b *pLane) int {
		return cmp.Or(cmp.Compare(b.own, a.own), cmp.Compare(b.ns, a.ns), cmp.Compare(a.number, b.number))
	})
	if len(l) > account.MostLanes {
		t.Cut = true
		l = l[:account.MostLanes]
	}
	slices.SortFunc(l, func(a, b *pLane) int { return cmp.Compare(a.number, b.number) })
	for _, x := range l {
		s.Lanes = append(s.Lanes, account.Lane{Kind: account.LaneP, ID: int64(x.number),
			Spans: thread.Spans(x.spans, t.hi-t.lo)})
	}
}

type pLane struct {
	number  int32
	ns, own int64 // held at all, and by threads of the chain
	spans   []account.Span
}

// pHold is a hold, or several short ones of a P one after another: it is then what the longest was.
type pHold struct {
	timeline.Hold
	longest int64
	several int
}

func (t *teller) held(h *pHold) account.Span {
	x := account.Span{Begin: t.p.tl.Abs(h.Begin), End: t.p.tl.Abs(h.End), State: account.LeafOnCPU,
		Detail: t.Name(t.p.Occupant(h.Holder, nil).Who)}
	if h.Thread != 0 {
		x.On = t.Name(fmt.Sprintf("thread %d", cmp.Or(t.host(h.Thread), h.Thread)))
	}
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
	last := map[int32]int{} // of each P: its last in l, and one more
	short := max(1, (t.hi-t.lo)/1000)
	keep := func(h timeline.Hold) {
		h.Begin, h.End = max(h.Begin, t.lo), min(h.End, t.hi)
		if h.Begin >= h.End {
			return
		}
		if i := last[h.P] - 1; i >= 0 && l[i].joins(&h, short) {
			return
		}
		if len(l) < mostHolds {
			l = append(l, pHold{h, h.End - h.Begin, 1})
			last[h.P] = len(l)
		}
	}
	t.p.tl.Holds(t.lo, t.hi, func(b *timeline.HoldBlock) {
		for i := range b.Len() {
			keep(b.At(i))
		}
	}, keep)
	slices.SortFunc(l, func(a, b pHold) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End), cmp.Compare(a.P, b.P))
	})
	return l
}

// joins adds h, which is of the same P and later, if it goes on or both are short.
func (x *pHold) joins(h *timeline.Hold, short int64) bool {
	switch ns, gap := h.End-h.Begin, h.Begin-x.End; {
	case gap == 0 && h.Holder == x.Holder && h.Thread == x.Thread && x.several == 1: // cut by a border of the history
		x.longest += ns
	case gap >= 0 && gap < short/4 && x.longest < short && ns < short && h.End-x.Begin < 4*short:
		x.several++
		if ns > x.longest {
			x.longest, x.Holder, x.Thread = ns, h.Holder, h.Thread
		}
	default:
		return false
	}
	x.End = h.End
	return true
}
