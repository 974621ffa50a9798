package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "gc-queue",
	Title: "Requests queue for the garbage collector's own locks and credit",
	Needs: []string{Trace},
	Go:    true,
	Floor: gcFloor,
	Doc: `What happens
  Allocating goroutines can be made to wait by GC without any stop-the-world: for the semaphore
  under which one of them ends marking (gcMarkDone, which makes every P pass a safe point: a
  ragged barrier), for the one that starts a cycle (gcStart), for scan credit when their assist
  found no work to do, or suspended while their stack is scanned. One slow holder makes a convoy.
  gctrace, PauseNs and the pause histograms show none of it.

Evidence
  Slow column: "mark termination, queued", "GC start, queued", "mark assist (waiting for credit)",
  "stack scan". Whom they waited for and what that goroutine did, where the trace has it.

Not to be taken for
  Locks of the program: in the trace the reason is the same word ("sync"), the stack tells them
  apart. Mark assist that works (mark-assist), and the world stopped (stw-pause). A process
  without CPU: the barrier waits for every P's thread, so hogs and quotas make it long [with half
  a CPU of quota 36 barriers over 2 ms, the longest 116 ms, beside 3 such pauses]; then it goes
  with sched-latency or silences.

Remedy
  Fewer cycles: GOGC up, GOMEMLIMIT as the guard. Allocate less in requests. CPU for the process,
  Ps not above the quota. Many goroutines that allocate at once: bound them.

Verify
  whystall diagnose under the same load: the queued accounts of slow requests fall. Pause figures
  prove nothing here, they never contained it.

Sources
  golang/go#72932 (goroutines blocked in mallocgc starting a GC); runtime/mgc.go (gcMarkDone,
  gcStart), mgcmark.go.`,
	Look: func(p *Pass) {
		p.ClaimWhere(leaf(account.LeafMarkTermQueue, account.LeafGCStartQueue, account.LeafAssistCredit, account.LeafStackScan))
		if joined(p.Ledger) { // a ragged barrier is a path as well: what held it up is the account
			for i := range p.Ledger.Slow.Accounts {
				if a := &p.Ledger.Slow.Accounts[i]; keptOff(a.Leaf) {
					p.Claim(i, min(a.NS, a.Tags.BarrierNS))
				}
			}
		}
		unlessShortOfCPU(p)
	},
	Tell: func(p *Pass, f *finding.Finding) {
		var top *account.Account
		p.granted(func(a *account.Account, _ int64) {
			if top == nil {
				top = a
			}
		})
		if joined(p.Ledger) {
			tellBarriers(p, true)
			p.fairControl()
			p.measure()
		}
		what := "for '" + string(top.Leaf) + "'"
		if keptOff(top.Leaf) {
			what = "at ragged barriers whose last thread was '" + string(top.Leaf) + "'"
		}
		f.Summary = fmt.Sprintf("slow requests queue %s (%s of their time) inside the garbage collector, mostly %s; no pause figure shows it", p.per(p.NS()), p.share(p.NS()), what)
		tellGC(p)
		if q := plainQueue(p); q >= 2*p.NS() && p.root == nil {
			p.Doubt("requests wait %s each for a P, twice as long or more; whom GC waits for is likely to wait for the same", p.per(q))
		}
		switch {
		case p.root != nil && joined(p.Ledger):
			f.Remedy = append(f.Remedy, "the barriers are a symptom: see "+p.finding.BecauseOf)
		case joined(p.Ledger):
			f.Remedy = append(f.Remedy, gcRemedies(p)...)
		default:
			f.Remedy = append(f.Remedy, gcRemedies(p)...)
			f.Remedy = append(f.Remedy, "see whether the process gets its CPUs: every P must pass a safe point before marking ends; cat /proc/pressure/cpu, the cgroup's cpu.stat")
		}
		f.Verify = p.verify("'" + string(top.Leaf) + "' of slow requests is below " + p.per(p.NS()) + " per request")
	},
})

// What GC takes of a request while it marks is work that must be done; from half a time slice of the scheduler a
// request and a tenth of it on it is the request's main trouble or near it.
var gcFloor = Floor{NS: 5e6, Share: 0.10}

// plainQueue is what slow requests waited for a P.
func plainQueue(p *Pass) (ns int64) {
	for i := range p.Ledger.Slow.Accounts {
		if a := &p.Ledger.Slow.Accounts[i]; a.Leaf == account.LeafRunnable {
			ns += a.NS
		}
	}
	return ns
}

// tellGC is what every finding about GC rests on.
func tellGC(p *Pass) {
	g, c := &p.Ledger.GC, &p.Ledger.Capacity
	if g.Cycles == 0 {
		return
	}
	p.Proof("execution trace: GC", "%s, %.1f a second, marking %s of the time; GC took %s of the CPU used",
		times(g.Cycles, "cycle", "cycles"), g.PerSecond, percent(ratio(g.MarkNS, c.WallNS)), percent(ratio(gcWork(c), used(c))))
	tellHeap(p)
}

func tellHeap(p *Pass) {
	g := &p.Ledger.GC
	if g.GoalMax == 0 {
		return
	}
	live := ""
	if g.Marked > 0 {
		live = fmt.Sprintf("found live %s on average, goal after that %s (GOGC=100 doubles it); ", finding.Bytes(g.Marked), finding.Bytes(g.Goal))
	}
	p.Proof("execution trace: heap", "%sgoals from %s to %s", live, finding.Bytes(g.GoalMin), finding.Bytes(g.GoalMax))
}
