package thread

import (
	"sort"

	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/unit"
)

// A request that waits for another thread may wait for its turn: what that thread does meanwhile is for other requests. Two cases are known by
// who wakes whom. Who ends the wait is at a request itself, and lets go of what both need: a permit, a connection of a pool, an interpreter's
// lock. Or it is a worker, who before has woken others that waited for it as this one does: up to then it worked for them.

// turns knows the requests of the listed groups by thread.
type turns struct {
	k      *sched.Timeline
	walk   *Walk
	units  *unit.Set
	of     map[uint32][2]int32 // from and to in units
	wakes  []sched.Waking
	did    []sched.Stretch
	waiter uint32 // whose wait is judged below
	end    int64
	permit bool
	until  int64 // of a worker: up to when it worked for others
}

// burstNS is how long a thread that wakes many for the same reason works between two of them.
const burstNS = 50e3

func newTurns(w *Walk, units *unit.Set) *turns {
	t := &turns{k: w.k, walk: w, units: units, of: map[uint32][2]int32{}}
	for i := range units.Units {
		tid := units.Units[i].TID
		r, ok := t.of[tid]
		if !ok {
			r[0] = int32(i)
		}
		r[1] = int32(i) + 1
		t.of[tid] = r
	}
	return t
}

// at is the listed unit that tid was in at a time; nil without one.
func (t *turns) at(tid uint32, at int64) *unit.Unit {
	r := t.of[tid]
	l := t.units.Units[r[0]:r[1]]
	i := sort.Search(len(l), func(i int) bool { return l[i].End >= at })
	if i == len(l) || l[i].Begin > at || !t.units.Groups[l[i].Group].Listed {
		return nil
	}
	return &l[i]
}

// others is how much of [lo,hi), in which h's waker was followed, was for other requests than u; permit: as it is at another request itself.
func (t *turns) others(u *unit.Unit, h *Hop, lo, hi int64) (ns int64, permit bool) {
	if h.kind != hopMessage || h.Inferred {
		return 0, false
	}
	switch h.wait.Block {
	case sched.BlockFutex:
		if f := t.k.Futex(h.wait.Futex); f != nil && (f.Kind == sched.FutexBarrier || f.Kind == sched.FutexJoin) {
			return 0, false
		}
	case sched.BlockPipe: // a token in a pipe, a job at an eventfd
	default:
		if !t.walk.isSemaphore(&h.wait) {
			return 0, false
		}
	}
	if t.waiter != h.waiter || t.end != h.wait.Whole.End {
		t.judge(u, h)
	}
	if !t.permit {
		return max(0, min(hi, t.until)-lo), false
	}
	r := t.of[h.waker]
	l := t.units.Units[r[0]:r[1]]
	for i := sort.Search(len(l), func(i int) bool { return l[i].End > lo }); i < len(l) && l[i].Begin < hi; i++ {
		ns += max(0, min(hi, l[i].End)-max(lo, l[i].Begin))
	}
	return ns, true
}

func (t *turns) judge(u *unit.Unit, h *Hop) {
	begin, end := h.wait.Whole.Begin, h.wait.Whole.End
	t.waiter, t.end, t.permit, t.until = h.waiter, end, false, 0
	t.wakes = t.k.WakesBy(h.waker, begin, end+burstNS, t.wakes[:0])
	// Those woken at once waited for one and the same thing. A permit goes to one, which need not be this waiter yet.
	first, with := end, 0
	i := len(t.wakes) - 1
	for ; i >= 0; i-- {
		w := &t.wakes[i]
		if t.worked(h.waker, w.Time, first) > burstNS {
			break
		}
		if t.at(w.TID, w.Time) != nil && t.likewise(h, w) {
			with++
		}
		first = min(first, w.Time)
	}
	if own := t.at(h.waker, end); own != nil {
		// A helper of this very request was woken by it.
		t.permit = with <= 1 && !(own.Waker == h.waiter && own.Begin >= u.Begin)
		return
	}
	for ; i >= 0; i-- {
		w := &t.wakes[i]
		if x := t.at(w.TID, w.Time); w.TID != h.waiter && x != nil && x.Begin < w.Time && t.likewise(h, w) {
			t.until = w.Time
			return
		}
	}
}

// worked is for how long of [lo,hi) tid was not kept off its CPU: those that a thread wakes may put it off.
func (t *turns) worked(tid uint32, lo, hi int64) int64 {
	ns := hi - lo
	if ns <= burstNS {
		return ns
	}
	t.did = t.k.Stretches(tid, lo, hi, t.did[:0])
	for i := range t.did {
		if s := &t.did[i]; s.Doing == sched.Queued || s.Doing == sched.Throttled {
			ns -= s.End - s.Begin
		}
	}
	return ns
}

// likewise tells whether who was woken waited as h's waiter did: in the same function, as far as that is known.
func (t *turns) likewise(h *Hop, w *sched.Waking) bool {
	s := t.k.At(w.TID, w.Begin)
	if s.Doing != sched.Blocked || s.Block != h.wait.Block {
		return false
	}
	if s.Futex != 0 && s.Futex&^7 == h.wait.Futex&^7 || h.wait.Futex == 0 && s.Arg == h.wait.Arg && s.Syscall == h.wait.Syscall && s.Syscall >= 0 {
		return true
	}
	// Of short waits no stack is taken.
	return s.User == 0 || s.User == h.wait.User || waitSite(t.k, &s) == waitSite(t.k, &h.wait)
}
