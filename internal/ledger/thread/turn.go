package thread

import (
	"sort"

	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// A unit that waits for another thread may wait for its turn: what that thread does meanwhile is
// for other units. The order of wake-ups shows two cases:
//
//   - A permit. The thread that ends the wait is at a unit itself, and releases what both need: a
//     permit, a connection of a pool, an interpreter's lock.
//   - A worker. The thread that ends the wait is at no unit, and before has woken others that
//     waited for it as this unit does. Up to then it worked for them.
//
// How a wait is judged:
//
//  1. Only a wait for a message can be one for a turn: at a futex, which is neither a barrier's nor
//     a thread's end, at a pipe, or at a semaphore of System V.
//  2. The waker's wake-ups during the wait are read backwards from its end. Those with no more than
//     burstNS of work between them are one burst. All threads that a burst wakes waited for one and
//     the same thing.
//  3. The waker is at a unit when the wait ends: a permit. But the burst must have woken at most
//     one unit that waited alike, since a permit goes to one. And the waker's unit must not be a
//     helper of this one, woken by this waiter.
//  4. Else the waker is a worker, if before the burst it woke another unit that waited alike. The
//     last such wake-up is the end of its work for others.
//  5. Time for others is, with a permit, when the waker was at a unit; with a worker, up to the
//     wake-up of step 4.

// burstNS is how long a thread that wakes many for the same reason works between two of them.
const burstNS = 50e3

// turns judges waits for turns.
type turns struct {
	k     *sched.Timeline
	walk  *Walk
	units *unit.Set
	last  turn // a wait has many pieces: the wait that was judged last

	wakes     []sched.Waking
	stretches []sched.Stretch
}

// turn is the judgement of one wait, which waiter and end identify.
type turn struct {
	waiter uint32
	end    int64
	permit bool
	served int64 // of a worker: up to when it worked for others
}

func newTurns(w *Walk, units *unit.Set) *turns {
	return &turns{k: w.k, walk: w, units: units}
}

// ofOthers is how much of [lo,hi), in which h's waker was followed, was for other units than u.
// permit reports whether that is since the waker was at another unit itself.
func (t *turns) ofOthers(u *unit.Unit, h *Hop, lo, hi int64) (ns int64, permit bool) {
	if !t.mayQueue(h) {
		return 0, false
	}
	if t.last.waiter != h.waiter || t.last.end != h.wait.Whole.End {
		t.last = t.judge(u, h)
	}
	if !t.last.permit {
		return max(0, min(hi, t.last.served)-lo), false
	}
	l := t.units.Of(h.waker)
	for i := sort.Search(len(l), func(i int) bool { return l[i].End > lo }); i < len(l) && l[i].Taken < hi; i++ {
		ns += max(0, min(hi, l[i].End)-max(lo, l[i].Taken))
	}
	return ns, true
}

// mayQueue reports whether h can be a wait for a turn: step 1.
func (t *turns) mayQueue(h *Hop) bool {
	if h.kind != hopMessage || h.Inferred {
		return false
	}
	switch h.wait.Block {
	case sched.BlockFutex:
		f := t.k.FutexOf(&h.wait)
		return f == nil || f.Kind != sched.FutexBarrier && f.Kind != sched.FutexJoin
	case sched.BlockPipe: // a token in a pipe, a job at an eventfd
		return true
	}
	return t.walk.isSemaphore(&h.wait)
}

// judge finds out whether h, a wait of u's, was for a turn: steps 2 to 4.
func (t *turns) judge(u *unit.Unit, h *Hop) turn {
	begin, end := h.wait.Whole.Begin, h.wait.Whole.End
	r := turn{waiter: h.waiter, end: end}
	t.wakes = t.k.WakesBy(h.waker, begin, end+burstNS, t.wakes[:0])
	first, alike := end, 0 // the burst's start, and its units that waited alike
	i := len(t.wakes) - 1
	for ; i >= 0; i-- {
		w := &t.wakes[i]
		if t.worked(h.waker, w.Time, first) > burstNS {
			break
		}
		if t.unitAt(w.TID, w.Time) != nil && t.waitedAlike(h, w) {
			alike++ // the one that gets the permit need not be this waiter yet
		}
		first = min(first, w.Time)
	}
	if x := t.unitAt(h.waker, end); x != nil {
		helper := x.Waker == h.waiter && x.Taken >= u.Taken
		r.permit = alike <= 1 && !helper
		return r
	}
	for ; i >= 0; i-- {
		w := &t.wakes[i]
		if x := t.unitAt(w.TID, w.Time); w.TID != h.waiter && x != nil && x.Taken < w.Time && t.waitedAlike(h, w) {
			r.served = w.Time
			break
		}
	}
	return r
}

// unitAt is the listed unit that tid was in at a time; nil without one.
func (t *turns) unitAt(tid uint32, at int64) *unit.Unit {
	l := t.units.Of(tid)
	i := sort.Search(len(l), func(i int) bool { return l[i].End >= at })
	if i == len(l) || l[i].Taken > at || !t.units.Groups[l[i].Group].Listed {
		return nil
	}
	return &l[i]
}

// worked is for how long of [lo,hi) tid was not kept off its CPU. The threads that it wakes may put
// it off.
func (t *turns) worked(tid uint32, lo, hi int64) int64 {
	ns := hi - lo
	if ns <= burstNS {
		return ns
	}
	t.stretches = t.k.Stretches(tid, lo, hi, t.stretches[:0])
	for i := range t.stretches {
		if s := &t.stretches[i]; s.Doing == sched.Queued || s.Doing == sched.Throttled {
			ns -= s.End - s.Begin
		}
	}
	return ns
}

// waitedAlike reports whether the thread that w woke waited as h's waiter did: for the same thing,
// or in the same function, as far as that is known.
func (t *turns) waitedAlike(h *Hop, w *sched.Waking) bool {
	s := t.k.At(w.TID, w.Begin)
	if s.Doing != sched.Blocked || s.Block != h.wait.Block {
		return false
	}
	if s.Futex != 0 && s.Futex&^7 == h.wait.Futex&^7 || h.wait.Futex == 0 && s.Arg == h.wait.Arg &&
		s.Syscall == h.wait.Syscall && s.Syscall >= 0 {
		return true
	}
	// Of short waits no stack is taken.
	return s.User == 0 || s.User == h.wait.User || waitSite(t.k, &s) == waitSite(t.k, &h.wait)
}
