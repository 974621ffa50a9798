// Package kernel is the recorder's own event stream: what the kernel reported of one target, in the
// order in which it happened, in one member of a case. It holds the record's shape, the stream's
// writer and reader, and a text twin of each record. It refuses to say what a record means for
// anybody: that is for sched.
package kernel

// Member is the name of the stream in a case.
const Member = "kernel.stream"

// Kind says what a Record reports.
type Kind uint8

// Kinds. TID is the thread that the record is about, in the host's pid namespace. Other, Arg and
// the stacks are what each kind says; what is not named is zero. A stretch is one record, which is
// written at its end: Time is its start, and Arg[0] its length in ns.
const (
	None Kind = iota

	// Switch: on CPU, TID left and Other came; 0 is the idle task. Arg[0] is the state in which TID
	// was left, in the kernel's bits of task_struct.__state: 0 running, 1 interruptible, 2
	// uninterruptible... Flags: Preempted, Throttled, GroupThrottled, and Target, OtherTarget for
	// the threads of which they are true. For a blocked thread of the target Arg[1] is the system
	// call that it is in, plus one (0: none, for example in a fault), and Arg[2] that call's first
	// argument (a futex address, a file descriptor). Without privilege only the target's own
	// switches are seen: the other thread of the two is then Unseen, and NotRunning says of a
	// thread that it blocks in a state that is not known.
	Switch

	// WaitStack: the stacks of TID's wait that ended just now or, with flag Leaving, starts now.
	WaitStack

	// Waking: TID, of the target, is being woken by Other on CPU. With Interrupt the waker is a
	// device or a timer, and Other a bystander. With OtherTarget the stacks are the waker's, Arg[1]
	// its system call plus one, and Arg[2] that call's first argument. Reads: Other is of another
	// process and in a call that reads, so that it made room and gave no data.
	Waking

	// Wakeup: TID was put into the run queue of CPU Arg[0]. New: for the first time. Migrate: it
	// was moved to CPU Arg[0]. GroupThrottled: that queue is out of quota.
	Wakeup

	// Clone: Other of the target made TID. Exit: TID ended. Exec: TID runs another program.
	Clone
	Exit
	Exec

	// FutexWake: TID of the target calls futex at address Arg[1] with operation Arg[2], to wake.
	// FutexWait: to wait.
	FutexWake
	FutexWait

	// Unthrottle: a quota's period timer (Arg[0] 0) or slack timer (1), or the call to a CPU to
	// unthrottle its threads (2), ran on CPU.
	Unthrottle

	// Signal: TID of the target sent SIGURG to Other. Delivered: TID received it.
	Signal
	Delivered

	// Sample: TID was on CPU with these stacks. A sample is taken every Arg[0] ns of CPU time.
	Sample

	// Fault: a stretch of TID in a page fault at address Arg[1], with error code Arg[2]. Flags:
	// Major, Huge. Arg[0] is 0 where only the start is known. For a major fault User is a stack of
	// one frame; its Module is the file that is mapped there, if one is.
	Fault

	// Reclaim: a stretch of TID in direct reclaim; Arg[1] is the order asked for, Arg[2] the gfp
	// flags. With Memcg it is that of a memory cgroup. Compaction is the same for compaction.
	Reclaim
	Compaction

	// MmapLock: a stretch of TID waiting for an mmap_lock, with Write to write. Arg[1] identifies
	// the address space.
	MmapLock

	// TLBFlush: TID caused a flush of Arg[1] pages (^0: all) for reason Arg[2] of the kernel's
	// tlb_flush. It is a moment, not a stretch.
	TLBFlush

	// KernelLock: a stretch of TID waiting for a lock of the kernel; Arg[1] is its address, Arg[2]
	// the flags of contention_begin.
	KernelLock

	// NUMAMove: a stretch of TID in faults that NUMA balancing caused; short ones are reported as
	// one. Arg[1] pages were moved meanwhile. The low 16 bits of Arg[2] are the node of the
	// thread's CPU, the next 16 how many of the faults were for memory of another node, the high 32
	// how many faults there were: 0 not known.
	NUMAMove

	// SocketReady: a stretch from the arrival of data for socket Arg[1] (its number is of this
	// recording only) to TID's read of it. Other had found the socket empty at Arg[2], or left it
	// so, where turns are recorded; there stretches below 0.1 ms are not reported. Both threads are
	// of the target.
	SocketReady

	// File: from about Time on, the target's descriptor Arg[0] is a socket (Arg[1] is 1), or a
	// pipe, a terminal or another file whose reader waits for a writer (2), or a socket whose
	// connection the target's side made (3), or anything else (0). TID waited in a call on it.
	// It is reported once, and when it changes.
	File

	// TimerDue: a timer that wakes TID was due at Arg[1] and fired at Time.
	TimerDue

	// Disk: TID starts to wait in a call on a file. User is a stack of one frame, whose Module is
	// the file. The kernel stack says whether the wait is for a disk. Not every wait is reported.
	// Arg[0] is 0, or the length of a wait that is known to be for the file's blocks.
	Disk

	// Held: while switches of other programs are folded: on CPU, thread Other had the CPU for
	// Arg[0] ns up to Time, while TID of the target was queued there. It is not reported when the
	// CPU was idle.
	Held

	// Lost: Arg[0] records were lost on CPU since the last report of it; Arg[1] of them were
	// stacks. A stretch from Time to Time+Arg[2].
	Lost

	// Detail: from here on the recorder's level of detail is Arg[0]; 0 is all of it. Above that,
	// switches of other programs are folded, unless Arg[1] is 1. Arg[2] has a bit for each Extra
	// that is not recorded from here on.
	Detail

	// Turn: TID reads another socket than before, and did not wait in between: a loop around many
	// sockets goes on to the next. Turns that follow within 0.1 ms are not reported. It is recorded
	// with the extra Sockets, of programs whose threads are not shared by goroutines.
	Turn

	kinds
)

// An Extra is something that a recorder may record a part of the time only, since it can be much
// and cost much.
type Extra int

// Extras: since when sockets had data, TLB flushes, waits for the kernel's own locks, minor page
// faults.
const (
	Sockets Extra = iota
	Flushes
	KernelLocks
	MinorFaults

	Extras
)

// Unseen stands for whoever had the CPU before or after: a thread that the recorder may not look
// at, or none.
const Unseen = ^uint32(0)

// NotRunning is the state of a Switch if it is only known not to be 0.
const NotRunning = 1 << 62

// Flags of a Record.
type Flags uint16

const (
	Preempted      Flags = 1 << iota // it left though it could have run on
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
	Reads // of Waking
)

// Record is one thing that the kernel reported. Times are CLOCK_MONOTONIC ns.
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

// Thread names a thread. A later one with the same TID replaces it from its Since on: the thread
// changed its name, or the number was used again.
type Thread struct {
	Since  int64 // from when on; 0: from the start
	TID    uint32
	PID    uint32 // thread group
	NSTID  uint32 // TID in the target's innermost pid namespace, as its own trace has it; 0 not known
	Comm   string
	Cgroup string // path in the hierarchy that has the cpu controller; "" not known
	Target bool
	Kernel bool // a kernel thread
}

// Recorder is the Comm that the recorder gives to its own threads. No program can have it: a
// command has 15 bytes at most.
const Recorder = "whystall, this recording"

// Frame is one place on a stack.
type Frame struct {
	Addr     uint64
	Func     string // "" where no symbol covers the address
	Module   string // file name or "kernel"; "" not known
	Offset   uint64 // in the module's file; in the kernel, from Func's start
	Inferred bool   // found by scanning the stack: it may never have been called
	Waits    bool   // its instruction is in a loop that only looks at memory until another thread changes it
}

// What a File is, its Arg[1].
const (
	FileOther = iota
	FileSocket
	FilePipe
	FileMade // what comes there are answers
)

// Header says how the stream was made.
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

	// StopNote and SafeNote are the addresses of runtime.sched.stopnote and of safePointNote, by
	// the binary's symbols or its version; 0 not known. NoteFrom says how they are known: "DWARF",
	// "table of Go 1.26".
	StopNote uint64
	SafeNote uint64
	NoteFrom string
}
