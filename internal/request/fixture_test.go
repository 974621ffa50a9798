package request

import (
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/exectrace"
)

// stream is a trace, recorded or written by hand.
type stream interface {
	Source
	Blocks() iter.Seq[[]exectrace.Event]
	Err() error
}

// run finds the activations of a whole trace.
func run(t testing.TB, tr stream, o Options) (*Finder, []Activation) {
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

// shown are the groups that are listed, largest first.
func shown(f *Finder) []GroupID {
	var ids []GroupID
	for i := range f.groups {
		if f.groups[i].Listed {
			ids = append(ids, GroupID(i))
		}
	}
	slices.SortStableFunc(ids, func(a, b GroupID) int {
		return int(min(1, max(-1, f.groups[b].Count-f.groups[a].Count)))
	})
	return ids
}

// report prints what was found, for -v.
func report(t testing.TB, f *Finder, as []Activation) {
	t.Helper()
	for i, g := range f.Groups() {
		ds := kept(as, GroupID(i))
		t.Logf("listed=%v %s %s %q n=%d p50=%v p99=%v max=%v left out %v; %s; %s", g.Listed, g.Kind,
			g.Entry, g.Name, g.Count,
			quantile(ds, .5), quantile(ds, .99), quantile(ds, 1), g.LeftOut, g.Boundary, g.Why)
	}
}

// fixture opens one of the reader's traces.
func fixture(t testing.TB, name string) *exectrace.Trace {
	t.Helper()
	tr, err := exectrace.Open(filepath.Join("../../exectrace/testdata", name+".trace"), exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// readers counts the background readers created. net/http starts one for each request that has no
// body left to read, and none of these servers is sent bodies. It knows nothing about how requests
// are found.
func readers(tr *exectrace.Trace) (n int64) {
	var fr []exectrace.Frame
	for ev := range tr.Events() {
		if ev.Kind == exectrace.KindGoroutine && ev.From == exectrace.NotExist && ev.OnStack != 0 {
			if fr = tr.Frames(fr[:0], ev.Stack); len(fr) > 0 &&
				fr[len(fr)-1].Func == "net/http.(*connReader).backgroundRead" {
				n++
			}
		}
	}
	return n
}

// Of real servers as many requests are found as background readers. In Caddy's case, where 95 % of
// the requests begin without a wait for them, they take 2 ms and not half a second. The windows are
// those of traces taken on a busy machine.
func TestFixtures(t *testing.T) {
	for _, tc := range []struct {
		name     string
		low, top time.Duration // of the median
		pool     bool          // its worker pool was seen to serve requests
	}{
		{"caddy-go1.26", 1900 * time.Microsecond, 2200 * time.Microsecond, false},
		{"srv-go1.13.15", 5 * time.Millisecond, 15 * time.Millisecond, true},
		{"srv-go1.16.15", 3 * time.Millisecond, 10 * time.Millisecond, true},
		{"srv-go1.20.14", 3 * time.Millisecond, 10 * time.Millisecond, true},
		{"srv-go1.21.13", 3 * time.Millisecond, 10 * time.Millisecond, true},
		{"srv-go1.22.12", 5 * time.Millisecond, 15 * time.Millisecond, true},
		{"srv-go1.26", 3 * time.Millisecond, 10 * time.Millisecond, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := fixture(t, tc.name)
			f, as := run(t, tr, Options{})
			report(t, f, as)
			wellFormed(t, as)
			id, g := group(t, f, "net/http")
			near(t, "requests beside background readers", g.Count+g.LeftOut[Ours]+g.LeftOut[OpenEnd], readers(tr))
			if p50 := quantile(kept(as, id), .5); p50 < tc.low || p50 > tc.top {
				t.Errorf("median %v, want %v to %v", p50, tc.low, tc.top)
			}
			for _, id := range shown(f) {
				if g := f.Groups()[id]; g.Kind != "net/http" {
					t.Errorf("listed beside the server: %+v", g)
				}
			}
			pool := false
			for _, g := range f.Groups() {
				pool = pool || g.Entry == "main.main.func1" && strings.HasPrefix(g.Why, "serves others")
			}
			if pool != tc.pool {
				t.Errorf("worker pool seen to serve requests: %v, want %v", pool, tc.pool)
			}
		})
	}
}

// The same bytes give the same activations.
func TestDeterministic(t *testing.T) {
	tr := fixture(t, "srv-go1.26")
	_, a := run(t, tr, Options{})
	_, b := run(t, tr, Options{})
	if !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
}
