package sched

import (
	"sync/atomic"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// columns is the columns. Every thread of the target has a list of segments, 16 bytes each, one after the other without a
// hole, and a list of the times it was off a CPU, with who woke it; every CPU a list of who came when. What is rarer is kept as events.
type columns struct {
	header  kernel.Header
	begin   int64 // time of the first record that is kept
	end     int64 // of the last
	index   tidIndex
	threads []thread
	cpus    []cpuLog // by number
	events  []Event
	names   map[uint32][]kernel.Thread // by TID, in order of Since
	byNS    map[uint32]uint32
	levels  []Level

	callsKnown bool // of a blocked thread its system call is recorded

	bytes   int
	dropped int64 // what began before was given up; 0 nothing
	totals  Totals
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

// segment is one thread in one state, until its next begins.
type segment struct {
	begin int64
	off   uint32 // number of its offCPU, from 1 on; 0 none
	cpu   int16  // -1 not known
	meta  uint16
}

// The bits of segment.meta: what it does 0-2.
const (
	segPreempted = 1 << (3 + iota)
	segUnthrottled
	segApprox
	segByGroup
	segMissing // unknown because records are missing, not for being before the first
	segAway    // unknown, but not on a CPU: before a first record that says that it came or was woken
)

func (s *segment) doing() Doing { return Doing(s.meta & 7) }

// offCPU is one time off a CPU, from the switch that left it to the one that came back.
type offCPU struct {
	waker        waker
	arg          uint64
	kernel, user uint32
	call         int16 // -1 none or not known
	flags        uint8
	block        Block
}

// The bits of offCPU.flags.
const (
	offFutex   = 1 << iota // arg is a futex's address
	offStopped             // by a signal, or for who traces it
	offDeep                // uninterruptible: no wait for who writes
)

// waker is who ended a time off a CPU.
type waker struct {
	arg          uint64
	tid          uint32
	kernel, user uint32
	call         int16 // -1 none or not known
	flags        uint8
	seen         bool // its waking is recorded
}

// The bits of waker.flags.
const (
	wakerInterrupt = 1 << iota // tid is a bystander
	wakerTarget                // a thread of the target
	wakerSignal                // it sent a signal
)

// life is one thread's life: its number may be used again.
type life struct {
	birth, first, exit int64 // 0 not seen
	maker              uint32
	user               uint32 // stack of who made it
}

type thread struct {
	tid     uint32
	segs    []segment
	offs    []offCPU
	lives   []life
	events  []uint32 // numbers of its events, in order
	until   []int64  // the latest end of those up to each
	overlay []overlaid
	found   int32 // by at: a hint that several ask for and set at once

	// while reading
	pending   waker // a waking that came while it was on a CPU
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

type cpuLog struct {
	runs []run
	mark int64 // last unthrottling
	held []hold
	lost []Span
}

// find is the thread of the target with that id, nil without one.
func (k *columns) find(tid uint32) *thread {
	if n := k.index.get(tid); n >= 0 {
		return &k.threads[n]
	}
	return nil
}

// segEnd is where the segment at i ends.
func (k *columns) segEnd(th *thread, i int) int64 {
	if i+1 < len(th.segs) {
		return th.segs[i+1].begin
	}
	return max(k.end, th.segs[i].begin)
}

// at is the segment that covers t, -1 before the first. Questions about a thread mostly follow each other in time, and its segments are far
// apart in memory from those asked for in between: it looks in growing steps from where it found the last.
func (th *thread) at(t int64) int {
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
func (c *cpuLog) at(t int64) int {
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

func (th *thread) last() *segment {
	if n := len(th.segs); n > 0 {
		return &th.segs[n-1]
	}
	return nil
}

func (th *thread) life() *life {
	if n := len(th.lives); n > 0 {
		return &th.lives[n-1]
	}
	return nil
}

// first is from when on th's segments tell.
func (k *columns) first(th *thread) int64 {
	if len(th.segs) == 0 {
		return maxTimeNS
	}
	return th.segs[0].begin
}

func cpuOf(n uint16) int16 {
	if n > 1<<15-1 {
		return -1
	}
	return int16(n)
}
