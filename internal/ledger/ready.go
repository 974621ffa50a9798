package ledger

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// readiness knows from the kernel's records since when the thing was there that a goroutine waited
// for: data for its socket, or its timer's time.
//
// The trace names neither the socket nor the read that follows. But a goroutine that waits for a
// socket has found it empty just before, and the socket's record has the thread on which that
// happened, in the last call before the wait. So the first data after that, read after the wait had
// ended, is what the goroutine waited for. A socket that was not found empty, or not read
// afterwards, shows nothing. A thread sets its timer for the earliest of the runtime's timers. So
// only the first goroutine that the thread wakes by a timer, after its own timer woke it, is known
// to have been due then.
type readiness struct {
	base  int64
	data  map[uint32][]socketData // by the thread that found the socket empty, in that order
	due   map[uint32][]timerDue
	used  map[uint32]int64 // thread -> the expiry that a goroutine has been given already
	slots []readyAt        // by the number of the wait's segment
	// By goroutine: its last such wait for a socket, which outlasts the slots.
	begun map[uint32]readyAt
}

// socketData is one arrival of data at a socket that had been found empty.
type socketData struct{ empty, ready, taken int64 }

type timerDue struct{ fired, due int64 }

type readyAt struct {
	seg   uint32
	late  pieceFlags
	at    int64
	woken int64 // when the goroutine learned of it; only of begun
}

// maxBegun bounds the goroutines for which that is remembered.
const maxBegun = 1 << 15

// clocksNS is how far the trace's and the kernel's times may lie apart.
const clocksNS = 2e3

func (r *readiness) init(k *sched.Timeline, base int64) {
	r.base = base
	r.data, r.due, r.used = map[uint32][]socketData{}, map[uint32][]timerDue{}, map[uint32]int64{}
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		at := e.Begin - base
		switch e.Kind {
		case kernel.SocketReady:
			if empty := int64(min(e.Arg[1], math.MaxInt64)) - base; empty <= at && e.Other != 0 {
				r.data[e.Other] = append(r.data[e.Other], socketData{empty, at, e.End - base})
			}
		case kernel.TimerDue:
			if due := int64(min(e.Arg[0], math.MaxInt64)) - base; due <= at {
				r.due[e.TID] = append(r.due[e.TID], timerDue{at, due})
			}
		}
		return true
	}, kernel.SocketReady, kernel.TimerDue)
	for _, l := range r.data {
		slices.SortFunc(l, func(a, b socketData) int { return cmp.Compare(a.empty, b.empty) })
	}
	if len(r.data)+len(r.due) > 0 {
		r.slots = make([]readyAt, 1<<15)
	}
	r.begun = map[uint32]readyAt{}
}

func (r *readiness) add(seg uint32, at int64, late pieceFlags) {
	r.slots[seg%uint32(len(r.slots))] = readyAt{seg: seg, late: late, at: at}
}

// wokenAt remembers when a goroutine learned of what had been ready since at.
func (r *readiness) wokenAt(ident uint32, at, woken int64) {
	if len(r.begun) >= maxBegun {
		clear(r.begun)
	}
	r.begun[ident] = readyAt{at: at, woken: woken}
}

// request is since when the request was there for which a goroutine was woken at begin, from a wait
// with that segment. By the runtime's word a request starts only when a goroutine asks for it, and
// the time that a client waited before would be lost.
func (r *readiness) request(ident, seg uint32, begin int64) (at int64, ok bool) {
	l, ok := r.begun[ident]
	if !ok || l.woken != begin {
		return 0, false
	}
	r.add(seg, l.at, pieceSocket) // another wait may have taken the slot since
	return l.at, true
}

// of returns since when the wait with that segment could have ended.
func (r *readiness) of(seg uint32) (at int64, late pieceFlags, ok bool) {
	if len(r.slots) == 0 || seg == 0 {
		return 0, 0, false
	}
	s := &r.slots[seg%uint32(len(r.slots))]
	return s.at, s.late, s.seg == seg
}

// socket is since when the wait in [begin,at) had its data. Thread tid was in its last call before
// that wait from called on.
func (r *readiness) socket(tid uint32, called, begin, at int64) (int64, bool) {
	l := r.data[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].empty > begin+clocksNS }) - 1
	if i < 0 || l[i].empty < called-clocksNS || l[i].ready > at || l[i].taken < at-clocksNS {
		return 0, false
	}
	return max(l[i].ready, begin), true
}

// timer is since when the wait's timer was due.
func (r *readiness) timer(j *joiner, tid uint32, begin, at int64) (int64, bool) {
	l := r.due[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].fired > at }) - 1
	if i < 0 || l[i].due < begin || r.used[tid] == l[i].fired {
		return 0, false
	}
	r.used[tid] = l[i].fired
	// If the thread has slept again since, another timer woke it.
	j.stretches = j.k.Stretches(tid, r.base+l[i].fired, r.base+at, j.stretches[:0])
	for n := range j.stretches {
		if s := &j.stretches[n]; s.Doing == sched.Blocked && s.Whole.Begin > r.base+l[i].fired {
			return 0, false
		}
	}
	return l[i].due, true
}
