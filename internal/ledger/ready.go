package ledger

import (
	"math"
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/timeline"
)

// readiness knows since when what a goroutine waited for was there, by the kernel: data for its socket, or its timer's time.
//
// The trace names the thread that made the goroutine runnable, not the socket. That thread's last return from waiting for events
// tells which sockets it came back with; of several the one that was ready last is taken, so that never too much is
// called late. A thread's timer was set for the earliest of the runtime's timers: only the first goroutine that the thread wakes by
// a timer after it was woken by its own is known to have been due then.
type readiness struct {
	base  int64
	data  map[uint64][]int64 // socket -> times at which data came
	taken map[uint32][]taken // thread -> its returns, in order
	due   map[uint32][]timerDue
	used  map[uint32]int64 // thread -> the expiry that was given to a goroutine already
	slots []readyAt        // by number of the wait's segment
}

type taken struct {
	at   int64
	sock uint64
}

type timerDue struct{ fired, due int64 }

type readyAt struct {
	seg  uint32
	late pieceFlags
	at   int64
}

// batchNS is how far apart the records of the sockets of one return lie at most.
const batchNS = 20e3

func (r *readiness) init(k *timeline.Kernel, base int64) {
	r.base = base
	r.data, r.taken, r.due, r.used = map[uint64][]int64{}, map[uint32][]taken{}, map[uint32][]timerDue{}, map[uint32]int64{}
	k.Events(math.MinInt64, math.MaxInt64, func(e *timeline.Event) bool {
		at := e.Begin - base
		switch e.Kind {
		case kernel.SocketReady:
			r.data[e.Arg[0]] = append(r.data[e.Arg[0]], at)
		case kernel.SocketTaken:
			r.taken[e.TID] = append(r.taken[e.TID], taken{at, e.Arg[0]})
		case kernel.TimerDue:
			if due := int64(min(e.Arg[0], math.MaxInt64)) - base; due <= at {
				r.due[e.TID] = append(r.due[e.TID], timerDue{at, due})
			}
		}
		return true
	}, kernel.SocketReady, kernel.SocketTaken, kernel.TimerDue)
	if len(r.taken)+len(r.due) > 0 {
		r.slots = make([]readyAt, 1<<15)
	}
}

func (r *readiness) add(seg uint32, at int64, late pieceFlags) {
	r.slots[seg%uint32(len(r.slots))] = readyAt{seg, late, at}
}

// of gives since when the wait with that segment could have ended.
func (r *readiness) of(seg uint32) (at int64, late pieceFlags, ok bool) {
	if len(r.slots) == 0 || seg == 0 {
		return 0, 0, false
	}
	s := &r.slots[seg%uint32(len(r.slots))]
	return s.at, s.late, s.seg == seg
}

// socket is since when the wait that began at begin, and that thread tid ended at, had its data.
func (r *readiness) socket(tid uint32, begin, at int64) (int64, bool) {
	l := r.taken[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].at > at }) - 1
	if i < 0 || l[i].at < begin {
		return 0, false
	}
	best, ok := int64(0), false
	for last := l[i].at; i >= 0 && last-l[i].at <= batchNS && l[i].at >= begin; i-- {
		times := r.data[l[i].sock]
		n, _ := slices.BinarySearch(times, begin)
		if n == len(times) || times[n] > l[i].at {
			return 0, false // when its data came was not seen
		}
		if !ok || times[n] > best {
			best, ok = times[n], true
		}
	}
	return best, ok
}

// timer is since when the wait's timer was due.
func (r *readiness) timer(j *joiner, tid uint32, begin, at int64) (int64, bool) {
	l := r.due[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].fired > at }) - 1
	if i < 0 || l[i].due < begin || r.used[tid] == l[i].fired {
		return 0, false
	}
	r.used[tid] = l[i].fired
	// If the thread slept again since, it was another timer's.
	j.stretches = j.k.Stretches(tid, r.base+l[i].fired, r.base+at, j.stretches[:0])
	for n := range j.stretches {
		if s := &j.stretches[n]; s.Doing == timeline.ThreadBlocked && s.Whole.Begin > r.base+l[i].fired {
			return 0, false
		}
	}
	return l[i].due, true
}
