package profiler

import (
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// Kinds lists the kinds of this room.
func Kinds() []*attach.Kind {
	return append([]*attach.Kind{
		perfReport, perfScript, perfStat, schedLatency, schedHist, schedMap, straceCount,
		ltraceCount, straceLines, ltraceLines, perfTrace, perfTraceSum, bpfHistogram, bpfStacks,
		foldedStacks, bpfMaps, linuxKI, perfDiff, perfKVM, gprof, callgrind, heaptrack,
		perfThreads, perfAnnotate, perfC2C, ftraceLatency, kernelTrace, functionGraph, cyclictest,
		schbench, btt, blkparse, perfLock, asyncProfiler, ioProfile, rbspy,
	}, slices.Concat(bpfTables(), lineKinds(), refused)...)
}
