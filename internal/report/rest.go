package report

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

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

// beside tells in a sentence what large part has no cause, "" if none has.
func (r *Report) beside(name func(string) string) string {
	w := r.Rest
	if w == nil {
		return r.unseenRequests()
	}
	usual := "usual requests none"
	if w.UsualNS > 0 {
		usual = "usual requests " + finding.Duration(w.UsualNS)
	}
	title := "Beside that %s of the slow requests' time is under no cause"
	if len(r.Findings) == 0 {
		title = "The largest part of the slow requests' time, %s"
	}
	each := finding.Duration(w.Account.NS / int64(max(1, r.Ledger.Slow.Requests)))
	return fmt.Sprintf(title+": %s (%s each; %s).", percent(w.Account.Share), describe(&w.Account, name), each, usual)
}

// unseenRequests says of a Go program without a trace what there is instead of requests: how busy it was, and with what.
func (r *Report) unseenRequests() string {
	if r.Kernel == nil {
		return ""
	}
	ran := r.Kernel.ran()
	if ran == "" {
		return ""
	}
	s := "Its requests were not seen: that takes net/http/pprof in the service (--pprof URL)."
	if c := r.Ledger.CPUs; c != nil && len(c.Accounts) > 0 && c.TotalNS > 0 {
		s += fmt.Sprintf(" It used %s of the %s that it may use: ", percent(share(c.Accounts[0].NS, c.TotalNS)), plural(int64(c.Allowed), "CPU", "CPUs"))
	} else {
		s += " Its threads ran "
	}
	return s + ran + "."
}
