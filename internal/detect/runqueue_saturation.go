package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "runqueue-saturation",
	Title: "More threads want to run than there are CPUs",
	Needs: []string{KernelRecords},
	Floor: queueFloor,
	Fast:  never,
	Doc: `What happens
  Hundreds of threads are runnable at once, on a few CPUs. Each gets a slice of a few ms and then
  waits for all others; a request that needs ten slices waits ten rounds. Threads that poll with
  short sleeps, spin or yield are runnable again and again without doing work. Blocked threads
  cost nothing: 5 000 of them took 14 % of a program's throughput; 500 that yield took 36 %, and
  made 160 000 involuntary switches a second.

Evidence
  Threads of the process on a CPU or queued, by time, against the CPUs that it may use (its quota
  where that is less). Time in the slow column behind own threads. Involuntary switches. Threads
  that sleep for less than a ms 100 times a second or more. Beside them, what a glance like top's
  would have shown: it reads one thread after the other and finds few of them running.

Not to be taken for
  Load: where slow requests compute four times as much as usual ones, and those wait no longer than
  they compute, long requests share the CPUs with others. Many threads that are blocked.
  Neighbours (cpu-contention), a quota (cpu-throttled). More Ps of Go than CPUs: gomaxprocs is the
  root then.

Remedy
  Bound the threads that may run at once, near the number of CPUs: a pool with a queue instead of
  a thread per task. Wait for an event (futex, condition, eventfd) instead of polling with usleep
  or sched_yield. It costs: a bounded pool queues work for which threads would have been started.

Verify
  whystall diagnose under the same load: threads on a CPU or queued are near the number of CPUs,
  and "no CPU (own threads)" of slow requests falls.

Sources
  In-depth analysis of TiFlash: the blocking problem of thread creation and release under
  multi-concurrency, PingCAP: 500 runnable threads cost, 5 000 blocked ones do not; top
  under-counts.`,
	Look: lookSaturation,
	Tell: tellSaturation,
})

// Twice as many runnable threads as CPUs, on average: each of them gets half a CPU or less.
const saturated = 2.0

func runnableLimit(r *account.Result) float64 {
	cpus := 0.0
	if c := r.CPUs; c != nil {
		cpus = float64(c.Allowed)
		if c.Quota > 0 && c.Quota < cpus {
			cpus = max(1, c.Quota)
		}
	}
	return cpus
}

func lookSaturation(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	cpus := runnableLimit(r)
	if cpus == 0 {
		p.Blind("how many CPUs the target may use")
		return
	}
	if k.RunnableAvg < saturated*cpus {
		p.Absent("%.1f of %d threads wanted a CPU on average, on %s CPUs (looked into from %.0f times as many up)", k.RunnableAvg, k.ThreadsSeen, cpusText(cpus), saturated)
		return
	}
	if joined(r) {
		if s := fairShare(r); s != nil {
			p.Clear("slow requests compute %s each and wait %s behind other threads of the process, usual ones compute %s and wait %s: they are long, and get their share of the CPUs",
				finding.Duration(s.slow), finding.Duration(s.slowQueued), finding.Duration(s.usual),
				finding.Duration(s.usualQueued))
			return
		}
		claimOwnQueue(p)
		if len(p.claims) == 0 {
			p.Clear("%.1f threads wanted a CPU on average, on %s CPUs, but slow requests did not wait behind them", k.RunnableAvg, cpusText(cpus))
		}
		return
	}
	if !k.AllTasks {
		p.Blind(fmt.Sprintf("whether its threads waited for each other: %.1f of them wanted a CPU on average, on %s CPUs, and without privilege the switches of other processes are not recorded (see whystall doctor)", k.RunnableAvg, cpusText(cpus)))
		return
	}
	own, others, _ := queueShare(k)
	if others >= own {
		p.Bound(0, ratio(own, wantedCPU(k).wanted), finding.OfWall)
		p.Clear("%.1f threads wanted a CPU on average, on %s CPUs, but they waited longer behind others (%s) than behind each other (%s)", k.RunnableAvg, cpusText(cpus), finding.Duration(others), finding.Duration(own))
		return
	}
	if r.CPUs == nil || float64(r.CPUs.RunningNS) < 0.5*cpus*float64(r.CPUs.WallNS) {
		p.Absent("%.1f threads wanted a CPU on average, on %s CPUs, but they used less than half of them", k.RunnableAvg, cpusText(cpus))
		return
	}
	p.claimTerm(termRunning, r.CPUs.RunningNS, ratio(own, k.OnNS+k.QueuedNS+k.ThrottledNS))
	p.symptom = []string{"gomaxprocs-over-quota"} // the threads are those that its Ps run on
	p.Doubt("no request is visible, so it is not known who waited for the threads that were queued")
}

// fair is what requests compute and wait behind threads of the process, each.
type fair struct{ slow, slowQueued, usual, usualQueued int64 }

const (
	longTimes = 4   // as much as usual requests must slow ones compute to be slow by that
	fairTimes = 1.5 // more than its share may a thread wait
)

// fairShare reports, nil if not, that slow requests wait for CPUs only as they compute for longer
// than usual ones, which wait no longer than they compute. The threads share the CPUs then, and a
// long request meets more of the others. That is what load is.
func fairShare(r *account.Result) *fair {
	f := &fair{}
	f.slow, f.slowQueued = computed(&r.Slow)
	f.usual, f.usualQueued = computed(&r.Median)
	cpus := runnableLimit(r)
	if r.Kernel == nil || cpus == 0 || f.usual <= 0 || f.slow < longTimes*f.usual || f.usualQueued > f.usual {
		return nil
	}
	if float64(f.slowQueued) > fairTimes*float64(f.slow)*r.Kernel.RunnableAvg/cpus {
		return nil
	}
	return f
}

// computed is what the requests of a column compute each, and wait behind threads of the process.
func computed(c *account.Column) (own, queued int64) {
	for i := range c.Accounts {
		switch a := &c.Accounts[i]; {
		case a.Class == account.ClassOwn && a.Leaf == account.LeafOnCPU:
			own += a.NS
		case ownQueue(a):
			queued += a.NS
		}
	}
	return perRequest(c, own), perRequest(c, queued)
}

func tellSaturation(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	cpus := cpusText(runnableLimit(p.Ledger)) + " CPUs"
	if runnableLimit(p.Ledger) == 1 {
		cpus = "1 CPU"
	}
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("%.0f threads want a CPU on average, on %s, so each runs %s of the time in which it wants to", k.RunnableAvg, cpus, percent(ratio(k.OnNS, wantedCPU(k).wanted)))
	} else {
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) behind other threads of the process: %.0f threads want a CPU on average, on %s", p.who(), p.per(p.NS()), p.share(p.NS()), k.RunnableAvg, cpus)
		p.measure()
	}
	threadsLine(p)
	heldLine(p)
	tellSpin(p, f)
	p.Proof("kernel records", "switches: %s, %s of them involuntary", perSecond(k.Switches, k),
		perSecond(k.Involuntary, k))
	// Go's sysmon sleeps 20 us to 10 ms by design, one in a process.
	pollers := k.ShortSleepers
	if !noGo(p.Ledger, p.Facts) {
		pollers--
	}
	if pollers > 0 {
		p.Proof("kernel records",
			"%s sleep for less than a ms 100 times a second or more: pollers (%s such sleeps)",
			times(int64(pollers), "thread", "threads"), perSecond(k.ShortSleeps, k))
		f.Remedy = append(f.Remedy, "wait for an event instead of polling: "+
			times(int64(pollers), "thread sleeps", "threads sleep")+
			" for less than a ms again and again (usleep, nanosleep, select with a short timeout)")
	}
	if k.GlanceAvg > 0 {
		p.Proof("kernel records",
			"a glance at the threads one by one, like top's, would have shown %.1f of them running", k.GlanceAvg)
	}
	if !k.AllTasks {
		p.Cap("switches of other processes were not recorded")
	}
	f.Remedy = append(f.Remedy, "run no more threads at once than there are CPUs ("+cpus+
		"): a pool with a queue in front; requests then wait in that queue, which is shorter than the rounds here",
		"more CPUs or a larger quota, if the work is needed")
	f.Verify = p.verify("threads that want a CPU are near the number of CPUs")
}

// spinShare is the part of the CPU time from which spinning is mentioned. A healthy lock of a few
// hundred ns takes less.
const spinShare = 0.10

// tellSpin says where CPU time went into looking for a lock again and again instead of sleeping.
func tellSpin(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	share := ratio(k.Spin.NS, k.OnNS)
	if share < spinShare {
		return
	}
	f.Summary += fmt.Sprintf("; %s of its CPU time goes into spinning (%s)", percent(share), spinSite(k))
	p.Proof("CPU samples", "%s of its threads' %s on CPUs in spinning or yielding (sched_yield, spin locks), in %s", finding.Duration(k.Spin.NS), finding.Duration(k.OnNS), spinSite(k))
	f.Remedy = append(f.Remedy, "do not wait by spinning ("+spinSite(k)+
		"): a mutex or a condition sleeps, and leaves the CPU to the holder of the lock; it costs a switch for each wait")
}

func spinSite(k *account.Kernel) string {
	if len(k.Spin.Sites) == 0 {
		return "a function without a name"
	}
	return k.Spin.Sites[0].Func
}
