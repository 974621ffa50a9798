package goruntime

import "github.com/whystall/whystall/internal/attach"

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return []*attach.Kind{gctrace, goroutineDump, race, goroutineCounts, goroutineStates, editorDump, threadcreate,
		headlessStack, pprofTop, pprofRaw, pprofIndex, heapText, contentionText, threadz, pprofTags, memstats,
		gopsStats, prometheus, runtimeMetrics, delve, delveStack, scvg, pacer, schedtrace, errorStack,
		lockReport, bars, bench, benchstat, inittrace}
}
