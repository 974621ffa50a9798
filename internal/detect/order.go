package detect

import "slices"

// order is the order in which detectors look. What is nearer to the root of chains of causes looks
// first, and takes what it claims; a later detector that loses most of its claim to it becomes its
// mechanism. So a new detector stands before every cause that it can bring about, and behind every
// cause that can bring it about. A name that is missing here fails a test.
var order = []string{
	// How many threads there are, and what that alone costs. Each of these fills the CPUs or uses
	// up the quota, which is what the next group sees.
	"thread-churn",          // before the locks, the unmapping and the queue that making threads brings
	"gomaxprocs-over-quota", // before gomaxprocs and cpu-throttled: the same Ps, with a quota below them
	"gomaxprocs",
	// Before runqueue-saturation: what fills the CPUs makes the queue for them. These take parts of
	// the CPU time that do not overlap, so among them the order is from outside to inside: what the
	// machine does there, what the kernel does, what the program does.
	"cpu-steal",
	"softirq", // before cpu-contention too: ksoftirqd is one of the neighbours
	// Of waits it takes those within faults, and what returning memory brings where the process
	// faults it in again: flushes and mmap_lock. Reclaim and the disk are leaves of their own.
	"page-fault",
	"tlb-shootdown",
	"kernel-lock",
	"spinning",
	"runqueue-saturation",

	// What keeps a thread that is ready off its CPU.
	// When a quota gives time again, all threads that it stopped queue at once.
	"cpu-throttled",
	"cpu-contention",

	// Memory: what holds a thread up inside the kernel. Reclaim holds mmap_lock and reads pages
	// back, so it comes before those two; a fault that waits for mmap_lock is the lock's.
	"direct-reclaim",
	"numa-balancing",
	"mmap-lock",

	// Collecting garbage brings assists, pauses, sweeps, queues and faults.
	"frequent-gc",

	// What a thread waits for in the kernel, with a CPU to itself.
	"disk-wait",
	"syscall-stall", // what is left of calls once disk and faults are taken

	// The runtime notices late. Before the pauses and the run queue, which such a goroutine meets
	// next.
	"netpoll-late",
	"timer-late",

	// The collector's single steps.
	"stw-pause",
	"sweep-assist",
	"mark-assist",
	"gc-queue",

	// Queues: whatever makes the one in front slow is the root, and looked before.
	"sched-latency",
	"jvm-safepoint",    // before the locks: one that holds a lock waits for the safepoint as well
	"logger-lock",      // before lock-contention: the same locks, whose remedy is the log
	"thp-bloat",        // of the memory ledger, which no other claims
	"interpreter-lock", // before the two below: neither more locks nor more permits help it
	"lock-contention",
	"pool-exhaustion", // waits that are no lock's
	"event-loop",      // what is left of computing, where all requests share one thread
}

// detectors returns the table in the order of looking.
func detectors() []*Detector {
	ds := slices.Clone(table)
	slices.SortFunc(ds, func(a, b *Detector) int { return slices.Index(order, a.Name) - slices.Index(order, b.Name) })
	return ds
}
