package compare

import (
	"github.com/whystall/whystall/internal/finding"
)

// amount is what a cause costs in one recording.
type amount struct {
	value float64
	known bool // false: nothing bounds it
}

// amountOf is what the cause that f was found for before costs in r: ns a request of f's scope, CPU
// seconds a second, or bytes. Where the cause is not found in r, it is the most that r leaves for
// it. That is the least of two bounds: what the detector's own bound says, and all that the
// accounts hold which the cause claimed before. Where r has another cause that claims these
// accounts and was not there before, the time may only have got another name, and counts.
func amountOf(r *Run, f *finding.Finding, fresh []finding.Finding) amount {
	if r.Result == nil {
		return amount{}
	}
	if g := r.finding(f.Cause); g != nil {
		return amount{cost(r, g, f), true}
	}
	least, known := boundFor(r, f)
	if held, ok := holds(r, f); ok && (!known || held < least) {
		least, known = held, true
	}
	if !known {
		return amount{}
	}
	for i := range fresh {
		least = max(least, renamed(r, f, &fresh[i]))
	}
	return amount{least, true}
}

// cost is what a finding says, in the unit of f, which was found before.
func cost(r *Run, g, f *finding.Finding) float64 {
	switch {
	case f.Explains.Bytes > 0:
		return float64(g.Explains.Bytes)
	case f.Explains.NS > 0 && g.Explains.NS > 0:
		return perRequest(r, g.Scope, g.Explains.NS)
	case f.Explains.NS > 0: // it is left in the process' time only: below what requests show
		if b, ok := boundFor(r, f); ok {
			return b
		}
		return g.Share * perRequest(r, f.Scope, r.column(f.Scope).WallNS)
	case g.Explains.CPUNS > 0:
		return perSecond(r, g.Explains.CPUNS)
	case g.Explains.WaitedNS > 0:
		return perSecond(r, g.Explains.WaitedNS)
	}
	return g.Share * processCPUs(r)
}

func perRequest(r *Run, scope finding.Scope, ns int64) float64 {
	n := r.column(scope).Requests
	if n == 0 {
		return 0
	}
	return float64(ns) / float64(n)
}

func perSecond(r *Run, ns int64) float64 {
	s := r.seconds()
	if s <= 0 {
		return 0
	}
	return float64(ns) / s
}

// processCPUs is the CPU time of the process, ns a second.
func processCPUs(r *Run) float64 {
	if k := r.Result.Kernel; k != nil {
		return perSecond(r, k.OnNS)
	}
	return perSecond(r, r.CPUNS)
}

// boundFor is the most that a cause which was ruled out in r can cost there, in the unit of f.
func boundFor(r *Run, f *finding.Finding) (most float64, ok bool) {
	for _, out := range r.Found.RuledOut {
		if out.Cause != f.Cause {
			continue
		}
		for _, b := range out.Bounds {
			if b.Scope != f.Scope {
				continue
			}
			switch {
			case f.Explains.Bytes > 0:
				return b.Share * float64(r.RSS), b.Of == finding.OfMemory && r.RSS > 0
			case f.Explains.NS > 0 && b.Of == finding.OfRequest:
				return float64(b.NS), true
			case f.Explains.CPUNS > 0 && b.Of == finding.OfCPU:
				return b.Share * processCPUs(r), true
			case f.Explains.CPUNS > 0 && b.Of == finding.OfWall, f.Explains.WaitedNS > 0 && b.Of == finding.OfWall:
				return b.Share * 1e9, true
			}
		}
	}
	return 0, false
}

// holds is what r's ledger has in all accounts of the kinds that f claimed before, ns a request.
func holds(r *Run, f *finding.Finding) (ns float64, ok bool) {
	if f.Explains.NS == 0 || r.column(f.Scope).Requests == 0 {
		return 0, false
	}
	kinds := map[string]bool{}
	for _, c := range f.Claims {
		kinds[c.Leaf] = true
	}
	var sum int64
	for _, a := range r.column(f.Scope).Accounts {
		if kinds[string(a.Leaf)] {
			sum += a.NS
		}
	}
	return perRequest(r, f.Scope, sum), len(kinds) > 0
}

// renamed is what a cause that is new in r claims of the kinds of accounts that f claimed before.
func renamed(r *Run, f, fresh *finding.Finding) float64 {
	if fresh.Scope != f.Scope || f.Explains.NS == 0 {
		return 0
	}
	kinds := map[string]bool{}
	for _, c := range f.Claims {
		kinds[c.Leaf] = true
	}
	var sum int64
	for _, c := range fresh.Claims {
		if kinds[c.Leaf] {
			sum += c.NS
		}
	}
	return perRequest(r, f.Scope, sum)
}
