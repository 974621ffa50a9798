package ledger

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// own adds [b,e) of g to the group's column of all. It books g's own states and follows no wait. It
// returns how long g ran, and when the request was there by the kernel's records, which may be
// before b.
func (p *pass) own(grp *books.Group, g *timeline.G, b, e, prevEnd int64) (running, begin int64) {
	tl, c := p.tl, &grp.All
	cursor := e
	emit := func(lo int64, class books.Class, leaf books.Leaf, stack uint32) {
		if lo < cursor {
			c.Add(class, leaf, stack, cursor-lo)
			cursor = lo
		}
	}
	tl.Pin(g)
	at, stale := tl.StaleAt(g)
	if stale {
		emit(max(b, at), books.ClassOwn, books.LeafGap, 0)
	}
	seq := uint32(g.Cur)
	for cursor > b {
		s := tl.Seg(seq)
		if s == nil {
			emit(b, books.ClassOwn, books.LeafLookback, 0)
			break
		}
		if n := len(p.hops); n > 0 && cursor == p.hops[n-1] && s.State() == timeline.Waiting {
			emit(b, books.ClassMessage, books.LeafOther, s.Stack) // others had the request until then
			break
		}
		if start := tl.Start(s); start < cursor {
			lo := max(start, b)
			switch state := s.State(); {
			case p.j != nil && (state == timeline.Running || state == timeline.Syscall || state == timeline.Runnable):
				running += p.ownJoined(grp, g, s, seq, lo, &cursor)
			case state == timeline.Running:
				running += cursor - lo
				emit(lo, books.ClassOwn, stateLeaf(s), 0)
			case state == timeline.Runnable:
				p.ownStoppable(lo, &cursor, c, books.ClassOwn, stateLeaf(s), 0)
			case state == timeline.Syscall:
				emit(lo, books.ClassOwn, stateLeaf(s), s.Stack)
			case state == timeline.Waiting:
				if prevEnd > lo { // the tail of the request before
					p.ownWait(max(lo, min(prevEnd, cursor)), &cursor, grp, g, s, seq, stale)
					emit(lo, books.ClassOwn, books.LeafPreviousEnd, 0)
				} else {
					p.ownWait(lo, &cursor, grp, g, s, seq, stale)
				}
			default:
				emit(lo, books.ClassOwn, stateLeaf(s), 0)
			}
		}
		if cursor <= b {
			if p.j == nil || s.State() != timeline.Runnable || s.Prev == 0 || tl.Start(s) != b {
				break
			}
			at, ok := p.j.ready.request(g.Ident, s.Prev, b)
			if !ok || at >= b {
				break
			}
			b = at
		}
		if len(p.hops) > 0 && s.Why() == timeline.WhyNewborn && s.State() == timeline.Runnable &&
			cursor == p.hops[len(p.hops)-1] {
			emit(b, books.ClassMessage, books.LeafOther, 0) // others had the request until then
			// A goroutine that was born inside has no past: its life is the activation, which does
			// not start before it.
		} else if leaf, ends := pastLeaf(s); ends {
			emit(b, books.ClassOwn, leaf, 0)
		} else {
			seq, stale = s.Prev, false
		}
	}
	c.Wall += e - b
	return running, b
}

func (p *pass) ownStoppable(lo int64, cursor *int64, c *books.All, class books.Class, leaf books.Leaf, stack uint32) {
	for *cursor > lo {
		begin, end, _, ok := p.tl.Stopped(lo, *cursor)
		if !ok {
			begin, end = lo, lo
		}
		if end < *cursor {
			c.Add(class, leaf, stack, *cursor-end)
		}
		if begin < end {
			c.Add(class, books.LeafSTW, 0, end-begin)
		}
		*cursor = begin
	}
}

func (p *pass) ownWait(lo int64, cursor *int64, grp *books.Group, g *timeline.G,
	s *timeline.Segment, seq uint32, stale bool) {
	if lo >= *cursor {
		return
	}
	c := &grp.All
	class, leaf := classOfWait(s.Wait(), s.EnderKind()), unfollowed(s, stale)
	if p.j != nil && p.ownJoinedWait(grp, g, s, seq, lo, cursor, class, leaf) {
		return
	}
	if collects(s.Wait()) {
		p.ownStoppable(lo, cursor, c, class, leaf, s.Stack)
		return
	}
	if followable(s) {
		leaf = books.LeafOther
	}
	c.Add(class, leaf, s.Stack, *cursor-lo)
	*cursor = lo
}
