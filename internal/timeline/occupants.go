package timeline

import (
	"sort"
)

// Occupants lists in dst[:0] who held the Ps during [s,e), in ns of P time, and returns the Ps' whole time in what is still
// known of it: what the list lacks of that the Ps were idle. It is by who, in no particular order.
func (t *Timeline) Occupants(s, e int64, dst []Occupant) (_ []Occupant, total int64) {
	p := &t.procs
	p.sums.list = dst[:0]
	// the block that is being filled has no borders at its end: what holds a P now is added
	cur := p.cur
	if b, end := max(s, cur.begin), min(e, t.now); b < end {
		total += int64(max(p.count(), 1)) * (end - b)
		p.sums.overlap(cur, b, end)
		for i := range p.ps {
			if x := &p.ps[i]; x.who != whoNobody && x.held < end {
				p.sums.add(x.who, end-max(b, x.held))
			}
		}
	}
	for n := p.from(s); n < p.next; n++ {
		b := &p.blocks[n%procBlocks]
		if b.begin >= e {
			break
		}
		from, to := max(s, b.begin), min(e, b.end)
		total += int64(b.count) * (to - from)
		if from == b.begin && to == b.end {
			if len(b.sum) == 0 { // once it is asked for
				for _, o := range b.occ {
					p.total.add(o.who, int64(o.end-o.begin))
				}
				b.sum = append(b.sum, p.total.take()...)
			}
			for _, o := range b.sum {
				p.sums.add(o.Who, o.NS)
			}
			continue
		}
		p.sums.overlap(b, from, to)
	}
	return p.sums.take(), total
}

// occupants are sums while they are made.
type occupants struct {
	list []Occupant // without the sums
	ns   []int64    // by who, the special ones first; 0: not in the list
}

func (o *occupants) add(who uint32, ns int64) {
	i := who - whoSpecialAt // wraps
	for uint(i) >= uint(len(o.ns)) {
		o.ns = append(o.ns, make([]int64, max(64, len(o.ns)))...)
	}
	if o.ns[i] == 0 {
		o.list = append(o.list, Occupant{Who: who})
	}
	o.ns[i] += ns
}

func (o *occupants) take() []Occupant {
	for i := range o.list {
		x := &o.list[i]
		n := &o.ns[x.Who-whoSpecialAt]
		x.NS, *n = *n, 0
	}
	l := o.list
	o.list = o.list[:0]
	return l
}

// overlap adds what of [from,to) the block's occupations cover. They are in order of their ends.
func (s *occupants) overlap(b *procBlock, from, to int64) {
	lo, hi := uint32(max(from-b.begin, 0)), uint32(min(to-b.begin, 1<<32-1))
	for i := len(b.occ) - 1; i >= 0; i-- {
		o := &b.occ[i]
		if o.end <= lo {
			break
		}
		if o.begin < hi {
			s.add(o.who, int64(min(o.end, hi)-max(o.begin, lo)))
		}
	}
}

// from is the number of the first closed block that ends after s. Who explains asks for ever earlier times, so that the
// last answer is near.
func (p *procs) from(s int64) uint64 {
	n := min(max(p.near, p.first), p.next)
	for steps := 0; ; steps++ {
		switch {
		case steps > 32:
			n = p.first + uint64(sort.Search(int(p.next-p.first), func(i int) bool { return p.blocks[(p.first+uint64(i))%procBlocks].end > s }))
		case n > p.first && p.blocks[(n-1)%procBlocks].end > s:
			n--
			continue
		case n < p.next && p.blocks[n%procBlocks].end <= s:
			n++
			continue
		}
		p.near = n
		return n
	}
}
