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
	Fast:  never,
	Doc: `What happens
  GC can make allocating goroutines wait without any stop-the-world. They wait for the semaphore
  under which one of them ends marking (gcMarkDone, which makes every P pass a safe point: a
  ragged barrier), for the goroutine that starts a cycle (gcStart), or for scan credit when their
  assist found no work. Or they are suspended while their stack is scanned. One slow holder makes
  a convoy. gctrace, PauseNs and the pause histograms show none of it.

Evidence
  Slow column: "mark termination, queued", "GC start, queued", "mark assist (waiting for credit)",
  "stack scan". Which goroutine they waited for and what it did, where the trace has it.

Not to be taken for
  Locks of the program: their reason in the trace is the same word ("sync"); the stack tells them
  apart. Mark assist that works (mark-assist), and the stopped world (stw-pause). A process
  without CPU: the barrier waits for every P's thread, so hogs and quotas make it long [with half
  a CPU of quota 36 barriers over 2 ms, the longest 116 ms, beside 3 such pauses]. Then
  sched-latency or silences appear with it.

Remedy
  Fewer cycles: raise GOGC, with GOMEMLIMIT as the guard. Allocate less in requests. Give the
  process CPU, and no more Ps than the quota has room for. Bound the goroutines that allocate at
  once.

Verify
  whystall diagnose under the same load: the queued accounts of slow requests fall. Pause figures
  prove nothing here; they never contained it.

Sources
  golang/go#72932 (goroutines blocked in mallocgc starting a GC); runtime/mgc.go (gcMarkDone,
  gcStart), mgcmark.go.`,
	Look: func(p *Pass) {
		p.ClaimWhere(leaf(account.LeafMarkTermQueue, account.LeafGCStartQueue,
			account.LeafAssistCredit, account.LeafStackScan))
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
			what = "at ragged barriers, whose last thread was '" + string(top.Leaf) + "'"
		}
		f.Summary = fmt.Sprintf("%s queue %s (%s of their time) inside the garbage collector, mostly %s; no pause figure shows it", p.who(), p.per(p.NS()), p.share(p.NS()), what)
		tellGC(p)
		if q := plainQueue(p); q >= 2*p.NS() && p.root == nil {
			p.follows = true
			p.Doubt("requests wait %s each for a P, at least twice as long; the goroutines that GC waits for are likely to wait for one too", p.per(q))
		}
		switch {
		case p.root != nil && joined(p.Ledger):
			f.Remedy = append(f.Remedy, "the barriers are a symptom: see "+p.finding.BecauseOf)
		case joined(p.Ledger):
			f.Remedy = append(f.Remedy, gcRemedies(p)...)
		default:
			f.Remedy = append(f.Remedy, gcRemedies(p)...)
			f.Remedy = append(f.Remedy,
				"see whether the process gets its CPUs: every P must pass a safe point before marking ends; cat /proc/pressure/cpu, the cgroup's cpu.stat")
		}
		f.Verify = p.verify("'" + string(top.Leaf) + "' of slow requests is below " + p.per(p.NS()) + " per request")
	},
})

// GC takes time from requests while it marks, for work that must be done. From half a time slice of
// the scheduler per request and a tenth of its time, that is the request's main trouble, or nearly.
var gcFloor = Floor{NS: 5e6, Share: 0.10}

// plainQueue is how long slow requests waited for a P.
func plainQueue(p *Pass) int64 { return timeIn(&p.Ledger.Slow, leaf(account.LeafRunnable)) }

// tellGC adds the evidence of every finding about GC.
func tellGC(p *Pass) {
	g, c := &p.Ledger.GC, &p.Ledger.Capacity
	if g.Cycles == 0 {
		return
	}
	p.Proof("execution trace: GC", "%s, %.1f a second, marking %s of the time; GC took %s of the CPU used",
		times(g.Cycles, "cycle", "cycles"), g.PerSecond, percent(ratio(g.MarkNS, c.WallNS)),
		percent(ratio(gcWork(c), used(c))))
	tellHeap(p)
}

func tellHeap(p *Pass) {
	g := &p.Ledger.GC
	if g.GoalMax == 0 {
		return
	}
	live := ""
	if g.Marked > 0 {
		live = fmt.Sprintf("%s found live on average, the next goal %s (GOGC=100 doubles it); ",
			finding.Bytes(g.Marked), finding.Bytes(g.Goal))
	}
	p.Proof("execution trace: heap", "%sgoals from %s to %s", live, finding.Bytes(g.GoalMin), finding.Bytes(g.GoalMax))
}
