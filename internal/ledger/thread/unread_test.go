package thread

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// A loop around sockets whose requests lay in their sockets for any time, also before the recording
// and over several turns: the sums stay exact, and some time is unread.
func TestUnreadAddsUp(t *testing.T) {
	const first = 50_000_000
	var unread, behind int64
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(3, seed))
		var b strings.Builder
		line := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
		line("header source=bpf kernel=6.18 pid=10 cpus=0,1 alltasks pertask recorded=turns,unread")
		line("stack id=1 schedule;ep_poll;do_epoll_wait")
		line("stack id=2 ep_poll_callback;sock_def_readable;tcp_rcv_established;net_rx_action")
		line("stack id=3 hrtimer_wakeup;__hrtimer_run_queues;hrtimer_interrupt")
		line("thread tid=10 pid=10 comm=loop target")
		at := int64(first)
		for range 80 {
			line("switch t=%d cpu=0 other=10 flags=othertarget", at)
			for range rnd.IntN(5) {
				at += rnd.Int64N(4_000_000)
				if rnd.IntN(3) > 0 {
					line("turn t=%d tid=10 flags=target", at)
				}
				since := at - rnd.Int64N(20_000_000)
				line("socketready t=%d tid=10 other=10 flags=target args=%d,%d,%d", since, at-since, rnd.IntN(4), since)
			}
			if rnd.IntN(4) == 0 { // it waits for a CPU meanwhile
				at += 1000
				line("switch t=%d cpu=0 tid=10 other=99 flags=target", at)
				at += rnd.Int64N(2_000_000)
				line("switch t=%d cpu=0 tid=99 other=10 flags=othertarget", at)
			}
			at += 200_000 + rnd.Int64N(5_000_000)
			line("switch t=%d cpu=0 tid=10 flags=target args=1,233,5 kernel=1", at)
			at += 1 + rnd.Int64N(3_000_000)
			line("waking t=%d tid=10 flags=target,interrupt kernel=%d", at, 2+rnd.IntN(2))
			at += 5000
		}
		src, err := kernel.ParseText(b.String())
		if err != nil {
			t.Fatal(err)
		}
		k, err := sched.New(src)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), k, Options{Stories: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if r.Requests.Count == 0 {
			t.Fatalf("seed %d: no requests: %s", seed, r.Requests.NoRequestsCause)
		}
		for name, c := range map[string]*account.Column{"slow": &r.Slow, "median": &r.Median, "all": &r.All} {
			var sum int64
			for i := range c.Accounts {
				a := &c.Accounts[i]
				sum += a.NS
				switch {
				case name != "all":
				case a.Leaf == account.LeafUnread:
					unread += a.NS
				case a.Leaf == account.LeafBehindTurn:
					behind += a.NS
				}
			}
			if sum != c.WallNS {
				t.Errorf("seed %d: %s: accounts add up to %d of %d", seed, name, sum, c.WallNS)
			}
		}
	}
	if unread == 0 || behind == 0 {
		t.Errorf("unread %d ns, behind a long turn %d ns", unread, behind)
	}
}
