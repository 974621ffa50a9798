package detect

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// A trace before Go 1.22 whose clock was not found is on no time line with the kernel's records.
// What is known then is sums: how long goroutines were on a P, and how long threads lacked memory,
// quota or a CPU. Threads of a Go program lack these mostly while they hold a P. So the sums bound
// what "on a P" meant, and requests that waited for a P waited for what its thread lacked.

const (
	// lackedMost is the part of the time on a P that must have been lacked for the queue behind it
	// to be a symptom.
	lackedMost = 0.5
	// sharesSure is the part of all the Ps' time from which on it is supported: hardly any other
	// time is left in which requests could have waited for something else.
	sharesSure = 0.8
)

// byShares reports whether the trace and the kernel's records have no common time.
func byShares(r *account.Result) bool {
	return r != nil && r.Kernel != nil && r.Kernel.OldClock != nil && !r.Kernel.Joined &&
		r.Slow.Requests > 0 && r.Capacity.TotalNS > 0
}

// lackedByShares lists the causes of what threads lacked for most of the time on a P, the largest
// first.
func lackedByShares(r *account.Result) []string {
	if !byShares(r) {
		return nil
	}
	k := r.Kernel
	faults, reclaim := beyondMinor(k), k.Reclaim.NS+k.Memcg.NS+k.Compact.NS
	// The kernel's records may cover more time than the trace.
	on := float64(used(&r.Capacity)) * float64(wall(k)) / float64(max(r.Capacity.WallNS, 1))
	if float64(faults+reclaim) < lackedMost*on {
		return nil
	}
	if reclaim > faults {
		return []string{"direct-reclaim", "page-fault"}
	}
	return []string{"page-fault", "direct-reclaim"}
}

// onlyShares says how sure a claim of ns of threads' time is where nothing but sums joins it to
// requests. False: it is not so here.
func (p *Pass) onlyShares(ns int64) bool {
	r := p.Ledger
	if !byShares(r) {
		return false
	}
	share := ratio(ns, r.Capacity.TotalNS) * ratio(r.Capacity.WallNS, wall(r.Kernel))
	const why = "the clock of the trace could not be found on the kernel's, so only sums are compared: threads lost %s so, which is %s of the time of all Ps"
	say := p.Cap
	if share < sharesSure {
		say = p.Doubt
	}
	say(why, finding.Duration(ns), percent(min(share, 1)))
	return true
}
