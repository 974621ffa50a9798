package ledger

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/account"
)

// traces lists the real traces that are kept with their reader, or those that WHYSTALL_TRACES, a
// glob, names.
func traces(t testing.TB) []string {
	glob := os.Getenv("WHYSTALL_TRACES")
	if glob == "" {
		glob = "../../exectrace/testdata/*.trace"
	}
	l, err := filepath.Glob(glob)
	if err != nil || len(l) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	return l
}

func sumOf(c account.Column) (ns int64) {
	for _, a := range c.Accounts {
		ns += a.NS
	}
	return ns
}

// checkSums holds a result to what is promised of every one.
func checkSums(t testing.TB, r *account.Result) {
	t.Helper()
	for name, c := range map[string]account.Column{"slow": r.Slow, "median": r.Median, "all": r.All} {
		if got := sumOf(c); got != c.WallNS {
			t.Errorf("%s: accounts add up to %d ns of %d", name, got, c.WallNS)
		}
		for _, a := range c.Accounts {
			if a.NS < 0 {
				t.Errorf("%s: %s has %d ns", name, account.Phrase(&a), a.NS)
			}
			if a.Instead != nil {
				var ns int64
				for _, i := range a.Instead {
					ns += i.NS
				}
				if name == "slow" && ns != a.NS {
					t.Errorf("slow: %s: what ran instead adds up to %d ns of %d", account.Phrase(&a), ns, a.NS)
				}
			}
		}
	}
	c := r.Capacity
	if got := c.RunningNS + c.GCNS + c.SyscallNS + c.StoppedNS + c.IdleWorkNS + c.IdleNS +
		c.UnknownNS; got != c.TotalNS {
		t.Errorf("capacity adds up to %d ns of %d", got, c.TotalNS)
	}
	checkKernel(t, r)
}

// checkKernel holds what the kernel's records told to what is promised of it.
func checkKernel(t testing.TB, r *account.Result) {
	t.Helper()
	if c := r.CPUs; c != nil {
		if got := c.RunningNS + c.ThrottledNS + c.OthersNS + c.UnusedNS + c.RestNS +
			c.UnknownNS; got != c.TotalNS || c.TotalNS != int64(c.Allowed)*c.WallNS {
			t.Errorf("CPUs add up to %d ns of %d, %d CPUs x %d ns", got, c.TotalNS, c.Allowed, c.WallNS)
		}
		var ns int64
		for _, i := range c.Unused {
			ns += i.NS
		}
		if c.Unused != nil && ns != c.UnusedNS {
			t.Errorf("unused CPUs: on what adds up to %d ns of %d", ns, c.UnusedNS)
		}
	}
	if r.Kernel == nil {
		return
	}
	for _, b := range r.Kernel.Barriers {
		var ns int64
		for _, i := range b.Leaves {
			ns += i.NS
		}
		if ns != b.End-b.Begin {
			t.Errorf("%s from %d: leaves add up to %d ns of %d", b.Kind, b.Begin, ns, b.End-b.Begin)
		}
		if b.StoppedNS+b.DelayedNS != b.End-b.Begin {
			t.Errorf("%s from %d: stopped %d and delayed %d of %d", b.Kind, b.Begin, b.StoppedNS,
				b.DelayedNS, b.End-b.Begin)
		}
	}
}

func unexplained(c account.Column) (ns int64) {
	for _, a := range c.Accounts {
		if strings.HasPrefix(string(a.Leaf), "unexplained") || a.Leaf == account.LeafLockUnseen {
			ns += a.NS
		}
	}
	return ns
}

func TestTraces(t *testing.T) {
	for _, name := range traces(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr, err := exectrace.Open(name, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			r, err := Run(context.Background(), tr, Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkSums(t, r)
			q := r.Requests
			t.Logf("%d requests, %d slow, not kept %d, limited %d, p50 %d us, p99 %d us, max %d us; unexplained slow %.2f %%, median %.2f %%, all %.2f %%; %d visits, %d events, %.0f ns an event, heap %d MB",
				q.Count, q.Slow, q.NotKept, q.Limited, q.P50/1e3, q.P99/1e3, q.Max/1e3,
				100*float64(unexplained(r.Slow))/float64(max(r.Slow.WallNS, 1)),
				100*float64(unexplained(r.Median))/float64(max(r.Median.WallNS, 1)),
				100*float64(unexplained(r.All))/float64(max(r.All.WallNS, 1)), r.Reader.Visits, r.Reader.Events,
				float64(r.Reader.NS)/float64(r.Reader.Events), r.Reader.MaxHeap>>20)
			for _, g := range q.Groups {
				t.Logf("  group %s (%s) %d, slow %d over %d us: %s", g.Entry, g.Kind, g.Count,
					g.Slow, g.SlowOver/1e3, g.Boundary)
			}
			for i, a := range r.Slow.Accounts {
				if i < 12 {
					t.Logf("  %5.1f %% excess %5.1f %%  %s [%s] (%d requests, largest of %d, queue %d, actors %d)", 100*float64(a.NS)/float64(r.Slow.WallNS), 100*float64(a.ExcessNS)/float64(r.Slow.WallNS), account.Phrase(&a), a.Detail, a.Requests, a.Largest, a.MaxQueue, a.Actors)
				}
			}
			for i, a := range r.All.Accounts {
				if i < 5 {
					t.Logf("  all %5.1f %%  %s", 100*float64(a.NS)/float64(r.All.WallNS), account.Phrase(&a))
				}
			}
			for i, l := range r.Locks {
				if i < 2 {
					t.Logf("  lock %v slow %d waits %d %v %v", l.Sites, l.SlowNS, l.Waits, l.Holders, l.HolderNS)
				}
			}
			c := r.Capacity
			t.Logf("  %d Ps x %d ms: run %.1f gc %.1f sys %.1f stopped %.1f idle, work %.1f idle %.1f unknown %.1f; avg runnable %.1f", c.Procs, c.WallNS/1e6, pct(c.RunningNS, c), pct(c.GCNS, c), pct(c.SyscallNS, c), pct(c.StoppedNS, c), pct(c.IdleWorkNS, c), pct(c.IdleNS, c), pct(c.UnknownNS, c), c.RunnableAvg)
			t.Logf("  stws %d gc %+v silences %+v", len(r.STWs), r.GC.Cycles, r.Silences)
			for _, s := range q.Slowest {
				t.Logf("  slowest %d us: %s", (s.End-s.Begin)/1e3, s.Reason)
			}
		})
	}
}

func pct(ns int64, c account.Capacity) float64 { return 100 * float64(ns) / float64(max(c.TotalNS, 1)) }
