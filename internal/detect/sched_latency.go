package detect

import (
	"fmt"
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "sched-latency",
	Title: "Runnable goroutines wait for a P (run queue latency in Go)",
	Needs: []string{Trace},
	Go:    true,
	Floor: queueFloor,
	Fast:  never,
	Doc: `What happens
  A goroutine whose socket is ready, whose channel was closed or whose timer fired does not run
  yet: it is put in a run queue and waits for a P. Go's scheduler knows no priorities, so the
  goroutine for which everybody waits queues like any other. This hurts most at the head of the
  line: one goroutine that batches or distributes the work of all callers. While it waits, all of
  them do, though each of them is merely blocked on a channel.

Evidence
  Slow column: "runnable in Go", of the request itself or of the goroutine that it waits for; how
  many requests waited through it at once. What ran on the Ps instead (other requests, background
  goroutines, GC workers). Into how many stretches the waiting of a request was cut, while GC was
  marking and outside it. /sched/latencies of runtime/metrics shows the sum for the process, not
  for requests. The histogram of Go 1.26 is not comparable with that of 1.25 (golang/go#79391).

Not to be taken for
  Kernel run queue delay and throttling: a thread that Go calls running may be off the CPU. Its P
  is lost with it, and goroutines queue behind it. From Go's side this looks the same, except that
  the process stands still (silences), that slices of running goroutines last longer than 10 ms,
  that socket calls, which do not block, take 2 ms and more, and that work waits as long beside
  idle Ps; the finding says so. With the kernel's records such time is not here but in throttled,
  or without CPU, and a queue caused by it is listed under those causes. So is the part of the
  queue that passed while threads that held the Ps freed memory, or waited for mmap_lock, a disk
  or a CPU: at each instant each P has the same share, by what its thread did. A lock whose holder
  is runnable: if requests lose more time there than in the plain run queue, the finding is
  lock-contention. GC workers that fill the Ps because cycles follow each other: frequent-gc. A
  goroutine that is runnable beside an idle P: it waits for a thread to wake up, its own if it is
  locked to one (LockOSThread). Network readiness noticed late: with all Ps busy only sysmon
  polls, every 10 ms or so (golang/go#51651). That delay comes before the unblock event and is in
  "network".

Remedy
  Give the process CPU: fewer neighbours on its CPUs, a larger quota, or more Ps if GOMAXPROCS is
  below the CPUs. Bound what ran instead: a background job in one or two goroutines, not one per
  CPU; break up long loops. At the head of the line: several batchers, or let callers do the work
  themselves under a lock. Split the process, so that batch work and latency-critical work do not
  share Ps.

Verify
  whystall diagnose under the same load: "runnable in Go" of slow requests falls by what the
  finding claimed, and so does p99. If it stays while the Ps have idle time, threads are slow to
  get a CPU.

Sources
  Arthur Mao, Go runtime related problems in TiDB production environment, Gopher China 2020: 4.3
  ms, sometimes over 10 ms, from socket ready to running at the goroutine that batches requests.
  golang/go#51651, #38860, #18534.`,
	Look: lookSchedLatency,
	Tell: tellSchedLatency,
})

// A goroutine may run 10 ms before the scheduler preempts it (forcePreemptNS in runtime/proc.go). A
// busy and healthy server makes requests wait a few turns of others, each far shorter. A wait of
// more than a whole time slice is for more than the queue of a full house.
var queueFloor = Floor{NS: 10e6, Share: 0.20}

// Clients that never rest (a load generator) fill any server. Requests then wait for each other, as
// many turns as there are requests. A full CPU is visible everywhere; it is worth saying when
// people notice the wait.
var fullFloor = Floor{NS: 50e6, Share: 0.20}

// The head of the line has a floor of its own: one goroutine that is late makes every request late,
// on top of its own waiting. The published case was 4.3 ms.
var headFloor = Floor{NS: 4e6, Share: 0.20}

func lookSchedLatency(p *Pass) {
	// The trace cannot be joined: what kept its threads off their CPUs is in the ledger of CPUs
	// only.
	if r := p.Ledger; !joined(r) && kernelShort(r) != "" && r.Capacity.TotalNS > 0 && wouldBeBusy(r) < full {
		if o := wantedCPU(r.Kernel); o.throttled > o.queued {
			p.symptom = []string{"cpu-throttled", "cpu-contention"}
		} else {
			p.symptom = []string{"cpu-contention", "cpu-throttled"}
		}
	}
	p.symptom = append(lackedByShares(p.Ledger), p.symptom...)
	// Short of CPU, lock detectors blame no lock for which usual requests hardly wait. The queueing
	// of its holders is then part of the same queue.
	all := runQueueRules(p.Ledger) || shortOfCPU(p.Ledger) != "" && locksAreNew(p.Ledger)
	busy := busyPs(p.Ledger)
	var ns, gc int64
	whole := make([]int64, len(p.Ledger.Slow.Accounts))
	p.queueAtWork = map[int]int64{}
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if !runnableIn(a) || a.Class == account.ClassLock && !all {
			continue
		}
		// What frequent-gc took is its own. The rest may still be worth a finding.
		g := min(p.board.taken(i, "frequent-gc"), a.NS)
		// Until the runtime noticed, the goroutine was in no queue: that time is netpoll-late's and
		// timer-late's, unless the queue is worse. While the Ps' threads lacked something, it was
		// not in this queue either: that time belongs to what they lacked.
		own := max(0, a.NS-g-unheld(p, a)-notAtWork(a))
		if !busy || a.Leaf != account.LeafRunnable {
			own = max(0, own-scale(late(a), a.NS-notAtWork(a), a.NS))
		}
		p.Claim(i, own)
		p.queueAtWork[i] = a.NS - notAtWork(a)
		ns += own
		gc += g
		whole[i] = own + g
	}
	if gc > 0 && p.board.below(queueFloor, ns) != "" {
		// It is too little to be a root beside frequent-gc. With GC's part it is a mechanism of
		// that, or nothing.
		p.claims = nil
		for i, n := range whole {
			p.Claim(i, n)
		}
		return
	}
	if h := headOfLine(p.Ledger); h != nil && 2*h.NS >= p.Claimed() {
		p.SetFloor(headFloor)
	} else if fullHouse(p) && p.board.below(queueFloor, p.Claimed()) == "" {
		p.SetFloor(fullFloor)
		if why := p.board.below(fullFloor, p.Claimed()); why != "" {
			p.Clear("requests wait for each other, with hardly anything else on the Ps: the house is full, which is no illness; %s", why)
		}
	}
}

// runnableIn reports whether an account waited in Go's run queue. Joined, that includes waiting
// beside idle Ps while no thread of the process was awake.
func runnableIn(a *account.Account) bool {
	return a.Leaf == account.LeafRunnable || a.Leaf == account.LeafLatePoll
}

// unheld is waiting beside an idle P, where the kernel's records show what kept threads off their
// CPUs: that was waiting for a thread, not for a P.
func unheld(p *Pass, a *account.Account) int64 {
	if r := p.Ledger; !joined(r) || r.Kernel.Whole {
		return 0
	}
	return instead(a, account.InsteadIdle)
}

// free is the part of the claims that no earlier detector has taken.
func (p *Pass) free() (ns int64) {
	for _, c := range p.claims {
		ns += min(c.ns, p.board.left[c.account])
	}
	return ns
}

// fullHouse reports whether requests merely wait for each other: requests and the GC that they
// cause ran instead, the process did not stand still, and Ps were not idle for want of a thread
// that woke up [idle Ps hold 2-7 % of such waits in full and healthy servers, 22 % beside CPU
// hogs]. Threads that were kept off their CPUs speak against it, if it is not known what the Ps'
// threads lacked, or if the cause of that has taken most of the claim.
func fullHouse(p *Pass) bool {
	if r := p.Ledger; shortOfCPU(r) != "" || kernelShort(r) != "" &&
		(!joined(r) || r.Kernel.Whole || 2*p.free() < p.Claimed()) {
		return false
	}
	var strange, requests, gc int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		at := a.NS - notAtWork(a)
		other := at - instead(a, account.InsteadRequest) - instead(a,
			account.InsteadGC) - instead(a, account.InsteadSweep) - unheld(p, a)
		strange += scale(min(at, max(0, other)+a.Tags.SilenceNS), c.ns, at)
		requests += scale(instead(a, account.InsteadRequest), c.ns, at)
		gc += scale(instead(a, account.InsteadGC), c.ns, at)
	}
	// With more GC than requests, they wait for the collector, not for each other.
	return 8*(strange+max(0, gc-requests)) < p.Claimed()
}

// runQueueRules reports whether requests lose more in the plain run queue than behind lock holders
// that are in it. If so, holders queue because everybody does. Otherwise the lock makes the queue,
// and lock detectors keep it.
func runQueueRules(r *account.Result) bool {
	var plain, locks int64
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		switch {
		case a.Leaf != account.LeafRunnable:
		case a.Class == account.ClassLock:
			locks += a.NS
		default:
			plain += a.NS
		}
	}
	return plain >= locks && perRequest(&r.Slow, plain) >= queueFloor.NS
}

// headOfLine is the largest account in which several requests at once waited for one runnable
// goroutine.
func headOfLine(r *account.Result) (head *account.Account) {
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		if a.Leaf == account.LeafRunnable && a.Class == account.ClassMessage && a.Actors == 1 && a.MaxQueue > 1 &&
			(head == nil || a.NS > head.NS) {
			head = a
		}
	}
	return head
}

// instead sums what ran instead, of one kind.
func instead(a *account.Account, kind account.InsteadKind) (ns int64) {
	for _, w := range a.Instead {
		if w.Kind == kind {
			ns += w.NS
		}
	}
	return min(ns, a.NS)
}

// forRequests is the kind of goroutines that start elsewhere than requests do, and for which
// requests wait: parts of a request, workers.
const forRequests account.InsteadKind = "for requests"

// answers reports whether slow requests wait for messages of goroutines of that name.
func answers(r *account.Result, who string) bool {
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; a.Class == account.ClassMessage && a.Actor == who {
			return true
		}
	}
	return false
}

func tellSchedLatency(p *Pass, f *finding.Finding) {
	kinds, who := map[account.InsteadKind]int64{}, map[string]*account.Instead{}
	var slices, gcSlices, preempted, newborn int64
	p.granted(func(a *account.Account, ns int64) {
		at := a.NS - notAtWork(a)
		for _, w := range a.Instead {
			if w.Lacked() && (w.Leaf() != account.LeafNoCPU || !isOwn(w.Who)) {
				continue
			}
			kind := w.Kind
			if kind == account.InsteadBackground && answers(p.Ledger, w.Who) {
				kind = forRequests
			}
			kinds[kind] += scale(w.NS, ns, at)
			if who[w.Who] == nil {
				who[w.Who] = &account.Instead{Who: w.Who, Kind: kind}
			}
			who[w.Who].NS += scale(w.NS, ns, at)
		}
		slices += a.Tags.Slices
		gcSlices += a.Tags.GCSlices
		preempted += scale(a.Tags.PreemptNS, ns, a.NS)
		newborn += scale(a.Tags.NewbornNS, ns, a.NS)
	})
	total, r := p.NS(), p.Ledger
	head := headOfLine(r)
	if head != nil && 2*head.NS >= total {
		f.Summary = fmt.Sprintf("slow requests wait %s (%s of their time) because one goroutine they all wait for, %s (up to %d of them at once), is ready to run and gets no P",
			p.per(total), p.share(total), head.Actor, head.MaxQueue)
		f.Remedy = append(f.Remedy, "relieve the head of the line: run several of "+head.Actor+
			", or let callers do its work themselves")
	} else {
		f.Summary = fmt.Sprintf("slow requests spend %s (%s of their time) ready to run but without a P (GOMAXPROCS %d)",
			p.per(total), p.share(total), r.Capacity.Procs)
		if head != nil {
			p.Proof(p.column(), "head of the line: up to %d requests at once waited for %s to get a P, %s per request",
				head.MaxQueue, head.Actor, p.per(head.NS))
		}
	}
	ran := ranInstead(who, total, 5)
	if ran != "" {
		f.Summary += "; meanwhile the Ps ran " + ranInstead(who, total, 2)
		p.Proof("execution trace: what ran instead", "meanwhile on the Ps: %s", ran)
	}
	if slices > 0 {
		n := float64(slices) / float64(r.Slow.Requests)
		p.Proof("execution trace",
			"it came in %.1f stretches per request, %.1f of them while GC was marking; %s of it after a preemption, %s in newborn goroutines",
			n, float64(gcSlices)/float64(r.Slow.Requests), percent(ratio(preempted, total)),
			percent(ratio(newborn, total)))
	}
	if c := r.Capacity; c.TotalNS > 0 {
		p.Proof("ledger: capacity",
			"of %d Ps x %s: running %s, GC %s, in syscalls %s, idle while work waited %s, idle %s; %.1f runnable goroutines on average, %d at most",
			c.Procs, finding.Duration(c.WallNS), percent(ratio(c.RunningNS, c.TotalNS)),
			percent(ratio(c.GCNS, c.TotalNS)), percent(ratio(c.SyscallNS, c.TotalNS)),
			percent(ratio(c.IdleWorkNS, c.TotalNS)), percent(ratio(c.IdleNS, c.TotalNS)), c.RunnableAvg, c.RunnableMax)
	}
	if ns, _, ok := p.Set.Delta("/go/sched/latency:ns"); ok {
		if n, _, ok := p.Set.Delta("/go/sched/latency:events"); ok && n > 0 {
			p.Proof("runtime metrics: /sched/latencies",
				"all goroutines: %.0f waits for a P, of %s on average", n, finding.Duration(int64(ns/n)))
		}
	}
	if 2*(kinds[account.InsteadIdle]+kinds[account.InsteadUnknown]) > total && !joined(r) {
		p.Doubt("for most of this time Ps were idle, or it is not known what they did: threads were slow to wake then, which only the kernel's records can explain")
	}
	if why := shortOfCPU(r); why != "" {
		f.Summary += "; meanwhile threads of the process were kept off their CPUs"
		p.Proof("execution trace: off the CPU", "%s", why)
	}
	if joined(r) {
		o := wantedCPU(r.Kernel)
		p.Proof("kernel records",
			"meanwhile some thread of the process was on a CPU; threads that wanted one had it %s of the time, were queued %s, throttled %s",
			percent(ratio(o.on, o.wanted)), percent(ratio(o.queued, o.wanted)), percent(ratio(o.throttled, o.wanted)))
		p.measure()
	} else if !byShares(r) {
		p.Proof("not checked",
			"whether the threads of running goroutines were on a CPU all the time: that needs the kernel's records; another process on the CPUs, or a quota, looks the same in a trace")
	}
	f.Remedy = append(f.Remedy, schedRemedies(p, kinds, who)...)
	f.Verify = p.verify("'runnable in Go' of slow requests is below " + p.per(total) + " per request")
}

func schedRemedies(p *Pass, kinds map[account.InsteadKind]int64, who map[string]*account.Instead) (rs []string) {
	total := p.NS()
	if 4*kinds[account.InsteadBackground] >= total {
		rs = append(rs, "bound or move what ran instead ("+largest(who, account.InsteadBackground)+
			"): fewer goroutines at once, in another process, or off-peak")
	}
	if 4*kinds[account.InsteadGC] >= total && shortOfCPU(p.Ledger) == "" {
		if g := &p.Ledger.GC; forced(g) {
			rs = append(rs, takeOutGC(g))
		} else {
			rs = append(rs, "collect garbage less often: GOGC=200 or more with GOMEMLIMIT as the guard; allocate less per request")
		}
	}
	if joined(p.Ledger) {
		switch {
		case p.root != nil:
			return append(rs, "the run queue is a symptom: see "+p.finding.BecauseOf)
		case kernelShort(p.Ledger) == "":
			rs = append(rs, fmt.Sprintf("its threads had their CPUs: give it more CPUs and Ps (GOMAXPROCS is %d), or less work", p.Ledger.Capacity.Procs))
		default:
			rs = append(rs, fmt.Sprintf("more CPU for the process: threads that wanted a CPU had one %s of the time; GOMAXPROCS is %d",
				percent(ratio(wantedCPU(p.Ledger.Kernel).on, wantedCPU(p.Ledger.Kernel).wanted)),
				p.Ledger.Capacity.Procs))
		}
		if 2*(kinds[account.InsteadRequest]+kinds[forRequests]) >= total {
			rs = append(rs, "requests wait for each other: bound how many are worked on at once, or add instances")
		}
		return rs
	}
	if p.root != nil && byShares(p.Ledger) {
		return append(rs, "the run queue is a symptom: see "+p.finding.BecauseOf)
	}
	rs = append(rs, "see who else uses the CPUs: top -H; cat /proc/pressure/cpu; the cgroup's cpu.stat (nr_throttled)",
		fmt.Sprintf("give the process CPU: move neighbours off its CPUs (taskset, cpuset, nice), raise the quota, or raise GOMAXPROCS (now %d) if the machine has idle CPUs", p.Ledger.Capacity.Procs))
	if 2*(kinds[account.InsteadRequest]+kinds[forRequests]) >= total {
		rs = append(rs, "requests wait for each other: bound how many are worked on at once, or add instances")
	}
	return rs
}

// ranInstead lists the largest, at most so many, by share of whole.
func ranInstead(who map[string]*account.Instead, whole int64, most int) string {
	ws := make([]*account.Instead, 0, len(who))
	for _, w := range who {
		ws = append(ws, w)
	}
	sort.Slice(ws, func(i, j int) bool {
		if ws[i].NS != ws[j].NS {
			return ws[i].NS > ws[j].NS
		}
		return ws[i].Who < ws[j].Who
	})
	var parts []string
	for i, w := range ws {
		if i == most || w.NS*100 < whole {
			break
		}
		t := fmt.Sprintf("%s %s", w.Who, percent(ratio(w.NS, whole)))
		if w.Kind == account.InsteadRequest || w.Kind == account.InsteadBackground || w.Kind == forRequests {
			t = fmt.Sprintf("%s (%s) %s", w.Who, w.Kind, percent(ratio(w.NS, whole)))
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, ", ")
}

func largest(who map[string]*account.Instead, kind account.InsteadKind) string {
	var best *account.Instead
	for _, w := range who {
		if w.Kind == kind && (best == nil || w.NS > best.NS || w.NS == best.NS && w.Who < best.Who) {
			best = w
		}
	}
	if best == nil {
		return string(kind)
	}
	return best.Who
}
