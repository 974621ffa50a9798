package detect

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// frequent-gc of the process: what garbage collection takes of its CPU time, whoever waited. It may
// be most of it while requests are too short to show that one by one. The harm is the CPU time that
// is gone: for all requests, for the neighbours, and for the load that no longer fits.

// lookGCProcess reads samples, which are CPU time; else the trace, whose workers seem to run while
// they wait for a CPU; else the runtime's metrics.
func lookGCProcess(p *Pass) {
	least, low := gcShareRoom, lowGOGC(p)
	if low {
		least = gcShare
	}
	p.SetFloor(Floor{Share: least})
	switch {
	case p.blindWork() == "":
		lookGCSamples(p, low, least)
	case traced(p.Ledger):
		lookGCTrace(p, low, least)
	case p.Set.Has(gcCycles):
		lookGCMetrics(p)
	default:
		p.Blind(p.blindWork())
	}
}

// lowGOGC reports whether cycles are many by a setting: a GOGC below 50, memory at GOMEMLIMIT, a
// heap that may hardly grow, or cycles that the program asks for. A program which does little but
// allocate may spend more on GC than others, and is as its author wants it. With such a setting it
// is not.
func lowGOGC(p *Pass) bool {
	if gogc, ok := gogcOf(p); ok && gogc >= 0 && gogc < 50 {
		return true
	}
	if _, _, at := atMemoryLimit(p); at {
		return true
	}
	return p.Ledger != nil && (cramped(&p.Ledger.GC) || forced(&p.Ledger.GC))
}

// atMemoryLimit reports whether the process has so much memory that GOMEMLIMIT starts its cycles:
// nine tenths of it or more. Both are in bytes, the limit by the environment that the process
// started with.
func atMemoryLimit(p *Pass) (resident, limit int64, at bool) {
	rec, ok := p.Set.Fact("/env/GOMEMLIMIT:bytes")
	m := p.memory()
	if !ok || m == nil || rec.Value <= 0 {
		return 0, 0, false
	}
	return m.End, int64(rec.Value), float64(m.End) >= 0.9*rec.Value
}

// gogcOf is GOGC by the runtime's metrics, else by the environment that the process started with.
func gogcOf(p *Pass) (float64, bool) {
	if v, ok := latest(p, "/go/gc/gogc:percent"); ok {
		return v, true
	}
	if rec, ok := p.Set.Fact("/env/GOGC:percent"); ok {
		return rec.Value, true
	}
	return 0, false
}

// traced reports whether an execution trace was read.
func traced(r *account.Result) bool { return r != nil && r.Capacity.TotalNS > 0 }

// gcUses is the least that GC takes of one CPU to be worth a finding.
const gcUses = finding.GCUses

// gcSamples is garbage collection by samples, and the CPU time of which it is a part. Workers of
// idle priority give way, and do not count in either.
func gcSamples(on *account.OnCPU) (w account.Work, used int64) {
	w, used = on.Of(account.WorkGC), on.NS
	for _, part := range works(on, account.WorkGC) {
		if part.Name == account.GCIdle {
			w.NS, w.Samples, w.Low = w.NS-part.NS, w.Samples-part.Samples, max(0, w.Low-part.High)
			used -= part.NS
		}
	}
	return w, used
}

// gcBesideAlloc is the least part of the CPU time in cycles for allocation to be counted with GC:
// where they take less, they are not too many, whatever the program allocates.
const gcBesideAlloc = 0.10

// garbageLeast is the part of the CPU time that GC and allocation must surely take together
// [healthy reads of etcd, whose heap is 8 MiB: 42 %; a request that makes 92 MB anew: 66 %].
const garbageLeast = 0.50

// garbage is garbage collection and the allocation that makes it necessary, by samples. It is zero
// where cycles are few or take little of it, or where both may take less than garbageLeast of the
// CPU time. The clearing that page-fault claims is left out.
func garbage(p *Pass, on *account.OnCPU) (both account.Work) {
	faulted := clearing(p, on).NS > 0
	used, cycles := on.NS, int64(0)
	parts := slices.DeleteFunc(works(on, account.WorkGC, account.WorkAlloc), func(w *account.Work) bool {
		switch {
		case w.Name == account.GCIdle:
			used -= w.NS
			return true
		case w.Kind == account.WorkGC && w.Name != account.GCSweep:
			cycles += w.NS
		}
		return faulted && w.Name == account.AllocClears
	})
	both = sumWorks(on, account.WorkGC, parts)
	if ratio(cycles, used) < gcBesideAlloc || ratio(both.Low, used) < garbageLeast ||
		traced(p.Ledger) && seldom(p.Ledger) {
		return account.Work{}
	}
	return both
}

// seldom reports whether cycles are few, and short.
func seldom(r *account.Result) bool {
	return r.GC.PerSecond < gcRate && ratio(r.GC.MarkNS, r.Capacity.WallNS) < gcMarking
}

// lookGCSamples claims the samples in garbage collection; in allocation too, where both together
// are too much and GC alone is not.
func lookGCSamples(p *Pass, low bool, least float64) {
	on := p.samples()
	w, used := gcSamples(on)
	if ratio(w.NS, used) < least {
		if both := garbage(p, on); both.NS > 0 {
			w = both
		}
	}
	if ratio(w.NS, used) < least || ratio(w.NS, wall(p.Ledger.Kernel)) < gcUses {
		p.Bound(0, min(1, ratio(w.High, used)), finding.OfCPU)
		p.Clear("GC took %s of the CPU time, without idle workers, at most %s (reported from %s up%s)", percent(ratio(w.NS, used)), percent(min(1, ratio(w.High, used))), percent(least), lowText(low))
		return
	}
	p.claimWork(w)
}

func lowText(low bool) string {
	if low {
		return ", since a setting makes the cycles"
	}
	return ""
}

// lookGCTrace is the same by the trace's count of who had the Ps.
func lookGCTrace(p *Pass, low bool, least float64) {
	r := p.Ledger
	ns, of := gcWork(&r.Capacity), used(&r.Capacity)
	if seldom(r) || ratio(ns, of) < least || ratio(ns, r.Capacity.WallNS) < gcUses {
		p.Bound(0, ratio(ns, of), finding.OfCPU)
		p.Clear("GC took %s of the CPU used%s (reported from %s up%s)", percent(ratio(ns, of)),
			roomText(&r.GC), percent(least), lowText(low))
		return
	}
	if s := &r.Silences; 10*s.NS >= r.Capacity.WallNS && !low {
		p.Blind(fmt.Sprintf("whether GC is too much (%s of the CPU used): no thread of the process recorded anything for %s, and a worker that stands still seems to work; record with --pid, or give the process its CPUs", percent(ratio(ns, of)), finding.Duration(s.NS)))
		return
	}
	if why := shortOfCPU(r); why != "" && !low {
		p.Blind(fmt.Sprintf("whether GC is too much (%s of the CPU used): %s; that stretches marking, so give the process its CPUs and record again", percent(ratio(ns, of)), why))
		return
	}
	p.ClaimCPU(ns, of)
}

func lookGCMetrics(p *Pass) {
	n, ns, ok := p.Set.Delta(gcCycles)
	if !ok || ns <= 0 {
		p.Blind("GC cycles: one reading only, or the process was restarted; read /metrics or /debug/vars twice, or record an execution trace")
		return
	}
	rate := n / (float64(ns) / 1e9)
	gc, _, okGC := p.Set.Delta("/go/cpu/gc:ns")
	total, _, okTotal := p.Set.Delta("/go/cpu/total:ns")
	if okGC && okTotal {
		p.Bound(0, gc/max(total, 1), finding.OfCPU)
	}
	if rate < gcRate {
		p.Clear("%.1f cycles a second", rate)
		return
	}
	if !okGC || !okTotal || total <= 0 {
		p.Blind(fmt.Sprintf("%.1f GC cycles a second, but not what they cost: it needs an execution trace, or /cpu/classes of runtime/metrics in /metrics", rate))
		return
	}
	idle, _, _ := p.Set.Delta("/go/cpu/idle:ns")
	if busy := total - idle; busy <= 0 || gc/busy < gcShare {
		p.Clear("%.1f cycles a second, GC took %s of the CPU used", rate, percent(gc/max(busy, 1)))
		return
	}
	p.SetFloor(Floor{})
	p.ClaimCPU(int64(min(gc, total)), int64(total))
	p.Doubt("without an execution trace it is not known what requests lost to it")
}

func tellFrequentGC(p *Pass, f *finding.Finding) {
	why := gcReason(p)
	if len(p.claims) == 0 {
		tellGCProcess(p, f, why)
	} else {
		tellGCRequests(p, f, why)
	}
	if why := shortOfCPU(p.Ledger); why != "" && p.work.ns == 0 {
		p.Doubt("%s; it is certain that the cycles are many, but not that they alone cost what they seem to", why)
	}
	f.Remedy = append(f.Remedy, gcRemedies(p)...)
	f.Verify = p.verify("frequent-gc is gone and cycles a second have fallen")
}

func tellGCProcess(p *Pass, f *finding.Finding, why string) {
	n, ns, counted := p.Set.Delta(gcCycles)
	often := "GC"
	switch {
	case traced(p.Ledger):
		often = fmt.Sprintf("GC runs %.1f times a second%s; it", p.Ledger.GC.PerSecond, why)
	case counted && ns > 0:
		often = fmt.Sprintf("GC ran %.1f cycles a second%s; it", n/(float64(ns)/1e9), why)
		p.Proof("runtime metrics", "%.0f cycles in %s, %s of CPU time", n, finding.Duration(ns),
			finding.Duration(p.pooled()))
	case why != "":
		often = "GC" + why
	}
	if p.work.ns == 0 && !traced(p.Ledger) {
		f.Summary = fmt.Sprintf("%s took %s of the CPU time available", often, percent(f.Share))
		return
	}
	f.Summary = fmt.Sprintf("%s takes %s of the CPU time that the process uses", often, percent(f.Share))
	if p.work.ns > 0 {
		if gc, _ := gcSamples(p.samples()); gc.NS < p.work.ns {
			f.Summary = fmt.Sprintf("%s and allocation take %s of the CPU time that the process uses",
				often, percent(f.Share))
		}
		workLines(p, "garbage collection", account.WorkGC)
		if alloc := p.samples().Of(account.WorkAlloc); alloc.Samples > 0 {
			p.Proof("CPU samples", "allocation takes another %s%s",
				percent(ratio(alloc.NS, p.samples().NS)), allocSites(p))
		}
	}
	if traced(p.Ledger) {
		g, c := &p.Ledger.GC, &p.Ledger.Capacity
		p.Proof("execution trace: GC",
			"%d cycles, marking %s of the time; GC's workers and assists had Ps for %s, %s of it on Ps without other work",
			g.Cycles, percent(ratio(g.MarkNS, c.WallNS)), finding.Duration(c.GCNS), percent(ratio(c.IdleGCNS, c.GCNS)))
		tellHeap(p)
		if len(g.TriggerSites) > 0 {
			p.Proof("execution trace: GC", "cycles are started at %s", sites(g.TriggerSites, 0, 3))
		}
	}
}

func allocSites(p *Pass) string {
	if s := workSites(works(p.best(), account.WorkAlloc)); len(s) > 0 {
		return ", from " + sites(s, 0, 3)
	}
	return ""
}

func tellGCRequests(p *Pass, f *finding.Finding, why string) {
	g, c := &p.Ledger.GC, &p.Ledger.Capacity
	f.Summary = fmt.Sprintf("GC runs %.1f times a second%s%s; %s lose %s each to it (%s of their time)", g.PerSecond, markingText(p.Ledger), why, p.who(), p.per(p.NS()), p.share(p.NS()))
	p.Proof("execution trace: GC",
		"%d cycles, marking %s of the time; GC took %s of the CPU used (workers and assists; idle-priority workers not counted)",
		g.Cycles, percent(ratio(g.MarkNS, c.WallNS)), percent(gcPart(p.Ledger)))
	var inferred int64
	p.granted(func(a *account.Account, ns int64) {
		if a.Leaf == account.LeafRunnable {
			inferred += max(0, ns-instead(a, account.InsteadGC))
		}
	})
	if inferred > 0 {
		reason := "GC's part of the CPU used is its part of the queue"
		if gcFills(p.Ledger) {
			reason = fmt.Sprintf("the Ps were busy %s of the time, and %s of it without GC",
				percent(ratio(used(c), c.TotalNS)), percent(ratio(used(c), c.TotalNS)*(1-gcPart(p.Ledger))))
		}
		p.Proof("inferred", "%s per request of it passed in the run queue, not behind GC's workers: requests queue for what GC leaves them; %s", p.per(inferred), reason)
	}
	tellHeap(p)
	if len(g.TriggerSites) > 0 {
		p.Proof("execution trace: GC", "cycles are started at %s", sites(g.TriggerSites, 0, 3))
	}
	if len(g.AssistSites) > 0 {
		p.Proof("execution trace: mark assist", "assists (%s in all) at %s",
			finding.Duration(g.AssistNS), sites(g.AssistSites, g.AssistNS, 3))
	}
}
