package format

import (
	"slices"

	"github.com/whystall/whystall/internal/evidence"
)

// Streams lists every stream that this room can give. A test holds the list to what the parsers do.
//
// Shapes: a Counter has one reading for each time it was fetched, in order: use Set.Delta. A Sample with
// Stack is already a difference where the profile was read twice: the Fact "scope" of its profile tells.
// A stream without records was not read: "not checked", never zero.
var Streams = slices.Concat(goStreams, procStreams)

var goStreams = []evidence.Stream{
	// From /metrics (client_golang's go_* and process_* series) and /debug/vars (memstats); sizes also from the text of /debug/pprof/heap?debug=1.
	{Name: "/go/version:text", Doc: "Fact. Go version of the target: \"go1.26.1\"."},
	{Name: "/go/sched/gomaxprocs:threads", Doc: "Sample. GOMAXPROCS."},
	{Name: "/go/sched/goroutines:goroutines", Doc: "Sample. Goroutines that exist."},
	{Name: "/go/sched/threads:threads", Doc: "Sample. OS threads the runtime made."},
	{Name: "/go/sched/latency:ns", Doc: "Counter. Time goroutines were runnable before they ran, all together; approximate (a histogram's sum)."},
	{Name: "/go/sched/latency:events", Doc: "Counter. How many times a goroutine was runnable before it ran."},
	{Name: "/go/gc/cycles:gc-cycles", Doc: "Counter. GC cycles completed."},
	{Name: "/go/gc/pauses:ns", Doc: "Counter. Stop-the-world time of GC."},
	{Name: "/go/gc/gogc:percent", Doc: "Sample. GOGC."},
	{Name: "/go/gc/gomemlimit:bytes", Doc: "Sample. GOMEMLIMIT; 2^63-1 or so when there is none."},
	{Name: "/go/gc/heap/goal:bytes", Doc: "Sample. Heap size at which the next cycle ends."},
	{Name: "/go/gc/heap/live:bytes", Doc: "Sample. Heap marked live by the last cycle."},
	{Name: "/go/gc/cpu-fraction:ratio", Doc: "Sample. Share of the CPU time available since the program began that GC used."},
	{Name: "/go/cpu/total:ns", Doc: "Counter. CPU time available: GOMAXPROCS x time."},
	{Name: "/go/cpu/gc:ns", Doc: "Counter. CPU time of GC, all kinds; estimated by the runtime."},
	{Name: "/go/cpu/gc/assist:ns", Doc: "Counter. CPU time goroutines spent in mark assist."},
	{Name: "/go/cpu/idle:ns", Doc: "Counter. CPU time available and not used."},
	{Name: "/go/memory/heap/alloc:bytes", Doc: "Sample. Bytes in heap objects, dead ones not yet swept included."},
	{Name: "/go/memory/heap/allocs:bytes", Doc: "Counter. Bytes allocated."},
	{Name: "/go/memory/heap/allocs:objects", Doc: "Counter. Objects allocated."},
	{Name: "/go/memory/heap/inuse:bytes", Doc: "Sample. Bytes in spans in use."},
	{Name: "/go/memory/heap/idle:bytes", Doc: "Sample. Bytes in spans without objects, released ones included."},
	{Name: "/go/memory/heap/released:bytes", Doc: "Sample. Bytes given back to the system."},
	{Name: "/go/memory/heap/sys:bytes", Doc: "Sample. Bytes of heap obtained from the system."},
	{Name: "/go/memory/stacks/inuse:bytes", Doc: "Sample. Bytes of goroutine stacks."},
	{Name: "/go/memory/sys:bytes", Doc: "Sample. All bytes obtained from the system."},
	{Name: "/go/sync/mutex/wait:ns", Doc: "Counter. Time goroutines were blocked on sync.Mutex, sync.RWMutex or a runtime lock; approximate."},
	{Name: "/process/cpu:ns", Doc: "Counter. CPU time of the process."},
	{Name: "/process/rss:bytes", Doc: "Sample. Resident memory."},
	{Name: "/process/start:unix-ns", Doc: "Fact. When the process began. Two that differ: it was restarted."},

	// From gctrace lines (GODEBUG=gctrace=1). Their Time is ns since the program began.
	{Name: "/go/gctrace/cycle:ns", Doc: "Interval. One GC cycle, first stop-the-world to last; Value its wall time."},
	{Name: "/go/gctrace/stw:ns", Doc: "Sample. Stop-the-world time of the cycle that began then."},
	{Name: "/go/gctrace/cpu:percent", Doc: "Sample. Share of CPU time since the program began that GC used."},
	{Name: "/go/gctrace/forced:events", Doc: "Event. The cycle was asked for by runtime.GC."},

	// From pprof profiles. Value is the sum, N the number of samples, Stack innermost first.
	{Name: "/pprof/mutex/delay:ns", Doc: "Sample with Stack, where a mutex was unlocked that others waited for. N contentions."},
	{Name: "/pprof/mutex/scope:ns", Doc: "Fact. Value: time the samples cover, Text the same in words; 0: since the program began."},
	{Name: "/pprof/mutex/fraction:events", Doc: "Fact. One contention of this many is sampled; 0: the profile is off, so it says nothing."},
	{Name: "/pprof/block/delay:ns", Doc: "Sample with Stack, where a goroutine was blocked. N events. The profile's rate is nowhere to be read: when it is empty it may be off."},
	{Name: "/pprof/block/scope:ns", Doc: "Fact, as of mutex."},
	{Name: "/pprof/heap/allocs:bytes", Doc: "Sample with Stack, where bytes were allocated. N objects."},
	{Name: "/pprof/heap/allocs/profiling:bytes", Doc: "Sample. What taking profiles and traces allocated; allocs is without it."},
	{Name: "/pprof/heap/inuse:bytes", Doc: "Sample with Stack, where live bytes were allocated. N objects."},
	{Name: "/pprof/heap/scope:ns", Doc: "Fact, as of mutex, for allocs; inuse is as of the last GC before the last reading."},
	{Name: "/pprof/goroutine/count:goroutines", Doc: "Sample with Stack. Value and N: goroutines there."},
	{Name: "/pprof/cpu/time:ns", Doc: "Sample with Stack, where the CPU was used. N samples."},
	{Name: "/pprof/cpu/profiling:ns", Doc: "Sample. What taking profiles and traces used; time is without it."},
	{Name: "/pprof/cpu/scope:ns", Doc: "Fact. Value: time the profile covers."},
}
