package account

import (
	"cmp"
	"math/bits"
	"slices"
)

// MostInstead is how many names a list has; what is beyond is added up.
const MostInstead = 20

// InsteadByName lists the largest of by, all of one kind.
func InsteadByName(by map[string]int64, kind InsteadKind) []Instead {
	l := make([]Instead, 0, len(by))
	for who, ns := range by {
		l = append(l, Instead{Who: who, Kind: kind, NS: ns})
	}
	SortInstead(l)
	return l[:min(len(l), MostInstead)]
}

// SortInstead orders by time, the largest first.
func SortInstead(l []Instead) {
	slices.SortFunc(l, func(a, b Instead) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Who, b.Who), cmp.Compare(a.Kind, b.Kind))
	})
}

// AddInstead adds to the entry of the same name.
func AddInstead(l []Instead, i Instead) []Instead {
	for n := range l {
		if l[n].Who == i.Who && l[n].Kind == i.Kind {
			l[n].NS += i.NS
			return l
		}
	}
	return append(l, i)
}

// MulDiv is a*b/c without overflow.
func MulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 0
	}
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}
