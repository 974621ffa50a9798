package sched

import (
	"sync/atomic"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// columns is what is kept of a stream. A stream has millions of switches and few of anything else,
// so switches are kept in columns:
//   - Every thread of the target has a list of segments, 16 bytes each, which follow each other
//     without a hole, and a list of the times that it was off a CPU, with the thread that woke it.
//   - Every CPU has a list of the threads that came to it.
//
// All else is kept as events.
type columns struct {
	header  kernel.Header
	begin   int64 // time of the first record that is kept
	end     int64 // time of the last
	index   tidIndex
	threads []thread
	cpus    []cpuLog // by number
	events  []Event
	names   map[uint32][]kernel.Thread // by TID, in order of Since
	byNS    map[uint32]uint32          // TID by the target's own number for it
	levels  []Level

	callsKnown bool // the system calls of blocked threads are recorded
	// made has the descriptors that were nothing but connections which the target's side made.
	made map[uint64]bool

	bytes   int
	dropped int64 // what ended before this was given up; 0 nothing
	totals  Totals
}

// Level is the recorder's level of detail from a time on.
type Level struct {
	Time   int64
	Level  int
	Folded bool   // switches between threads of other programs are not recorded one by one
	Untold uint64 // a bit for each kernel.Extra that is not recorded
}

// Totals are sums over all threads of the target.
type Totals struct {
	Switches    int64 // a thread left its CPU
	Involuntary int64 // a thread left its CPU although it could have run on
	Lost        int64 // records that the recorder knows it lost
	LostStacks  int64
	Breaks      int64 // how often a CPU's records did not fit together
	BreakNS     int64 // threads' time that is unknown because of breaks and lost records
	Created     int64
	Exited      int64
}

// segment is one thread in one state, until its next segment starts.
type segment struct {
	begin int64
	off   uint32 // number of its offCPU, from 1 on; 0 none
	cpu   int16  // -1 not known
	meta  uint16 // a Doing and flags
}

// The bits of segment.meta above the three of its Doing.
const (
	segPreempted   = 1 << (3 + iota)
	segUnthrottled // queued since the end of a throttling
	segApprox      // no record marks its end
	segByGroup     // throttled, as its group's count alone says
	segMissing     // unknown because records are missing, not because it is before the first
	segAway        // unknown, but not on a CPU: the first record says that the thread came or was woken
)

func (s *segment) doing() Doing { return Doing(s.meta & 7) }

// offCPU is one time off a CPU, from the switch that left it to the one that came back. The
// segments of that time, blocked and then queued, share one.
type offCPU struct {
	waker        waker
	arg          uint64 // first argument of call
	kernel, user uint32 // StackIDs
	call         int16  // system call; -1 none or not known
	flags        uint8
	block        Block // found when all records are read
}

// The bits of offCPU.flags.
const (
	offFutex   = 1 << iota // arg is a futex's address
	offStopped             // by a signal, or for a tracer
	offDeep                // uninterruptible, as no wait for another program is
)

// waker is what ended a time off a CPU.
type waker struct {
	arg          uint64 // first argument of call
	tid          uint32
	kernel, user uint32 // StackIDs
	call         int16  // system call that it was in; -1 none or not known
	flags        uint8
	seen         bool // the waking is recorded; else nothing here counts
}

// The bits of waker.flags.
const (
	wakerInterrupt = 1 << iota // an interrupt, which tid only happened to be under
	wakerTarget                // tid is of the target
	wakerSignal                // it sent a signal
	wakerReads                 // it read, so that the other end may write
)

// life is one life of a thread: Linux gives the number of a thread that ended to another.
type life struct {
	birth, first, exit int64 // 0 not seen
	maker              uint32
	user               uint32 // stack of the maker
}

// thread is a thread of the target, with all lives under its number.
type thread struct {
	tid     uint32
	segs    []segment
	offs    []offCPU
	lives   []life
	events  []uint32 // numbers of its events, in order
	until   []int64  // by the same index: the latest end of any event up to there
	overlay []overlaid
	found   int32 // where at found the last time; several goroutines set it, so only atomically

	// While reading.
	pending   waker // a waking that came while it was on a CPU
	pendingAt int64
	leaving   [2]uint32 // stacks of a wait that is about to start
	signalled int64     // when it was last sent a signal
	signaller uint32
	exiting   bool
}

// run is a thread that came to a CPU. It is there until the next comes.
type run struct {
	begin int64
	tid   uint32
	// bad: its end is not known. The next record does not fit it, or other programs' switches are
	// folded.
	bad bool
}

// hold is a thread that had a CPU while other programs' switches were folded, as far as that is
// recorded.
type hold struct {
	begin, end int64
	tid        uint32
}

// cpuLog is what happened on one CPU.
type cpuLog struct {
	runs []run
	mark int64 // last unthrottling
	held []hold
	lost []Span // its records are missing
}

// maxTimeNS keeps the differences of times, which a file may claim at will, within 64 bits.
const maxTimeNS = 1 << 61

func clampTime(t int64) int64 { return min(max(t, -maxTimeNS), maxTimeNS) }

// find is the thread of the target with a TID; nil if there is none.
func (k *columns) find(tid uint32) *thread {
	if n := k.index.get(tid); n >= 0 {
		return &k.threads[n]
	}
	return nil
}

// segEnd is where th's segment i ends: the last one with the recording.
func (k *columns) segEnd(th *thread, i int) int64 {
	if i+1 < len(th.segs) {
		return th.segs[i+1].begin
	}
	return max(k.end, th.segs[i].begin)
}

// at is the segment that covers t; -1 before the first. Questions about a thread mostly follow each
// other in time, while questions about others in between push its segments out of the CPU's caches.
// So at searches from where it found the last one, in steps that double, and halves only what those
// leave.
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
	// Setting it costs more than a few steps of searching.
	if near := max(lo-1, 0); near < from || near > from+4 {
		atomic.StoreInt32(&th.found, int32(near))
	}
	return lo - 1
}

// at is the run that covers t; -1 before the first.
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

// last is the newest segment; nil if there is none.
func (th *thread) last() *segment {
	if n := len(th.segs); n > 0 {
		return &th.segs[n-1]
	}
	return nil
}

// away is the time off a CPU that s belongs to; nil if nothing is known of it.
func (th *thread) away(s *segment) *offCPU {
	if s.off == 0 || int(s.off) > len(th.offs) {
		return nil
	}
	return &th.offs[s.off-1]
}

// life is the newest life; nil if neither birth nor exit of any was seen.
func (th *thread) life() *life {
	if n := len(th.lives); n > 0 {
		return &th.lives[n-1]
	}
	return nil
}

// first is the time from which on th's segments say anything.
func (k *columns) first(th *thread) int64 {
	if len(th.segs) == 0 {
		return maxTimeNS
	}
	return th.segs[0].begin
}
