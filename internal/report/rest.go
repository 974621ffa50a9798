package report

// restShare is from which part of the slow requests' time on an account without a finding is worth a line beside the
// findings: a person who reads no further must not take a cause of a quarter for the whole.
const restShare = 0.25

// rest gives the largest account that no finding explains; left is ns of each of the slow column's accounts. What is
// unexplained has its own row, and is no account of anything.
func (r *Report) rest(left []int64) *Rest {
	slow, most := &r.Ledger.Slow, -1
	for i := range min(len(left), len(slow.Accounts)) {
		if !isUnexplained(slow.Accounts[i].Leaf) && (most < 0 || left[i] > left[most]) {
			most = i
		}
	}
	if most < 0 || share(left[most], slow.WallNS) < restShare {
		return nil
	}
	out := &Rest{Account: slow.Accounts[most]}
	a := &out.Account
	a.NS, a.Share = left[most], share(left[most], slow.WallNS)
	for i := range r.Ledger.Median.Accounts {
		if m := &r.Ledger.Median.Accounts[i]; keyOf(m) == keyOf(a) {
			out.UsualNS += m.NS / int64(max(1, r.Ledger.Median.Requests))
		}
	}
	if len(r.Findings) > 0 && 2*out.UsualNS*int64(slow.Requests) >= a.NS {
		return nil // no reason for being slower than others
	}
	return out
}
