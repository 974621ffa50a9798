package ledger

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// TestCPUs: a case small enough to add up by hand. The request is under way until 32, and no thread is on CPU 0 from 3 to 29.
func TestCPUs(t *testing.T) {
	b, err := os.ReadFile("testdata/join-runnable.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, r := parseCase(t, string(b)).tell(t)
	c := *r.CPUs
	c.Unused = nil
	want := account.CPUs{Allowed: 2, WallNS: 40e6, TotalNS: 80e6, RunningNS: 40e6, ThrottledNS: 10e6, OthersNS: 4e6, UnusedNS: 26e6}
	if c.Allowed != want.Allowed || c.WallNS != want.WallNS || c.TotalNS != want.TotalNS || c.RunningNS != want.RunningNS || c.ThrottledNS != want.ThrottledNS ||
		c.OthersNS != want.OthersNS || c.UnusedNS != want.UnusedNS || c.RestNS != 0 || c.UnknownNS != 0 {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if len(r.CPUs.Unused) == 0 {
		t.Error("not said what the work waited for")
	}
}

// TestQuotaUsed: where the group's own count is missing, what its threads ran: the target's 40 ms, and the hog's 4 if it is in a group below.
func TestQuotaUsed(t *testing.T) {
	b, err := os.ReadFile("testdata/join-runnable.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for cgroup, want := range map[string]int64{"": 40e6, "/other": 40e6, "/app2": 40e6, "/app/batch": 44e6, "/app": 44e6} {
		text := strings.Replace(string(b), "comm=etcd", "comm=etcd cgroup="+cgroup, 1)
		k := parseCase(t, text).k
		set := &evidence.Set{}
		set.Add(evidence.Record{Stream: "/cgroup/cpu/quota:cpus", Shape: evidence.Fact, Value: 0.5})
		set.Add(evidence.Record{Stream: "/cgroup/cpu/quota-at:path", Shape: evidence.Fact, Text: "/app"})
		if c := cpus(k, set, nil, nil); c.QuotaNS != 20e6 || c.UsedNS != want {
			t.Errorf("hog in %q: %d ns used of %d, want %d", cgroup, c.UsedNS, c.QuotaNS, want)
		}
	}
}

// TestAllowed: lists as the kernel writes them, and nothing of what it never writes.
func TestAllowed(t *testing.T) {
	for text, want := range map[string][]int{"0-1": {0, 1}, "0,2-3": {0, 2, 3}, "7\n": {7}, "": nil, "3-1": nil, "0-999999999": nil, "x": nil, "-1": nil} {
		set := &evidence.Set{}
		set.Add(evidence.Record{Stream: "/process/cpus-allowed:list", Shape: evidence.Fact, Text: text})
		if got := allowed(set); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestFlight: whatever the order in which requests are told, their union stays sorted, disjoint and as long as it is.
func TestFlight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var f flight
		under := make([]bool, 300)
		for range rnd.IntN(60) {
			lo := rnd.IntN(280)
			hi := lo + rnd.IntN(20)
			f.add(int64(lo), int64(hi))
			for n := lo; n < hi; n++ {
				under[n] = true
			}
		}
		var ns, want int64
		for i, s := range f.l {
			ns += s.hi - s.lo
			if s.lo >= s.hi || i > 0 && s.lo <= f.l[i-1].hi {
				t.Fatalf("not disjoint: %v", f.l)
			}
		}
		for _, u := range under {
			if u {
				want++
			}
		}
		if ns != want {
			t.Fatalf("%d ns of %d", ns, want)
		}
	}
}
