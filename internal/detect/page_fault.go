package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "page-fault",
	Title:  "Touching memory takes long: page faults",
	Needs:  []string{KernelRecords},
	Floor:  Floor{NS: 5e6, Share: 0.10},
	Scopes: everyScope,
	Doc: `What happens
  The first touch of a page enters the kernel. A minor fault takes a microsecond: a page is
  taken, zeroed and charged to the memory cgroup. A server that returns memory after each
  request, and touches it again for the next, pays that for each page of each request: 4 MB
  are 1 000 faults and a millisecond. free() does it by itself where it trims the heap or
  unmaps a large block. A major fault reads a file or swap: the binary itself after its pages
  were dropped, a mapped database, swapped heap. A huge one clears 2 MiB, which takes 100 us
  or more, and may compact memory for it. Go calls the goroutine running all the while.

Evidence
  Samples of kernel stacks within the fault path: their share of the CPU time with its 95 %
  interval, for what (zeroing, charging, huge pages), and the functions that touch the memory.
  What returns it: samples in munmap, madvise and brk, and who calls them. Where a Go program
  has 15 % of its CPU time in faults, clearing what it allocates is of the same kind: large
  blocks are made for a moment and dropped, and the heap clears those that the kernel did not.
  Where they take 20 % together, so much of the queue for Ps behind other requests as it
  explains by queueing theory: without them requests are shorter, and Ps more often free.
  Stretches of the target's threads in page faults: major ones (of which files, where that is
  known), huge ones, and others that took long. Waits for the disk inside faults. Counts of
  major and minor faults.

Not to be taken for
  Reclaim or compaction inside the fault (direct-reclaim), NUMA hinting faults
  (numa-balancing): the innermost counts. Waiting for mmap_lock in it is mmap-lock, and
  flushing TLBs is tlb-shootdown, unless the process itself returns the memory that it faults
  in again all the time: that is then the root of all three, even where the flushes take more
  time than the faults. It shows in flushes within calls that return memory, and in as many
  faults. A read() that waits for the disk: disk-wait. Minor faults in passing: every program
  has them, and a few percent of its CPU time in them are no finding. A program that grows:
  memory which it touches for the first time and keeps has to be faulted in once. That is no
  finding below 25 % of its CPU time.

Remedy
  Minor: keep memory instead of returning it. glibc: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, or
  glibc.malloc.trim_threshold and mmap_threshold in GLIBC_TUNABLES; no malloc_trim per request.
  jemalloc: dirty_decay_ms. Go: no debug.FreeOSMemory, a larger GOGC. Buffers of one's own that
  are used again, a mapping that is kept. Huge pages make one fault of 512.
  Major: more memory or a larger memory limit, less page cache by others; swap off, or a low
  swappiness, for latency; mlock or MAP_POPULATE for what is hot. Huge: set THP to madvise, or
  defrag to defer; it costs TLB misses.

Verify
  whystall diagnose under the same load: page-fault is gone; minflt of pidstat -r falls, and
  pgmajfault of the cgroup stands still.

Sources
  mallopt(3): M_TRIM_THRESHOLD, M_MMAP_THRESHOLD; malloc_trim(3); runtime/debug.FreeOSMemory;
  Documentation/admin-guide/mm/transhuge.rst; scylladb#8828, redis#7381 (huge faults); proc(5),
  minflt and majflt.`,
	Look: lookFault,
	Tell: tellFault,
})

// stallShare is the least part of wall time that threads spent in such stretches, where no request
// is visible.
const stallShare = 0.10

func lookFault(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	minor := claimMinor(p)
	claimReturned(p)
	if p.blindWork() != "" {
		p.needs(kernel.MinorFaults, "minor page faults")
	}
	if joined(r) {
		claimFaultStretches(p)
		if len(p.claims) == 0 {
			p.Clear("%s", faultText(p))
		}
		return
	}
	if minor {
		return
	}
	if why := unseen(k, kernel.SightPageFaults); why != "" && k.FaultsN == 0 {
		p.Blind(why)
		return
	}
	ns := k.Major.NS + k.Huge.NS
	if ratio(ns, wall(k)) < stallShare {
		p.boundWaits(ns)
		p.Clear("%s", faultText(p))
		return
	}
	// What reclaim took is direct-reclaim's, which looks later, and is often the root of faults.
	// The sums overlap by nobody knows how much: at least half stays here, as faults that wait for
	// a file do not end with reclaim.
	p.claimWait(ns - min(ns/2, k.Reclaim.NS+k.Memcg.NS+k.Compact.NS))
	if !p.onlyShares(ns) {
		p.capProcess()
	}
}

// claimFaultStretches claims what threads did in faults by records of each. In slow requests it is
// what waited for a page, cleared 2 MiB, or slept: that usual ones fault as well says nothing of
// why these are slow. In usual ones it is all, and where the process renews memory all the time.
func claimFaultStretches(p *Pass) {
	left := beyondMinor(p.Ledger.Kernel)
	waited, all := left, max(left, p.Ledger.Kernel.Faults.NS, 1)
	switch {
	case renews(p):
		left, waited = p.Column().WallNS, all
	case p.Scope() == finding.Usual && !grows(p):
		left = p.Column().WallNS
	}
	for i := range p.Column().Accounts {
		a := &p.Column().Accounts[i]
		if a.Leaf == account.LeafFault {
			p.Claim(i, min(a.NS, left))
			left -= min(a.NS, left)
		}
		// Many requests wait behind one fault at once, so that their time may exceed the faults'.
		held := scale(lacking(a, lacks(account.LeafFault)), waited, all)
		p.Claim(i, held)
		p.lackedQueue += held
	}
}

// minorLeast is the least part of CPU time in minor faults of slow requests that is looked into:
// the lower end of its interval. Any program has some.
const minorLeast = 0.20

// claimMinor claims the CPU time of the fault path by samples. It reports whether there is enough
// of it for the process. A thread that does little else makes the others queue for CPUs, too.
func claimMinor(p *Pass) bool {
	on := p.samples()
	if grows(p) {
		return false
	}
	p.queueBehind(renewals(p)...)
	if renews(p) {
		p.claimRunQueue(renewed(p, p.Ledger.Kernel.OnCPU))
	}
	if p.blindWork() != "" {
		boundByCount(p)
		return false
	}
	w := renewed(p, on)
	switch p.Scope() {
	case finding.Slow:
		if ratio(w.Low, on.NS) < minorLeast {
			p.unclaimed(w)
			return false
		}
	case finding.Process:
		if ratio(w.NS, on.NS) < processShare {
			p.unclaimed(w)
			return false
		}
	}
	if p.Scope() != finding.Process {
		w = newMemory(p, on, account.WorkFault) // flushes are an account of their own
	}
	p.claimWork(w)
	return true
}

// claimReturned claims what else it costs that the process faults in anew what it has itself
// returned. The calls that map and return memory change the address space under mmap_lock, for
// which each fault asks, and they flush TLBs: a process that keeps its memory has none of it. Where
// the holder of the lock was in reclaim meanwhile, the waits are direct-reclaim's. Where requests
// renew next to nothing themselves, they wait for another's long call: that is mmap-lock's.
func claimReturned(p *Pass) {
	k := p.Ledger.Kernel
	if p.Scope() == finding.Process || !renews(p) {
		return
	}
	var mapped int64
	for _, h := range k.MmapLetGo {
		if returns(h.Call) {
			mapped += h.NS
		}
	}
	waited := timeIn(p.Column(), leaf(account.LeafMmapLock))
	if 2*mapped > k.MmapLock.NS && 4*k.MmapReclaimNS < k.MmapLock.NS && waited <= mostBehind*ownRenewal(p) {
		p.ClaimWhere(leaf(account.LeafMmapLock))
	}
	if flushesOfReturned(p) {
		claimFlushes(p)
	}
}

// mostBehind is how many times their own renewing requests wait for the lock at most, where they
// wait for the renewing of each other: about as many threads want it at once.
const mostBehind = 20

// ownRenewal is how long the column's own requests gave memory back and touched it anew: by records
// of faults and flushes, and by samples of their time on a CPU.
func ownRenewal(p *Pass) int64 {
	own := timeIn(p.Column(), leaf(account.LeafFault, account.LeafTLB))
	if on := p.best(); on != nil && on.NS > 0 {
		own += scale(timeIn(p.Column(), leaf(account.LeafOnCPU)), renewed(p, on).NS, on.NS)
	}
	return own
}

// minorMost is what a fault takes at most that no record tells of: longer ones have their own.
const minorMost = 10e3

// boundByCount bounds the minor faults where no sample shows them: by their number.
func boundByCount(p *Pass) {
	k := p.Ledger.Kernel
	p.asked, p.work.of = true, k.OnNS
	if p.requests() {
		p.work.of = p.onCPU()
	}
	p.work.high = min(p.work.of, minorMost*k.FaultsN)
}

// grows reports whether the pages that were faulted in stay, and cost too little to matter: memory
// that is touched for the first time and kept has to be faulted in once. Where faults surely take
// so much of the CPU time that this is a finding of the process, its requests pay for them all the
// same. Faults that read files end when all of the file is there.
func grows(p *Pass) bool {
	if !stays(p) {
		return false
	}
	k := kernelOf(p)
	return k.OnCPU == nil || mostlyMajor(k) || ratio(k.OnCPU.Of(account.WorkFault).Low, k.OnCPU.NS) < processShare
}

// stays reports whether most of the pages that were faulted in are still there, and were not
// returned and touched again. A fault that reads a file maps the pages around it too, up to 16 at
// once: where these rule, that many more have to stay.
func stays(p *Pass) bool {
	m, k := p.memory(), kernelOf(p)
	if m == nil || k == nil || k.FaultsN <= 0 {
		return false
	}
	stayed := (m.End - m.Begin) / (pageSize / 2)
	if mostlyMajor(k) {
		stayed /= mappedAround
	}
	return stayed > k.FaultsN
}

// mostlyMajor reports whether major faults took most of the time of faults.
func mostlyMajor(k *account.Kernel) bool { return 2*k.Major.NS > k.Faults.NS }

// mappedAround is how many pages a fault in a file brings at least in a program that starts.
const mappedAround = 4

// pageSize is the least that a fault brings.
const pageSize = 4096

// beyondMinor is how long faults took, in all threads, that waited for a page of a file or of swap,
// cleared 2 MiB, or slept. The rest is work on a CPU, which the first touch of memory takes, and
// takes longer on a slow or virtual machine.
func beyondMinor(k *account.Kernel) int64 { return k.FaultWaitNS + k.Major.NS + k.Huge.NS }

func faultText(p *Pass) string {
	k := p.Ledger.Kernel
	t := fmt.Sprintf("page faults: %s, major ones %s (%s), huge ones %s (%s)",
		perSecond(k.FaultsN, k), perSecond(k.Major.N, k), finding.Duration(k.Major.NS),
		perSecond(k.Huge.N, k), finding.Duration(k.Huge.NS))
	if on := p.samples(); on != nil && on.Samples >= account.LeastSamples {
		w := on.Of(account.WorkFault)
		t += fmt.Sprintf("; %s of the CPU time, at most %s", percent(ratio(w.NS, on.NS)), percent(ratio(w.High, on.NS)))
	}
	if grows(p) {
		t += fmt.Sprintf("; its memory grows, from %s to %s, and new memory has to be faulted in once", finding.Bytes(p.memory().Begin), finding.Bytes(p.memory().End))
	}
	return t
}

func tellFault(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	if p.work.ns+p.cpuQueue+p.goQueue+p.grantedOf(leaf(account.LeafMmapLock, account.LeafTLB)) > beyondMinor(k)/2 {
		tellMinor(p, f)
		return
	}
	kind, huge, asleep := "page faults", false, false
	switch {
	case k.Major.NS >= k.Huge.NS && mostlyMajor(k):
		kind = "major page faults, which read a file or swap"
		if l := k.Major.Flags; len(l) > 0 && 2*l[0].NS > k.Major.NS {
			kind = "major page faults, which read a file, mostly " + l[0].Who
		}
	case 2*k.Huge.NS > k.Faults.NS:
		huge = true
		kind = "faults for huge pages, which clear 2 MiB each"
	case 2*k.FaultWaitNS > beyondMinor(k):
		asleep = true
		kind = "page faults in which their threads sleep, for a page that is locked or that another thread has to bring"
	}
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("threads of the process spend %s in %s", finding.Duration(k.Major.NS+k.Huge.NS), kind)
		p.measured = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("%s spend %s (%s of their time) in %s", p.who(), p.per(p.NS()), p.share(p.NS()), kind)
		p.measure()
	}
	p.Proof("kernel records", "%s", faultText(p))
	spansLine(p, "faults with a known duration", &k.Faults)
	spansLine(p, "major faults", &k.Major)
	spansLine(p, "huge faults", &k.Huge)
	if d, _, ok := p.Set.Delta("/host/vmstat/swap/in:pages"); ok && d > 0 {
		p.Proof("/proc/vmstat", "%.0f pages came from swap, all processes", d)
	}
	switch {
	case huge:
		f.Remedy = append(f.Remedy,
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or defrag to defer; or for this process prctl(PR_SET_THP_DISABLE); it costs TLB misses")
	case asleep:
		p.Proof("kernel records", "threads slept %s within faults, and not for a disk", finding.Duration(k.FaultWaitNS))
		f.Remedy = append(f.Remedy,
			"see who brings the pages: a handler of userfaultfd (a restored snapshot, a live migration, a sandbox) serves them one after the other; bring them before they are needed (UFFDIO_COPY ahead, prefetch)")
	default:
		f.Remedy = append(f.Remedy,
			"see what was dropped: memory limit against use, swap (vm.swappiness, swapoff), page cache taken by others; give the process memory",
			"keep what is hot: mlock, MAP_POPULATE, or read it once at the start (vmtouch -l)")
	}
	if !asleep {
		f.Remedy = append(f.Remedy,
			"memory that is returned and touched again faults again: a larger GOGC with GOMEMLIMIT (Go), a larger M_TRIM_THRESHOLD (glibc)")
	}
	f.Verify = p.verify("'fault' of " + p.who() + " falls")
}

// tellMinor is of faults that are CPU time: memory which is returned and touched again.
func tellMinor(p *Pass, f *finding.Finding) {
	k, all := p.Ledger.Kernel, p.best()
	faults := works(all, account.WorkFault)
	flushes, cleared := flushesOfReturned(p) && all != nil && all.Of(account.WorkTLB).NS > 0, clearing(p, all)
	switch {
	case cleared.NS > 0:
		f.Summary = fmt.Sprintf("%s in page faults, %s, and in clearing what is allocated anew",
			p.costs(), perSecond(k.FaultsN, k))
	case flushes:
		f.Summary = fmt.Sprintf("%s in page faults, %s, and in TLB flushes: memory is given back and touched anew", p.costs(), perSecond(k.FaultsN, k))
	default:
		f.Summary = fmt.Sprintf("%s in page faults: memory is touched for the first time, %s",
			p.costs(), perSecond(k.FaultsN, k))
	}
	if n := p.Ledger.Requests.Count; n > 0 && k.FaultsN > 0 && p.Scope() != finding.Process {
		f.Summary += fmt.Sprintf(", %d faults a request", k.FaultsN/n)
	}
	if s := workSites(faults); len(s) > 0 {
		f.Summary += ", in " + s[0].Func
	}
	if m := p.memory(); stays(p) {
		f.Summary += fmt.Sprintf("; it stays: memory grows from %s to %s", finding.Bytes(m.Begin), finding.Bytes(m.End))
	}
	if ns := p.grantedOf(leaf(account.LeafMmapLock)); ns > 0 {
		p.Proof("kernel records", "%s of it waits for mmap_lock, which is released by %s",
			p.share(ns), whoList(letGo(k), 3))
	}
	if ns := p.grantedOf(leaf(account.LeafTLB)); ns > 0 {
		p.Proof("kernel records", "%s of it flushes TLBs, mostly in %s", p.share(ns), whoList(k.TLB.Flags, 3))
	}
	runQueueLine(p, "the faults")
	workLines(p, "page faults", renewals(p)...)
	if c := cleared; c.NS > 0 {
		p.Proof("CPU samples",
			"clearing memory that is allocated anew takes another %s of the process' CPU time%s",
			percent(ratio(c.NS, all.NS)), fromSites(&c))
	}
	if w := all.Of(account.WorkTLB); flushes {
		p.Proof("CPU samples",
			"flushing TLBs takes %s of the process' CPU time, mostly in %s: %s, and as many faults bring back what was returned", percent(ratio(w.NS, all.NS)), whoList(k.TLB.Flags, 3), perSecond(k.TLB.N, k))
	}
	p.Proof("kernel records", "%s", faultText(p))
	returned := map[string]*account.Work{}
	for _, w := range works(all, account.WorkSyscall, account.WorkTLB) {
		for _, call := range returners {
			if w.Name == call && returned[call] == nil {
				returned[call] = w
				p.Proof("CPU samples", "memory is returned by %s, %s of the process' CPU time%s",
					call, percent(ratio(w.NS, all.NS)), fromSites(w))
			}
		}
	}
	f.Remedy = append(f.Remedy, minorRemedies(p, returned)...)
	f.Verify = p.verify("page-fault is gone; page faults a second fall")
}

func fromSites(w *account.Work) string {
	if len(w.Sites) == 0 {
		return ""
	}
	return ", from " + sites(w.Sites, w.NS, 3)
}

func minorRemedies(p *Pass, returned map[string]*account.Work) (rs []string) {
	at := func(call string) string {
		if w := returned[call]; w != nil && len(w.Sites) > 0 {
			return " (" + w.Sites[0].Func + ")"
		}
		return ""
	}
	if l := works(p.best(), account.WorkFault); len(l) > 0 {
		switch l[0].Name {
		case account.FaultCopies:
			return []string{"pages are copied as they are first written. After a fork: see what forks (a snapshot, a child that is started), and start it less often, at a quiet time, or by posix_spawn, which shares the memory until exec. Without one: fresh memory was read before it was written, so each page faults twice; keep the memory, or write it first"}
		case account.FaultFiles:
			return []string{"pages of mapped files are mapped one by one as they are touched: keep the mapping, MAP_POPULATE or madvise(MADV_POPULATE_READ) once, or read() into a buffer that is used again"}
		}
	}
	isGo := !noGo(p.Ledger, p.Facts)
	if isGo {
		rs = append(rs, "take out debug.FreeOSMemory"+at("madvise")+
			"; let the heap keep its memory: a larger GOGC, with GOMEMLIMIT as the guard; use buffers again (sync.Pool)")
	}
	if returned["munmap"] != nil {
		rs = append(rs, "keep the mapping"+at("munmap")+
			" and use it again instead of mmap and munmap for each request; malloc does this for blocks above M_MMAP_THRESHOLD: GLIBC_TUNABLES=glibc.malloc.mmap_threshold=268435456:glibc.malloc.trim_threshold=536870912")
	}
	if !isGo && (returned["brk"] != nil || returned["madvise"] != nil || len(returned) == 0) {
		rs = append(rs, "let the allocator keep what is freed: no malloc_trim per request"+
			at("madvise")+at("brk")+
			", a larger M_TRIM_THRESHOLD (GLIBC_TUNABLES=glibc.malloc.trim_threshold=536870912), jemalloc's dirty_decay_ms; it costs memory that stays resident")
	}
	return append(rs, "what must be fresh: huge pages (madvise MADV_HUGEPAGE) make one fault of 512, MAP_POPULATE one call of all; both cost the zeroing")
}
