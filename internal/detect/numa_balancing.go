package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "numa-balancing",
	Title:  "The kernel moves pages between NUMA nodes under the process",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	Floor:  Floor{NS: 2e6, Share: 0.05},
	Doc: `What happens
  With kernel.numa_balancing the kernel removes the mapping of pages now and then. The fault that
  follows shows which node uses them, and the kernel moves pages or threads together. A process
  with threads on all nodes has no good place: pages move to and fro, every touch faults, and a
  fault waits for a migration. More cores do not help; 229 000 minor faults a second became 8 700
  when the process was bound.

Evidence
  Time that the target's threads spent in hinting faults, migrations included, by the node of
  their CPU: on a CPU, and yet not at work. How many pages moved, and how many faults were for
  memory of another node, by the kernel's own count for each thread. Samples of the threads that
  look for pages to unmap. Beside them numa_hint_faults and numa_pages_migrated of the host, the
  number of nodes, and the setting.

Not to be taken for
  A host with one node: there is nothing to balance. The setting by itself, or faults without lost
  time: it helps programs that have one place. Other faults (page-fault), and compaction
  (direct-reclaim), which migrates pages as well.

Remedy
  Bind the process to a node: numactl --cpunodebind=0 --membind=0, or run an instance for each
  node. It costs the other node's CPUs and memory (membind may run out; --preferred does not). Or
  sysctl kernel.numa_balancing=0, which leaves remote memory remote.

Verify
  whystall diagnose under the same load: time in NUMA migration falls, and minor faults of the
  process with it.

Sources
  Arthur Mao, Gopher China 2020 (229 k and 8.7 k faults/s); golang/go#14406; scylladb#1120;
  DeepEP#624; Documentation/admin-guide/sysctl/kernel.rst.`,
	Look: lookNUMA,
	Tell: tellNUMA,
})

// numaMoves is how many hinting faults a second are a reason to ask what they cost. Each takes some
// us.
const numaMoves = 5000

func numaText(k *account.Kernel) string {
	t := "hinting faults of the process: " + perSecond(k.NUMA.N, k)
	if k.NUMAPages > 0 || k.NUMARemote > 0 {
		t += fmt.Sprintf(", %s of them for memory of another node, pages moved: %s",
			percent(ratio(k.NUMARemote, k.NUMA.N)), perSecond(k.NUMAPages, k))
	}
	return t
}

func lookNUMA(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	if rec, ok := p.Set.Fact("/host/numa/nodes:nodes"); ok && rec.Value == 1 && k.NUMA.N == 0 {
		p.Absent("the host has one NUMA node")
		return
	}
	if why := unseen(k, kernel.SightNUMA); why != "" && k.NUMA.N == 0 {
		p.Blind(why)
		return
	}
	p.needs(kernel.MinorFaults, "minor page faults")
	text := numaText(k)
	if joined(r) {
		p.ClaimWhere(leaf(account.LeafNUMA))
		p.ClaimLacking(lacks(account.LeafNUMA))
		if p.below(p.Claimed()) == "" {
			return
		}
	} else if r.CPUs != nil && p.lost(k.NUMA.NS) >= stallShare {
		// A fault is work on a CPU, unless it waits for another thread's migration of the same
		// page.
		p.claimTerm(termRunning, min(k.NUMA.NS, r.CPUs.RunningNS), p.lost(k.NUMA.NS))
		if k.NUMA.NS > r.CPUs.RunningNS {
			p.claimTerm(termUnused, min(k.NUMA.NS-r.CPUs.RunningNS, r.CPUs.UnusedNS), p.lost(k.NUMA.NS))
		}
		p.capProcess()
		return
	}
	lost := p.Claimed()
	p.claims = nil
	if k.NUMA.NS == 0 && rate(k.NUMA.N, k) >= numaMoves {
		p.Blind(text + "; it is not known how long its threads were in them: bind it to a node (numactl --cpunodebind=0 --membind=0) and compare")
		return
	}
	if joined(r) {
		text += fmt.Sprintf(", %s in %s", finding.Duration(lost), p.who())
	}
	p.boundWaits(k.NUMA.NS)
	p.Clear("%s, %s in all", text, finding.Duration(k.NUMA.NS))
}

func tellNUMA(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("threads of the process spend %s in faults by which the kernel finds the NUMA node of their memory and moves it", finding.Duration(k.NUMA.NS))
		p.measured = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("%s spend %s (%s of their time) in faults by which the kernel finds the NUMA node of their memory and moves it", p.who(), p.per(p.NS()), p.share(p.NS()))
		p.measure()
	}
	p.Proof("kernel records", "%s; page faults in all: %s", numaText(k), perSecond(k.FaultsN, k))
	spansLine(p, "hinting faults", &k.NUMA)
	for _, s := range []struct{ stream, what string }{{"/host/vmstat/numa/hint-faults:faults",
		"numa_hint_faults"}, {"/host/vmstat/numa/migrated:pages", "numa_pages_migrated"}} {
		if d, ns, ok := p.Set.Delta(s.stream); ok && ns > 0 {
			p.Proof("/proc/vmstat", "%s: %.0f a second, all processes", s.what, d/(float64(ns)/1e9))
		}
	}
	if rec, ok := p.Set.Fact("/host/numa/nodes:nodes"); ok {
		p.Proof("host", "%.0f NUMA nodes", rec.Value)
	}
	if k.NUMARemote > 0 {
		p.Proof("whystall", "the amount does not include what it costs to read memory of another node: no counter here has it")
	}
	f.Remedy = append(f.Remedy,
		"bind it to a node: numactl --cpunodebind=0 --membind=0 COMMAND, or one instance a node; it costs the other nodes' CPUs and memory",
		"or sysctl kernel.numa_balancing=0, for the whole host; remote memory then stays remote")
	f.Verify = p.verify("'NUMA migration' of " + p.who() + " falls")
}
