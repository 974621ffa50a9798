package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "mmap-lock",
	Title:  "Threads wait for the lock of their address space",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual},
	Floor:  Floor{NS: 5e6, Share: 0.10},
	Doc: `What happens
  Every process has one lock around its map of memory. mmap, munmap, mprotect, madvise, and the
  creation and the end of a thread's stack take it to write. Page faults and readers of
  /proc/PID/smaps take it to read. One writer that takes long, or a queue of them, makes everybody
  who touches new memory wait, while the CPU is half idle.

Evidence
  Waits of the target's threads for mmap_lock: how long, to read or to write, in which functions.
  Who changed the address space meanwhile, and how often.

Not to be taken for
  tlb-shootdown: the writer waits for other CPUs to forget the mapping. That is the time inside
  the lock; this is the time in front of it. Locks of the program (lock-contention). Threads that
  are made and ended all the time: thread-churn is the root then. A monitor that reads smaps
  (cadvisor, atop): it holds the lock from outside the process, and is named where it was seen.

Remedy
  Fewer changes: keep threads and memory instead of returning them (a pool; larger
  M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc; jemalloc with retain; for Go a larger GOGC,
  GODEBUG=madvdontneed=0). Fault memory in before it is needed (MAP_POPULATE). Kernels from 6.4 on
  fault under a lock per mapping. No smaps scrapes.

Verify
  whystall diagnose under the same load: "mmap_lock" of slow requests falls.

Sources
  OpenSearch#20933, golang/go#65038; cadvisor#3679, atop#94 (smaps);
  Documentation/mm/process_addrs.rst.`,
	Look: lookMmapLock,
	Tell: tellMmapLock,
})

func lookMmapLock(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	p.needs(kernel.KernelLocks, "waits for the kernel's locks")
	if why := unseen(k, kernel.SightMmapLock); why != "" && k.MmapLock.N == 0 {
		p.Blind(why)
		return
	}
	text := "no thread of the process waited for mmap_lock"
	if k.MmapLock.N > 0 {
		text = fmt.Sprintf("%s for mmap_lock, %s in all, the longest %s",
			times(k.MmapLock.N, "wait", "waits"), finding.Duration(k.MmapLock.NS), finding.Duration(k.MmapLock.Max))
	}
	if joined(r) {
		p.ClaimWhere(leaf(account.LeafMmapLock))
		p.ClaimLacking(lacks(account.LeafMmapLock))
		if len(p.claims) == 0 {
			if k.MmapLock.N > 0 {
				text += ", none in " + p.who()
			}
			p.Clear("%s", text)
		}
		return
	}
	if r.CPUs == nil || p.lost(k.MmapLock.NS) < stallShare {
		p.boundWaits(k.MmapLock.NS)
		p.Clear("%s", text)
		return
	}
	p.claimTerm(termUnused, min(k.MmapLock.NS, r.CPUs.UnusedNS), p.lost(k.MmapLock.NS))
	p.capProcess()
}

func tellMmapLock(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("threads of the process wait %s for the lock of their address space", finding.Duration(k.MmapLock.NS))
		p.measured = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for the lock of the address space (mmap_lock)", p.who(), p.per(p.NS()), p.share(p.NS()))
		p.measure()
	}
	m := &k.MmapLock
	var let int64
	for _, w := range k.MmapLetGo {
		let += w.NS
	}
	told := 2*let > m.NS
	switch {
	case told:
		f.Summary += "; it was then released by " + whoList(letGo(k), 2)
	case len(m.By) > 0:
		f.Summary += "; meanwhile it was changed by " + whoList(m.By, 2)
	}
	// That a thread was in a call that takes the lock is coverage: no record says who had it.
	if told {
		p.Cap("who released the lock is known, but not who had it all the while")
	}
	p.Cap("no event says who held the lock meanwhile")
	p.Proof("kernel records", "%s for mmap_lock (%s), %s in all, the longest %s",
		times(m.N, "wait", "waits"), perSecond(m.N, k), finding.Duration(m.NS), finding.Duration(m.Max))
	if len(m.Sites) > 0 {
		p.Proof("kernel records", "who waits: %s", sites(m.Sites, m.NS, 4))
	}
	if told {
		p.Proof("kernel records",
			"%s of these waits ended when a call that changes or copies the address space released the lock: %s", percent(ratio(let, m.NS)), whoList(letGo(k), 5))
	}
	if len(m.By) > 0 {
		p.Proof("kernel records", "who changed the address space meanwhile: %s", whoList(m.By, 5))
	}
	if len(m.Flags) > 0 {
		p.Proof("kernel records", "%s", whoList(m.Flags, 4))
	}
	f.Remedy = append(f.Remedy, mmapRemedies(k, told)...)
	f.Verify = p.verify("'mmap_lock' of " + p.who() + " falls")
}

// mmapRemedies says what to do about the holders of the lock: by the call, where it is known.
func mmapRemedies(k *account.Kernel, told bool) (l []string) {
	var names []string
	if told {
		for _, w := range k.MmapLetGo[:min(5, len(k.MmapLetGo))] {
			names = append(names, w.Who, w.Call)
		}
	} else {
		for _, w := range k.MmapLock.By[:min(5, len(k.MmapLock.By))] {
			names = append(names, w.Who)
		}
		for _, s := range k.MmapLock.Sites[:min(5, len(k.MmapLock.Sites))] {
			names = append(names, s.Func, s.Via)
		}
	}
	named := func(parts ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(parts,
				func(part string) bool { return strings.Contains(strings.ToLower(name), part) })
		})
	}
	call := func(calls ...string) bool {
		return told && slices.ContainsFunc(k.MmapLetGo[:min(5, len(k.MmapLetGo))],
			func(w account.LetGo) bool { return slices.Contains(calls, w.Call) })
	}
	forks := call("fork", "vfork")
	if forks {
		l = append(l, "a fork copies the page tables of the whole process under this lock: fork from a small process that is made at the start, run programs by posix_spawn or vfork, take snapshots less often or elsewhere; huge pages need fewer tables, and cost memory")
	}
	if call("mprotect") {
		l = append(l, "change the protection of many pages by one call, and less often (a JIT, guard pages, a collector's write barrier)")
	}
	if named("madvise", "munmap", "free") {
		l = append(l, "return memory less often: MALLOC_TRIM_THRESHOLD_ and MALLOC_MMAP_THRESHOLD_ of glibc, retain of jemalloc, GOGC and GOMEMLIMIT for Go; it costs resident memory")
	}
	// Threads' stacks matter where threads come and go.
	if !told || !forks && rate(k.Churn.Exited, k) >= churnedStacks {
		l = append(l, "keep threads: each one's stack is mapped and unmapped under this lock; a pool, or GLIBC_TUNABLES=glibc.pthread.stack_cache_size=BYTES")
	}
	if !told {
		l = append(l, "nobody should read /proc/PID/smaps of it on a timer; smaps_rollup takes the lock as well")
	}
	return append(l, "Linux 6.4 and later fault under a lock per mapping")
}

// churnedStacks is how many threads a second must end for their stacks to be mentioned.
const churnedStacks = 10

// letGo is who released the lock and in which call, as names.
func letGo(k *account.Kernel) (l []account.Instead) {
	for _, w := range k.MmapLetGo {
		l = append(l, account.Instead{Who: fmt.Sprintf("%s (%s)", w.Who, w.Call), NS: w.NS})
	}
	return l
}
