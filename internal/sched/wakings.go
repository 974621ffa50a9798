package sched

import (
	"cmp"
	"slices"
	"sort"
	"sync"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Waking is one end of a wait.
type Waking struct {
	TID       uint32 // who was woken
	Time      int64
	Begin     int64 // of the wait
	Waker     uint32
	Interrupt bool // Waker is only the thread that was interrupted
	Target    bool // Waker is of the target
	Signal    bool
	Kernel    uint32 // StackIDs of the waker
	User      uint32
	Call      int32
	Arg       uint64
}

// Woken appends the wakings of tid in [lo,hi), oldest first.
func (k *Timeline) Woken(tid uint32, lo, hi int64, dst []Waking) []Waking {
	th := k.find(tid)
	if th == nil {
		return dst
	}
	for i := max(th.at(lo), 1); i < len(th.segs) && th.segs[i].begin < hi; i++ {
		if w, ok := k.wokenAt(th, i); ok && w.Time >= lo {
			dst = append(dst, w)
		}
	}
	return dst
}

// wokenAt is the waking with which segment i of th starts, if it does with one.
func (k *Timeline) wokenAt(th *thread, i int) (w Waking, ok bool) {
	g, prev := &th.segs[i], &th.segs[i-1]
	if g.doing() != Queued || g.off == 0 || g.meta&(segPreempted|segUnthrottled) != 0 ||
		prev.doing() == Queued || prev.doing() == Throttled {
		return w, false
	}
	o := &th.offs[g.off-1].waker
	if !o.seen {
		return w, false
	}
	begin := prev.begin
	if prev.doing() == OnCPU {
		begin = g.begin // woken just before it would have slept
	}
	return Waking{th.tid, g.begin, begin, o.tid, o.flags&wakerInterrupt != 0,
		o.flags&wakerTarget != 0, o.flags&wakerSignal != 0,
		o.kernel, o.user, int32(o.call), o.arg}, true
}

// wakerIndex finds wakings by who woke.
type wakerIndex struct {
	once    sync.Once
	byWaker map[uint32][]wakeRef // in order of time
}

// futexWakeIndex finds calls to wake by the address that they name.
type futexWakeIndex struct {
	once      sync.Once
	byAddress map[uint64][]uint32 // numbers of FutexWake events, in order of time
}

// wakeRef names the segment that starts with a waking.
type wakeRef struct{ th, seg int32 }

// WakesBy appends the wakings in [lo,hi) of threads of the target by its thread tid, the oldest
// first. What an interrupt woke while tid was on the CPU was not woken by tid.
func (k *Timeline) WakesBy(tid uint32, lo, hi int64, dst []Waking) []Waking {
	k.wakers.once.Do(func() {
		k.wakers.byWaker = map[uint32][]wakeRef{}
		for i := range k.threads {
			th := &k.threads[i]
			for j := 1; j < len(th.segs); j++ {
				if w, ok := k.wokenAt(th, j); ok && w.Target && !w.Interrupt {
					k.wakers.byWaker[w.Waker] = append(k.wakers.byWaker[w.Waker], wakeRef{int32(i), int32(j)})
				}
			}
		}
		for _, l := range k.wakers.byWaker {
			slices.SortFunc(l, func(a, b wakeRef) int {
				return cmp.Or(cmp.Compare(k.threads[a.th].segs[a.seg].begin,
					k.threads[b.th].segs[b.seg].begin), cmp.Compare(a.th, b.th))
			})
		}
	})
	l := k.wakers.byWaker[tid]
	for i := sort.Search(len(l),
		func(i int) bool { return k.threads[l[i].th].segs[l[i].seg].begin >= lo }); i < len(l); i++ {
		w, ok := k.wokenAt(&k.threads[l[i].th], int(l[i].seg))
		if !ok || w.Time >= hi {
			break
		}
		dst = append(dst, w)
	}
	return dst
}

// FutexWakes appends the calls by threads of the target to wake threads that wait at addr, in
// [lo,hi), oldest first. A call that found nobody is among them.
func (k *Timeline) FutexWakes(addr uint64, lo, hi int64, dst []Event) []Event {
	k.wakes.once.Do(func() {
		k.wakes.byAddress = map[uint64][]uint32{}
		for i := range k.events {
			if e := &k.events[i]; e.Kind == kernel.FutexWake {
				k.wakes.byAddress[e.Arg[0]] = append(k.wakes.byAddress[e.Arg[0]], uint32(i))
			}
		}
	})
	l := k.wakes.byAddress[addr]
	for i := sort.Search(len(l), func(i int) bool { return k.events[l[i]].Begin >= lo }); i < len(l); i++ {
		e := &k.events[l[i]]
		if e.Begin >= hi {
			break
		}
		dst = append(dst, *e)
	}
	return dst
}
