package detect

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "tlb-shootdown",
	Title:  "Threads wait for other CPUs to forget a mapping",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	Floor:  Floor{NS: 5e6, Share: 0.10},
	Doc: `What happens
  A thread that unmaps memory or removes an access right must make every CPU that runs a thread of
  the process forget the mapping. It sends an interrupt to each, and waits until the last has
  answered. A CPU that is busy with interrupts off, or a virtual one that does not run, makes this
  milliseconds. The more threads run, the more CPUs have to answer. Calls that only change the
  rights of pages (mprotect) or where they are (mremap) cost more than that: the kernel cuts its
  mappings in pieces, and walks their page tables.

Evidence
  CPU samples of the target's threads inside flushes: a thread that waits for the answers waits on
  its CPU. In which calls, and how many flushes there were. TLB and call-function interrupts of
  the host. Of calls that change rights or move pages, and flush, all CPU time counts.

Not to be taken for
  mmap-lock: threads that wait in front of the one that unmaps; they wait for the lock, not for
  other CPUs. Many flushes that cost nothing: a flush takes microseconds on a calm host, so a rate
  alone is no finding. Threads that are made and ended all the time: thread-churn is the root.
  Memory that is returned and faulted in anew: page-fault is the root, and these flushes its
  mechanism. Where rights change, or pages move, and nothing is faulted in, they stand alone.

Remedy
  Unmap and madvise less often: keep memory and threads (allocator settings as for mmap-lock, a
  thread pool). Bind the process to fewer CPUs or one node, so that fewer have to answer.
  numa_balancing and khugepaged cause flushes of their own.

Verify
  whystall diagnose under the same load: "TLB flush" of slow requests falls, and grep TLB
  /proc/interrupts grows more slowly.

Sources
  In-depth analysis of TiFlash, PingCAP: the holder of the stack cache's lock waits for shootdown
  interrupts in munmap; arch/x86/mm/tlb.c.`,
	Look: lookTLB,
	Tell: tellTLB,
})

// flushRate is how many flushes a second are a reason to ask what they cost: at 10 us each, a tenth
// of a CPU.
const flushRate = 10000

func lookTLB(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	text := fmt.Sprintf("flushes by the process: %s", perSecond(k.TLB.N, k))
	if joined(r) {
		if flushesOfReturned(p) {
			p.within = "page-fault"
		}
		claimFlushes(p)
		p.ClaimLacking(lacks(account.LeafTLB))
		p.claimQueue(k.TLB.NS)
		claimChanges(p)
		if p.below(p.Claimed()) == "" {
			return
		}
	} else if claimChanges(p) {
		return
	} else if r.CPUs != nil && p.lost(k.TLB.NS) >= stallShare {
		if flushesOfReturned(p) { // page-fault claims them of the process' CPU time
			p.symptom = []string{"page-fault"}
		}
		p.claimTerm(termRunning, min(k.TLB.NS, r.CPUs.RunningNS), p.lost(k.TLB.NS))
		p.capProcess()
		return
	}
	p.claims = nil
	p.work.ns, p.work.low = 0, 0
	boundTLB(p)
	switch {
	case k.TLB.N == 0 && unseen(k, kernel.SightTLBFlushes) != "":
		p.Blind(unseen(k, kernel.SightTLBFlushes))
	case k.TLB.NS == 0 && rate(k.TLB.N, k) >= flushRate:
		p.Blind(text + ", and no CPU samples that show how long its threads were in them: record with stacks, or perf top -e cycles:k and look for smp_call_function_many_cond")
	case k.TLB.NS == 0:
		p.Clear("%s, and no CPU sample of its threads was in one", text)
	default:
		p.Clear("%s, and %s of its threads' CPU time was in them, by samples", text, finding.Duration(k.TLB.NS))
	}
}

// changers are system calls that change the rights of pages, or move them.
var changers = []string{"mprotect", "pkey_mprotect", "mremap"}

// changes are the parts of these kinds in such calls.
func changes(on *account.OnCPU, kinds ...account.WorkKind) []*account.Work {
	return slices.DeleteFunc(works(on, kinds...),
		func(w *account.Work) bool { return !slices.Contains(changers, w.Name) })
}

// claimChanges claims the CPU time of calls that change rights or move pages, where the process
// flushes TLBs in them. It reports whether that is enough for the process. Few programs make such
// calls while they serve, so it has to be much.
func claimChanges(p *Pass) bool {
	all, on := p.best(), p.samples()
	flushed := len(changes(all, account.WorkTLB)) > 0
	sum := func(on *account.OnCPU, kinds ...account.WorkKind) account.Work {
		return sumWorks(on, account.WorkSyscall, changes(on, kinds...))
	}
	if p.blindWork() != "" || !flushed || ratio(sum(all, account.WorkSyscall, account.WorkTLB).Low,
		all.NS) < minorLeast {
		return false
	}
	if p.requests() {
		p.claimWork(sum(on, account.WorkSyscall)) // flushes of requests are an account of their own
		return true
	}
	w := sum(on, account.WorkSyscall, account.WorkTLB)
	if ratio(w.NS, on.NS) < processShare {
		p.unclaimed(w)
		return false
	}
	p.claimWork(w)
	p.SetFloor(Floor{Share: processShare})
	return true
}

// flushNS is what a flush takes: 10 us where a dozen CPUs answer. It bounds them where no sample
// met one.
const flushNS = 10e3

func boundTLB(p *Pass) {
	k := p.Ledger.Kernel
	if p.requests() {
		return
	}
	least := flushNS * rate(k.TLB.N, k) / 1e9
	p.Bound(0, max(p.lost(k.TLB.NS), least), finding.OfWall)
}

func tellTLB(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	switch {
	case p.work.ns > 0 && 2*p.work.ns > k.TLB.NS:
		tellChanges(p, f)
	case len(p.pools) > 0:
		f.Summary = fmt.Sprintf("threads of the process spend %s flushing TLBs, waiting for other CPUs to do so", finding.Duration(k.TLB.NS))
		p.measured = p.pooled()
	default:
		f.Summary = fmt.Sprintf("%s spend %s (%s of their time) flushing TLBs, waiting for other CPUs to do so", p.who(), p.per(p.NS()), p.share(p.NS()))
		p.measure()
	}
	if k.TLB.N > 0 {
		p.Proof("kernel records", "flushes by the process: %s", perSecond(k.TLB.N, k))
	}
	p.Proof("CPU samples", "%s of its threads' %s on CPUs in flushes", finding.Duration(k.TLB.NS),
		finding.Duration(k.OnNS))
	queueLine(p, "flushes")
	for _, l := range []struct{ what, list string }{{"in", whoList(k.TLB.Flags, 4)},
		{"called by", sites(k.TLB.Sites, 0, 4)}, {"threads:", whoList(k.TLB.By, 4)}} {
		if l.list != "" {
			p.Proof("CPU samples", "of them %s %s", l.what, l.list)
		}
	}
	p.Cap("how long each flush takes is known from samples only")
	for _, s := range []struct{ stream, what string }{{"/host/interrupts/tlb:interrupts",
		"TLB shootdowns"}, {"/host/interrupts/call-function:interrupts", "call-function interrupts"}} {
		if d, ns, ok := p.Set.Delta(s.stream); ok && ns > 0 {
			p.Proof("/proc/interrupts", "%s received: %.0f a second, all CPUs", s.what, d/(float64(ns)/1e9))
		}
	}
	f.Remedy = append(f.Remedy,
		"unmap less often: keep threads (a pool) and memory (MALLOC_TRIM_THRESHOLD_, retain of jemalloc); it costs resident memory",
		"fewer CPUs have to answer if the process runs on fewer: taskset, cpuset.cpus, numactl --cpunodebind; it costs parallelism")
	f.Verify = p.verify("'TLB flush' of " + p.who() + " falls")
}

// tellChanges is of calls that change rights or move pages: what they do besides the flush is CPU
// time as well.
func tellChanges(p *Pass, f *finding.Finding) {
	f.Title = "Changing the rights of memory, or moving it, takes the CPU"
	all := p.best()
	calls := changes(all, account.WorkSyscall)
	f.Summary = fmt.Sprintf("%s in %s and the TLB flushes that they bring", p.costs(), names(calls, 2))
	if s := workSites(calls); len(s) > 0 {
		f.Summary += ", called by " + s[0].Func
	}
	for _, w := range calls {
		p.Proof("CPU samples",
			"%s takes %s of the process' CPU time (%s to %s at 95 %%), %d of %d samples, beside flushes%s", w.Name,
			percent(ratio(w.NS, all.NS)), percent(ratio(w.Low, all.NS)),
			percent(ratio(w.High, all.NS)), w.Samples, all.Samples, fromSites(w))
	}
	f.Remedy = append(f.Remedy,
		"change rights less often: one call for a whole area, or two mappings of the same memory with different rights (memfd_create); pkeys (pkey_set) switch rights without a call")
}
