// Package kernel is the recorder's own event stream: what the kernel told about one target, in the order in which it
// happened, in one member of a case. It holds the record's shape, the stream's writer and reader, and a text twin of
// each record. It refuses to say what a record means for anybody: that is the timeline's.
package kernel

// Member is the name of the stream in a case.
const Member = "kernel.stream"

// Kind says what a Record tells.
type Kind uint8

// Kinds. TID is who it is about, in the host's pid namespace; Other, Arg and the stacks are as each says; what is
// not named is zero. A stretch is one record, written at its end: Time is its begin, Arg[0] how many ns it took.
const (
	None Kind = iota

	// Switch: on CPU, TID left and Other came; 0 is the idle task. Arg[0] is the state TID was left in, the kernel's bits
	// of task_struct.__state: 0 running, 1 interruptible, 2 uninterruptible... Flags: Preempted, Throttled, GroupThrottled,
	// and Target, OtherTarget of whom they are true. Of a blocked thread of the target Arg[1] is the system call
	// it is in, plus one (0: none, a fault for one), and Arg[2] that call's first argument (a futex address, a file descriptor).
	// Without privilege only the target's own comings and goings are seen: the other of the two is then Unseen, and NotRunning says
	// of a thread that it blocks, its state not being known.
	Switch

	// WaitStack: the stacks of TID's wait that ended just now or, with Flag Leaving, begins now.
	WaitStack

	// Waking: TID, of the target, is being woken by Other on CPU. With Interrupt the waker is a device or a timer and
	// Other a bystander. With OtherTarget the stacks are the waker's, Arg[1] its system call plus one, Arg[2] that call's first argument.
	Waking

	// Wakeup: TID was put into the run queue of CPU Arg[0]. New: first time. Migrate: moved to CPU Arg[0]. GroupThrottled: that queue is out of quota.
	Wakeup

	// Clone: Other of the target made TID. Exit: TID ended. Exec: TID runs another program.
	Clone
	Exit
	Exec

	// FutexWake: TID of the target calls futex at address Arg[1] with operation Arg[2], to wake. FutexWait: to wait.
	FutexWake
	FutexWait

	// Unthrottle: a quota's period or slack timer, or the call to a CPU to unthrottle its threads, ran on CPU; Arg[0]: 0, 1, 2.
	Unthrottle

	// Signal: TID of the target sent SIGURG to Other. Delivered: TID got it.
	Signal
	Delivered

	// Sample: TID was on CPU with these stacks; taken every Arg[0] ns of CPU time.
	Sample

	// Fault: a stretch of TID in a page fault at address Arg[1], Arg[2] its error code. Flags: Major, Huge. Arg[0] is 0 where only
	// its begin is known. Of a major one User is a stack of one frame, whose Module is the file, where one is mapped there.
	Fault

	// Reclaim: a stretch of TID in direct reclaim; Arg[1] the order asked for, Arg[2] gfp flags; with Memcg that of a
	// memory cgroup. Compaction likewise.
	Reclaim
	Compaction

	// MmapLock: a stretch of TID waiting for an mmap_lock, with Write to write; Arg[1] names the address space.
	MmapLock

	// TLBFlush: TID caused a flush of Arg[1] pages (^0: all) for reason Arg[2] of the kernel's tlb_flush; a moment.
	TLBFlush

	// KernelLock: a stretch of TID waiting for a lock of the kernel; Arg[1] its address, Arg[2] the flags of contention_begin.
	KernelLock

	// NUMAMove: a stretch of TID in faults that NUMA balancing had made, short ones told as one. Arg[1] pages were moved meanwhile. Of Arg[2] the
	// low 16 bits are the node of its CPU, the next 16 how many of the faults were for memory of another node, the high 32 how many there were: 0 not known.
	NUMAMove

	// SocketReady: a stretch from when data came for socket Arg[1] (its number is of this recording only) to TID's read of it. Other
	// had found the socket empty at Arg[2]; both are of the target.
	SocketReady

	// File: the target's descriptor Arg[0] is, from about Time on, a socket (Arg[1] is 1), or a pipe, a terminal or another file whose reader
	// waits for who writes (2), or anything else (0). TID waited in a call on it. Told once, and when it changes.
	File

	// TimerDue: a timer that wakes TID was due at Arg[1] and fired at Time.
	TimerDue

	// Disk: TID begins to wait in a call on a file; User is a stack of one frame, whose Module is the file. Whether it waits for a disk its
	// kernel stack tells. Not of every wait. Arg[0] is 0, or how long a wait took that is known to be for the file's blocks.
	Disk

	// Held: while others' switches are folded: on CPU, thread Other held the CPU for Arg[0] ns up to Time, while TID of the target
	// was queued there. When nobody did is not told.
	Held

	// Lost: Arg[0] records were lost on CPU since the last word of it, Arg[1] of them stacks. A stretch from Time to Time+Arg[2].
	Lost

	// Detail: the recorder's level of detail is Arg[0] from here on, 0 all of it. Above that others' switches are folded, unless Arg[1] is 1.
	// Arg[2] has a bit for each Extra that is not told from here on.
	Detail

	kinds
)

// An Extra is what a recorder may tell some of the time only, as it can be much and cost much.
type Extra int

// Extras: since when sockets had data, TLB flushes, waits for the kernel's own locks, minor page faults.
const (
	Sockets Extra = iota
	Flushes
	KernelLocks
	MinorFaults

	Extras
)

// Unseen stands for a thread that the recorder may not look at, or none: whoever had the CPU before or after.
const Unseen = ^uint32(0)

// NotRunning is the state of a Switch of which is known only that it is not 0.
const NotRunning = 1 << 62

// Flags of a Record.
type Flags uint16

const (
	Preempted      Flags = 1 << iota // left while it could have run on
	Throttled                        // task_struct.throttled: it leaves because its group is out of quota (Linux 6.18)
	GroupThrottled                   // its cfs_rq's throttle_count is not zero: what can be known before 6.18
	Target                           // TID is a thread of the target
	OtherTarget                      // Other is
	Interrupt                        // in interrupt context: Other is a bystander
	Leaving                          // of WaitStack
	New                              // of Wakeup
	Migrate                          // of Wakeup
	Slack                            // of Unthrottle
	Major
	Huge
	Memcg
	Write
)

// Record is one thing that the kernel told. Times are CLOCK_MONOTONIC ns.
type Record struct {
	Time   int64
	TID    uint32
	Other  uint32
	CPU    uint16
	Kind   Kind
	Flags  Flags
	Kernel uint32 // StackID of a kernel stack; 0 none
	User   uint32 // StackID of a user stack; 0 none
	Arg    [3]uint64
}

// Thread is who a thread is. A later one with the same TID replaces it from there on: it called itself something
// else, or the number was used again.
type Thread struct {
	Since  int64 // from when on; 0: from the begin
	TID    uint32
	PID    uint32 // thread group
	NSTID  uint32 // TID in the target's innermost pid namespace, as its own trace has it; 0 not known
	Comm   string
	Cgroup string // path in the hierarchy that has the cpu controller; "" not known
	Target bool
	Kernel bool // a kernel thread
}

// Recorder is the Comm that the recorder gives to its own threads. No program can have it: a command
// has 15 bytes at most.
const Recorder = "whystall, this recording"

// Frame is one place on a stack.
type Frame struct {
	Addr     uint64
	Func     string // "" where no symbol covers the address
	Module   string // file name or "kernel"; "" not known
	Offset   uint64 // in the module's file, or from Func's begin in the kernel
	Inferred bool   // found by scanning the stack: it may never have been called
}

// What a File is, its Arg[1].
const (
	FileOther = iota
	FileSocket
	FilePipe
)

// Header says how the stream came to be.
type Header struct {
	Source   string    // "bpf" or "perf"
	Kernel   string    // release: "6.18.44"
	Arch     string    // as GOARCH has it, for the numbers of system calls; "" is amd64
	PID      uint32    // of the target, in the host's namespace
	CPUs     []int     // the ones that were online
	PerTask  bool      // the kernel throttles per task, so that Throttled is exact
	Recorded []Sight   // what there are records of; not everything that is seen is listed
	Missing  []Missing // what this kernel or user does not permit
	AllTasks bool      // switches of all tasks on all CPUs; else only the target's threads
	StopNote uint64    // address of runtime.sched.stopnote, of safePointNote, and of the scheduler's lock, where the
	SafeNote uint64    // binary's symbols or its version tell them; 0 not known
	NoteFrom string    // how they are known: "DWARF", "table of Go 1.26"
}
