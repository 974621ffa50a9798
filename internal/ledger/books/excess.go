package books

import (
	"cmp"
	"slices"
)

// leastNearest is how many usual units a slow one is compared with at least. Else it is 2 % of
// them.
const leastNearest = 20

// excess compares each slow unit with usual ones of its group that ran about as long, account by
// account. Why these: docs/ledger.md, "8. Slow against usual".
//
//  1. The excess of an account starts as its time in all slow units.
//  2. For each slow unit, the usual units with the nearest running time are looked up: 2 % of them
//     and at least leastNearest.
//  3. Of those the middle fifth by wall time is taken, so that neither the lucky nor the nearly
//     slow count. Its average is taken off, account by account.
func (b *Books) excess(c *Column, slow []*Kept) {
	for _, s := range c.sums {
		if s != nil {
			s.excess = float64(s.ns)
		}
	}
	usual := map[*Group][]*Kept{}
	fifths := map[*Kept][]*Kept{} // by the first of the units whose middle fifth it is
	for _, k := range slow {
		l, ok := usual[k.Group]
		if !ok {
			l = k.Group.sampled()
			usual[k.Group] = l
		}
		if len(l) == 0 {
			continue
		}
		near := nearest(l, k.Running)
		fifth, ok := fifths[near[0]]
		if !ok {
			fifth = middleFifth(near)
			fifths[near[0]] = fifth
		}
		for _, n := range fifth {
			for _, f := range n.facts {
				if f.kind() != FactNS {
					continue
				}
				if s := c.sums[f.account]; s != nil {
					s.excess -= float64(f.ns()) / float64(len(fifth))
				}
			}
		}
	}
}

// nearest lists the 2 % of l, at least leastNearest, whose running time is nearest. They lie side
// by side, since l is in order of running time: the window grows by the nearer neighbour.
func nearest(l []*Kept, running int64) []*Kept {
	n := max(leastNearest, len(l)/50)
	if len(l) <= n {
		return l
	}
	hi, _ := slices.BinarySearchFunc(l, running,
		func(k *Kept, running int64) int { return cmp.Compare(k.Running, running) })
	lo := hi
	for hi-lo < n {
		switch {
		case lo == 0:
			hi++
		case hi == len(l) || running-l[lo-1].Running <= l[hi].Running-running:
			lo--
		default:
			hi++
		}
	}
	return l[lo:hi]
}

// middleFifth lists the fifth of l in the middle by wall time, at least one unit.
func middleFifth(l []*Kept) []*Kept {
	l = slices.Clone(l)
	slices.SortFunc(l, slower)
	lo := len(l) * 2 / 5
	return l[lo:max(lo+1, len(l)*3/5)]
}
