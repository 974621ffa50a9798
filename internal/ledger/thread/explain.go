package thread

import (
	"cmp"
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// explain fills in k's facts: the pieces of the unit's story, as accounts.
func (t *pass) explain(k *books.Kept, u *unit.Unit) {
	t.books.Facts().Reset()
	t.booked, t.cursor, t.explained = 0, u.Begin, u
	t.walk.edges = edgesOf(u)
	t.walk.Thread(u.TID, u.Begin, u.End, t.take)
	t.walk.edges = edges{}
	k.Limited = t.walk.limited()
	t.books.TakeFacts(k)
	if t.err == nil && (t.booked != u.End-u.Begin || t.cursor != u.End) {
		t.err = fmt.Errorf("account for thread %d from %d ns: internal error: pieces add up to %d ns of %d", u.TID, u.Begin, t.booked, u.End-u.Begin)
	}
}

func edgesOf(u *unit.Unit) edges {
	e := edges{joiner: u.Joiner}
	if u.Begin < u.Taken {
		e.taken = u.Taken
	}
	return e
}

// part is what is booked of a piece at once: all of it or, in the run queue, the share of one
// thread that had the CPU.
type part struct {
	ns       int64
	detail   uint32
	occupant uint32 // the thread that had the CPU
	measured bool
}

// take books one piece of the explained unit.
func (t *pass) take(q *Piece) {
	if q.Lo == t.cursor {
		t.cursor = q.Hi
	}
	measured := isMeasured(q)
	left := q.Hi - q.Lo
	if q.Leaf != books.LeafNoCPU {
		t.book(q, part{ns: left, occupant: sched.NobodyKnown, measured: measured})
		return
	}
	for _, s := range q.Shares {
		ns := min(s.NS, left)
		if s.TID == sched.NobodyKnown || ns <= 0 {
			continue
		}
		left -= ns
		t.book(q, part{ns: ns, detail: t.words.Behind(s.TID, q.Lo).Detail, occupant: s.TID, measured: measured})
	}
	if left > 0 {
		t.book(q, part{ns: left, occupant: sched.NobodyKnown})
	}
}

// isMeasured reports whether both ends of a piece are events.
func isMeasured(q *Piece) bool {
	if isInferred(q) {
		return false
	}
	switch {
	case q.Leaf >= books.LeafLockBetween && q.Leaf <= books.LeafOther, q.Leaf == books.LeafMissing,
		q.Leaf == books.LeafLock:
		return false
	case q.Leaf == books.LeafThrottled:
		return !q.State.ByGroup
	case q.State.Sampled:
		return false
	}
	return true
}

// isInferred reports whether a piece was reached over an inferred hop.
func isInferred(q *Piece) bool {
	for i := range q.Hops {
		if q.Hops[i].Inferred {
			return true
		}
	}
	return false
}

// book books a part of a piece: its time goes to an account, and facts beside it say what else is
// known of that time.
func (t *pass) book(q *Piece, p part) {
	t.booked += p.ns
	hops, unborn := unitHops(q)
	key, futex := t.accountKey(q, p.detail, hops, unborn)
	acct := t.books.Number(key)
	c := t.books.Facts()
	c.Add(acct, books.FactNS, 0, p.ns)
	if len(hops) > 0 {
		c.Add(acct, books.FactActor, q.TID, 0)
	}
	if unborn {
		c.Add(acct, books.FactNewborn, 0, p.ns)
	} else if len(hops) > 0 {
		switch ns, permit := t.turns.ofOthers(t.explained, &hops[0], q.Lo, q.Hi); {
		case ns == 0:
		case permit:
			c.Add(acct, books.FactPermit, 0, account.MulDiv(p.ns, ns, q.Hi-q.Lo))
		default:
			c.Add(acct, books.FactServing, 0, account.MulDiv(p.ns, ns, q.Hi-q.Lo))
		}
	}
	if q.State.Doing == sched.Blocked {
		if place := t.detail(t.siteOf(q.TID, &q.State)); place != 0 {
			c.Add(acct, books.FactStack, place, p.ns)
			c.Add(acct, books.FactStackN, place, 1)
		}
	}
	if futex != 0 {
		c.Add(acct, books.FactLock, t.lock(futex), p.ns)
	}
	for i := range hops {
		if h := &hops[i]; i > 0 && h.kind == hopLock {
			c.Add(acct, books.FactThrough, t.detail(t.namedSite(&h.wait, h.wait.User)), p.ns)
			break
		}
	}
	t.runtimeFacts(q, acct, p.ns)
	if isInferred(q) {
		c.Add(acct, books.FactInferred, 0, p.ns)
	}
	if q.Leaf == books.LeafNoCPU {
		c.Add(acct, books.FactBehind, t.words.Ref(p.occupant), p.ns)
		if !unborn && t.walk.lives().Making(q.TID, &q.State) {
			c.Add(acct, books.FactNewborn, 0, p.ns)
		}
	}
	if q.Leaf == books.LeafOnCPU {
		c.Sampled(acct, t.samples.In(q.TID, q.Lo, q.Hi))
	}
	if p.measured {
		c.Add(acct, books.FactMeasured, 0, p.ns)
	}
}

// unitHops is the hops of a piece as the unit's account sees them. unborn reports whether the piece
// is before the birth of the unit's thread or after its end. Another thread does the waiting then,
// so its hop is left out where that thread waited for a third one.
func unitHops(q *Piece) (hops []Hop, unborn bool) {
	unborn = len(q.Hops) > 0 && q.Hops[0].kind == hopMaker
	if unborn && len(q.Hops) > 1 {
		return q.Hops[1:], true
	}
	return q.Hops, unborn
}

// accountKey is the account of a piece, and the futex of the lock that the unit waits for; 0: none.
// The class and the site are those of the unit's own wait, the first hop. The leaf and the actor
// are those of the thread that the hops lead to.
func (t *pass) accountKey(q *Piece, detail uint32, hops []Hop, unborn bool) (key books.Key, futex uint64) {
	key = books.Key{Class: classOfLeaf(q.Leaf), Leaf: q.Leaf, Detail: detail}
	wait, waiter := &q.State, q.TID
	if len(hops) > 0 {
		h := &hops[0]
		if !unborn || h.kind != hopMaker {
			wait, waiter = &h.wait, h.waiter
		}
		if key.Class = books.ClassMessage; h.kind == hopLock {
			key.Class, futex = books.ClassLock, t.k.FutexAddr(&h.wait)
		}
		key.Actor = t.actor(q.TID, q.Lo)
	} else if key.Class == books.ClassLock {
		futex = t.k.FutexAddr(&q.State)
	}
	if wait.Doing == sched.Blocked && (len(hops) > 0 || q.Leaf.HasSite() || key.Class == books.ClassLock) {
		key.Site = t.detail(t.siteOf(waiter, wait))
	}
	if q.Leaf == books.LeafAsleep {
		key.Detail = t.words.Slept(&q.State)
	}
	return key, futex
}

// actor is the number of a thread's name, which is that of all threads of its kind.
func (t *pass) actor(tid uint32, at int64) uint32 {
	id, ok := t.actors[tid]
	if !ok {
		name := t.units.Name(tid, at)
		if name == "" {
			th, _ := t.k.Name(tid, at)
			name = unit.CommPattern(th.Comm)
		}
		id = t.names.Number(cmp.Or(name, "unknown"))
		t.actors[tid] = id
	}
	return id
}
