package sched

// Doing is the state of a thread.
type Doing uint8

const (
	Unknown   Doing = iota // records are missing
	OnCPU                  // on a CPU
	Queued                 // runnable, in a CPU's run queue
	Throttled              // its group has used up its quota
	Blocked                // waits for something: see Block
	Gone                   // not born yet, or ended
)

// Block is what a blocked thread waits in, from its kernel stack, its system call and the records
// around. Within a wait the innermost counts: a reclaim inside a page fault is a reclaim.
type Block uint8

const (
	BlockUnknown    Block = iota // neither stack nor system call is known
	BlockOther                   // known, and none of these
	BlockFutex                   // a lock, a condition, a note: Stretch.Futex is its address
	BlockNetwork                 // sockets and the calls that wait for them
	BlockTimer                   // sleeps
	BlockPipe                    // pipes, terminals
	BlockDisk                    // a file's blocks
	BlockFault                   // a page fault, and none of the following
	BlockReclaim                 // direct reclaim
	BlockMemcg                   // reclaim of its memory cgroup, or over that group's limit
	BlockCompaction              // memory compaction, to make a large page
	BlockMmapLock                // the lock of an address space
	BlockTLB                     // a TLB flush: other CPUs' answers
	BlockNUMA                    // a hinting fault of NUMA balancing, or migration of pages
	BlockChild                   // the end of a process: wait4 and the like
	BlockKernelLock              // a lock of the kernel whose waiters sleep: of a file, an inode
	BlockIdle                    // a kernel thread that has nothing to do
	BlockStopped                 // SIGSTOP and the like, or a debugger, whatever it waited in before
)

// Stalls reports whether b is the kernel's own business, a disk or memory management, which holds a
// thread up whatever it wanted to do. Such kinds stand next to each other in the list above.
func (b Block) Stalls() bool { return b >= BlockDisk && b <= BlockNUMA }

// Stretch is one thread in one state.
type Stretch struct {
	Begin, End int64 // CLOCK_MONOTONIC
	Doing      Doing
	// Block is what it waits in while Blocked. While OnCPU or Queued it is what the thread was in
	// the middle of, where a record says so: BlockFault, BlockReclaim...
	Block       Block
	Sampled     bool  // while OnCPU: Block is what samples say, right in sum and not at each instant
	CPU         int32 // where it ran or is queued; -1 not known
	Whole       Span  // the stretch before it was cut to what was asked for
	Preempted   bool  // while Queued: it had been running; else it was woken, or throttled before
	Unthrottled bool  // while Queued: it was Throttled before

	// Approx: no record marks its end, so that its last part may be time in the queue. While
	// Throttled the unthrottling is missing, while Blocked the waking.
	Approx bool
	// ByGroup: while Throttled, only its group's count says so, as before Linux 6.18. That supports
	// a conclusion and proves none.
	ByGroup bool

	Syscall int32  // number of the system call it is blocked in; -1 none or not known
	Arg     uint64 // first argument of Syscall
	Futex   uint64 // of BlockFutex: the address; 0 not known
	Kernel  uint32 // StackIDs, where recorded
	User    uint32

	// What ended a wait.
	Waker       uint32 // TID; 0 not seen
	ByInterrupt bool   // a device or a timer; Waker is only the thread that it interrupted
	WakerTarget bool   // Waker is of the target
	WakerSignal bool   // a signal to the thread, as SIGURG: what it waited for has not come
	WakerReads  bool   // Waker, of another process, was in a call that reads: it made room and gave no data
	WakerKernel uint32 // StackIDs of the waker
	WakerUser   uint32
	WakerCall   int32 // the waker's system call; -1 none or not known
	WakerArg    uint64
}

// Span is a stretch of time, CLOCK_MONOTONIC.
type Span struct{ Begin, End int64 }
