package detect

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// termWork is the CPU time of the target's threads, divided by samples of their stacks.
const termWork = "CPU time of its threads"

// surely is the part of a claim by samples that the lower end of their interval must reach for the
// claim to count as measured.
const surely = 0.8

// workClaim is what was claimed by samples: the estimate, the ends of its 95 % interval, and of
// what it is a part.
type workClaim struct{ ns, low, high, of int64 }

// ClaimWork claims time on CPUs that went into these kinds of work: of the column's accounts on CPU
// the part that its samples show, or in the round of the process a part of its CPU time. It returns
// what was claimed, nothing without samples. What requests waited behind the same work of other
// threads is claimQueue's.
func (p *Pass) ClaimWork(kinds ...account.WorkKind) account.Work {
	w := p.samples().Of(kinds...)
	p.claimWork(w)
	return w
}

// claimWork claims a part of the division of this round's time on CPUs.
func (p *Pass) claimWork(w account.Work) {
	on := p.samples()
	p.unclaimed(w)
	if w.NS <= 0 {
		return
	}
	p.work.ns += w.NS
	p.work.low += w.Low
	if p.board.scope == finding.Process || !visible(p.Column()) {
		p.pool(termWork, w.NS, on.NS, on.NS)
		return
	}
	for i := range p.Column().Accounts {
		if a := &p.Column().Accounts[i]; a.Leaf == account.LeafOnCPU {
			p.Claim(i, min(a.NS-p.claimed(i), scale(a.NS, w.NS, on.NS)))
		}
	}
}

// unclaimed says of work that it was looked for, whether or not it is claimed: what samples cannot
// exclude bounds what it costs.
func (p *Pass) unclaimed(w account.Work) {
	p.asked = true
	if on := p.samples(); on != nil {
		p.work.high = min(p.work.high+w.High, on.NS)
		p.work.of = on.NS
	}
}

// samples is the division of this round's time on CPUs, nil without samples.
func (p *Pass) samples() *account.OnCPU {
	if p.Ledger == nil {
		return nil
	}
	if visible(p.Column()) {
		return p.Column().OnCPU
	}
	if k := p.Ledger.Kernel; k != nil {
		return k.OnCPU
	}
	return nil
}

// capWork caps what rests on samples that say too little.
func (p *Pass) capWork() {
	if p.work.ns > 0 && float64(p.work.low) < surely*float64(p.work.ns) {
		p.Cap("how much CPU time it takes is known by samples only, and they are sure of %s of it",
			percent(ratio(p.work.low, p.work.ns)))
	}
}

// smallProcess says why a share of the process' time is no finding, "" if it is one. It holds where
// requests are visible: else what a detector asks by itself is enough.
func (p *Pass) smallProcess(ns int64) string {
	if !p.board.seen || p.board.scope != finding.Process || p.first != nil || p.bytes {
		return ""
	}
	if p.work.ns > 0 {
		return p.smallWork(ns)
	}
	share := max(p.weight, ratio(ns, p.total))
	if share >= processShare {
		return ""
	}
	return "the process lost " + percent(share) +
		" of the time in which it had work (reported from " + percent(processShare) + " up)"
}

func (p *Pass) smallWork(ns int64) string {
	share, low := ratio(ns, p.total), ratio(p.work.low, p.total)
	k := p.Ledger.Kernel
	switch used := ratio(k.OnNS, wall(k)); {
	case used < processUses:
		return "the process used " + percent(used) + " of one CPU (looked into from " + percent(processUses) + " up)"
	case share < processShare || low < processLow:
		return percent(share) + " of its CPU time, surely " + percent(low) + " (reported from " +
			percent(processShare) + ", surely " + percent(processLow) + ", up)"
	}
	return ""
}
