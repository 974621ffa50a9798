package perfevent

// Options say what to record.
type Options struct {
	PID int // the threads of this process

	// AllTasks records all threads on all CPUs instead. It needs CAP_PERFMON, or
	// kernel.perf_event_paranoid at most 0.
	AllTasks bool

	Switches     bool   // which threads come to a CPU and leave it; thread names, starts and ends
	SwitchStacks bool   // the stacks of threads that leave; needs Kernel
	MajorFaults  bool   //
	MinorFaults  uint64 // one of so many; 0: none

	// ClockNS takes a CPU sample every so many ns of CPU time; 0: none. For single threads a timer
	// is set and cleared at each of their switches, which takes 0.3 to 1 us on a virtual machine,
	// and several on a crowded one. With AllTasks the timer runs on.
	ClockNS uint64

	Stacks bool // call chains of samples and faults

	// StackBytes copies so many bytes of the user's stack with each of them: a multiple of 8; 0:
	// none. Code without frame pointers needs it.
	StackBytes int

	// Kernel adds the kernel's part of stacks, and samples in the kernel. It needs CAP_PERFMON, or
	// kernel.perf_event_paranoid at most 1.
	Kernel bool

	// RingBytes is the size of each CPU's ring, a power of two; 0: what the user is permitted, up
	// to 2 MiB.
	RingBytes int
}
