package detect

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:    "jvm-safepoint",
	Title:   "Threads of a Java virtual machine wait for the end of a safepoint",
	Needs:   []string{KernelRecords},
	Floor:   lockFloor,
	Scopes:  []finding.Scope{finding.Slow, finding.Usual},
	Native:  true,
	Applies: hasJVM,
	Doc: `What happens
  For a garbage collection, and for other operations, the Java virtual machine stops all threads
  that run Java code. First each must reach a safepoint: a poll at loop ends and returns. A thread
  in a long counted loop without polls, or in a large copy of an array, makes all others wait
  before the operation has started. Then the operation runs, mostly the collection itself. A
  request that comes back from a call meanwhile waits for the end of both.

Evidence
  Slow and usual column: time in which the request's thread waits at the barrier of a safepoint, or
  for an operation of the VM thread, or for the heap's lock while it allocates, by the functions of
  HotSpot on its stack. That lock is taken to ask for a collection. While the VM thread
  itself waits in SafepointSynchronize::synchronize_threads, threads have not reached it. The rest
  is the operation. Who was on a CPU meanwhile is named. What the operation is called is not seen:
  -Xlog:safepoint says it.

Not to be taken for
  A monitor, or a lock of java.util.concurrent: lock-contention, pool-exhaustion. A VM thread or
  collector that has no CPU: cpu-contention or cpu-throttled, and the safepoint is their mechanism.
  A thread of the service that computes: own computing. Collectors that run beside the program
  stop it only for moments; what they cost then is CPU.

Remedy
  Collections, which most safepoints are for: allocate less, or take a collector that runs beside
  the program (-XX:+UseZGC, -XX:+UseShenandoahGC, or G1 with -XX:MaxGCPauseMillis) instead of Serial
  or Parallel. Where the heap is still nearly full after a collection, give it more room (-Xmx).
  Where System.gc() is called:
  -XX:+DisableExplicitGC. Long ways to a safepoint: java -Xlog:safepoint shows "Reaching
  safepoint"; -XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100 names the thread. Shorten its
  counted loop, use a long as the loop variable, or keep -XX:+UseCountedLoopSafepoints (with G1,
  ZGC and Shenandoah on by default).

Verify
  whystall diagnose under the same load: waiting for safepoints falls below the floor; and
  -Xlog:safepoint has shorter "Reaching safepoint" or "At safepoint".

Sources
  OpenJDK: src/hotspot/share/runtime/safepoint.cpp and vmThread.cpp; JEP 312; JDK-8186027 (loop
  strip mining); Nitsan Wakart, Safepoints: Meaning, Side Effects and Overheads, 2015; Oracle,
  HotSpot Virtual Machine Garbage Collection Tuning Guide.`,
	Look: lookSafepoint,
	Tell: tellSafepoint,
})

// hasJVM reports whether the target is a Java virtual machine, or has threads that wait as one's.
func hasJVM(r *account.Result, facts Facts) bool {
	waits := func(a account.Account) bool { return a.Tags.SafepointNS > 0 }
	return facts.Runtime == "jvm" || r != nil && (slices.ContainsFunc(r.Slow.Accounts, waits) ||
		slices.ContainsFunc(r.Median.Accounts, waits))
}

func lookSafepoint(p *Pass) {
	r := p.Ledger
	if !joined(r) {
		p.Blind("no request is visible, so nothing is known to have waited for a safepoint")
		return
	}
	for i := range p.Column().Accounts {
		a := &p.Column().Accounts[i]
		p.Claim(i, min(a.NS, a.Tags.SafepointNS))
	}
	if len(p.claims) > 0 {
		return
	}
	if unseen := unseen(r.Kernel, kernel.SightWaitStacks); unseen != "" {
		p.Blind(unseen)
		return
	}
	p.Clear("%s waited for no safepoint, by the kernel's records", p.who())
}

func tellSafepoint(p *Pass, f *finding.Finding) {
	did := map[string]int64{}
	p.granted(func(a *account.Account, ns int64) {
		name := string(a.Leaf)
		if a.Actor != "" {
			name = a.Actor + " " + name
		}
		did[name] += ns
	})
	all := p.tagged(func(t *account.Tags) int64 { return t.SafepointNS })
	reaching := p.tagged(func(t *account.Tags) int64 { return t.ReachingNS })
	late := 2*reaching > all
	f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for the end of safepoints of the Java virtual machine", p.who(), p.per(p.NS()), p.share(p.NS()))
	if late {
		f.Summary += ", mostly since threads do not reach them"
	}
	p.Proof("kernel records", "%s of it before all threads had reached the safepoint, %s in the operation", percent(ratio(reaching, all)), percent(ratio(all-reaching, all)))
	p.Proof(p.column(), "meanwhile: %s", holderText(did))
	for _, t := range busiest(p, 3) {
		p.Proof("kernel records: threads", "%s (thread %d) was on a CPU %s of the time", t.Comm,
			t.TID, percent(ratio(t.OnNS, wall(p.Ledger.Kernel))))
	}
	p.Cap("which operation the safepoint was for is not seen")
	if late {
		f.Remedy = append(f.Remedy,
			"find the thread that does not reach them: -Xlog:safepoint, and -XX:+SafepointTimeout -XX:SafepointTimeoutDelay=100, which names it; shorten its counted loop or large copy, or set -XX:+UseCountedLoopSafepoints")
	}
	f.Remedy = append(f.Remedy,
		"see what the safepoints are for: -Xlog:safepoint,gc; for collections: allocate less, give a heap more room that is still nearly full after one, or take a collector that runs beside the program (-XX:+UseZGC, -XX:+UseG1GC -XX:MaxGCPauseMillis=50)")
	f.Verify = p.verify("waiting for safepoints is below " + p.per(p.NS()) + " per request")
}
