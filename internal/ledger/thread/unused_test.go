package thread

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestLockOutsideUnits has a pool that never runs out of work, so it has no unit of work. Its
// threads wait for a lock: that is unused time of the CPUs all the same. But if the lock's holder
// waits for the network, the others only wait for work. A server's idle workers that take turns to
// accept do so.
func TestLockOutsideUnits(t *testing.T) {
	for _, c := range []struct {
		name, holder string
		found        bool
	}{
		{"works", "", true},
		{"accepts", "args=1,43,5 kernel=6", false},
	} {
		var b strings.Builder
		b.WriteString(`header source=bpf kernel=6.18 pid=10 cpus=0,1 pertask alltasks
thread tid=11 pid=10 comm=app target
thread tid=12 pid=10 comm=app target
stack id=1 schedule;futex_wait;do_futex
stack id=2 wake_up_q;futex_wake;do_futex
stack id=3 sock_def_readable;tcp_v4_rcv;net_rx_action;__do_softirq
stack id=5 __lll_lock_wait@libc.so.6;pthread_mutex_lock@libc.so.6;update@app;start_thread@libc.so.6
stack id=6 schedule;inet_csk_accept;inet_accept
switch t=0 cpu=0 other=11 flags=othertarget
switch t=0 cpu=1 other=12 flags=othertarget
`)
		has, waits := 11, 12
		for i := range 40 {
			at := int64(1000 + i*4_000_000)
			fmt.Fprintf(&b, "switch t=%d cpu=%d tid=%d flags=target args=1,203,0x100 kernel=1 user=5\n", at, waits-11, waits)
			if c.holder != "" {
				fmt.Fprintf(&b, "switch t=%d cpu=%d tid=%d flags=target %s\n", at+1000, has-11, has, c.holder)
				fmt.Fprintf(&b, "waking t=%d cpu=%d tid=%d flags=target,interrupt kernel=3\n", at+
					3_000_000, has-11, has)
				fmt.Fprintf(&b, "switch t=%d cpu=%d other=%d flags=othertarget\n", at+3_001_000, has-11, has)
			}
			fmt.Fprintf(&b, "futexwake t=%d cpu=%d tid=%d flags=target args=0,0x100,129\n", at+3_010_000, has-11, has)
			fmt.Fprintf(&b, "waking t=%d cpu=%d tid=%d other=%d flags=target,othertarget kernel=2 args=0,203,0x100\n", at+3_011_000, has-11, waits, has)
			fmt.Fprintf(&b, "switch t=%d cpu=%d other=%d flags=othertarget\n", at+3_020_000, waits-11, waits)
			has, waits = waits, has
		}
		r, err := Run(context.Background(), schedtest.Timeline(t, b.String()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var ns int64
		for _, u := range r.CPUs.Unused {
			if u.Kind == "lock" {
				ns += u.NS
			}
		}
		if c.found != (ns > r.CPUs.TotalNS/3) || !c.found && ns > 0 {
			t.Errorf("%s: %d of %d ns are unused while threads wait for a lock; %d requests; %+v",
				c.name, ns, r.CPUs.TotalNS, r.Requests.Count, r.CPUs.Unused)
		}
	}
}
