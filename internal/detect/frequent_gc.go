package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

const gcCycles = "/go/gc/cycles:gc-cycles"

var _ = register(&Detector{
	Name:   "frequent-gc",
	Title:  "GC runs so often that requests pay for it",
	Needs:  []string{Trace, KernelRecords, gcCycles},
	Scopes: everyScope,
	Go:     true,
	// The cost is spread over many small things, each harmless: together they must be a seventh of
	// a slow request. The CPU that GC must take here is a harm of its own, so 2 ms are enough.
	Floor: Floor{NS: 2e6, Share: finding.GCWithheld},
	Doc: `What happens
  A cycle starts whenever the heap has grown by GOGC percent of what was live. With a small live
  heap (the goal is never below 4 MiB x GOGC/100), a small GOGC, or a GOMEMLIMIT close to the live
  heap, that is a few MB of allocation: cycles follow each other, many a second. Each takes a
  quarter of the Ps while it marks, stops the world twice, makes allocating goroutines assist, and
  flushes every P's caches. Requests lose time in all of these, and no single one looks alarming.
  A large heap of pointers has the same effect with one cycle a second, since marking it takes
  that long.

Evidence
  Cycles a second, the heap's goal against the live heap, and GC's share of the CPU used. In the
  slow column: mark assist, waits for credit and for mark termination, sweeps, stop-the-worlds of
  GC, and time runnable while GC workers ran; where GC has half of the CPU used, that part of all
  time runnable; where Ps are 80 % busy, and 65 % without GC, all time runnable behind GC and other
  requests. Which call sites start the cycles and assist. Cycles that the program asks for
  (runtime.GC, debug.FreeOSMemory) are too many as soon as requests pay for them. Without a trace:
  runtime metrics or memstats read twice give cycles and CPU; what requests lost is not known
  then, and the finding is possible at most. The same holds for a finding of CPU alone: the heap
  has no room and GC takes a quarter of the CPUs, but requests are too short to show it one by one.
  Where cycles take a tenth of the CPU time or more, the allocation beside them counts with GC:
  half of it together is a finding of the process.

Not to be taken for
  Many cycles alone: a busy server with a small heap collects ten times a second and nobody
  notices. Lost time counts. GC that is slow because the process gets no CPU: that stretches
  workers more than requests [20 % of the CPU used became 41 % beside 8 hogs]. Socket calls and
  wake-ups of 2 ms and more show it; then only a heap that can hardly grow, and cycles that the
  program asks for, are findings, and the rest is "not checked". Idle-priority GC workers: they
  use Ps that had nothing to do, and are counted apart. A neighbour that suffers from our GC
  (golang/go#17969).

Remedy
  Raise GOGC (GOGC=200, 400) while memory lasts, with GOMEMLIMIT as the guard. If GOMEMLIMIT is
  the reason, raise it. With a tiny live heap: GOGC=off with GOMEMLIMIT well above the live heap,
  or a GOGC large enough for a goal of 64 MiB. Allocate less at the sites named: reuse buffers,
  sync.Pool, no formatting or reflection per request.

Verify
  whystall diagnose under the same load: cycles a second fall, and mark assist, the GC queues and
  p99 with them. Watch memory: the heap's goal grows as GOGC does.

Sources
  golang/go#22743, #23044 (tiny heaps), #58106, #48409 (GOMEMLIMIT near the live heap: GC up to
  half of the CPU), #18534, #40225; the Go GC guide, go.dev/doc/gc-guide.`,
	Look: lookFrequentGC,
	Tell: tellFrequentGC,
})

// A quarter of the CPU in use is what the pacer aims at while marking, so a process with that
// average is always marking. With GOGC=100 only a program that does little but allocate does that,
// and a host that gives no CPU can look a little like it [measured with hogs: 17 % became 29 %]. So
// the goal decides what is too much: under 1.5 times the live heap the room is small.
const (
	gcRate      = finding.GCCycles
	gcShare     = finding.GCOfUsedTight
	gcShareRoom = finding.GCOfUsed
	smallRoom   = finding.GCRoom
	gcMarking   = finding.GCMarking
	gcOfAll     = finding.GCOfAll
)

// cramped reports whether the heap can hardly grow between cycles; GOGC=100 lets it double.
func cramped(g *account.GC) bool {
	return g.Marked > 0 && float64(g.Goal) < smallRoom*float64(g.Marked)
}

// forced reports whether runtime.GC or debug.FreeOSMemory asked for most cycles.
func forced(g *account.GC) bool { return g.Forced > 0 && 2*g.Forced >= g.Cycles }

func lookFrequentGC(p *Pass) {
	if p.Scope() == finding.Process {
		lookGCProcess(p)
		return
	}
	if why := p.blindTrace(); why != "" {
		p.Blind(why)
		return
	}
	r := p.Ledger
	share := gcPart(r)
	if !gcTooMuch(r) {
		least, marking := gcLeast(r), ratio(r.GC.MarkNS, r.Capacity.WallNS)
		boundGC(p, share)
		p.Clear("%.1f cycles a second, marking %s of the time, GC took %s of the CPU used%s (looked into from %.0f a second or %s of the time, and %s of the CPU up)",
			r.GC.PerSecond, percent(marking), percent(share), roomText(&r.GC), gcRate,
			percent(gcMarking), percent(least))
		return
	}
	// A heap that can hardly grow, and cycles that the program asks for, are there whatever the
	// CPUs do. Joined, what requests lost is divided exactly. But who held the Ps is Go's own count
	// of running, which a lack of CPU stretches.
	stretched := joined(r) && kernelShort(r) != ""
	if why := shortOfCPU(r); why != "" && !cramped(&r.GC) && !forced(&r.GC) {
		p.Blind(fmt.Sprintf("whether GC is too much (%.1f cycles a second, %s of the CPU used%s): %s; that stretches marking, so give the process its CPUs and record again",
			r.GC.PerSecond, percent(share), roomText(&r.GC), why))
		return
	}
	fills := gcFills(r)
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		switch {
		case a.Leaf == account.LeafRunnable:
			p.Claim(i, queuedForGC(a, share, fills, stretched))
		case gcLeaf(a):
			// While the whole process stands still, what a goroutine happens to wait for is not the
			// reason.
			p.Claim(i, a.NS-min(a.NS, a.Tags.SilenceNS))
		}
	}
}

// gcTooMuch reports whether GC is looked into: it takes too much of the CPU used, or the program
// asks for it. Cycles that it asks for are too many whatever they cost in all, if requests pay.
func gcTooMuch(r *account.Result) bool {
	if forced(&r.GC) && r.GC.PerSecond >= gcRate {
		return true
	}
	return !seldom(r) && gcPart(r) >= gcLeast(r)
}

// gcLeast is the part of the CPU used from which on GC takes too much.
func gcLeast(r *account.Result) float64 {
	if cramped(&r.GC) {
		return gcShare
	}
	return gcShareRoom
}

// boundGC says what requests lost to all that GC does.
func boundGC(p *Pass, share float64) {
	var ns int64
	fills := gcFills(p.Ledger)
	for i := range p.Column().Accounts {
		a := &p.Column().Accounts[i]
		if a.Leaf == account.LeafRunnable {
			ns += queuedForGC(a, share, fills, false)
		} else if gcLeaf(a) {
			ns += a.NS
		}
	}
	p.Bound(perRequest(p.Column(), ns), ratio(ns, p.Column().WallNS), finding.OfRequest)
}

// gcRules is the part of the CPU used from which GC makes the run queue: less is left to the
// program.
const gcRules = 0.5

// queuedForGC is the part of an account's time in the run queue that GC caused. share is GC's part
// of the CPU used. It is the time in which GC's workers had the Ps. Where GC rules, it is GC's part
// of all work: requests wait for each other because GC leaves them so little. Where GC fills the Ps
// (gcFills), it is all the time in which GC, other requests or own threads had them: what is left
// of such a queue then is a tenth of it or less.
func queuedForGC(a *account.Account, share float64, fills, stretched bool) (ns int64) {
	if !stretched {
		ns = instead(a, account.InsteadGC)
	}
	if share >= gcRules {
		ns = max(ns, int64(share*float64(a.NS)))
	}
	if fills {
		var queue int64
		for i := range a.Instead {
			switch w := &a.Instead[i]; {
			case w.Kind == account.InsteadGC, w.Kind == account.InsteadSweep, w.Kind == account.InsteadRequest,
				w.Lacked() && w.Leaf() == account.LeafNoCPU && isOwn(w.Who):
				queue += w.NS
			}
		}
		ns = max(ns, queue-min(queue, a.Tags.SilenceNS))
	}
	return min(ns, a.NS)
}

// gcFills reports whether the Ps are full, and would not be if GC did not work on them.
func gcFills(r *account.Result) bool {
	busy := ratio(used(&r.Capacity), r.Capacity.TotalNS)
	return busy >= full && busy*(1-gcPart(r)) < mostRoom
}

// gcPart is GC's part of the CPU used, without idle workers: by the trace's states, or by samples,
// which see what allocations do for GC in passing as well.
func gcPart(r *account.Result) float64 {
	part := ratio(gcWork(&r.Capacity), used(&r.Capacity))
	if r.Kernel != nil && r.Kernel.OnCPU != nil && r.Kernel.OnCPU.Samples >= account.LeastSamples {
		w, used := gcSamples(r.Kernel.OnCPU)
		part = max(part, ratio(w.Low, used))
	}
	return part
}

// mostRoom is how busy Ps may be without GC for the queue to be GC's: where they are 95 % busy now,
// a queue at 65 % has a tenth of its length (M/M/1).
const mostRoom = 0.65

// gcLeaf reports whether all of an account is GC's.
func gcLeaf(a *account.Account) bool {
	switch a.Leaf {
	case account.LeafAssist, account.LeafAssistCredit, account.LeafMarkTermQueue,
		account.LeafGCStartQueue, account.LeafStackScan, account.LeafSweep:
		return true
	case account.LeafSTW, account.LeafSTWWork:
		return account.StopsForGC(a.Detail)
	}
	return false
}

// gcWork is the CPU time of GC that the program had to do without. Idle-priority workers give way,
// and do not count.
func gcWork(c *account.Capacity) int64 { return max(0, c.GCNS-c.IdleGCNS) }

// used is the part of the Ps that was used. It grows like GC's part when the host gives no CPU, so
// their ratio does not mistake an overloaded host for a busy collector.
func used(c *account.Capacity) int64 { return c.RunningNS + c.SyscallNS + gcWork(c) }

// gcReason says why cycles are many, by the settings where the service shows them.
func gcReason(p *Pass) string {
	if gogc, ok := gogcOf(p); ok && gogc >= 0 && gogc < 50 {
		p.Proof("runtime metrics or environment", "GOGC is %.0f (the default is 100)", gogc)
		return fmt.Sprintf(" (GOGC is %.0f)", gogc)
	}
	limit, okL := latest(p, "/go/gc/gomemlimit:bytes")
	live, okV := latest(p, "/go/gc/heap/live:bytes")
	if okL && okV && limit > 0 && live > 0 && live > 0.8*limit {
		p.Proof("runtime metrics", "live heap %s of GOMEMLIMIT %s", finding.Bytes(int64(live)),
			finding.Bytes(int64(limit)))
		return fmt.Sprintf(" (the live heap, %s, is close to GOMEMLIMIT)", finding.Bytes(int64(live)))
	}
	if resident, limit, at := atMemoryLimit(p); at {
		p.Proof("environment, process", "%s resident, GOMEMLIMIT is %s", finding.Bytes(resident), finding.Bytes(limit))
		return fmt.Sprintf(" (its memory, %s, is at GOMEMLIMIT, %s)", finding.Bytes(resident), finding.Bytes(limit))
	}
	if p.Ledger != nil {
		g := &p.Ledger.GC
		if forced(g) {
			return " because the program asks for it (runtime.GC or debug.FreeOSMemory)" + forcedAt(g)
		}
		if cramped(g) && g.GoalMax == 0 {
			p.Proof("execution trace: heap",
				"%s found live on average, cycles started at %s; the goal is 0: GOGC is off, and the memory limit starts them", finding.Bytes(g.Marked), finding.Bytes(g.Goal))
			return fmt.Sprintf(" because the live heap, %s, is close to GOMEMLIMIT (GOGC is off)",
				finding.Bytes(g.Marked))
		}
		if cramped(g) {
			return fmt.Sprintf(" because the heap may grow only from %s to %s",
				finding.Bytes(g.Marked), finding.Bytes(g.Goal))
		}
		if g.GoalMax > 0 && g.GoalMax <= 16<<20 {
			return fmt.Sprintf(" (the heap's goal is %s at most)", finding.Bytes(g.GoalMax))
		}
	}
	return ""
}

// markingText says how long marking takes, where cycles are few and long.
func markingText(r *account.Result) string {
	if r.GC.PerSecond >= gcRate {
		return ""
	}
	return ", marking " + percent(ratio(r.GC.MarkNS, r.Capacity.WallNS)) + " of the time,"
}

func roomText(g *account.GC) string {
	if g.Marked == 0 {
		return ""
	}
	return fmt.Sprintf(", the heap may grow from %s to %s", finding.Bytes(g.Marked), finding.Bytes(g.Goal))
}

// forcedAt names where most forced cycles start.
func forcedAt(g *account.GC) string {
	if len(g.TriggerSites) == 0 {
		return ""
	}
	return ", mostly at " + sites(g.TriggerSites[:1], 0, 1)
}

func takeOutGC(g *account.GC) string {
	return "remove the calls of runtime.GC and debug.FreeOSMemory" + forcedAt(g) +
		": the runtime collects and returns memory by itself; GOMEMLIMIT bounds it"
}

func gcRemedies(p *Pass) []string {
	if p.Ledger != nil && forced(&p.Ledger.GC) {
		return []string{takeOutGC(&p.Ledger.GC),
			"GOGC does not change these cycles; only their callers do"}
	}
	rs := []string{"see what is set: GOGC, GOMEMLIMIT, debug.SetGCPercent; raise GOGC (GOGC=200 or more) with GOMEMLIMIT as the guard"}
	if _, limit, at := atMemoryLimit(p); at {
		rs = []string{"raise GOMEMLIMIT (" + finding.Bytes(limit) +
			") well above the live heap, or hold less memory: the limit starts the cycles, whatever GOGC is"}
	}
	if p.Ledger != nil && p.Ledger.GC.GoalMax == 0 && cramped(&p.Ledger.GC) {
		rs = []string{"raise GOMEMLIMIT well above the live heap (" +
			finding.Bytes(p.Ledger.GC.Marked) +
			"), or hold less memory: with GOGC=off the limit alone starts cycles, one after another once live data reach it"}
	}
	if p.Ledger != nil && p.Ledger.GC.GoalMax > 0 && p.Ledger.GC.GoalMax <= 64<<20 {
		rs = append(rs, "the heap is small: GOGC=off GOMEMLIMIT=256MiB (well above the live heap) makes cycles rare at little memory")
	}
	site := "the sites that allocate most: go tool pprof -sample_index=alloc_space URL/debug/pprof/heap"
	switch allocs := workSites(works(p.best(), account.WorkAlloc)); {
	case p.Ledger != nil && len(p.Ledger.GC.AssistSites) > 0:
		site = p.Ledger.GC.AssistSites[0].Func + "; " + site
	case len(allocs) > 0:
		site = allocs[0].Func + "; " + site
	}
	return append(rs, "allocate less at "+site)
}

// latest is a stream's last sample.
func latest(p *Pass, stream string) (float64, bool) {
	rs := p.Set.All(stream)
	if len(rs) == 0 {
		return 0, false
	}
	return rs[len(rs)-1].Value, true
}
