package books

import (
	"cmp"
	"math"
	"slices"
)

// separate counts the separate events of each account: see account.Account's Events. Of units that
// overlap, the one that ends first leaves most room for others, so a walk by their ends finds the
// largest number.
func (c *Column) separate(list []*Kept) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *Kept) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Begin, b.Begin)) })
	for _, s := range c.sums {
		if s != nil {
			s.eventEnd = math.MinInt64
		}
	}
	for _, k := range list {
		for _, f := range k.facts {
			if f.kind() != FactNS {
				continue
			}
			s := c.sums[f.account]
			if average := s.ns / int64(s.requests); f.ns() >= (average+1)/2 && k.Begin >= s.eventEnd {
				s.events++
				s.eventEnd = k.End
			}
		}
	}
}
