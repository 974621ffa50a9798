package timeline

import (
	"slices"

	"github.com/whystall/whystall/exectrace"
)

// What may be asked. Times are relative, and an answer covers what is still known of the stretch.

// Procs is the largest GOMAXPROCS there was.
func (t *Timeline) Procs() int { return int(max(t.procs.gomaxMost, t.procs.count())) }

// Capacity is what the Ps did up to now.
func (t *Timeline) Capacity() Capacity { return t.procs.capacity(t.now) }

// Occupants fills dst[:0] with how long each occupant held a P during [s,e), in no particular
// order. It returns the total P time too; the difference is idle time.
func (t *Timeline) Occupants(s, e int64, dst []Occupant) (_ []Occupant, total int64) {
	return t.procs.occupants(s, e, t.now, dst)
}

// RunningBy lists how long the goroutines with each entry function held a P, and the GC's workers
// by mode.
func (t *Timeline) RunningBy() []Occupant {
	return slices.DeleteFunc(t.procs.runningBy(t.now), func(o Occupant) bool { return o.Holder == HolderSweep })
}

// Holds gives who held the Ps during [s,e), and with which thread. Past gets the blocks that touch
// it. If the last one does, present gets those that hold a P until now. It needs [Options.Holds].
func (t *Timeline) Holds(s, e int64, past func(b *HoldBlock), present func(h Hold)) {
	t.procs.holds(s, e, t.now, past, present)
}

// Wakes are the stretches in which work waited beside an idle P: a thread was woken for it and did
// not come.
func (t *Timeline) Wakes() Moments {
	t.procs.idle(t.now)
	return t.procs.wakes
}

// Runnable is the largest and the average number of goroutines that were runnable at once.
func (t *Timeline) Runnable() (most int, avg float64) {
	if t.now > 0 {
		avg = float64(t.runnableNS+int64(t.runnable)*t.now) / float64(t.now)
	}
	return int(t.runnableMax), avg
}

// RunnableNS is how long goroutines have been runnable, all added up.
func (t *Timeline) RunnableNS() int64 { return t.runnableNS + int64(t.runnable)*t.now }

// Heap is the size of the heap and its goal, in bytes; 0 not known.
func (t *Timeline) Heap() (live, goal int64) { return t.gc.liveNow, t.gc.goalNow }

// STWs lists the stop-the-worlds that are kept, oldest first; the number of the first is base.
func (t *Timeline) STWs() (list []STW, base uint32) { return t.stops.stws, t.stops.first }

// Stopped gives the latest stretch of [s,e) in which the world was being stopped or was stopped,
// and the number of the stop-the-world. False: none.
func (t *Timeline) Stopped(s, e int64) (begin, end int64, n uint32, ok bool) {
	return t.stops.stopped(s, e, t.now)
}

// STWBefore gives the number of the last stop-the-world that began before e and had not ended by s.
func (t *Timeline) STWBefore(s, e int64) (n uint32, ok bool) { return t.stops.openBefore(s, e) }

// RangeNS is how much of [s,e) overlaps with a stop-the-world's whole range, its starting included.
func (t *Timeline) RangeNS(s, e int64) int64 { return t.stops.rangeNS(s, e, t.now) }

// MarkNS is how much of [s,e) the concurrent mark phase was open.
func (t *Timeline) MarkNS(s, e int64) int64 { return t.gc.markNS(s, e, t.now) }

// GC is what the collector did up to now.
func (t *Timeline) GC() GC { return t.gc.sum(t.now) }

// Marks lists the concurrent mark phases that are kept, oldest first. End is 0 of one that is open.
func (t *Timeline) Marks() []Mark { return t.gc.marks }

// Sweeps lists the longest, longest first.
func (t *Timeline) Sweeps() []Sweep { return t.gc.top }

// Turns counts the other waits at place that ended during waiter's wait (lo,hi), which ender ended.
// If ender has the waiter's entry function, it counts those that any goroutine with that ended;
// else those that ender ended. It returns the last of these ends too, and the longest time without
// one, ns.
func (t *Timeline) Turns(place FuncID, waiter, ender uint32, lo, hi int64) (n int, last, longest int64) {
	if t.Alike(waiter, ender) {
		ender = ownKind
	}
	return t.turns.count(place, ender, lo, hi)
}

// Serves says what ender, the goroutine that ended waiter's wait (lo,hi) at place, was doing during
// the turns that Turns counts. A reader that hands out answers as they come ends waits one after
// another as well, and does neither.
func (t *Timeline) Serves(place FuncID, waiter, ender uint32, lo, hi int64) Serving {
	return t.turns.serves(place, waiter, ender, lo, hi, &t.identities)
}

// askedBack bounds how far Asked looks back: a request in many writes, and reads that found
// nothing.
const askedBack = 64

// Asked reports whether a goroutine had asked for what it waited for. Seg is its wait for the
// network. Two things must hold: since the wait before, it wrote to a socket itself; and at other
// times it waits for others to send it work.
//
// A reader that hands out answers as they come writes nothing, or at most says that it had them.
// But it always waits for the network.
func (t *Timeline) Asked(ident, seg uint32) bool {
	if !t.idents[ident].Served {
		return false
	}
	s := t.Seg(seg)
	for n := 0; s != nil && s.Prev != 0 && n < askedBack; n++ {
		if s = t.Seg(s.Prev); s == nil {
			return false
		}
		switch s.State() {
		case Syscall:
			if t.Get(exectrace.StackID(s.Stack)).sends {
				return true
			}
		case Waiting:
			return false
		}
	}
	return false
}
