package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "page-fault",
	Title: "Touching memory takes long: page faults",
	Needs: []string{KernelRecords},
	Floor: Floor{NS: 5e6, Share: 0.10},
	Doc: `What happens
  The first touch of a page enters the kernel. A minor fault takes a microsecond. A major one
  reads a file or swap: the binary itself after its pages were dropped, a mapped database, swapped
  heap. A huge one clears 2 MiB, which takes 100 us or more, and may compact memory for it. Go
  calls the goroutine running all the while.

Evidence
  Stretches of the target's threads in page faults: major ones (of which files, where that is
  known), huge ones, and others that took long. Waits for the disk inside faults. Counts of major
  and minor faults.

Not to be taken for
  Reclaim or compaction inside the fault (direct-reclaim), waiting for mmap_lock in it
  (mmap-lock), NUMA hinting faults (numa-balancing): the innermost counts. A read() that waits for
  the disk: disk-wait. Minor faults: they are work on a CPU like any other, and their part of the
  time is no finding.

Remedy
  Major: more memory or a larger memory limit, less page cache by others; swap off, or a low
  swappiness, for latency; mlock or MAP_POPULATE for what is hot. Huge: set THP to madvise, or
  defrag to defer; it costs TLB misses. A heap that is returned and touched again: a larger GOGC,
  GOMEMLIMIT; M_TRIM_THRESHOLD.

Verify
  whystall diagnose under the same load: "fault" of slow requests falls; pgmajfault of the cgroup
  stands still.

Sources
  Documentation/admin-guide/mm/transhuge.rst; scylladb#8828, redis#7381 (huge faults); proc(5),
  majflt.`,
	Look: lookFault,
	Tell: tellFault,
})

// stallShare is the least part of wall time that threads spent in such stretches, where no request
// is visible.
const stallShare = 0.10

func lookFault(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	p.needs(kernel.MinorFaults, "minor page faults")
	if joined(r) {
		left := beyondMinor(k)
		for i := range r.Slow.Accounts {
			a := &r.Slow.Accounts[i]
			if a.Leaf == account.LeafFault {
				p.Claim(i, min(a.NS, left))
				left -= min(a.NS, left)
			}
			held := min(lacking(a, lacks(account.LeafFault)), left)
			p.Claim(i, held)
			p.lackedQueue += held
			left -= held
		}
		if len(p.claims) == 0 {
			p.Clear("%s", faultText(k))
		}
		return
	}
	if why := unseen(k, kernel.SightPageFaults); why != "" && k.FaultsN == 0 {
		p.Blind(why)
		return
	}
	// A minor fault is work on a CPU. A program that touches much memory for the first time does
	// much of it, and waits for nothing.
	ns := k.Major.NS + k.Huge.NS
	if r.CPUs == nil || ratio(ns, wall(k)) < stallShare {
		p.Clear("%s", faultText(k))
		return
	}
	p.claimTerm(termUnused, min(ns, r.CPUs.UnusedNS), ratio(ns, wall(k)))
	p.Cap("no request is visible: it is not known who waited for these threads")
}

// beyondMinor is how long faults took, in all threads, that waited for a page of a file or of swap,
// cleared 2 MiB, or slept. The rest is work on a CPU, which the first touch of memory takes, and
// takes longer on a slow or virtual machine.
func beyondMinor(k *account.Kernel) int64 { return k.FaultWaitNS + k.Major.NS + k.Huge.NS }

func faultText(k *account.Kernel) string {
	return fmt.Sprintf("page faults: %s, major ones %s (%s), huge ones %s (%s)", perSecond(k.FaultsN, k), perSecond(k.Major.N, k), finding.Duration(k.Major.NS), perSecond(k.Huge.N, k), finding.Duration(k.Huge.NS))
}

func tellFault(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	kind, huge, asleep := "page faults", false, false
	switch {
	case k.Major.NS >= k.Huge.NS && 2*k.Major.NS > k.Faults.NS:
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
	p.Proof("kernel records", "%s", faultText(k))
	spansLine(p, "faults with a known duration", &k.Faults)
	spansLine(p, "major faults", &k.Major)
	spansLine(p, "huge faults", &k.Huge)
	if d, _, ok := p.Set.Delta("/host/vmstat/swap/in:pages"); ok && d > 0 {
		p.Proof("/proc/vmstat", "%.0f pages came from swap, all processes", d)
	}
	switch {
	case huge:
		f.Remedy = append(f.Remedy, "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or defrag to defer; or for this process prctl(PR_SET_THP_DISABLE); it costs TLB misses")
	case asleep:
		p.Proof("kernel records", "threads slept %s within faults, and not for a disk", finding.Duration(k.FaultWaitNS))
		f.Remedy = append(f.Remedy, "see who brings the pages: a handler of userfaultfd (a restored snapshot, a live migration, a sandbox) serves them one after the other; bring them before they are needed (UFFDIO_COPY ahead, prefetch)")
	default:
		f.Remedy = append(f.Remedy, "see what was dropped: memory limit against use, swap (vm.swappiness, swapoff), page cache taken by others; give the process memory",
			"keep what is hot: mlock, MAP_POPULATE, or read it once at the start (vmtouch -l)")
	}
	if !asleep {
		f.Remedy = append(f.Remedy, "memory that is returned and touched again faults again: a larger GOGC with GOMEMLIMIT (Go), a larger M_TRIM_THRESHOLD (glibc)")
	}
	f.Verify = p.verify("'fault' of " + p.who() + " falls")
}
