package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

const stealStream = "/host/each/steal:ns"

var _ = register(&Detector{
	Name:   "cpu-steal",
	Title:  "The hypervisor takes the CPU while the process has it",
	Needs:  []string{stealStream},
	Scopes: []finding.Scope{finding.Process},
	Doc: `What happens
  A virtual CPU is a thread of the host. While the host runs something else there, the guest stands
  still on that CPU, in the middle of whatever it did. The guest's kernel books the time to the
  thread that was on the CPU: to every profiler in the guest that thread computes. The host tells
  the guest afterwards how long it was (steal).

Evidence
  Each CPU's steal by /proc/stat, against the time in which threads of the process were on that CPU
  by the kernel's records, and the time in which that CPU was not idle. Nothing says what ran at
  that moment, so this is a figure with bounds: at least what was stolen beyond the time that
  others had there, at most all that was stolen there. Its middle is the process' part of the time
  in which the CPU was not idle. It is of the process and never of a request: supported at most,
  and not checked where the lower bound is 0.

Not to be taken for
  Threads that queue for a CPU behind other threads of this guest (cpu-contention), or that are
  out of quota (cpu-throttled). Some hosts tell no steal: then there is none here, whatever they
  take. A host that is billed by the share of a CPU takes what is beyond it: no neighbour then.

Remedy
  A host that is less full, or CPUs of one's own (dedicated vCPUs, pinning, a larger type of
  machine); on burstable types look at the credits. Fewer runnable threads do not help.

Verify
  whystall diagnose under the same load; st of top or vmstat 1 is near 0.

Sources
  proc(5), steal; Documentation/virt/kvm/x86/msr.rst (MSR_KVM_STEAL_TIME) and arm/pvtime.rst; B.
  Gregg, "Systems Performance", 2nd edition, 11.2 (steal time).`,
	Look: lookSteal,
	Tell: tellSteal,
})

// stealShare is the least part of the process' time on CPUs that is worth a finding.
const stealShare = 0.25

func lookSteal(p *Pass) {
	if p.Ledger == nil || p.Ledger.CPUs == nil || p.Ledger.CPUs.Stolen == nil {
		p.Blind("on which CPUs the process ran, beside /proc/stat: " + bring(KernelRecords))
		return
	}
	s := p.Ledger.CPUs.Stolen
	share := ratio(s.NS, s.RanNS)
	if share < stealShare || p.Scope() != finding.Process {
		p.Bound(0, ratio(s.High, s.RanNS), finding.OfCPU)
		p.Clear("of its %s on CPUs the hypervisor took %s, at most %s; it is no part of single requests", finding.Duration(s.RanNS), percent(share), percent(ratio(s.High, s.RanNS)))
		return
	}
	if s.Low == 0 {
		p.Blind(fmt.Sprintf("whether the hypervisor took any of the process' %s on CPUs, or up to %s: all of the steal there may have hit others that ran on the same CPUs",
			finding.Duration(s.RanNS), percent(ratio(s.High, s.RanNS))))
		return
	}
	p.ClaimCPU(s.NS, s.RanNS)
	p.Cap("which thread was on the CPU when it was stolen is not known")
}

func tellSteal(p *Pass, f *finding.Finding) {
	s := p.Ledger.CPUs.Stolen
	f.Summary = fmt.Sprintf("of the %s in which threads of the process were on CPUs the hypervisor had run something else for %s (%s; between %s and %s)",
		finding.Duration(s.RanNS), finding.Duration(s.NS), percent(ratio(s.NS, s.RanNS)),
		finding.Duration(s.Low), finding.Duration(s.High))
	p.Proof("/proc/stat", "steal on the CPUs where it ran: %s; not idle there: %s",
		finding.Duration(s.StealNS), finding.Duration(s.BusyNS))
	threadsLine(p)
	f.Remedy = append(f.Remedy,
		"a host that is less full, or dedicated CPUs; on machines with CPU credits: more of them, or another type",
		"until then: what is sold as a CPU is less than one; fewer threads do not help")
	f.Verify = p.verify("steal (st of vmstat 1) is near 0")
}
