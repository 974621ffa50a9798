package sched

import (
	"sort"
	"sync"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// FutexKind is what a futex is of.
type FutexKind uint8

const (
	FutexUnknown FutexKind = iota
	FutexMutex             // a lock: who held it is who matters
	FutexCondition
	FutexJoin // the end of a thread
	FutexBarrier
	FutexSemaphore
	FutexRuntime // a lock of Go's runtime
	FutexNote    // one of its notes or semaphores

	futexKinds
)

// Futex is what was done with one address, by all waits and wake-ups.
type Futex struct {
	Addr     uint64
	Kind     FutexKind
	Inferred bool // Kind is told by how the address was used, not by functions' names
	Waits    int64
	NS       int64  // waited
	Queue    int    // most that waited at once
	User     uint32 // StackID of the longest wait that has one
	Releases []Release

	votes              [futexKinds]int64
	plain, set         int64 // waits by the plain operation, and by the one with a bit set
	libc, stacks       int64 // waits in the C library, of those with a stack
	longest            int64
	waiters, releasers map[uint32]bool
	edges              []futexEdge
}

// Release is one wake-up of who waited.
type Release struct {
	Time int64
	TID  uint32
	User uint32 // StackID
}

// futexIndex has all futexes that somebody was seen to wait for.
type futexIndex struct {
	once      sync.Once
	byAddress map[uint64]*Futex
}

type futexEdge struct {
	at int64
	in int8
}

// Bounds of what a stream from anywhere may make us hold.
const (
	mostFutexes  = 1 << 15
	mostOfFutex  = 64 // threads that are told apart
	mostReleases = 1 << 20
)

// Futex is what is known of the futex at addr; nil where nobody was seen to wait for it. A condition of glibc's has two words, side by
// side: ask for either.
func (k *Timeline) Futex(addr uint64) *Futex {
	k.futexes.once.Do(k.learnFutexes)
	if f := k.futexes.byAddress[addr]; f != nil {
		return f
	}
	return nil
}

// Futexes lists all, in order of their addresses.
func (k *Timeline) Futexes() []*Futex {
	k.futexes.once.Do(k.learnFutexes)
	l := make([]*Futex, 0, len(k.futexes.byAddress))
	for _, f := range k.futexes.byAddress {
		l = append(l, f)
	}
	sort.Slice(l, func(i, j int) bool { return l[i].Addr < l[j].Addr })
	return l
}

func (k *Timeline) learnFutexes() {
	k.futexes.byAddress = map[uint64]*Futex{}
	says := map[uint32]futexWords{}
	words := func(id uint32) futexWords {
		w, ok := says[id]
		if !ok && id != 0 {
			w = wordsOf(k.Stack(id))
			says[id] = w
		}
		return w
	}
	at := func(addr uint64) *Futex {
		f := k.futexes.byAddress[addr]
		if f == nil && len(k.futexes.byAddress) < mostFutexes && addr != 0 {
			f = &Futex{Addr: addr, waiters: map[uint32]bool{}, releasers: map[uint32]bool{}}
			k.futexes.byAddress[addr] = f
		}
		return f
	}
	note := func(m map[uint32]bool, tid uint32) {
		if len(m) < mostOfFutex {
			m[tid] = true
		}
	}
	releases, edges := 0, 0
	lo, hi := k.Span()
	calls := k.calls()
	stacks := stackClasses{src: k.src, known: map[uint32]stackClass{}}
	k.Each(lo, hi+1, func(tid uint32, s *Stretch) {
		if s.Doing != Blocked || s.Block != BlockFutex || s.End != s.Whole.End {
			return
		}
		f := at(s.Futex)
		if f == nil {
			return
		}
		ns := s.Whole.End - s.Whole.Begin
		f.Waits++
		f.NS += ns
		note(f.waiters, tid)
		if edges++; edges < mostReleases {
			f.edges = append(f.edges, futexEdge{s.Whole.Begin, 1}, futexEdge{s.Whole.End, -1})
		}
		if s.User != 0 {
			f.stacks++
			if ns > f.longest {
				f.User, f.longest = s.User, ns
			}
			w := words(s.User)
			f.votes[w.waits] += 4 // who waits knows better than who wakes
			if w.libc {
				f.libc++
			}
			if w.timed {
				f.set++
			}
		}
		if !s.WakerTarget || s.ByInterrupt || s.WakerSignal || s.Waker == 0 {
			return
		}
		switch call := int16(s.WakerCall); {
		case calls != nil && calls.kills[call]:
			return // all threads are being ended: nobody let go of anything
		case stacks.of(s.WakerKernel).exit, calls != nil && calls.exits[call]:
			f.votes[FutexJoin]++
		default:
			f.votes[words(s.WakerUser).wakes]++
			note(f.releasers, s.Waker)
		}
		if releases++; releases < mostReleases {
			f.Releases = append(f.Releases, Release{s.Whole.End, s.Waker, s.WakerUser})
		}
	})
	k.Events(lo, hi+1, func(e *Event) bool {
		if e.Kind == kernel.FutexWait {
			if f := k.futexes.byAddress[e.Arg[0]]; f != nil {
				switch e.Arg[1] & futexOpMask {
				case futexOpWait:
					f.plain++
				case futexOpLockPI, futexOpLockPI2:
					f.votes[FutexMutex]++
				default:
					f.set++
				}
			}
			return true
		}
		if f := k.futexes.byAddress[e.Arg[0]]; f != nil {
			note(f.releasers, e.TID)
			f.votes[words(e.User).wakes]++
			if releases++; releases < mostReleases {
				f.Releases = append(f.Releases, Release{e.Begin, e.TID, e.User})
			}
		}
		return true
	}, kernel.FutexWait, kernel.FutexWake)
	for _, f := range k.futexes.byAddress {
		f.decide()
	}
}

// Exits tells of a waker's system call that it ended its thread: who joins it is woken.
func (k *Timeline) Exits(call int32) bool {
	c := k.calls()
	return c != nil && call >= 0 && call < 1<<15 && c.exits[int16(call)]
}

// Operations of the futex call, without their flags.
const (
	futexOpMask    = 127
	futexOpWait    = 0
	futexOpLockPI  = 6
	futexOpLockPI2 = 13
)

// sameReleaseNS is how long a call to wake takes.
const sameReleaseNS = 50e3

// decide judges a futex by what was seen of it.
func (f *Futex) decide() {
	sort.Slice(f.Releases, func(i, j int) bool {
		a, b := &f.Releases[i], &f.Releases[j]
		return a.Time < b.Time || a.Time == b.Time && a.TID < b.TID
	})
	// The call to wake and the waking it brings are one release.
	n := 0
	for _, r := range f.Releases {
		if n > 0 && f.Releases[n-1].TID == r.TID && r.Time-f.Releases[n-1].Time <= sameReleaseNS {
			continue
		}
		f.Releases[n] = r
		n++
	}
	f.Releases = f.Releases[:n]
	// ends first: who begins to wait when another ends did not wait beside it
	sort.Slice(f.edges, func(i, j int) bool {
		return f.edges[i].at < f.edges[j].at || f.edges[i].at == f.edges[j].at && f.edges[i].in < f.edges[j].in
	})
	now := 0
	for _, e := range f.edges {
		now += int(e.in)
		f.Queue = max(f.Queue, now)
	}
	f.edges = nil
	if f.votes[FutexJoin]*2 < int64(len(f.Releases)) {
		f.votes[FutexJoin] = 0 // a thread may let go of something else with its last breath
	}
	best := FutexUnknown
	for kind := FutexUnknown + 1; kind < futexKinds; kind++ {
		if f.votes[kind] > f.votes[best] || best == FutexUnknown && f.votes[kind] > 0 {
			best = kind
		}
	}
	if best != FutexUnknown {
		f.Kind = best
		return
	}
	f.Inferred = true
	both := 0
	for tid := range f.releasers {
		if f.waiters[tid] {
			both++
		}
	}
	switch {
	// glibc's locks wait by the plain operation; its conditions, joins and semaphores by the one with a bit set. Others, as Rust's, use the latter for all.
	case f.plain > f.set:
		f.Kind = FutexMutex
	case f.libc*2 > f.stacks && f.set > 0:
		f.Kind = FutexCondition
	// Who lets go of a lock waits for it at times as well, and who signals a condition does not.
	case both > 0 && both*2 >= len(f.releasers):
		f.Kind = FutexMutex
	case len(f.releasers) > 0 && f.Waits >= 8:
		f.Kind = FutexCondition
	}
}

// Lock: who held it is who matters.
func (k FutexKind) Lock() bool { return k == FutexMutex || k == FutexRuntime }
