package thread

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// shortRequests is a server's stream. A request takes 0.2 to 0.4 ms of CPU time: a third of it is
// in the kernel's page fault path, the rest in work. It ends with 50 us for going to wait for the
// next one. A sample is taken after each ms of CPU time.
func shortRequests(n int) string {
	var b strings.Builder
	b.WriteString(`header source=bpf kernel=6.18 pid=10 cpus=0,1 pertask alltasks
thread tid=11 pid=10 comm=app target
stack id=1 sock_def_readable;tcp_v4_rcv;net_rx_action;__do_softirq
stack id=2 work@app;serve@app;start_thread@libc.so.6
stack id=3 clear_page_erms@kernel;do_anonymous_page@kernel;handle_mm_fault@kernel;exc_page_fault@kernel;asm_exc_page_fault@kernel
stack id=6 schedule;ep_poll;do_epoll_wait
stack id=7 epoll_wait@libc.so.6;serve@app;start_thread@libc.so.6
`)
	rnd := rand.New(rand.NewPCG(3, 4))
	at, used := int64(1000), int64(0)
	run := func(ns int64, stacks string) {
		for next := 1_000_000 - used%1_000_000; next <= ns; next = 1_000_000 - used%1_000_000 {
			used, at, ns = used+next, at+next, ns-next
			fmt.Fprintf(&b, "sample t=%d cpu=0 tid=11 flags=target %s args=1000000\n", at-1, stacks)
		}
		used, at = used+ns, at+ns
	}
	fmt.Fprintf(&b, "switch t=%d cpu=0 other=11 flags=othertarget\n", at)
	for range n {
		run(50_000, "user=7")
		fmt.Fprintf(&b, "switch t=%d cpu=0 tid=11 flags=target args=1,232,5 kernel=6 user=7\n", at)
		at += 1_000_000 + rnd.Int64N(500_000)
		fmt.Fprintf(&b, "waking t=%d cpu=0 other=11 flags=othertarget,interrupt kernel=1\n", at-1000)
		fmt.Fprintf(&b, "switch t=%d cpu=0 other=11 flags=othertarget\n", at)
		ns := 200_000 + rnd.Int64N(200_000)
		run(ns/3, "user=2")
		run(ns/3, "user=2 kernel=3")
		run(ns/3, "user=2")
	}
	return b.String()
}

// TestShortRequests: single requests are too short for a sample. All together are divided as they
// are, within the interval, and the usual ones by them.
func TestShortRequests(t *testing.T) {
	r, err := Run(context.Background(), schedtest.Timeline(t, shortRequests(4000)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Requests.Groups) != 1 || r.Requests.Count < 3900 {
		t.Fatalf("%d requests in %d groups", r.Requests.Count, len(r.Requests.Groups))
	}
	for name, o := range map[string]*account.OnCPU{"group": r.Requests.Groups[0].OnCPU,
		"all": r.All.OnCPU, "usual": r.Median.OnCPU} {
		if o == nil || o.Samples < 800 {
			t.Errorf("%s: no division, or by few samples: %+v", name, o)
			continue
		}
		const truth = 100. / 350 // us of an average request
		w := o.Of(account.WorkFault)
		if want := int64(truth * float64(o.NS)); w.Low > want || w.High < want {
			t.Errorf("%s: page faults take %d, from %d to %d; want %d", name, w.NS, w.Low, w.High, want)
		}
		if width := float64(w.High-w.Low) / float64(o.NS); math.Abs(width-0.05) > 0.02 {
			t.Errorf("%s: the interval is %.3f wide", name, width)
		}
	}
	if !r.Median.OnCPU.OfAll || r.Slow.OnCPU != nil && len(r.Slow.OnCPU.Works) > 0 {
		t.Errorf("few usual requests are divided by their own samples: %+v, slow %+v", r.Median.OnCPU, r.Slow.OnCPU)
	}
	for i := range r.Requests.Slowest {
		if r.Requests.Slowest[i].OnCPU != nil {
			t.Errorf("a request of %d ns is divided", r.Requests.Slowest[i].End-r.Requests.Slowest[i].Begin)
		}
	}
}
