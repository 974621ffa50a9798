package thread

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// addStates adds a unit to its group's column of all, by the thread's own states: its waits are not
// followed. It returns how long the unit was on a CPU.
func (t *pass) addStates(grp *books.Group, u *unit.Unit) (running int64) {
	c := &grp.All
	c.Wall += u.End - u.Begin
	t.buf = t.k.Stretches(u.TID, u.Begin, u.End, t.buf[:0])
	for i := range t.buf {
		s := &t.buf[i]
		class, leaf := t.stateLeaf(s)
		if leaf == books.LeafOnCPU && s.Begin < u.Taken {
			t.walk.take = func(q *Piece) { c.Add(classOfLeaf(q.Leaf), q.Leaf, 0, q.Hi-q.Lo) }
			if s = t.walk.unread(u.TID, s, u.Taken); s.Begin == s.End {
				continue
			}
		}
		if leaf == books.LeafOnCPU {
			running += s.End - s.Begin
		}
		place := uint32(0)
		if s.Doing == sched.Blocked {
			place = t.detail(t.siteOf(u.TID, s))
		}
		c.Add(class, leaf, place, s.End-s.Begin)
		if leaf == books.LeafOnCPU {
			c.Sampled(t.samples.In(u.TID, s.Begin, s.End))
		}
	}
	return running
}

// stateLeaf is the class and the leaf of a thread's own stretch.
func (t *pass) stateLeaf(s *sched.Stretch) (books.Class, books.Leaf) {
	leaf, _ := LeafOf(s)
	if s.Doing != sched.Blocked {
		return books.ClassOwn, leaf
	}
	if t.walk.isLock(s) {
		leaf = books.LeafLock
	}
	return classOfLeaf(leaf), leaf
}
