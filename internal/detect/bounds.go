package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// A cause is ruled out only where what it can cost at most is known, and too little for a finding.
// Of requests that is what was claimed of their accounts, which are exact, and what samples cannot
// exclude. Of the process it is what was claimed of its ledgers, or what a detector says.

// Bound says what the cause can cost at most in this round: ns of a request, and its share of what
// it is a part of.
func (p *Pass) Bound(ns int64, share float64, of finding.Whole) {
	scope := finding.Process
	if of == finding.OfRequest {
		scope = p.board.scope
	}
	p.bounds = append(p.bounds, finding.Bound{Scope: scope, NS: ns, Share: share, Of: of})
}

// boundWaits is Bound for what threads of the process waited in all.
func (p *Pass) boundWaits(ns int64) {
	if !p.requests() {
		p.Bound(0, p.lost(ns), finding.OfWall)
	}
}

// Absent is Clear where the cause is not there at all, so that it costs nothing: a quota that is
// not set, a second NUMA node that the host does not have.
func (p *Pass) Absent(format string, args ...any) {
	p.Bound(0, 0, p.whole())
	p.Clear(format, args...)
}

func (p *Pass) whole() finding.Whole {
	if p.board.scope == finding.Process {
		return finding.OfWall
	}
	return finding.OfRequest
}

// bound adds the bound that follows from what was claimed, if the detector said none. It turns
// clear into not checked where nothing bounds the loss below what would be a finding.
func (p *Pass) bound() {
	if p.outcome != clear {
		return
	}
	switch {
	case len(p.bounds) == 0:
		p.boundByClaims()
	case p.asked && !p.requests():
		p.boundBySamples()
	}
	for _, b := range p.bounds {
		if p.tooMuch(b) {
			p.outcome = notChecked
			p.missing = append(p.missing,
				fmt.Sprintf("it can cost up to %s, which is not ruled out: %s", boundText(b), p.why))
			return
		}
	}
	if len(p.bounds) == 0 {
		p.outcome = notChecked
		p.missing = append(p.missing, "nothing bounds what it costs the process: "+p.why)
	}
}

func (p *Pass) boundByClaims() {
	switch {
	case len(p.pools) > 0:
		var ns int64
		for _, c := range p.pools {
			ns += c.ns
		}
		of, share := finding.OfCPU, max(p.weight, ratio(ns, p.total))
		if p.bytes {
			of = finding.OfMemory
		}
		if p.asked {
			share = max(share, ratio(p.work.high, p.total))
		}
		p.Bound(0, share, of)
	case p.requests():
		ns := max(p.claimedEver, p.Claimed())
		if p.asked {
			on := p.onCPU()
			ns = max(ns, ns-p.work.ns) + max(0, scale(on, p.work.high-p.work.ns, max(1, p.work.of)))
			if p.work.of == 0 {
				ns += on // no samples: all of it may be this
			}
		}
		ns = min(ns, p.Column().WallNS)
		p.Bound(perRequest(p.Column(), ns), ratio(ns, p.Column().WallNS), finding.OfRequest)
	case p.asked:
		p.boundBySamples()
	}
}

// boundBySamples says what samples of the process cannot exclude: without any, nothing.
func (p *Pass) boundBySamples() {
	if p.work.of > 0 {
		p.Bound(0, min(1, ratio(p.work.high, p.work.of)), finding.OfCPU)
	}
}

// requests reports whether this round is of requests.
func (p *Pass) requests() bool { return p.Ledger != nil && visible(p.Column()) }

// onCPU is the time of the column's accounts on CPU.
func (p *Pass) onCPU() (ns int64) {
	for i := range p.Column().Accounts {
		if a := &p.Column().Accounts[i]; a.Leaf == account.LeafOnCPU {
			ns += a.NS
		}
	}
	return ns
}

// tooMuch reports whether so much would be a finding.
func (p *Pass) tooMuch(b finding.Bound) bool {
	switch {
	case b.Of == finding.OfMemory:
		return false // it has a floor in bytes, which the detector asks
	case b.Scope == finding.Process && p.floor != nil:
		return b.Share >= max(processShare, p.floor.Share)
	case b.Scope == finding.Process:
		return b.Share >= processShare
	}
	f := p.floorOf()
	if p.first == nil && p.board.scope == finding.Slow {
		if p.floor == nil || p.floor.NS < p.det.Floor.NS {
			f = p.det.Floor
		}
		if p.det.Fast == nil {
			f = p.board.fitted(f)
		}
	}
	return b.NS >= f.NS && b.Share >= f.Share && b.NS > 0
}

func boundText(b finding.Bound) string {
	switch {
	case b.Scope == finding.Process:
		return fmt.Sprintf("%s of the process' %s", percent(b.Share), b.Of)
	case b.Scope == finding.Usual:
		return fmt.Sprintf("%s of a usual request, %s", finding.Duration(b.NS), percent(b.Share))
	}
	return fmt.Sprintf("%s of a slow request, %s", finding.Duration(b.NS), percent(b.Share))
}
