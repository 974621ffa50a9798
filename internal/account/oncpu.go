package account

import (
	"math"
	"slices"
)

// LeastSamples is how many samples a division of time needs at least. With fewer there is none.
const LeastSamples = 20

// OnCPU divides time on CPUs by what samples of stacks met. The time is exact, and its division is
// an estimate. With fewer than LeastSamples there are no Works.
type OnCPU struct {
	NS      int64 `json:"ns"`      // what is divided: the ledger's own nanoseconds on CPUs
	Samples int64 `json:"samples"` // that fell into it
	// OfAll, of the usual column only: too few samples fell into its own requests. So this is how
	// the time of all requests of its groups is divided, and Samples are theirs.
	OfAll bool `json:"of_all_requests,omitempty"`
	// SampledNS is what the samples stand for. It is near NS where every CPU is sampled.
	SampledNS int64 `json:"sampled_ns,omitempty"`
	// Effective is how many samples of equal weight would be as exact; 0 without Works.
	Effective float64 `json:"-"`
	// Unseen is the part of NS that passed in the kernel with nobody knows what: where the user
	// may not sample it, or may not read its functions' names. It is Works of kind WorkUnknown.
	Unseen int64 `json:"unseen_ns,omitempty"`
	// Leaf is samples of whose program's stack only the innermost function is known.
	Leaf int64 `json:"leaf_only,omitempty"`
	// Works add up to NS, the largest first. Kind and Name tell one from another.
	Works []Work `json:"works,omitempty"`
	// Late is samples that code without interrupts delayed: they were taken where it enabled them
	// again, by that function. They are counted in Works too.
	Late []Site `json:"late,omitempty"`
}

// Work is a part of time on CPUs.
type Work struct {
	Kind WorkKind `json:"kind"`
	// Name says which of its kind: the function of own code, the system call, what a page fault
	// does, who asks for the kernel's lock, the softirq. It is OtherWorks for the rest of a kind.
	Name    string `json:"name,omitempty"`
	Samples int64  `json:"samples"`
	NS      int64  `json:"ns"` // estimate
	// Low and High are its 95 % interval in ns: Wilson's, of the share of the samples. Samples
	// that stand for different times count as the number that would have the same variance.
	Low  int64 `json:"low_ns"`
	High int64 `json:"high_ns"`
	// Sites are functions of the program from which it came, the largest first, at most 5.
	Sites []Site `json:"sites,omitempty"`
}

// OtherWorks is the name of a Work that puts together what a long list leaves out of its kind.
const OtherWorks = "others"

// The names of Works that are OnCPU.Unseen.
const (
	UnseenWork  = "in the kernel, which this user may not sample"
	UnnamedWork = "in the kernel, whose functions have no names here"
)

// AllocClears is the name of the part of allocation that clears the memory before it is handed out.
const AllocClears = "clearing"

// GCIdle is the name of the part of garbage collection that workers of idle priority did: on CPUs
// that the program had no use for.
const GCIdle = "marking on idle CPUs"

// GCSweep is the name of the part that sweeps: it grows with what is allocated, however seldom
// cycles are.
const GCSweep = "sweeping"

// Names of page faults that have a remedy of their own.
const (
	FaultCopies = "copy on write"
	FaultFiles  = "file pages"
)

// MadeCode is the name of an interpreter's work in machine code that it made: it is the program's
// own.
const MadeCode = "code made at run time"

// SpinLoop is the name of spinning in code of the program which looks at memory until another
// thread changes it. Its Sites are the functions.
const SpinLoop = "a loop of its own"

// WorkKind says what CPU time was used for.
type WorkKind string

// Kinds of work. What is of the program itself comes first, then what Go's runtime does for it,
// then the kernel's.
const (
	WorkOwn     WorkKind = "own code"
	WorkLibrary WorkKind = "library" // code of shared libraries, called by own code: computing too
	WorkSpin    WorkKind = "spinning"

	WorkGC         WorkKind = "garbage collection" // marking, sweeping, assists
	WorkAlloc      WorkKind = "allocation"
	WorkGoSched    WorkKind = "Go scheduler"
	WorkMap        WorkKind = "map access"
	WorkMemmove    WorkKind = "memory copy" // in user space: memmove, memclr
	WorkInterface  WorkKind = "interface conversion"
	WorkGoRuntime  WorkKind = "Go runtime, other"
	WorkInterprets WorkKind = "interpreter" // the evaluation loop of Python, Ruby, JavaScript: own code there

	WorkFault      WorkKind = "page fault"
	WorkKernelLock WorkKind = "kernel lock" // spinning for one; Name is the call that asks for it
	WorkSyscall    WorkKind = "system call"
	WorkCopy       WorkKind = "copy between kernel and program"
	WorkNetwork    WorkKind = "network stack" // in a system call of the thread
	// WorkOwnSoftirq is softirqs that ran within a system call of the thread, when it let them: on
	// loopback they carry what it has just sent. WorkSoftirq came with an interrupt: a device's, a
	// timer's or another CPU's, whoever they were for.
	WorkOwnSoftirq WorkKind = "softirq of its own call"
	WorkSoftirq    WorkKind = "softirq"
	WorkInterrupt  WorkKind = "interrupt"
	WorkReclaim    WorkKind = "memory reclaim"
	WorkThreads    WorkKind = "making and ending threads"
	WorkTLB        WorkKind = "TLB flush"
	WorkNUMA       WorkKind = "NUMA migration"
	WorkSwitch     WorkKind = "context switch"
	WorkTracing    WorkKind = "tracing" // eBPF programs and perf events, this recording's among them
	WorkKernel     WorkKind = "kernel, other"

	WorkUnknown WorkKind = "not known" // no stack, or none that any rule knows
)

// Of adds up the works of these kinds: samples, the estimate, and the bounds of the 95 % interval
// of all of them together. The bounds are 0 and NS where there are too few samples. Where it is
// not known how many samples count, they are the sums of single bounds, which is wider than
// needed.
func (o *OnCPU) Of(kinds ...WorkKind) (sum Work) {
	if o == nil {
		return sum
	}
	if o.Samples < LeastSamples {
		sum.High = o.NS
		return sum
	}
	for i := range o.Works {
		w := &o.Works[i]
		for _, kind := range kinds {
			if w.Kind == kind {
				sum.Samples += w.Samples
				sum.NS += w.NS
				sum.Low += w.Low
				sum.High += w.High
				break
			}
		}
	}
	if o.Effective > 0 {
		sum.Low, sum.High = o.Interval(float64(sum.NS) / float64(max(1, o.NS)))
	}
	if o.Unseen > 0 && slices.ContainsFunc(kinds, WorkKind.inKernel) {
		sum.High += o.Unseen
	}
	// A kind that no sample met has at most 3 of n (the rule of three).
	sum.High = min(o.NS, max(sum.High, int64(float64(o.NS)*min(1, 3/float64(o.Samples)))))
	return sum
}

// OnCPUOf estimates the part of an account's time on CPUs that is of these kinds: its NS, and as
// Low and High the bounds of the 95 % interval. An account without LeastSamples of its own is
// divided as its whole column is. Where that has too few as well, nothing is known: the bounds are
// 0 and all of the account. An account that is not on CPU has no such part.
func (c *Column) OnCPUOf(a *Account, kinds ...WorkKind) (part Work) {
	if a.Leaf != LeafOnCPU {
		return part
	}
	if o := a.OnCPU; o != nil && o.Samples >= LeastSamples {
		return o.Of(kinds...)
	}
	if o := c.OnCPU; o != nil && o.Samples >= LeastSamples && o.NS > 0 {
		part = o.Of(kinds...)
		part.NS, part.Low, part.High = MulDiv(part.NS, a.NS, o.NS), MulDiv(part.Low, a.NS, o.NS),
			MulDiv(part.High, a.NS, o.NS)
		return part
	}
	part.High = a.NS
	return part
}

// inKernel reports whether work of this kind is done in the kernel, at least in part.
func (k WorkKind) inKernel() bool {
	switch k {
	case WorkOwn, WorkLibrary, WorkGC, WorkAlloc, WorkGoSched, WorkMap, WorkMemmove, WorkInterface,
		WorkGoRuntime, WorkInterprets:
		return false
	}
	return true
}

// Interval is Wilson's 95 % interval of a part that has this share of the samples, in ns of NS.
// See E. B. Wilson, "Probable inference", Journal of the American Statistical Association 22
// (1927).
func (o *OnCPU) Interval(share float64) (low, high int64) {
	n := o.Effective
	if n <= 0 {
		return 0, o.NS
	}
	const z = 1.959964
	middle := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	low = int64(float64(o.NS) * min(max(0, middle-half), share))
	high = int64(math.Ceil(float64(o.NS) * max(min(1, middle+half), share)))
	return low, min(high, o.NS)
}
