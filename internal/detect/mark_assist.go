package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "mark-assist",
	Title: "Requests are made to mark the heap for GC",
	Needs: []string{Trace},
	Go:    true,
	Floor: gcFloor,
	Fast:  never,
	Doc: `What happens
  While GC marks, a goroutine that allocates faster than the background workers mark must do a
  proportional part of the marking before its allocation returns. This is the pacer's brake. A
  request that allocates in bursts, or while the heap is near its goal, pays for it, and the
  runtime calls it running all the while.

Evidence
  Slow column: "mark assist", by the request itself or by a goroutine that it waits for, and the
  allocation sites that assisted most.

Not to be taken for
  Waiting for credit without working, and for the end of marking: gc-queue. Work of the request
  itself: assists are ranges on the goroutine, and are cut out of "on CPU". An assist that is long
  because its thread lost the CPU (quota, hogs): long socket calls and late wake-ups show that,
  and the cause is "not checked" then. Cycles that follow each other: frequent-gc is the root.

Remedy
  Allocate less at the sites named: reuse buffers (sync.Pool), preallocate, avoid maps and
  formatting per request. Raise GOGC, with GOMEMLIMIT as the guard: there are fewer cycles and
  more room before the goal. Spread bursts: bound how many requests allocate large results at
  once.

Verify
  whystall diagnose under the same load: "mark assist" of slow requests falls, and p99 with it.

Sources
  golang/go#40225, #14812, #21107; the Go GC guide, go.dev/doc/gc-guide.`,
	Look: func(p *Pass) {
		p.ClaimWhere(func(a *account.Account) bool { return a.Leaf == account.LeafAssist })
		unlessShortOfCPU(p)
	},
	Tell: func(p *Pass, f *finding.Finding) {
		at := ""
		if ss := p.Ledger.GC.AssistSites; len(ss) > 0 {
			at = ", most of it allocating at " + ss[0].Func
			p.Proof("execution trace: mark assist", "all goroutines: %s, at %s",
				finding.Duration(p.Ledger.GC.AssistNS), sites(ss, p.Ledger.GC.AssistNS, 4))
		}
		f.Summary = fmt.Sprintf("%s spend %s (%s of their time) marking the heap for GC before their allocations return%s", p.who(), p.per(p.NS()), p.share(p.NS()), at)
		tellGC(p)
		if q := plainQueue(p); q >= 2*p.NS() && p.root == nil {
			p.Doubt("requests wait %s each for a P, at least twice as long; an assist whose thread lost the CPU looks long as well", p.per(q))
		}
		f.Remedy = append(f.Remedy, gcRemedies(p)...)
		f.Verify = p.verify("'mark assist' of slow requests is below " + p.per(p.NS()) + " per request")
	},
})
