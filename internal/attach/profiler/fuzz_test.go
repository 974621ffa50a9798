package profiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// fuzz checks one kind: it never panics, and claims no more than there is.
func fuzz(f *testing.F, k *attach.Kind) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range txtar.Parse(data).Files {
			if file.Name == "paste" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for at := 0; at < len(lines) && at < 64; at++ {
			n := k.Claim(lines[at:])
			if n < 0 || n > len(lines)-at {
				t.Fatalf("claims %d of %d lines", n, len(lines)-at)
			}
			if n > 0 && k.Read != nil {
				if r := k.Read(&attach.Part{Kind: k, Lines: lines[at : at+n]}); r.Title == "" || r.State == "" {
					t.Fatalf("no title or state: %+v", r)
				}
			}
		}
	})
}

func FuzzPerfReport(f *testing.F)   { fuzz(f, perfReport) }
func FuzzStraceCount(f *testing.F)  { fuzz(f, straceCount) }
func FuzzHistogram(f *testing.F)    { fuzz(f, bpfHistogram) }
func FuzzLinuxKI(f *testing.F)      { fuzz(f, linuxKI) }
func FuzzPerfScript(f *testing.F)   { fuzz(f, perfScript) }
func FuzzStrace(f *testing.F)       { fuzz(f, straceLines) }
func FuzzLtrace(f *testing.F)       { fuzz(f, ltraceLines) }
func FuzzPerfTrace(f *testing.F)    { fuzz(f, perfTrace) }
func FuzzTraceSum(f *testing.F)     { fuzz(f, perfTraceSum) }
func FuzzPerfStat(f *testing.F)     { fuzz(f, perfStat) }
func FuzzSchedLatency(f *testing.F) { fuzz(f, schedLatency) }
func FuzzSchedHist(f *testing.F)    { fuzz(f, schedHist) }
func FuzzSchedMap(f *testing.F)     { fuzz(f, schedMap) }
func FuzzStacks(f *testing.F)       { fuzz(f, bpfStacks) }
func FuzzFolded(f *testing.F)       { fuzz(f, foldedStacks) }
func FuzzMaps(f *testing.F)         { fuzz(f, bpfMaps) }

func FuzzTables(f *testing.F) {
	for _, k := range bpfTables() {
		if k.Name == "drsnoop" {
			fuzz(f, k)
		}
	}
}

func FuzzTrace(f *testing.F)  { fuzz(f, kernelTrace) }
func FuzzGraph(f *testing.F)  { fuzz(f, functionGraph) }
func FuzzCyclic(f *testing.F) { fuzz(f, cyclictest) }
func FuzzLock(f *testing.F)   { fuzz(f, perfLock) }
func FuzzAsync(f *testing.F)  { fuzz(f, asyncProfiler) }

func FuzzRefused(f *testing.F) {
	one := *refused[0]
	one.Claim = func(lines []paste.Line) int {
		most := 0
		for _, k := range refused {
			most = max(most, k.Claim(lines))
		}
		return most
	}
	fuzz(f, &one)
}
