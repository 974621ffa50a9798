package sched

import (
	"sync"
	"sync/atomic"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// kernelState is the columns. Every thread of the target has a list of segments, 16 bytes each, one after the other without a
// hole, and a list of the times it was off a CPU, with who woke it; every CPU a list of who came when. What is rarer is kept as events.
type kernelState struct {
	header  kernel.Header
	begin   int64 // time of the first record that is kept
	end     int64 // of the last
	index   tidIndex
	threads []kthread
	cpus    []kcpu // by number
	events  []Event
	names   map[uint32][]kernel.Thread // by TID, in order of Since
	byNS    map[uint32]uint32
	levels  []Level

	callsKnown bool // of a blocked thread its system call is recorded

	bytes   int
	limit   int
	dropped int64 // what began before was given up; 0 nothing
	crowd   int64 // threads that were not kept for their number
	totals  Totals

	futexOnce sync.Once
	futexes   map[uint64][]uint32 // numbers of FutexWake events by address

	wakersOnce sync.Once
	wakers     map[uint32][]wakeRef // by who woke

	useOnce sync.Once
	uses    map[uint64]*Futex // by address

	notesOnce sync.Once
	notes     Notes

	processOnce sync.Once
	process     []processRun
	runnable    runnable
}

// Level is the recorder's level of detail from a time on.
type Level struct {
	Time   int64
	Level  int
	Folded bool   // others' switches are not told one by one
	Untold uint64 // a bit for each kernel.Extra that is not told
}

// Totals are sums over all threads of the target.
type Totals struct {
	Switches    int64 // a thread left its CPU
	Involuntary int64 // of them, while it could have run on
	Lost        int64 // records that the recorder knows it lost
	LostStacks  int64
	Breaks      int64 // times that a CPU's records did not fit together
	BreakNS     int64 // threads' time that is unknown for it and for lost records
	Created     int64
	Exited      int64
}

// kseg is one thread in one state, until its next begins.
type kseg struct {
	begin int64
	off   uint32 // number of its koff, from 1 on; 0 none
	cpu   int16  // -1 not known
	meta  uint16
}

// The bits of kseg.meta: what it does 0-2.
const (
	ksegPreempted = 1 << (3 + iota)
	ksegUnthrottled
	ksegApprox
	ksegByGroup
	ksegMissing // unknown because records are missing, not for being before the first
	ksegAway    // unknown, but not on a CPU: before a first record that says that it came or was woken
)

func (s *kseg) doing() Doing { return Doing(s.meta & 7) }

// wakeRef names the segment with which a waking begins.
type wakeRef struct{ th, seg int32 }

// koff is one time off a CPU, from the switch that left it to the one that came back.
type koff struct {
	arg, warg           uint64
	kernel, user        uint32
	waker, wkern, wuser uint32
	call, wcall         int16 // -1 none or not known
	flags               uint8
	asked               bool // how it ended is told by a waking
	block               Block
}

const (
	koffInterrupt = 1 << iota
	koffTarget
	koffSignal
	koffFutex   // arg is a futex's address
	koffStopped // by a signal, or for who traces it
	koffDeep    // uninterruptible: no wait for who writes
)

// life is one thread's life: its number may be used again.
type life struct {
	birth, first, exit int64 // 0 not seen
	maker              uint32
	user               uint32 // stack of who made it
}

type kthread struct {
	tid     uint32
	segs    []kseg
	offs    []koff
	lives   []life
	events  []uint32 // numbers of its events, in order
	until   []int64  // the latest end of those up to each
	overlay []overlaid
	found   int32 // by at: a hint that several ask for and set at once

	// while reading
	pending   koff // a waking that came while it was on a CPU
	pendingAt int64
	leaving   [2]uint32 // stacks of a wait that is about to begin
	signalled int64     // when it was last sent a signal
	signaller uint32
	exiting   bool
}

// run is who came to a CPU, until the next comes.
type run struct {
	begin int64
	tid   uint32
	bad   bool // the next record does not fit, or others' switches are folded: until when it was there is not known
}

// hold is who had a CPU while others' switches are folded, as far as that was told.
type hold struct {
	begin, end int64
	tid        uint32
}

type kcpu struct {
	runs []run
	mark int64 // last unthrottling
	held []hold
	lost []Span
}

// tidIndex gives a thread's number by its id. Ids of Linux are below 1<<22; whatever else a file claims goes into a map.
type tidIndex struct {
	pages [][]int32
	rest  map[uint32]int32
}

const (
	tidPage = 1 << 10
	tidMost = 1 << 22
)

func (x *tidIndex) get(tid uint32) int32 {
	if tid < tidMost {
		if p := tid / tidPage; int(p) < len(x.pages) && x.pages[p] != nil {
			return x.pages[p][tid%tidPage] - 1
		}
		return -1
	}
	if n, ok := x.rest[tid]; ok {
		return n
	}
	return -1
}

func (x *tidIndex) set(tid uint32, n int32) {
	if tid >= tidMost {
		if x.rest == nil {
			x.rest = map[uint32]int32{}
		}
		x.rest[tid] = n
		return
	}
	p := int(tid / tidPage)
	if p >= len(x.pages) {
		x.pages = append(x.pages, make([][]int32, p+1-len(x.pages))...)
	}
	if x.pages[p] == nil {
		x.pages[p] = make([]int32, tidPage)
	}
	x.pages[p][tid%tidPage] = n + 1
}

// find is the thread of the target with that id, nil without one.
func (k *kernelState) find(tid uint32) *kthread {
	if n := k.index.get(tid); n >= 0 {
		return &k.threads[n]
	}
	return nil
}

// segEnd is where the segment at i ends.
func (k *kernelState) segEnd(th *kthread, i int) int64 {
	if i+1 < len(th.segs) {
		return th.segs[i+1].begin
	}
	return max(k.end, th.segs[i].begin)
}

// at is the segment that covers t, -1 before the first. Questions about a thread mostly follow each other in time, and its segments are far
// apart in memory from those asked for in between: it looks in growing steps from where it found the last.
func (th *kthread) at(t int64) int {
	lo, hi := 0, len(th.segs)
	from := int(atomic.LoadInt32(&th.found))
	if at := from; at < hi && th.segs[at].begin <= t {
		lo = at + 1
		for step := 1; lo+step < hi; step *= 2 {
			if th.segs[lo+step].begin > t {
				hi = lo + step
				break
			}
			lo += step
		}
	} else if at < hi {
		hi = at
		for step := 1; hi-step > 0; step *= 2 {
			if th.segs[hi-step].begin <= t {
				lo = hi - step
				break
			}
			hi -= step
		}
	}
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if th.segs[m].begin <= t {
			lo = m + 1
		} else {
			hi = m
		}
	}
	// To set it costs more than some steps of looking.
	if near := max(lo-1, 0); near < from || near > from+4 {
		atomic.StoreInt32(&th.found, int32(near))
	}
	return lo - 1
}

// at is the run that covers t, -1 before the first.
func (c *kcpu) at(t int64) int {
	lo, hi := 0, len(c.runs)
	for lo < hi {
		m := int(uint(lo+hi) >> 1)
		if c.runs[m].begin <= t {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// maxTimeNS keeps the differences of what a file says within 64 bits.
const maxTimeNS = 1 << 61

func clampTime(t int64) int64 { return min(max(t, -maxTimeNS), maxTimeNS) }
