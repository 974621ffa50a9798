package collect

import "github.com/whystall/whystall/internal/format"

// Most services serve neither /debug/vars nor metrics. With pprof alone this page is the source of
// runtime.MemStats.
var _ = register(&Collector{
	Name:      "memstats",
	Allocates: true,
	Doc:       "runtime.MemStats, which is at the end of the heap profile's text form. Filling it stops the world for microseconds, so it is read once and after the trace. The stacks before it are not kept.",
	Order:     46,
	Fetches: []Fetch{
		{Phase: After, Path: "heap", Query: "debug=1", Member: "memstats.txt",
			Want: []format.Kind{format.KindHeapText}, Max: maxProfile, Keep: format.HeapTextMemStats},
	},
})
