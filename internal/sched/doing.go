package sched

// Doing is what a thread does, by the kernel's events alone.
type Doing uint8

const (
	Unknown   Doing = iota // records are missing
	OnCPU                  // on a CPU
	Queued                 // runnable, in a CPU's run queue
	Throttled              // its group is out of quota
	Blocked
	Gone // not born yet, or ended
)

// Block is what a blocked thread waits in, from its kernel stack and its system call. Within a wait the innermost holds:
// a reclaim inside a fault is reclaim.
type Block uint8

const (
	BlockUnknown    Block = iota // neither stack nor system call is known
	BlockOther                   // known, and none of these
	BlockFutex                   // a lock, a condition, a note: Stretch.Futex is its address
	BlockNetwork                 // sockets and the calls that wait for them
	BlockTimer                   // sleeps
	BlockPipe                    // pipes, terminals
	BlockDisk                    // a file's blocks
	BlockFault                   // page fault, none of the below
	BlockReclaim                 // direct reclaim
	BlockMemcg                   // reclaim of its memory cgroup, or over its limit
	BlockCompaction              //
	BlockMmapLock                //
	BlockTLB                     // TLB flush, other CPUs' answers
	BlockNUMA                    // hinting fault, migration of pages
	BlockChild                   // wait4 and the like, join
	BlockIdle                    // of kernel threads: nothing to do
	BlockStopped                 // SIGSTOP and the like, or a debugger, whatever it was in
)

// Stalls reports whether b is an affair of the kernel's own, disk or memory management, that holds a
// thread up whatever it wanted to do. The kinds of such waits stand next to each other for that.
func (b Block) Stalls() bool { return b >= BlockDisk && b <= BlockNUMA }

// Stretch is one thread in one state.
type Stretch struct {
	Begin, End  int64 // CLOCK_MONOTONIC
	Doing       Doing
	Block       Block // of ThreadBlocked; of ThreadOn and ThreadQueued what it was in the middle of, where a record tells: BlockFault...
	Sampled     bool  // of ThreadOn: Block is what samples say, right in sum and not at each instant
	CPU         int32 // where it ran or is queued; -1 not known
	Whole       Span  // the stretch before it was cut to what was asked for
	Approx      bool  // no event marks its end: of ThreadThrottled the unthrottling, of ThreadBlocked the waking, so that a part of it may be queued
	ByGroup     bool  // of ThreadThrottled: known by its group's count alone, as before Linux 6.18: supported at most
	Preempted   bool  // of ThreadQueued: it had been running; else it was woken, or throttled before
	Unthrottled bool  // of ThreadQueued: after ThreadThrottled
	Syscall     int32 // number of the system call it is blocked in, -1 none or not known
	Arg         uint64
	Futex       uint64 // of BlockFutex; 0 not known
	Kernel      uint32 // StackID, where recorded
	User        uint32

	// Of ThreadBlocked, who ended it.
	Waker       uint32 // TID; 0 not seen
	ByInterrupt bool   // a device or a timer, Waker is a bystander
	WakerTarget bool
	WakerSignal bool   // by a signal sent to it, SIGURG: not the end of what it waited for
	WakerKernel uint32 // StackID
	WakerUser   uint32
	WakerCall   int32 // the waker's system call, -1 none or not known
	WakerArg    uint64
}

// Span is a stretch of time, CLOCK_MONOTONIC.
type Span struct{ Begin, End int64 }
