package profiler

import (
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/attachtest/fuzz"
	"github.com/whystall/whystall/internal/format/paste"
)

func FuzzPerfReport(f *testing.F)   { fuzz.Kind(f, perfReport) }
func FuzzStraceCount(f *testing.F)  { fuzz.Kind(f, straceCount) }
func FuzzLtraceCount(f *testing.F)  { fuzz.Kind(f, ltraceCount) }
func FuzzHistogram(f *testing.F)    { fuzz.Kind(f, bpfHistogram) }
func FuzzLinuxKI(f *testing.F)      { fuzz.Kind(f, linuxKI) }
func FuzzPerfScript(f *testing.F)   { fuzz.Kind(f, perfScript) }
func FuzzStrace(f *testing.F)       { fuzz.Kind(f, straceLines) }
func FuzzLtrace(f *testing.F)       { fuzz.Kind(f, ltraceLines) }
func FuzzPerfTrace(f *testing.F)    { fuzz.Kind(f, perfTrace) }
func FuzzTraceSum(f *testing.F)     { fuzz.Kind(f, perfTraceSum) }
func FuzzPerfStat(f *testing.F)     { fuzz.Kind(f, perfStat) }
func FuzzSchedLatency(f *testing.F) { fuzz.Kind(f, schedLatency) }
func FuzzSchedHist(f *testing.F)    { fuzz.Kind(f, schedHist) }
func FuzzSchedMap(f *testing.F)     { fuzz.Kind(f, schedMap) }
func FuzzStacks(f *testing.F)       { fuzz.Kind(f, bpfStacks) }
func FuzzFolded(f *testing.F)       { fuzz.Kind(f, foldedStacks) }
func FuzzMaps(f *testing.F)         { fuzz.Kind(f, bpfMaps) }

// of is one kind that asks all of these, and reads with the first that knows the lines.
func of(kinds []*attach.Kind) *attach.Kind {
	first := func(lines []paste.Line) (*attach.Kind, int) {
		for _, k := range kinds {
			if n := k.Claim(lines); n > 0 {
				return k, n
			}
		}
		return nil, 0
	}
	return &attach.Kind{Name: "any of several",
		Claim: func(lines []paste.Line) int {
			_, n := first(lines)
			return n
		},
		Read: func(p *attach.Part) attach.Reading {
			k, _ := first(p.Lines)
			return k.Read(p)
		}}
}

func FuzzTables(f *testing.F)    { fuzz.Kind(f, of(bpfTables())) }
func FuzzLineTools(f *testing.F) { fuzz.Kind(f, of(lineKinds())) }

func FuzzTrace(f *testing.F)  { fuzz.Kind(f, kernelTrace) }
func FuzzGraph(f *testing.F)  { fuzz.Kind(f, functionGraph) }
func FuzzCyclic(f *testing.F) { fuzz.Kind(f, cyclictest) }
func FuzzLock(f *testing.F)   { fuzz.Kind(f, perfLock) }
func FuzzAsync(f *testing.F)  { fuzz.Kind(f, asyncProfiler) }

func FuzzRefused(f *testing.F) {
	one := *refused[0]
	one.Claim = func(lines []paste.Line) int {
		most := 0
		for _, k := range refused {
			most = max(most, k.Claim(lines))
		}
		return most
	}
	fuzz.Kind(f, &one)
}
func FuzzIOProfile(f *testing.F) { fuzz.Kind(f, ioProfile) }
func FuzzRbspy(f *testing.F)     { fuzz.Kind(f, rbspy) }
