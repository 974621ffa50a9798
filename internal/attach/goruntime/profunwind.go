package goruntime

import "strings"

// muchUnwound is the share of the CPU from which unwinding stacks is more than a program needs.
const muchUnwound = 0.25

// unwinders walk stacks: until Go 1.20 gentraceback, then the unwinder.
var unwinders = []string{"runtime.gentraceback", "runtime.(*unwinder).next",
	"runtime.(*unwinder).resolveInternal", "runtime.tracebackPCs", "runtime.pcvalue", "runtime.funcspdelta"}

// unwinding is the share of the CPU for walking stacks.
func (p *profile) unwinding() (share float64) {
	for _, fn := range unwinders {
		share = max(share, ratio(p.cum[fn], p.total))
	}
	return min(1, share)
}

// askers are who walks stacks, by functions above the walk.
var askers = []named{
	{"runtime.mProf_Malloc", heapProfiler},
	{"runtime.profilealloc", heapProfiler},
	{"runtime.Callers", "which the program asks for itself: a logger that names its caller, errors with stacks"},
	{"runtime.Caller", "which the program asks for itself: a logger that names its caller, errors with stacks"},
	{"runtime.Stack", "which the program asks for itself: it writes stacks"},
	{"runtime.copystack", "since stacks of goroutines grow"},
	{"runtime.scanstack", "by GC, which looks for pointers in them"},
	{"runtime.sigprof", "by the CPU profiler itself"},
}

const heapProfiler = "by the heap profiler, which records allocations: runtime.MemProfileRate is low"

// unwinder says who walks stacks for so much of the CPU, as far as the text shows.
func (p *profile) unwinder(share float64) string {
	for _, who := range askers {
		if p.cum[who.fn] >= 0.6*share*p.total {
			return who.words
		}
	}
	// Functions that keep a stack for the heap profiler stand below the one that calls them.
	if (p.cum["runtime.stkbucket"] > 0 || p.cum["runtime.addspecial"] > 0) &&
		p.cum["runtime.mallocgc"] >= share*p.total {
		return "most likely " + heapProfiler
	}
	return "for whom is not in what is shown: loggers that name their caller, errors with stacks, a heap profiler that records each allocation"
}

// resolves reports whether a function asks the C library for names of hosts.
func resolves(fn string) bool {
	return strings.HasPrefix(fn, "net.cgoLookup") ||
		strings.HasPrefix(fn, "net._C2func_getaddrinfo") || strings.HasPrefix(fn, "net.cgoResSearch")
}
