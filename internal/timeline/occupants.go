package timeline

import (
	"sort"
)

// Occupants adds to dst who held the Ps during [s,e), in ns of P time, and returns the Ps' whole time in what is still
// known of it: what dst lacks of that the Ps were idle. Dst's sums are by who, in no particular order.
func (t *Timeline) Occupants(s, e int64, dst []Occupant) (_ []Occupant, total int64) {
	p := &t.procs
	// the block that is being filled has no borders at its end: what holds a P now is added
	cur := p.block()
	if b, end := max(s, cur.begin), min(e, t.now); b < end {
		total += int64(max(p.count(), 1)) * (end - b)
		dst = overlap(cur, b, end, dst)
		for i := range p.ps {
			if x := &p.ps[i]; x.who != whoNobody && x.since < end {
				dst = addOccupant(dst, x.who, end-max(b, x.since))
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
			for _, o := range b.total() {
				dst = addOccupant(dst, o.Who, o.NS)
			}
			continue
		}
		dst = overlap(b, from, to, dst)
	}
	return dst, total
}

func addOccupant(dst []Occupant, who uint32, ns int64) []Occupant {
	for i := range dst {
		if dst[i].Who == who {
			dst[i].NS += ns
			return dst
		}
	}
	return append(dst, Occupant{who, ns})
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

// overlap adds what of [from,to) the block's occupations cover. They are in order of their ends.
func overlap(b *procBlock, from, to int64, dst []Occupant) []Occupant {
	lo, hi := uint32(max(from-b.begin, 0)), uint32(min(to-b.begin, 1<<32-1))
	for i := len(b.occ) - 1; i >= 0; i-- {
		o := &b.occ[i]
		if o.end <= lo {
			break
		}
		if o.begin < hi {
			dst = addOccupant(dst, o.who, int64(min(o.end, hi)-max(o.begin, lo)))
		}
	}
	return dst
}
