package sched

import (
	"sort"
	"sync"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// FutexKind is what a futex is part of.
type FutexKind uint8

const (
	FutexUnknown FutexKind = iota
	FutexMutex             // a lock: the thread that holds it matters
	FutexCondition
	FutexJoin // the end of a thread
	FutexBarrier
	FutexSemaphore
	FutexRuntime     // a lock of Go's runtime
	FutexNote        // one of its notes or semaphores
	FutexInterpreter // the one lock of an interpreter: all of its words together

	futexKinds
)

// Futex is what was done with one futex word, summed over all waits and wake-ups.
type Futex struct {
	Addr     uint64
	Kind     FutexKind
	Inferred bool // Kind follows from how the word was used, not from names of functions
	Waits    int64
	NS       int64  // waited
	Queue    int    // the most threads that waited at once
	User     uint32 // StackID of the longest wait that has one
	Releases []Release

	// Of an interpreter's lock: whose it is, and the waits whose time ran out. Their threads asked
	// the holder to let go, and waited on.
	Interpreter    Interpreter
	Asked, AskedNS int64

	votes              [futexKinds]int64
	plain, bitset      int64 // waits by FUTEX_WAIT, and by FUTEX_WAIT_BITSET
	libc, stacks       int64 // waits of the C library, and all waits with a stack
	longest            int64
	waiters, releasers map[uint32]bool
	edges              []futexEdge
}

// Release is one wake-up of a thread that waited.
type Release struct {
	Time int64
	TID  uint32
	User uint32 // StackID
}

// futexIndex has all futexes that a thread was seen to wait for.
type futexIndex struct {
	once      sync.Once
	byAddress map[uint64]*Futex
	members   members
	locks     []*Futex // of interpreters
}

// futexEdge is a moment at which the number of waiters changes.
type futexEdge struct {
	at int64
	in int8
}

// Bounds of what a stream from anywhere may make us hold.
const (
	mostFutexes  = 1 << 15
	mostOfFutex  = 64 // threads of one futex
	mostReleases = 1 << 20
)

// Futex is what is known of the futex at addr; nil if no thread was seen to wait for it. A
// condition of glibc has two words side by side, each of which is a futex here. See also FutexOf.
func (k *Timeline) Futex(addr uint64) *Futex {
	k.futexes.once.Do(k.learnFutexes)
	if x := k.futexes.members[addr&^7]; x != nil && x.lockWaits {
		return x.lock
	}
	return k.futexes.byAddress[addr]
}

// Futexes lists all, in order of their addresses.
func (k *Timeline) Futexes() []*Futex {
	k.futexes.once.Do(k.learnFutexes)
	l := make([]*Futex, 0, len(k.futexes.byAddress))
	for _, f := range k.futexes.byAddress {
		l = append(l, f)
	}
	l = append(l, k.futexes.locks...)
	sort.Slice(l, func(i, j int) bool { return l[i].Addr < l[j].Addr })
	return l
}

// learnFutexes finds all futexes and decides what each is part of. In steps:
//  1. Each wait counts for its word, with votes from its own stack and from the stack of the thread
//     that ended it (futexname.go).
//  2. The calls to wait and to wake, where they are recorded, add how they were made.
//  3. The votes decide; without any, the way in which the word was used (decide).
//  4. The words of an interpreter's lock become one futex (interpreter.go).
func (k *Timeline) learnFutexes() {
	l := futexLearner{k: k, calls: k.calls(), found: map[uint64]*Futex{},
		words: map[uint32]futexWords{}, members: members{},
		stacks: stackClasses{src: k.src, known: map[uint32]stackClass{}}}
	lo, hi := k.Span()
	k.Each(lo, hi+1, l.wait)
	k.Events(lo, hi+1, l.call, kernel.FutexWait, kernel.FutexWake)
	for _, f := range l.found {
		f.decide()
	}
	l.interpreters()
	k.futexes.byAddress = l.found
}

// futexLearner is the state of learnFutexes.
type futexLearner struct {
	k               *Timeline
	calls           *callClass
	stacks          stackClasses
	found           map[uint64]*Futex     // by address
	words           map[uint32]futexWords // by StackID
	members         members
	releases, edges int // of all futexes, to bound them
}

// futex is the futex at addr, which is made if it is new; nil if there are too many.
func (l *futexLearner) futex(addr uint64) *Futex {
	f := l.found[addr]
	if f == nil && len(l.found) < mostFutexes && addr != 0 {
		f = &Futex{Addr: addr, waiters: map[uint32]bool{}, releasers: map[uint32]bool{}}
		l.found[addr] = f
	}
	return f
}

// wordsOf is what the stack with a StackID says of a futex.
func (l *futexLearner) wordsOf(id uint32) futexWords {
	w, ok := l.words[id]
	if !ok && id != 0 {
		w = wordsOf(l.k.Stack(id))
		w.interpreter, w.known = interpreterOf(l.k.Stack(id))
		l.words[id] = w
	}
	return w
}

func (l *futexLearner) release(f *Futex, r Release) {
	if l.releases++; l.releases < mostReleases {
		f.Releases = append(f.Releases, r)
	}
}

// addTID adds a thread to a set of a futex's.
func addTID(set map[uint32]bool, tid uint32) {
	if len(set) < mostOfFutex {
		set[tid] = true
	}
}

// wait learns from one wait. Only its last stretch counts, which has its end.
func (l *futexLearner) wait(tid uint32, s *Stretch) {
	if s.Doing != Blocked || s.Block != BlockFutex || s.End != s.Whole.End {
		return
	}
	f := l.futex(s.Futex)
	if f == nil {
		return
	}
	ns := l.count(f, tid, s)
	if s.User != 0 {
		f.stacks++
		if ns > f.longest {
			f.User, f.longest = s.User, ns
		}
		w := l.wordsOf(s.User)
		l.members.see(s.Futex, &w)
		f.votes[w.waits] += 4 // a waiter's stack says more than that of the thread which wakes it
		if w.libc {
			f.libc++
		}
		if w.timed {
			f.bitset++
		}
	}
	if !s.WakerTarget || s.ByInterrupt || s.WakerSignal || s.Waker == 0 {
		return
	}
	switch call := int16(s.WakerCall); {
	case l.calls != nil && l.calls.kills[call]:
		return // all threads are being ended: nothing was released
	case l.stacks.of(s.WakerKernel).exit, l.calls != nil && l.calls.exits[call]:
		f.votes[FutexJoin]++
	default:
		f.votes[l.wordsOf(s.WakerUser).wakes]++
		addTID(f.releasers, s.Waker)
	}
	l.release(f, Release{s.Whole.End, s.Waker, s.WakerUser})
}

// call learns from one call to wait or to wake.
func (l *futexLearner) call(e *Event) bool {
	f := l.found[e.Arg[0]]
	switch {
	case f == nil:
	case e.Kind == kernel.FutexWake:
		addTID(f.releasers, e.TID)
		f.votes[l.wordsOf(e.User).wakes]++
		l.release(f, Release{e.Begin, e.TID, e.User})
	default:
		switch e.Arg[1] & futexOpMask {
		case futexOpWait:
			f.plain++
		case futexOpLockPI, futexOpLockPI2:
			f.votes[FutexMutex]++
		default:
			f.bitset++
		}
	}
	return true
}

// Operations of the futex call, without their flags.
const (
	futexOpMask    = 127
	futexOpWait    = 0
	futexOpLockPI  = 6
	futexOpLockPI2 = 13
)

// sameReleaseNS is the most time between a call to wake and the waking that it brings.
const sameReleaseNS = 50e3

// decide decides on a futex by what was seen of it.
func (f *Futex) decide() {
	f.sortReleases()
	f.countQueue()
	if f.votes[FutexJoin]*2 < int64(len(f.Releases)) {
		f.votes[FutexJoin] = 0 // a thread that ends may release other things, too
	}
	for kind := FutexUnknown + 1; kind < futexKinds; kind++ {
		if f.votes[kind] > f.votes[f.Kind] || f.Kind == FutexUnknown && f.votes[kind] > 0 {
			f.Kind = kind
		}
	}
	if f.Kind == FutexUnknown {
		f.infer()
	}
}

// infer decides without a vote, by how the word was used.
func (f *Futex) infer() {
	f.Inferred = true
	both := 0 // threads that release it and wait for it
	for tid := range f.releasers {
		if f.waiters[tid] {
			both++
		}
	}
	switch {
	// glibc's locks wait by FUTEX_WAIT; its conditions, joins and semaphores by FUTEX_WAIT_BITSET.
	// Other libraries, as Rust's, use the latter for all.
	case f.plain > f.bitset:
		f.Kind = FutexMutex
	case f.libc*2 > f.stacks && f.bitset > 0:
		f.Kind = FutexCondition
	// A thread that releases a lock waits for it at other times. One that signals a condition does
	// not.
	case both > 0 && both*2 >= len(f.releasers):
		f.Kind = FutexMutex
	case len(f.releasers) > 0 && f.Waits >= 8:
		f.Kind = FutexCondition
	}
}

// sortReleases puts the releases in order. A call to wake and the waking that it brings are one.
func (f *Futex) sortReleases() {
	sort.Slice(f.Releases, func(i, j int) bool {
		a, b := &f.Releases[i], &f.Releases[j]
		return a.Time < b.Time || a.Time == b.Time && a.TID < b.TID
	})
	n := 0
	for _, r := range f.Releases {
		if n > 0 && f.Releases[n-1].TID == r.TID && r.Time-f.Releases[n-1].Time <= sameReleaseNS {
			continue
		}
		f.Releases[n] = r
		n++
	}
	f.Releases = f.Releases[:n]
}

// countQueue finds how many threads waited at once. Of edges at one instant ends come first: a
// thread that starts to wait when another's wait ends did not wait beside it.
func (f *Futex) countQueue() {
	sort.Slice(f.edges, func(i, j int) bool {
		return f.edges[i].at < f.edges[j].at || f.edges[i].at == f.edges[j].at && f.edges[i].in < f.edges[j].in
	})
	now := 0
	for _, e := range f.edges {
		now += int(e.in)
		f.Queue = max(f.Queue, now)
	}
	f.edges = nil
}

// Lock reports whether a futex of this kind has a holder, which others wait for.
func (k FutexKind) Lock() bool {
	return k == FutexMutex || k == FutexRuntime || k == FutexInterpreter
}

// count counts a wait of tid for f, and returns how long it took.
func (l *futexLearner) count(f *Futex, tid uint32, s *Stretch) (ns int64) {
	ns = s.Whole.End - s.Whole.Begin
	f.Waits++
	f.NS += ns
	addTID(f.waiters, tid)
	if l.edges++; l.edges < mostReleases {
		f.edges = append(f.edges, futexEdge{s.Whole.Begin, 1}, futexEdge{s.Whole.End, -1})
	}
	return ns
}
