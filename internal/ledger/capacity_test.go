package ledger

import (
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/evidence"
)

// TestCPUs: a case small enough to add up by hand. The request is under way until 32, and no thread
// is on CPU 0 from 3 to 29.
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

// TestQuotaUsed: where the group's own count is missing, what its threads ran: the target's 40 ms,
// and the hog's 4 if it is in a group below.
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
		if c := capacity.CPUs(k, set, nil, nil); c.QuotaNS != 20e6 || c.UsedNS != want {
			t.Errorf("hog in %q: %d ns used of %d, want %d", cgroup, c.UsedNS, c.QuotaNS, want)
		}
	}
}
