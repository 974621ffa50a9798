package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// lateFloor: in the published case 4.3 ms passed from ready to running, most of it before the
// goroutine was runnable.
var lateFloor = Floor{NS: 4e6, Share: 0.20}

// lookLate claims the time between the kernel's readiness and the moment when the goroutine became
// runnable. It leaves out what else held the goroutine up then: a quota, a neighbour and a stopped
// world are causes of their own, and the run queue comes later.
func lookLate(p *Pass, what string, tag func(*account.Tags) int64, late *account.LateSum, sight kernel.Sight) {
	r, k := p.Ledger, p.Ledger.Kernel
	text := fmt.Sprintf("%d %s seen by the kernel; to the wake-up: p50 %s, p99 %s, the longest %s",
		late.N, what, finding.Duration(late.P50), finding.Duration(late.P99), finding.Duration(late.Max))
	if why := p.Facts.halted(); why != "" {
		// A poller that was not allowed to run is late for everything, through no fault of its own.
		p.Blind(why)
		return
	}
	switch why := unseen(k, sight); {
	case late.N == 0 && why != "":
		p.Blind(why)
		return
	case !joined(r) || r.Native || k.Whole:
		p.Blind("which goroutine waited for what: it needs an execution trace that can be joined with the kernel's records; " + text)
		return
	case late.N == 0:
		// A process that waits for none has no network, or no timer. That the recorder missed them
		// is likelier.
		p.Blind("the kernel's time of readiness: the records hold none of this process")
		return
	}
	busy := busyPs(r)
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		if busy && a.Leaf == account.LeafRunnable || namelessStop(r, a) != "" {
			continue
		}
		if a.Leaf == account.LeafRunnable || a.Leaf == account.LeafLatePoll ||
			a.Leaf == account.LeafNetwork || a.Leaf == account.LeafTimer {
			p.Claim(i, min(a.NS, tag(&a.Tags)))
		}
	}
	if len(p.claims) == 0 {
		p.Clear("%s; no slow request lost time to it beyond what else held it up", text)
	} else if why := p.below(p.Claimed()); why != "" {
		p.Clear("%s; %s", text, why)
	}
}

// busyPs reports whether requests lose more in the plain run queue than before they reach it, and
// enough for a finding. Busy Ps are then the cause of both, which sched-latency reports.
func busyPs(r *account.Result) bool {
	var queue, before int64
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; a.Leaf == account.LeafRunnable {
			before += late(a)
			queue += max(0, a.NS-late(a)-instead(a, account.InsteadIdle))
		}
	}
	return queue > before && perRequest(&r.Slow, queue) >= queueFloor.NS &&
		ratio(queue, r.Slow.WallNS) >= queueFloor.Share
}

func tellLate(p *Pass, f *finding.Finding, what string, late *account.LateSum) {
	c := &p.Ledger.Capacity
	f.Summary = fmt.Sprintf("%s lose %s (%s of their time) between the moment when %s and the moment when the runtime notices", p.who(), p.per(p.NS()), p.share(p.NS()), what)
	busy := p.grantedOf(leaf(account.LeafRunnable))
	if 2*busy > p.NS() {
		f.Summary += fmt.Sprintf("; meanwhile all %d Ps were busy, and then only sysmon polls, every 10 ms or so", c.Procs)
	}
	p.Proof("kernel records", "to the wake-up: p50 %s, p99 %s, the longest %s, of %d",
		finding.Duration(late.P50), finding.Duration(late.P99), finding.Duration(late.Max), late.N)
	if c.TotalNS > 0 {
		p.Proof("ledger: capacity",
			"Ps were busy %s of the time, and %.1f goroutines waited for one on average",
			percent(1-ratio(c.IdleNS+c.IdleWorkNS, c.TotalNS)), c.RunnableAvg)
	}
	p.measure()
	f.Remedy = append(f.Remedy,
		"keep a P free to poll: run fewer CPU-bound goroutines than Ps, break up long loops, move batch work to another process",
		fmt.Sprintf("more CPUs and Ps (GOMAXPROCS is %d), if the host has idle CPUs", c.Procs))
	f.Verify = p.verify("the lateness of slow requests is below " + p.per(p.NS()) + " per request")
}
