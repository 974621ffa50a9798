package capacity

import (
	"reflect"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// twoCPUs is 40 ms on two CPUs, small enough to add up by hand. No thread is on CPU 0 from 3 to 29.
// On CPU 1 somebody else runs from 10 to 14, the target is throttled from 15 to 20 and sleeps from
// 24 to 29.
const twoCPUs = `
header cpus=0,1 pertask alltasks
thread tid=1000 pid=1000 comm=app target
thread tid=1001 pid=1000 comm=app target
thread tid=50 pid=50 comm=etcd
switch t=0 cpu=0 tid=0 other=1000 flags=othertarget
switch t=0 cpu=1 tid=0 other=1001 flags=othertarget
switch t=3000000 cpu=0 tid=1000 other=0 flags=target args=1,203,4096
switch t=10000000 cpu=1 tid=1001 other=50 flags=target,preempted
switch t=14000000 cpu=1 tid=50 other=1001 flags=othertarget
switch t=15000000 cpu=1 tid=1001 other=0 flags=target,preempted,throttled
unthrottle t=20000000 cpu=1
switch t=20000000 cpu=1 tid=0 other=1001 flags=othertarget
switch t=24000000 cpu=1 tid=1001 other=0 flags=target args=2,0,0
waking t=26000000 cpu=0 tid=1000 other=0 flags=target,interrupt
switch t=29000000 cpu=0 tid=0 other=1000 flags=othertarget
waking t=29000000 cpu=0 tid=1001 other=0 flags=target,interrupt
switch t=29000000 cpu=1 tid=0 other=1001 flags=othertarget
switch t=40000000 cpu=0 tid=1000 other=0 flags=target args=1
switch t=40000000 cpu=1 tid=1001 other=0 flags=target args=1
`

// TestCPUs: each CPU's time is in one term. Unused time is shared out by what requests waited for.
func TestCPUs(t *testing.T) {
	waits := []account.Instead{{Who: "network", NS: 3}, {Who: "timer", NS: 1}}
	got := CPUs(schedtest.Timeline(t, twoCPUs), nil, Times{{0, 32e6}}, waits)
	want := &account.CPUs{
		Allowed: 2, WallNS: 40e6, TotalNS: 80e6, RunningNS: 40e6, ThrottledNS: 10e6, OthersNS: 4e6,
		UnusedNS: 26e6, IdleNS: 36e6,
		Unused: []account.Instead{{Who: "network", NS: 195e5}, {Who: "timer", NS: 65e5}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestQuotaUsed: where the group's own count is missing, what its threads ran stands for it: the
// target's 40 ms, and the 4 of etcd if it is in the group or below it.
func TestQuotaUsed(t *testing.T) {
	for cgroup, want := range map[string]int64{"": 40e6, "/other": 40e6, "/app2": 40e6,
		"/app/batch": 44e6, "/app": 44e6} {
		k := schedtest.Timeline(t, strings.Replace(twoCPUs, "comm=etcd", "comm=etcd cgroup="+cgroup, 1))
		set := &evidence.Set{}
		set.Add(evidence.Record{Stream: "/cgroup/cpu/quota:cpus", Shape: evidence.Fact, Value: 0.5})
		set.Add(evidence.Record{Stream: "/cgroup/cpu/quota-at:path", Shape: evidence.Fact, Text: "/app"})
		if c := CPUs(k, set, nil, nil); c.QuotaNS != 20e6 || c.UsedNS != want {
			t.Errorf("etcd in %q: %d ns used of %d, want %d", cgroup, c.UsedNS, c.QuotaNS, want)
		}
	}
}
