package perfevent

// Options say what to record.
type Options struct {
	PID int // the threads of this process

	// AllTasks records everybody on all CPUs instead. It needs CAP_PERFMON, or
	// kernel.perf_event_paranoid at most 0.
	AllTasks bool

	Switches     bool   // who comes to a CPU and leaves it, thread names, births and ends
	SwitchStacks bool   // the stacks of who leaves; needs Kernel
	MajorFaults  bool   //
	MinorFaults  uint64 // one of so many; 0 none

	// ClockNS takes a CPU sample every so many ns of CPU time; 0 none. Of single threads a timer is
	// set and cleared at each of their switches, 0.3 to 1 us on a virtual machine and several where
	// it is crowded; of AllTasks it runs on.
	ClockNS uint64

	Stacks bool // call chains of samples and faults
	// StackBytes copies so many bytes of the user's stack with each of them; 0 none, else a
	// multiple of 8. Code without frame pointers needs it.
	StackBytes int

	Kernel bool // the kernel's share of stacks, and samples in the kernel: CAP_PERFMON, or kernel.perf_event_paranoid at most 1

	RingBytes int // of each CPU's ring; 0: what the user is permitted, up to 2 MiB. A power of two
}
