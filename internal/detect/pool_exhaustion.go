package detect

import (
	"fmt"
	"sort"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "pool-exhaustion",
	Title: "Requests queue for a worker, a connection or a permit, of which there are too few",
	Needs: []string{Trace, KernelRecords},
	Floor: queueFloor,
	Fast:  waitsUnderPermit,
	Doc: `What happens
  All requests pass through few hands: one thread that does a step for everybody, a pool of
  workers or of connections that is too small, a semaphore. A request then waits while earlier
  ones are served. The CPU is not full and each step is quick, but latency grows with the number of
  clients.

Evidence
  Slow column: time in which the thread that a request waited for was busy with other requests. It
  is known by who wakes whom. Either the thread that ended the wait was in the middle of a request
  of its own: it held what both need. Or it is a worker that had woken others before, which waited
  for it in the same function: until then it worked for them. For goroutines a wait counts if two
  others were ended before it, one after another; so does one that a finalizer ended, whose pool a
  garbage collection refills. A reader that hands out the answers to many requests ends their
  waits in the same way. So the network counts only in three cases: the worker wrote to it before
  each wait and is sent work at other times; it set helpers to work in each turn; or the request
  whose turn it was waited for it again elsewhere, as one does that was given a connection. One
  goroutine for which several requests wait at once, and which computes, is the head of such a
  line, whatever it computes. A fast service may lose less than 10 ms a slow request and have the
  cause, if those that are waited for wait themselves most of that time.

Not to be taken for
  A mutex: lock-contention. But a lock whose waiters sleep one by one, each at a word of its own, as
  those of java.util.concurrent, is named here: it looks as a pool of one does, and the kernel's
  records show who woke whom and not how many had it. An interpreter's lock: interpreter-lock. A
  worker that is slow with this very request: that time is not counted here. Requests that wait for
  one and the same result, and are woken together. A full machine: with the CPUs taken, more workers
  serve no faster. What the holders or workers wait for may be a cause of its own (disk-wait,
  cpu-throttled, syscall-stall), and is the root then.

Remedy
  More workers or permits, where they mostly wait or CPUs are idle. Shorter turns: do under the
  permit only what needs it. Let callers do the worker's step themselves, or shard it by key. A
  bound sometimes has a reason: a database has as many connections as it can bear.

Verify
  whystall diagnose under the same load: the time for which slow requests wait at the named place
  falls, and throughput rises.

Sources
  J. D. C. Little, A proof for the queuing formula L = lambda W, 1961; Pool sizing, HikariCP's
  wiki.`,
	Look: lookTurns,
	Tell: tellTurns,
})

// turnNS is the time of an account that was for others' turns. A monitor of Java's is a lock, of
// which there can be no more.
func turnNS(a *account.Account) int64 {
	return min(max(0, ofProgram(a)-a.Tags.MonitorNS), a.Tags.PermitNS+a.Tags.ServingNS)
}

// headComputes reports whether several requests wait at once for one goroutine, which computes.
// Whether it computes for one of them or for itself, no other CPU can help: for all but one it is
// not their turn.
func headComputes(r *account.Result, a *account.Account) bool {
	return !r.Native && a.Class == account.ClassMessage && a.Leaf == account.LeafOnCPU &&
		a.Actors == 1 && a.MaxQueue > 1 && 2*turnNS(a) < a.NS
}

// byFinalizer reports whether a finalizer ended the waits: what they wait for comes back when a
// garbage collection finds that nothing refers to it.
func byFinalizer(r *account.Result, a *account.Account) bool {
	if r.Native || a.Class != account.ClassMessage || a.Leaf != account.LeafRuntimeIdle {
		return false
	}
	switch a.Actor {
	case "runtime.runfinq", "runtime.runFinalizers", "runtime.runCleanups":
		return true
	}
	return false
}

// waitsUnderPermit reports whether those who are waited for mostly wait themselves. Where they
// compute or want a CPU, short waits for them are what high load is.
func waitsUnderPermit(p *Pass) bool {
	var busy int64
	for _, c := range p.claims {
		switch p.Column().Accounts[c.account].Leaf {
		case account.LeafOnCPU, account.LeafNoCPU, account.LeafRunnable, account.LeafThrottled:
			busy += c.ns
		}
	}
	return 2*busy < p.Claimed()
}

func lookTurns(p *Pass) {
	r := p.Ledger
	if why := p.blindTrace(); why != "" {
		p.Blind(why)
		return
	}
	p.tasksUnseen()
	var busy int64
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		if a.Class != account.ClassMessage {
			continue
		}
		ns := turnNS(a)
		if headComputes(r, a) || byFinalizer(r, a) {
			ns = a.NS
		}
		p.Claim(i, ns)
		if a.Leaf == account.LeafOnCPU || a.Leaf == account.LeafNoCPU {
			busy += ns
		}
	}
	if p.below(p.Claimed()) != "" {
		return
	}
	taken := ""
	if c := r.Capacity; !r.Native && c.TotalNS > 0 && ratio(c.RunningNS+c.GCNS, c.TotalNS) >= full {
		taken = "Ps were busy"
	} else if c := r.CPUs; c != nil && 2*busy > p.Claimed() &&
		ratio(c.RunningNS+c.ThrottledNS+c.OthersNS, c.TotalNS) >= full {
		taken = "CPUs were taken"
	}
	if taken != "" {
		p.Absent("%s wait %s for their turn, but its %s: the house is full, and more workers would not serve faster", p.who(), p.per(p.Claimed()), taken)
		p.claims = nil
	}
}

func tellTurns(p *Pass, f *finding.Finding) {
	sites, actors, did := map[string]int64{}, map[string]int64{}, map[string]int64{}
	var permit, head, finalizer, asked int64
	queue := 0
	p.granted(func(a *account.Account, ns int64) {
		sites[a.Site] += ns
		actors[a.Actor] += ns
		did[string(a.Leaf)] += ns
		if byFinalizer(p.Ledger, a) {
			finalizer += ns
		}
		if headComputes(p.Ledger, a) {
			head += ns
			queue = max(queue, a.MaxQueue)
			return
		}
		permit += scale(a.Tags.PermitNS, ns, max(1, turnNS(a)))
		asked += scale(a.Tags.AskedNS, ns, max(1, turnNS(a)))
	})
	site, actor := most(sites), most(actors)
	if site == "" {
		site = "a place without a name"
	}
	if actor == "" {
		actor = "one without a name"
	}
	mostly := account.Leaf(most(did))
	if 2*finalizer > p.NS() {
		g := &p.Ledger.GC
		f.Summary = fmt.Sprintf("slow requests wait %s (%s of their time) in %s for something that comes back only by a finalizer, after a garbage collection found that nothing refers to it; there are %.1f collections a second",
			p.per(p.NS()), p.share(p.NS()), site, g.PerSecond)
		f.Remedy = append(f.Remedy,
			"return it where its use ends (Close, Put, defer), and keep the finalizer for forgotten ones",
			"have more of what is waited for in "+site+
				", enough for the time between two collections; collecting more often costs CPU")
	} else if 2*head > p.NS() {
		f.Summary = fmt.Sprintf("slow requests wait %s (%s of their time) in %s for one goroutine, %s (up to %d of them at once); meanwhile it is: %s",
			p.per(p.NS()), p.share(p.NS()), site, actor, queue, holderText(did))
		f.Remedy = append(f.Remedy, "move what "+actor+
			" computes to another goroutine, in short pieces, or let it hand out a copy to work on",
			"let callers do its step themselves, under a lock or sharded by key")
	} else if 2*permit > p.NS() {
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) in %s for something that other requests hold; meanwhile those are: %s", p.who(), p.per(p.NS()), p.share(p.NS()), site, holderText(did))
		f.Remedy = append(f.Remedy, turnRemedy(mostly, "permits (connections, slots) in "+site,
			"what is done while one is held"))
		if p.Ledger.Native {
			f.Remedy = append(f.Remedy,
				"if it is a lock (of a row, a table or an object), there can be no more of it: do less while it is held, and do not wait while holding it")
		}
	} else if mostly == account.LeafNetwork && 2*asked < did[string(account.LeafNetwork)] {
		// The one that waits for the network may be a worker's helper.
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) in %s while those that they wait for work for other requests; meanwhile those wait for: %s", p.who(), p.per(p.NS()), p.share(p.NS()), site, holderText(did))
		f.Remedy = append(f.Remedy, "have more of what is waited for in "+site+
			" (workers, connections): they mostly wait for the network, which costs no CPU; or make the answers to their requests quicker",
			"ask once for many requests, or let callers ask themselves")
	} else {
		workers := "threads of "
		if !p.Ledger.Native {
			workers = "goroutines of "
		}
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) in %s while %s works for other requests; meanwhile it is: %s", p.who(), p.per(p.NS()), p.share(p.NS()), site, actor, holderText(did))
		f.Remedy = append(f.Remedy, turnRemedy(mostly, workers+actor, "what it does for each"),
			"let callers do its step themselves, or shard it by key")
	}
	source := "kernel records"
	if !p.Ledger.Native {
		source = "execution trace: who ended the waits"
	}
	p.Proof(p.column(), "where they wait: %s", holderText(sites))
	switch rest := p.NS() - head; {
	case 2*finalizer > p.NS():
		p.Proof(source, "%s of it: %s ended the waits, and had nothing to do until then",
			percent(ratio(finalizer, p.NS())), actor)
	case rest == 0:
		p.Proof(source, "one goroutine ended all the waits, and ran until then")
	case head > 0:
		p.Proof(source, "%s of it: one goroutine ended all the waits, and ran until then; the rest: whoever ended the wait had woken others before, or was in a request of its own", percent(ratio(head, p.NS())))
	case permit == p.NS():
		p.Proof(source, "whoever ended the waits was in the middle of a request of its own")
	case permit == 0:
		p.Proof(source, "whoever ended the waits had woken others before, which waited for it in the same way: until then it worked for them")
	default:
		p.Proof(source, "%s of it: whoever ended the wait was in the middle of a request of its own; the rest: it had woken others before, which waited for it in the same way", percent(ratio(permit, p.NS())))
	}
	if p.Ledger.Native {
		turnFutex(p, site)
	}
	for _, t := range busiest(p, 3) {
		p.Proof("kernel records: threads", "%s (thread %d) was on a CPU %s of the time", t.Comm,
			t.TID, percent(ratio(t.OnNS, wall(p.Ledger.Kernel))))
	}
	if c := p.Ledger.CPUs; c != nil {
		p.Proof("ledger: CPUs", "the process ran on %[2]s of its %[1]d CPUs, others took %[3]s",
			c.Allowed, percent(ratio(c.RunningNS, c.TotalNS)), percent(ratio(c.OthersNS, c.TotalNS)))
	}
	p.Cap("what the awaited thread or goroutine worked on is inferred from whom it woke")
	f.Verify = p.verify("waiting in " + site + " is below " + p.per(p.NS()) + " per request")
}

func turnRemedy(mostly account.Leaf, more, turn string) string {
	switch mostly {
	case account.LeafOnCPU:
		return "shorten " + turn + ": it computes; or have more " + more + ", as CPUs are idle"
	case account.LeafNoCPU, account.LeafThrottled:
		return "more CPU: " + more + " lack it"
	}
	does := "in '" + string(mostly) + "'"
	if mostly == account.LeafTimer {
		does = "asleep for a timer"
	}
	return "have more " + more + ": they are mostly " + does + ", which costs no CPU; or shorten " + turn
}

// turnFutex says what is known of the semaphore or condition at the site.
func turnFutex(p *Pass, site string) {
	k := p.Ledger.Kernel
	for i := range k.Futexes {
		f := &k.Futexes[i]
		if lockFutex(f) || f.Name != site {
			continue
		}
		p.Proof("kernel records: futex", "%s (%s): %s, %s in all, up to %d in the queue", f.Name,
			f.Kind, times(f.Waits, "wait", "waits"), finding.Duration(f.WaitNS), f.MaxQueue)
		return
	}
}

// busiest lists threads that were on a CPU most of the time, as a worker that serves everybody is.
func busiest(p *Pass, most int) (l []account.ThreadSum) {
	k := p.Ledger.Kernel
	if k == nil {
		return nil
	}
	for _, t := range k.Threads {
		if 2*t.OnNS > wall(k) {
			l = append(l, t)
		}
	}
	sort.Slice(l, func(i, j int) bool { return l[i].OnNS > l[j].OnNS || l[i].OnNS == l[j].OnNS && l[i].TID < l[j].TID })
	return l[:min(most, len(l))]
}
