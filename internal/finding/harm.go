package finding

// How much is too much, where a recording and an attached text show the same fact: internal/detect
// and internal/attach both read these. A share of a request's time is not among them, since no
// text has requests.
const (
	// GCCycles a second: from two on, no request is far from the parts of a cycle.
	GCCycles = 2.0
	// GCMarking is a share of the time: a large heap is marked for so long that a few cycles are as
	// near to any request.
	GCMarking = 0.25
	// GCOfAll is a share of the CPUs: what the pacer aims at while it marks, all the time.
	GCOfAll = 0.25
	// GCOfUsed is GC's share of the CPU time used. With GOGC=100 only a program that does little
	// but allocate reaches it.
	GCOfUsed = 0.40
	// GCOfUsedTight is the same where the heap can hardly grow between cycles, or a setting makes
	// them many. Where that is not known, it is no more than a candidate.
	GCOfUsedTight = 0.25
	// GCUses is the least that GC takes of one CPU to be worth a word.
	GCUses = 0.05
	// GCRoom is the goal of the heap, in live heaps, below which it can hardly grow; GOGC=100 lets
	// it double.
	GCRoom = 1.5
	// GCWithheld is what GC withholds in all: of a slow request's time, or of all Ps' time, which
	// is that of the requests that they would run.
	GCWithheld = 0.15
	// QueuedForCPU is the share of the time in which a thread wanted a CPU that it was queued for
	// one. A busy host takes less from a healthy process.
	QueuedForCPU = 0.20
)
