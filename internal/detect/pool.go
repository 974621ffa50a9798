package detect

import "fmt"

// poolClaim is a part of one term of the capacity or memory ledger. What is lost there is lost to
// every request alike.
type poolClaim struct {
	term               string
	ns, holds, granted int64
}

// pool claims ns of a term that holds so much. Shares are of the total.
func (p *Pass) pool(term string, ns, holds, total int64) {
	if ns > 0 {
		p.pools = append(p.pools, poolClaim{term: term, ns: ns, holds: holds})
	}
	p.total = total
}

// pooled is what was granted of pools.
func (p *Pass) pooled() (ns int64) {
	for _, c := range p.pools {
		ns += c.granted
	}
	return ns
}

// arbitratePools does for pools what arbitrate does for accounts.
func (b *board) arbitratePools(p *Pass, floor Floor) {
	var total, free int64
	over := map[*Pass]int64{}
	var order []*Pass
	for i := range p.pools {
		c := &p.pools[i]
		var taken int64
		for _, t := range b.pools[c.term] {
			taken += t.ns
		}
		if c.ns > c.holds {
			p.outcome, p.why = failed, fmt.Sprintf("claims %d ns of an account of %d ns", c.ns, c.holds)
			return
		}
		c.granted = min(c.ns, max(0, c.holds-taken))
		total += c.ns
		free += c.granted
		for _, t := range b.pools[c.term] {
			if over[t.p] == 0 {
				order = append(order, t.p)
			}
			over[t.p] += scale(c.ns-c.granted, t.ns, taken)
		}
	}
	if why := p.smallProcess(total); why != "" {
		p.Clear("%s", why)
		return
	}
	if share := ratio(total, p.total); share < floor.Share {
		what := "of CPU time"
		if p.bytes {
			what = "of memory"
		}
		p.Clear("%s %s, below %s", percent(share), what, percent(floor.Share))
		return
	}
	p.outcome = found
	if 2*free > total && ratio(free, p.total) >= floor.Share {
		for _, c := range p.pools {
			b.pools[c.term] = append(b.pools[c.term], taker{p, c.granted})
		}
		b.asSymptom(p)
		return
	}
	for _, q := range order {
		if p.root == nil || over[q] > over[p.root] {
			p.root = q
		}
	}
	for i := range p.pools {
		c := &p.pools[i]
		c.granted = 0
		for _, t := range b.pools[c.term] {
			if t.p == p.root {
				c.granted += min(c.ns, t.ns)
			}
		}
	}
	if p.pooled() == 0 {
		p.root, p.outcome = nil, undecided
		p.Clear("other causes explain it")
	}
}

// poolScore puts a loss of all requests on the scale of the slow ones, if there are any: as if each
// had its share of the loss.
func (p *Pass) poolScore() int64 {
	if len(p.pools) == 0 || p.bytes {
		return 0
	}
	share := max(p.weight, ratio(p.pooled(), p.total))
	if p.Ledger != nil && p.Ledger.Slow.WallNS > 0 {
		return int64(share * float64(p.Ledger.Slow.WallNS))
	}
	return int64(share * 1e12)
}
