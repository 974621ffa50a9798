package report

import (
	"cmp"
	"slices"
)

// restShare is the part of the slow requests' time from which an account without a finding gets a
// line beside the findings. A person who reads no further must not take a part for the whole.
const restShare = 0.25

// rest returns the largest account that no finding explains. left is the unexplained ns of each
// account of the slow column. Time booked as unexplained has a row of its own and does not count
// here.
func (r *Report) rest(left []int64) *Rest {
	slow := &r.Ledger.Slow
	var list []*Account
	for i := range min(len(left), len(slow.Accounts)) {
		if a := slow.Accounts[i]; !isUnexplained(a.Leaf) && left[i] > 0 {
			a.NS = left[i]
			list = append(list, &a)
		}
	}
	slices.SortStableFunc(list, func(a, b *Account) int { return cmp.Compare(b.NS, a.NS) })
	if list = neighbours(list); len(list) == 0 || share(list[0].NS, slow.WallNS) < restShare {
		return nil
	}
	out := &Rest{Account: *list[0]}
	a := &out.Account
	a.Share = share(a.NS, slow.WallNS)
	for i := range r.Ledger.Median.Accounts {
		if m := &r.Ledger.Median.Accounts[i]; keyOf(m) == keyOf(a) {
			out.UsualNS += m.NS / int64(max(1, r.Ledger.Median.Requests))
		}
	}
	if len(r.Findings) > 0 && 2*out.UsualNS*int64(slow.Requests) >= a.NS {
		return nil // it does not make requests slower than usual
	}
	return out
}
