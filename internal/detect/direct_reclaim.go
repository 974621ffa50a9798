package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "direct-reclaim",
	Title:  "Threads have to free memory before they get any",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	// Rare and huge, like sweep-assist: one request in fifty may bear all of it.
	Floor: reclaimFloor,
	Doc: `What happens
  An allocation in the kernel (a page fault, a read, a socket buffer, a huge page) finds no free
  memory of the order it wants, and kswapd is too slow or was not asked. The thread itself scans
  and frees pages, or moves pages together to get a large block (compaction), and now and then
  waits for a second. Page cache fills all memory by design, so "available" is high meanwhile.
  kswapd and kcompactd do the same work, on CPUs that the service wants too. In a memory cgroup at
  its limit the same happens inside the group, and no counter of the host moves.

Evidence
  Stretches of the target's threads in direct reclaim, of the host or of a memory cgroup, and in
  compaction, with the order and flags asked for and the call that wanted the memory. Where
  these are enough for a finding, also waits for CPUs that kswapd and kcompactd have. Where
  samples show 10 % of the CPU time in reclaim, the part of Go's queue for Ps that this explains;
  and from a quarter of it on, that by itself. Beside them allocstall and compact_stall of
  /proc/vmstat, free memory against the zones' watermarks, blocks of high order in buddyinfo, page
  cache; of a cgroup its limit, its page cache and how often the limit was hit.

Not to be taken for
  Reclaim by others: the host's counters move, but no thread of the target was in it. Memory that
  is not short: a fault that takes long for another reason (page-fault), huge pages being cleared.
  kswapd on a busy host, where the service itself frees nothing (cpu-contention). A memory.high
  below the need: that is the cgroup's own throttling, and named as such.

Remedy
  Of the host: raise vm.min_free_kbytes (and vm.watermark_scale_factor) so that kswapd starts
  earlier, to the lesser of NUMA nodes x 0.5 % of memory and 4 GB per instance. It costs that much
  usable memory. Of order 9: set transparent_hugepage/defrag to defer or madvise. Of a cgroup: a
  higher memory.max, or less page cache in it (O_DIRECT, fadvise DONTNEED, fewer files per
  container).

Verify
  whystall diagnose over a time in which it happened before: no stretch of reclaim in slow
  requests, and allocstall in /proc/vmstat stands still (of a cgroup: failcnt, or max of
  memory.events).

Sources
  The case of allocation stalls that make SQL jitter, TiDB community, 2024-11-28: min_free 16 MiB
  on a 768 GB host; kubernetes#131319, #125720; kubernetes/enhancements#2570 (memory.high).`,
	Look: lookReclaim,
	Tell: tellReclaim,
})

var reclaimFloor = Floor{NS: 5e6, Share: 0.05}

var reclaimLeaves = []account.Leaf{account.LeafReclaim, account.LeafMemcg, account.LeafCompaction}

// reclaimShare is the least part of wall time that threads were in reclaim, where no request is
// visible.
const reclaimShare = 0.05

func lookReclaim(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	n, ns := k.Reclaim.N+k.Memcg.N+k.Compact.N, k.Reclaim.NS+k.Memcg.NS+k.Compact.NS
	why := unseen(k, kernel.SightReclaim, kernel.SightMemcgReclaim)
	if why != "" && n == 0 {
		p.Blind(why)
		return
	}
	if joined(r) {
		p.ClaimWhere(leaf(reclaimLeaves...))
		p.ClaimLacking(lacks(reclaimLeaves...))
		claimHeldUp(p)
		claimReclaimed(p)
		if hostReclaims(p) {
			p.ClaimWhere(func(a *account.Account) bool { return a.Leaf == account.LeafNoCPU && isReclaimer(a.Detail) })
			p.ClaimLacking(func(what account.Leaf, who string) bool { return what == account.LeafNoCPU && isReclaimer(who) })
		}
		if len(p.claims) == 0 {
			p.Clear("%s", reclaimText(p, n, ns))
		}
		return
	}
	if reclaimsByWork(p) {
		return
	}
	// Threads in reclaim run, or wait for pages to be written: both are terms of the ledger.
	if r.CPUs == nil || p.lost(ns) < reclaimShare {
		p.boundWaits(ns)
		p.Clear("%s", reclaimText(p, n, ns))
		return
	}
	p.claimTerm(termUnused, min(ns, r.CPUs.UnusedNS), p.lost(ns))
	if ns > r.CPUs.UnusedNS {
		p.claimTerm(termRunning, min(ns-r.CPUs.UnusedNS, r.CPUs.RunningNS), p.lost(ns))
	}
	if !p.onlyShares(ns) {
		p.capProcess()
	}
}

// reclaimsByWork claims the CPU time of reclaim by samples, and reports whether that is enough. Of
// the time in which threads had work it may be a small part, where most of that is queues for CPUs.
func reclaimsByWork(p *Pass) bool {
	on := p.samples()
	if p.blindWork() != "" {
		return false
	}
	w := on.Of(account.WorkReclaim)
	if ratio(w.NS, on.NS) < processShare || ratio(w.Low, on.NS) < processLow {
		p.unclaimed(w)
		return false
	}
	p.claimWork(w)
	p.SetFloor(Floor{Share: processShare})
	p.capProcess()
	return true
}

// heldByReclaim is the least part of the waits for mmap_lock that must pass while other threads
// reclaim, for reclaim to be what they wait for. Who holds the lock is not recorded, and a smaller
// part may be chance.
const heldByReclaim = 0.8

// claimHeldUp claims waits for mmap_lock whose holder has to free memory first. A fault in a new
// mapping holds the lock.
func claimHeldUp(p *Pass) {
	k := p.Ledger.Kernel
	share := ratio(k.MmapReclaimNS, k.MmapLock.NS)
	// In a process that reclaims all the time, everything happens meanwhile.
	if len(p.claims) == 0 || share < heldByReclaim || share < 1.25*ratio(k.Reclaim.NS+k.Memcg.NS+k.Compact.NS, wall(k)) {
		return
	}
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if a.Leaf == account.LeafMmapLock {
			p.Claim(i, int64(share*float64(a.NS)))
		}
		ns := int64(share * float64(lacking(a, lacks(account.LeafMmapLock))))
		p.Claim(i, ns)
		p.lackedQueue += ns
	}
}

// reclaimLeast is the least part of the process' CPU time in reclaim, by the lower end of its
// interval, for requests to wait for a P because of it.
const reclaimLeast = 0.10

// claimReclaimed claims the part of Go's run queue that is due to reclaim by those that had the Ps.
// Reclaim is on a CPU mostly, and a thread in it keeps its P.
func claimReclaimed(p *Pass) {
	if on := p.Ledger.Kernel.OnCPU; on != nil {
		if w := on.Of(account.WorkReclaim); ratio(w.Low, on.NS) >= reclaimLeast {
			p.claimRunQueue(w)
		}
	}
}

// hostReclaims reports whether slow requests free the host's memory themselves for long enough to
// make a finding. What kswapd and kcompactd take of their CPUs has the same reason then. Otherwise
// these are neighbours like others, or programs with such names.
func hostReclaims(p *Pass) bool {
	ns := timeIn(&p.Ledger.Slow, leaf(account.LeafReclaim, account.LeafCompaction))
	if p.board.scope == finding.Usual {
		return p.below(ns) == ""
	}
	return p.board.below(reclaimFloor, ns) == ""
}

// isReclaimer reports whether the name is that of the kernel's threads that free memory or make
// large blocks. There is one of each per NUMA node.
func isReclaimer(who string) bool {
	name := strings.TrimRight(who, "0123456789")
	return name != who && (name == "kswapd" || name == "kcompactd")
}

func reclaimText(p *Pass, n, ns int64) string {
	t := "no thread of the process was in direct reclaim or compaction"
	if n > 0 {
		t = fmt.Sprintf("%s of its threads in direct reclaim or compaction, %s in all", times(n, "stretch", "stretches"), finding.Duration(ns))
		if joined(p.Ledger) {
			t += ", but none in " + p.who()
		}
	}
	if d, _, ok := p.Set.Delta("/host/vmstat/allocstall:stalls"); ok && d > 0 {
		t += fmt.Sprintf("; the host counted %.0f stalls, of all processes", d)
	}
	return t
}

func tellReclaim(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	memcg, global, compact := k.Memcg.NS, k.Reclaim.NS, k.Compact.NS
	if len(p.pools) == 0 {
		memcg, global, compact = p.grantedOf(leaf(account.LeafMemcg)), p.grantedOf(leaf(account.LeafReclaim)), p.grantedOf(leaf(account.LeafCompaction))
		p.measure()
	} else {
		p.measured = p.pooled()
	}
	own := memcg + global + compact
	if own == 0 { // requests only queue behind others that are in it
		memcg, global, compact = k.Memcg.NS, k.Reclaim.NS, k.Compact.NS
	}
	where := "of the host's memory"
	if memcg > global+compact {
		where = "of its memory cgroup"
	}
	order := max(k.Reclaim.Order, k.Memcg.Order, k.Compact.Order)
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("threads of the process spend %s in direct reclaim %s", finding.Duration(own), where)
	} else {
		f.Summary = fmt.Sprintf("%s spend %s (%s of their time) in direct reclaim %s", p.who(), p.per(own), p.share(own), where)
	}
	if compact > global+memcg {
		f.Summary += fmt.Sprintf(", most of it in compaction for blocks of order %d (%s)", order, finding.Bytes(4096<<min(order, 20)))
	}
	if held := p.grantedOf(leaf(account.LeafMmapLock)); held > 0 {
		f.Summary += fmt.Sprintf("; and wait %s for mmap_lock while a thread of the process is in reclaim", p.per(held))
		p.Proof("kernel records", "%s of the waits for mmap_lock passed while another thread was in reclaim: a fault in a new mapping holds the lock", percent(ratio(k.MmapReclaimNS, k.MmapLock.NS)))
		p.Cap("who held mmap_lock is not recorded")
	}
	if queued := p.lackedNS(); queued > 0 {
		f.Summary += fmt.Sprintf("; and wait %s for a P whose thread is in reclaim", p.per(queued))
	}
	if queued := p.grantedRunQueue(); queued > 0 {
		f.Summary += fmt.Sprintf("; and wait %s for Ps that others keep while they are in it", p.per(queued))
		runQueueLine(p, "reclaim")
	}
	if behind := p.grantedOf(leaf(account.LeafNoCPU)); behind > 0 {
		f.Summary += fmt.Sprintf("; and wait %s for CPUs that kswapd and kcompactd have", p.per(behind))
		p.Cap("kswapd and kcompactd are recognised by their names")
	}
	spansLine(p, "direct reclaim of the host", &k.Reclaim)
	spansLine(p, "reclaim of the memory cgroup", &k.Memcg)
	spansLine(p, "compaction", &k.Compact)
	if order > 0 {
		p.Proof("kernel records", "largest order asked for: %d (%s)", order, finding.Bytes(4096<<min(order, 20)))
	}
	reclaimCounters(p, memcg > global+compact)
	if memcg > global+compact {
		cgroupReclaimRemedy(p, f)
		return
	}
	if order >= 9 || compact > global {
		f.Remedy = append(f.Remedy, "the process asks for huge pages: echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag; faults then take small pages when there is no large block")
	}
	total, _ := latest(p, "/host/memory/total:bytes")
	nodes := 1.0
	if rec, ok := p.Set.Fact("/host/numa/nodes:nodes"); ok && rec.Value > 0 {
		nodes = rec.Value
	}
	kb := "KB"
	if total > 0 {
		kb = fmt.Sprintf("%.0f", min(nodes*0.005*total, 4<<30)/1024)
	}
	f.Remedy = append(f.Remedy, "let kswapd start earlier: sysctl vm.min_free_kbytes="+kb+" (the lesser of nodes x 0.5 % of memory and 4 GB per instance); it costs that much usable memory, and raising it in one step reclaims that much at once",
		"or sysctl vm.watermark_scale_factor=100 (1 % of memory between the watermarks)",
		"have less page cache: see who reads or writes files beside this service; O_DIRECT, fadvise DONTNEED, or a memory cgroup of its own")
	f.Verify = p.verify("no direct reclaim in " + p.who() + ", and allocstall in /proc/vmstat stands still")
}

func cgroupReclaimRemedy(p *Pass, f *finding.Finding) {
	at := "its memory cgroup"
	if rec, ok := p.Set.Fact("/cgroup/memory/limit-at:path"); ok && rec.Text != "" {
		at = rec.Text
	}
	high, _, okHigh := p.Set.Delta("/cgroup/memory/events/high:events")
	if okHigh && high > 0 {
		f.Remedy = append(f.Remedy, "memory.high is below the need: raise it, or write max to it, and rely on memory.max")
	}
	f.Remedy = append(f.Remedy, "raise the limit of "+at+" (memory.max; systemctl set-property UNIT MemoryMax=; resources.limits.memory)",
		"page cache counts towards it: read and write fewer or smaller files in the cgroup, use O_DIRECT, or posix_fadvise(DONTNEED) after use",
		"set a soft bound for the heap below the limit: GOMEMLIMIT (Go), -Xmx (Java)")
	f.Verify = p.verify("no reclaim in " + p.who() + ", and max of memory.events (or failcnt) stands still")
}

func reclaimCounters(p *Pass, memcg bool) {
	delta := func(source, stream, what string) {
		if d, ns, ok := p.Set.Delta(stream); ok && d > 0 {
			p.Proof(source, "%s: %.0f in %s", what, d, finding.Duration(ns))
		}
	}
	delta("/proc/vmstat", "/host/vmstat/allocstall:stalls", "allocstall, all processes")
	delta("/proc/vmstat", "/host/vmstat/compact/stall:stalls", "compact_stall, all processes")
	delta("memory cgroup", "/cgroup/memory/events/max:events", "limit hit")
	delta("memory cgroup", "/cgroup/memory/events/high:events", "memory.high hit")
	if memcg {
		limit, ok1 := p.Set.Fact("/cgroup/memory/limit:bytes")
		file, ok2 := latest(p, "/cgroup/memory/file:bytes")
		used, ok3 := latest(p, "/cgroup/memory/used:bytes")
		if ok1 && ok2 && ok3 && limit.Value > 0 {
			p.Proof("memory cgroup", "limit %s, used %s, page cache %s of that", finding.Bytes(int64(limit.Value)), finding.Bytes(int64(used)), finding.Bytes(int64(file)))
		}
		return
	}
	total, ok1 := latest(p, "/host/memory/total:bytes")
	free, ok2 := latest(p, "/host/memory/free:bytes")
	cached, ok3 := latest(p, "/host/memory/cached:bytes")
	if ok1 && ok2 && ok3 {
		t := fmt.Sprintf("%s in all, free %s, page cache %s", finding.Bytes(int64(total)), finding.Bytes(int64(free)), finding.Bytes(int64(cached)))
		if avail, ok := latest(p, "/host/memory/available:bytes"); ok {
			t += ", available " + finding.Bytes(int64(avail))
		}
		p.Proof("/proc/meminfo", "%s", t)
	}
	if min, ok := p.Set.Fact("/host/sysctl/vm.min_free_kbytes:bytes"); ok {
		p.Proof("sysctl", "vm.min_free_kbytes is %s", finding.Bytes(int64(min.Value)))
	}
	if zones := noHigh(p); len(zones) > 0 {
		p.Proof("/proc/buddyinfo", "no free block of 2 MiB in %s", strings.Join(zones, ", "))
	}
}

// noHigh lists zones that have free memory, and no large block of it.
func noHigh(p *Pass) (zones []string) {
	last := map[string]float64{}
	for _, rec := range p.Set.All("/host/buddy/huge:bytes") {
		last[rec.Text] = rec.Value
	}
	for _, rec := range p.Set.All("/host/buddy/free:bytes") {
		if v, ok := last[rec.Text]; ok && v == 0 && rec.Value > 0 {
			zones = append(zones, rec.Text)
			delete(last, rec.Text)
		}
	}
	return zones
}
