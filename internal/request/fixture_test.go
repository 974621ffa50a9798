package request

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/whystall/whystall/exectrace"
)

// run finds the activations of a whole trace.
func run(t testing.TB, tr *exectrace.Trace, o Options) (*Finder, []Activation) {
	t.Helper()
	f := NewFinder(tr, o)
	f.Learn(tr.Blocks())
	var as []Activation
	var last exectrace.Time
	for b := range tr.Blocks() {
		for i := range b {
			last = b[i].Time
			as = append(as, f.Event(&b[i])...)
		}
	}
	if err := tr.Err(); err != nil {
		t.Fatal(err)
	}
	return f, append(as, f.Finish(last)...)
}

// kept are the durations of a group's kept activations, ascending.
func kept(as []Activation, g GroupID) []time.Duration {
	var ds []time.Duration
	for _, a := range as {
		if a.Group == g && a.LeftOut == Kept {
			ds = append(ds, time.Duration(a.End-a.Begin))
		}
	}
	slices.Sort(ds)
	return ds
}

func quantile(ds []time.Duration, q float64) time.Duration {
	if len(ds) == 0 {
		return 0
	}
	return ds[int(q*float64(len(ds)-1))]
}

// report prints what was found: for -v.
func report(t testing.TB, f *Finder, as []Activation) {
	t.Helper()
	for i, g := range f.Groups() {
		ds := kept(as, GroupID(i))
		t.Logf("listed=%v %s %s %q n=%d p50=%v p99=%v max=%v left out %v; %s; %s", g.Listed, g.Kind, g.Entry, g.Name, g.Count,
			quantile(ds, .5), quantile(ds, .99), quantile(ds, 1), g.LeftOut, g.Boundary, g.Why)
	}
}

func TestFixtures(t *testing.T) {
	names, _ := filepath.Glob("../../exectrace/testdata/*.trace")
	for _, n := range names {
		t.Run(filepath.Base(n), func(t *testing.T) {
			tr, err := exectrace.Open(n, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			f, as := run(t, tr, Options{})
			report(t, f, as)
		})
	}
}
