package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

// Floors of the scopes usual and process: what counts there, whatever the cause.
var usualFloor = Floor{NS: 200e3, Share: 0.30}

const (
	processShare = 0.25 // of the CPU time, or of the time in which it had work
	processLow   = 0.20 // of the CPU time, for the lower end of what samples say
	processUses  = 0.02 // of one CPU; below, a share of its CPU time is a share of nothing
)

// A fixed floor of 5 ms hides the whole tail of a service whose usual request takes 0.3 ms. So less
// counts for slow requests of a fast service: half of what its usual request takes, and never less
// than leastLoss. What counts by that alone has to be shown more often, and to be more than usual
// requests lose.
const (
	leastLoss   = 500e3
	leastEvents = 5 // separate ones: a wait that many requests share is one
	leastExcess = 2 // times what usual requests lose
)

// fitted is a floor as it fits the service, for the average slow request.
func (b *board) fitted(f Floor) Floor {
	if b.scope != finding.Slow || b.r == nil {
		return f
	}
	var need, slow int64
	for i := range b.r.Requests.Groups {
		g := &b.r.Requests.Groups[i]
		need += int64(g.Slow) * max(leastLoss, min(f.NS, g.P50/2))
		slow += int64(g.Slow)
	}
	if slow > 0 {
		f.NS = min(f.NS, need/slow)
	}
	return f
}

// floorOf is what counts in this round. A cause that was found in an earlier one has only to say
// what is its own.
func (p *Pass) floorOf() Floor {
	switch {
	case p.first != nil:
		return Floor{}
	case p.board.scope == finding.Usual:
		return usualFloor
	case p.floor != nil:
		return *p.floor
	}
	return p.det.Floor
}

// below says that a loss is under the floor of this round, "" if it is not. What SetFloor says is
// for the whole of what was claimed, which arbitrate asks.
func (p *Pass) below(ns int64) string {
	f := p.floorOf()
	if p.floor != nil && p.board.scope == finding.Slow {
		f = p.det.Floor
	}
	return p.under(f, ns)
}

// under says that a loss is under a floor, as it fits the service where the claims permit that.
func (p *Pass) under(f Floor, ns int64) string {
	why := p.board.below(f, ns)
	if why == "" || p.board.scope != finding.Slow || p.board.r == nil {
		return why
	}
	fits := p.board.fitted(f)
	if small := p.board.below(fits, ns); small != "" {
		if p.det.Fast == nil {
			return small
		}
		return why
	}
	if p.det.Fast != nil && !p.det.Fast(p) {
		return why
	}
	if n := p.events(); n < leastEvents {
		return fmt.Sprintf("%s; less counts for a service as fast as this one if it stands on %d separate events, and these are %d", why, leastEvents, n)
	}
	if slow, usual := perRequest(p.Column(), p.Claimed()),
		perRequest(&p.Ledger.Median, p.usually()); slow < leastExcess*usual {
		return fmt.Sprintf("%s; less counts for a service as fast as this one if usual requests lose less than half of that, and they lose %s", why, finding.Duration(usual))
	}
	return ""
}

// events is how many separate events the claims stand on at least.
func (p *Pass) events() (n int) {
	for _, c := range p.claims {
		n = max(n, p.Column().Accounts[c.account].Events)
	}
	return n
}

// usually is what usual requests lose to the same accounts.
func (p *Pass) usually() (ns int64) {
	for _, c := range p.claims {
		a := &p.Column().Accounts[c.account]
		ns += scale(usualNS(p.Ledger, a), c.ns, a.NS)
	}
	return ns
}

// never is of causes of which every busy program has a little: queues for Ps and CPUs, and the
// collector's single steps. Their floors stay as they are.
func never(*Pass) bool { return false }
