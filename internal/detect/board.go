package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// board is where the claims of one round meet: what is left of each account of its column, and who
// took the rest.
type board struct {
	scope  finding.Scope
	all    bool            // every detector looks, not only those that have the scope
	seen   bool            // of the process: there are slow requests, which have a round of their own
	r      *account.Result // as this round sees it
	before []*board        // of earlier rounds
	passes []*Pass
	left   []int64
	takers [][]taker
	pools  map[string][]taker // by term of the capacity and memory ledgers, shared by all rounds
}

type taker struct {
	p  *Pass
	ns int64
}

func newBoard(r *account.Result, scope finding.Scope) *board {
	b := &board{r: r, scope: scope}
	if r == nil {
		return b
	}
	b.left = make([]int64, len(r.Slow.Accounts))
	b.takers = make([][]taker, len(r.Slow.Accounts))
	for i := range r.Slow.Accounts {
		b.left[i] = max(0, r.Slow.Accounts[i].NS)
	}
	return b
}

// arbitrate decides about one detector's claims. What earlier detectors took is theirs. A detector
// that loses half of its claim to them, or keeps less than its floor, is their mechanism.
func (b *board) arbitrate(p *Pass) {
	floor := p.floorOf()
	if len(p.pools) > 0 {
		b.arbitratePools(p, floor)
		return
	}
	if len(p.claims) == 0 {
		p.Clear("%s lost no time to it", p.who())
		return
	}
	if !b.valid(p) {
		return
	}
	total := p.Claimed()
	if why := p.under(floor, total); why != "" {
		p.Clear("%s", why)
		return
	}
	if b.isWithin(p) {
		return
	}
	free, over := int64(0), make([][]taker, len(p.claims))
	for i := range p.claims {
		c := &p.claims[i]
		c.granted = min(c.ns, b.queueLeft(p, c.account))
		free += c.granted
		over[i] = b.overlap(c)
	}
	if (total-free)*2 < total && p.under(floor, free) == "" {
		p.outcome = found
		for _, c := range p.claims {
			b.left[c.account] -= c.granted
			b.takers[c.account] = append(b.takers[c.account], taker{p, c.granted})
		}
		b.asSymptom(p)
		return
	}
	b.submit(p, over, free)
}

// isWithin puts p under the cause that claimed the same time for the same reason, and reports
// whether there is one. All of p's claim that this cause could have taken is then its part of that.
func (b *board) isWithin(p *Pass) bool {
	for _, q := range b.passes {
		if p.within == "" || q.det.Name != p.within || q.outcome != found || len(q.pools) > 0 {
			continue
		}
		if p.root = q; q.root != nil {
			p.root, p.via = q.root, q
		}
		p.outcome = found
		for i := range p.claims {
			c := &p.claims[i]
			c.granted = min(c.ns, b.taken(c.account, p.root.det.Name))
		}
		if p.NS() == 0 {
			p.root, p.via, p.outcome = nil, nil, undecided
			return false
		}
		return true
	}
	return false
}

// valid reports whether no claim exceeds its account. One that does is the detector's fault, and no
// finding.
func (b *board) valid(p *Pass) bool {
	sum := map[int]int64{}
	for _, c := range p.claims {
		if sum[c.account] += c.ns; sum[c.account] > b.r.Slow.Accounts[c.account].NS {
			p.outcome, p.why = failed, fmt.Sprintf("claims %d ns of an account of %d ns",
				sum[c.account], b.r.Slow.Accounts[c.account].NS)
			return false
		}
	}
	return true
}

// below says that a loss is under the floor, "" if it is not.
func (b *board) below(f Floor, ns int64) string {
	per, share := perRequest(&b.r.Slow, ns), ratio(ns, b.r.Slow.WallNS)
	if per >= f.NS && share >= f.Share && ns > 0 {
		return ""
	}
	return fmt.Sprintf("%s per %s request, %s (reported from %s and %s up)", finding.Duration(per),
		b.word(), percent(share), finding.Duration(f.NS), percent(f.Share))
}

// word says which requests those of the column are.
func (b *board) word() string {
	if b.scope == finding.Usual {
		return "usual"
	}
	return "slow"
}

// taken is what the named cause was granted of an account.
func (b *board) taken(account int, cause string) (ns int64) {
	for _, t := range b.takers[account] {
		if t.p.det.Name == cause {
			ns += t.ns
		}
	}
	return ns
}

// overlap divides the part of a claim that is not free among those who took it, in proportion.
func (b *board) overlap(c *claim) []taker {
	lost, taken := c.ns-c.granted, int64(0)
	for _, t := range b.takers[c.account] {
		taken += t.ns
	}
	var over []taker
	for _, t := range b.takers[c.account] {
		over = append(over, taker{t.p, scale(lost, t.ns, taken)})
	}
	return over
}

// submit puts p under the root that took most of its claim. p then explains that part only.
func (b *board) submit(p *Pass, over [][]taker, free int64) {
	sums, order := map[*Pass]int64{}, []*Pass{}
	for _, ts := range over {
		for _, t := range ts {
			if _, ok := sums[t.p]; !ok {
				order = append(order, t.p)
			}
			sums[t.p] += t.ns
		}
	}
	for _, q := range order {
		if p.root == nil || sums[q] > sums[p.root] {
			p.root = q
		}
	}
	if p.root == nil || sums[p.root] == 0 {
		p.root = nil
		p.Clear("%s", p.below(free))
		return
	}
	p.outcome = found
	b.through(p)
	for i := range p.claims {
		p.claims[i].granted = 0
		for _, t := range over[i] {
			if t.p == p.root {
				p.claims[i].granted += t.ns
			}
		}
	}
}

// asSymptom puts p under the cause that it is a symptom of. Where a trace cannot be joined, that
// cause claims CPU time and p claims time of requests, so that their claims do not meet.
func (b *board) asSymptom(p *Pass) {
	for _, name := range p.symptom {
		for _, q := range b.passes {
			if q.det.Name != name || q.outcome != found || len(q.pools) == 0 || p.pooled() > q.pooled() {
				continue
			}
			if p.root = q; q.root != nil {
				p.root, p.via = q.root, q
			}
			return
		}
	}
}

// through finds the mechanism of p's root that claims most of the same time: a pause is long
// because of throttling, which is because of GOMAXPROCS.
func (b *board) through(p *Pass) {
	mine := map[int]int64{}
	for _, c := range p.claims {
		mine[c.account] += c.ns
	}
	var most int64
	for _, q := range b.passes {
		if q == p || q.outcome != found || q.root != p.root {
			continue
		}
		var same int64
		for _, c := range q.claims {
			same += min(c.ns, mine[c.account])
		}
		if same > most && 2*same > p.Claimed() {
			p.via, most = q, same
		}
	}
}

// score is the matched excess of what was granted; an account below the usual is not set off
// against others. If usual requests lose half as much as the slow ones, the difference says little,
// and all of it counts. But work that usual requests do as well is no reason why some are slow.
func (p *Pass) score() (ns int64) {
	if p.Ledger == nil || len(p.claims) == 0 {
		return p.poolScore()
	}
	var all, excess, usual, matched int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		all += c.granted
		excess += scale(min(a.NS, a.ExcessNS), c.granted, a.NS)
		usual += scale(usualNS(p.Ledger, a), c.granted, a.NS)
	}
	for i := range p.Ledger.Slow.Accounts {
		matched |= p.Ledger.Slow.Accounts[i].ExcessNS
	}
	if matched == 0 || p.work.ns == 0 && 2*perRequest(&p.Ledger.Median, usual) >= perRequest(&p.Ledger.Slow, all) {
		return all
	}
	return excess
}
