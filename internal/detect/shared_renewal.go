package detect

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
)

// A process that gives memory back and touches it anew pays three times: for the call, for the
// flushes of TLBs, and for the faults that bring the pages again. One remedy ends all of it, so
// page-fault is the root, and tlb-shootdown is its mechanism.

// returners are system calls that return memory to the kernel.
var returners = []string{"munmap", "madvise", "brk", "process_madvise", "mremap"}

// returns reports whether a system call maps memory or returns it.
func returns(call string) bool { return call == "mmap" || slices.Contains(returners, call) }

// flushesOfReturned reports whether the process flushes TLBs because it gives memory back that it
// faults in anew. Most of its flushes are within calls that return memory, and each of them takes a
// page at least out of the tables: so there are as many faults. One flush is up to two records, of
// this CPU and of the others. Where only rights change or pages move, nothing is faulted in.
func flushesOfReturned(p *Pass) bool {
	k := kernelOf(p)
	if k == nil || k.OnCPU == nil || grows(p) {
		return false
	}
	var returned, all int64
	for _, f := range k.TLB.Flags {
		if all += f.NS; returns(f.Who) {
			returned += f.NS
		}
	}
	if 2*returned <= all {
		return false
	}
	if k.TLB.N == 0 {
		return k.OnCPU.Of(account.WorkTLB).NS < k.OnCPU.Of(account.WorkFault).NS
	}
	return 2*k.FaultsN >= k.TLB.N
}

// renewals are the kinds of work that it costs to give memory back and to touch it anew.
func renewals(p *Pass) []account.WorkKind {
	if flushesOfReturned(p) {
		return []account.WorkKind{account.WorkFault, account.WorkTLB}
	}
	return []account.WorkKind{account.WorkFault}
}

// flushesIn is how much of the column's time was surely spent in flushes, of what was laid over it
// by samples. Each sample stands for some milliseconds. So where few fell into the column, chance
// may lay over it a multiple of what its requests spent: then it is bounded by the part of all the
// process' CPU time.
func flushesIn(p *Pass) int64 {
	k := p.Ledger.Kernel
	var on, flushed int64
	for i := range p.Column().Accounts {
		switch a := &p.Column().Accounts[i]; a.Leaf {
		case account.LeafTLB:
			flushed += a.NS
			on += a.NS
		case account.LeafOnCPU:
			on += a.NS
		}
	}
	if k.OnCPU == nil || k.OnCPU.Samples <= 0 || on >= scale(k.OnNS, account.LeastSamples, k.OnCPU.Samples) {
		return flushed
	}
	return min(flushed, scale(on, k.OnCPU.Of(account.WorkTLB).High, k.OnCPU.NS))
}

// claimFlushes claims the column's time in flushes.
func claimFlushes(p *Pass) {
	left := flushesIn(p)
	for i := range p.Column().Accounts {
		if a := &p.Column().Accounts[i]; a.Leaf == account.LeafTLB {
			ns := min(a.NS, left)
			p.Claim(i, ns)
			left -= ns
		}
	}
}

// renewed is the part of these samples that the process renews memory: it gives it back and faults
// it in anew, or clears it.
func renewed(p *Pass, on *account.OnCPU) account.Work { return newMemory(p, on, renewals(p)...) }

// renews reports whether that surely takes enough of the process' CPU time for its requests to wait
// for it.
func renews(p *Pass) bool {
	on := p.Ledger.Kernel.OnCPU
	return on != nil && !grows(p) && ratio(renewed(p, on).Low, on.NS) >= minorLeast
}

// newMemory is the part in these kinds of work, and in clearing what Go allocates.
func newMemory(p *Pass, on *account.OnCPU, kinds ...account.WorkKind) account.Work {
	w := on.Of(kinds...)
	if c := clearing(p, on); c.NS > 0 {
		w.Samples, w.NS = w.Samples+c.Samples, w.NS+c.NS
		w.Low, w.High = w.Low+c.Low, min(w.High+c.High, on.NS)
		if on.Effective > 0 {
			w.Low, w.High = on.Interval(ratio(w.NS, on.NS))
		}
	}
	return w
}

// clearsWith is the least part of the CPU time in faults, by the lower end of its interval, for
// clearing to be of the same kind [new slices of 2 to 8 MiB: 19 to 25 %; a healthy server whose
// idle heap the runtime returns: 13 %].
const clearsWith = 0.15

// clearing is the part in which Go clears memory that it allocates, where the process also faults
// it in: large blocks are then made for a moment and dropped, and each comes either from the kernel
// or from the heap, which clears it. One remedy ends both: to use the blocks again. Without the
// faults it is the program's own allocation.
func clearing(p *Pass, on *account.OnCPU) (c account.Work) {
	k := kernelOf(p)
	if k == nil || k.OnCPU == nil ||
		ratio(k.OnCPU.Of(account.WorkFault).Low, k.OnCPU.NS) < clearsWith || on == nil ||
		on.Samples < account.LeastSamples {
		return c
	}
	for _, w := range works(on, account.WorkAlloc) {
		if w.Name == account.AllocClears {
			c.NS, c.Samples, c.Low, c.High = c.NS+w.NS, c.Samples+w.Samples, c.Low+w.Low, c.High+w.High
			c.Sites = append(c.Sites, w.Sites...)
		}
	}
	return c
}
