package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// An ordinary user's recorder does not see that a thread is throttled: it looks like preemption.
// But everybody may read cpu.stat of the cgroup and of its ancestors, which counts how long each
// level was out of its quota. Where that is as much as the process stood still, it is the reason.

// counted is what cpu.stat says, where no record marks what is throttled.
type counted struct {
	known   bool    // a level was read twice
	level   string  // the one that was out of its quota longest
	ns      float64 // for so long, summed over the CPUs on which it had work
	periods float64 // in so many periods
	stood   int64   // wall time, at least
	part    float64 // of the time in which no thread ran and one was queued; at least
	most    float64 // the same, at most
}

// countedThrottling reads it. It is zero where records mark what is throttled.
func countedThrottling(p *Pass) (c counted) {
	r, k := p.Ledger, kernelOf(p)
	if k == nil || k.ThrottledNS > 0 || unseen(k, kernel.SightThrottling) == "" {
		return c
	}
	const stream = "/cgroup/level/cpu/throttled:ns"
	seen := map[string]bool{}
	for _, rec := range p.Set.All(stream) {
		c.known = c.known || seen[rec.Text]
		seen[rec.Text] = true
	}
	for level, grew := range levels(p, stream) {
		if grew > c.ns || grew == c.ns && grew > 0 && len(level) < len(c.level) {
			c.level, c.ns = level, grew
		}
	}
	c.periods = levels(p, "/cgroup/level/cpu/throttled:periods")[c.level]
	// A group that is out of quota is so on each CPU on which it has something to run: on no more
	// than it may use, and on no more than it has threads that want to run.
	at := max(1, k.RunnableMax)
	if r.CPUs != nil && r.CPUs.Allowed > 0 {
		at = min(at, r.CPUs.Allowed)
	}
	c.stood = int64(min(c.ns/float64(at), float64(k.StoodQueuedNS)))
	c.part = ratio(c.stood, k.StoodQueuedNS)
	c.most = min(1, ratio(int64(c.ns), k.StoodQueuedNS))
	return c
}

// little reports whether the quota can be the reason of next to none of the standstills.
func (c *counted) little() bool { return c.most < 0.05 }

// Where no request is visible, a quota that is used up now and then counts by its pauses: this part
// of wall time, in periods that stop everything for long. As many of the requests come meanwhile
// and wait, which is more than the slowest 1 %.
const (
	pausesShare  = 0.02
	pauseNS      = 10e6
	leastPeriods = 5
)

// pauses reports whether that is so.
func (c *counted) pauses(k *account.Kernel) bool {
	return c.periods >= leastPeriods && float64(c.stood) >= pauseNS*c.periods && ratio(c.stood, wall(k)) >= pausesShare
}

// claimCounted claims that part of the waits for a CPU. Behind its own threads nobody waits who is
// out of quota: those do not run either.
func claimCounted(p *Pass, c *counted) {
	waits := func(what account.Leaf, who string) bool {
		return what == account.LeafNoCPU && !isOwn(who) && who != recorder
	}
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		held := int64(c.part * float64(lacking(a, waits)))
		p.Claim(i, held)
		p.lackedQueue += held
		if waits(a.Leaf, a.Detail) {
			p.Claim(i, int64(c.part*float64(a.NS)))
		}
	}
	p.claimHeld(int64(c.part * float64(p.Ledger.Kernel.QueuedNS)))
	p.countedCap(c)
}

// claimCountedTerms is the same where no request is visible.
func claimCountedTerms(p *Pass, c *counted) {
	r := p.Ledger
	weight := ratio(c.stood, wall(r.Kernel))
	if lost := r.CPUs.OthersNS + r.CPUs.UnusedNS; lost > 0 {
		p.claimTerm(termOthers, int64(c.part*float64(r.CPUs.OthersNS)), weight)
		p.claimTerm(termUnused, int64(c.part*float64(r.CPUs.UnusedNS)), weight)
	} else {
		p.ClaimCPU(min(c.stood*int64(max(1, r.CPUs.Allowed)), r.CPUs.TotalNS), r.CPUs.TotalNS)
		p.weight = weight
		p.SetFloor(Floor{})
	}
	p.countedCap(c)
}

// countedCap says how sure that is. What was not claimed, though it may be due, rules nothing out.
func (p *Pass) countedCap(c *counted) {
	p.Cap("cpu.stat counts for how long %s was out of its quota, and not which thread that stopped", c.level)
	if c.part < 0.5 {
		p.Doubt("%s was out of its quota for at least %s of the time in which no thread of the process ran and one was queued, and for at most %s", c.level, percent(c.part), percent(c.most))
	}
	if len(p.pools) == 0 && p.below(p.Claimed()) != "" {
		p.claims = nil
		p.Blind(fmt.Sprintf("which waits for a CPU were throttling, without privilege: %s was out of its quota for %s to %s of the time in which no thread of the process ran and one was queued", c.level, percent(c.part), percent(c.most)))
	}
}

// countedLine is the evidence: two counters that do not depend on each other.
func countedLine(p *Pass) {
	c := countedThrottling(p)
	if c.stood == 0 {
		return
	}
	p.Proof("cpu.stat of "+c.level,
		"out of its quota in %.0f periods, for %s summed over CPUs: %s at least by the clock",
		c.periods, finding.Duration(int64(c.ns)), finding.Duration(c.stood))
	if len(p.pools) > 0 && c.pauses(p.Ledger.Kernel) {
		p.Proof("cpu.stat of "+c.level,
			"%s on average in each of these periods: requests that came meanwhile waited for up to as long", finding.Duration(int64(float64(c.stood)/c.periods)))
	}
	p.Proof("kernel records", "no thread of the process ran and one was queued for %s; without privilege a thread that is throttled looks queued", finding.Duration(p.Ledger.Kernel.StoodQueuedNS))
}

// stoodStill is the part of wall time in which the quota let no thread of the process run.
func stoodStill(p *Pass) float64 {
	k := p.Ledger.Kernel
	c := countedThrottling(p)
	return ratio(k.StoodNS+c.stood, wall(k))
}

// lookCounted is cpu-throttled where no record marks what is throttled. It reports whether there is
// nothing else to look at.
func lookCounted(p *Pass) bool {
	k := p.Ledger.Kernel
	why := unseen(k, kernel.SightThrottling)
	if why == "" || k.ThrottledNS > 0 {
		return false
	}
	c := countedThrottling(p)
	hidden, isHidden := p.Set.Fact("/cgroup/hidden:text")
	switch {
	case !c.known:
		p.Blind(why)
	case c.ns == 0 && isHidden:
		p.Blind(fmt.Sprintf("%s; no level that is visible was out of its quota, but %s", why, hidden.Text))
	case c.ns == 0:
		p.Absent("no level of its cgroup was out of quota in any period, by cpu.stat%s", quotaText(p.Ledger.CPUs))
	case c.little():
		if !p.requests() {
			p.Bound(0, ratio(int64(c.ns), wall(k)), finding.OfWall)
		}
		p.Clear("by cpu.stat %s was out of its quota for %s, at most %s of the time in which no thread of the process ran and one was queued", c.level, finding.Duration(int64(c.ns)), percent(c.most))
	case joined(p.Ledger):
		claimCounted(p, &c)
	case p.Ledger.CPUs == nil:
		p.Blind(why)
	case c.pauses(k) && !p.board.seen:
		claimCountedTerms(p, &c)
		p.SetFloor(Floor{})
	case stoodStill(p) < stoodShare && c.ns < 2*stoodShare*float64(wall(k)):
		most := min(1, max(stoodStill(p), ratio(int64(c.ns), wall(k))))
		p.Bound(0, most, finding.OfWall)
		p.Clear("for %s to %s of the wall time, in %s, no thread of the process ran while %s was out of its quota (reported from %s up)",
			percent(stoodStill(p)), percent(most), times(int64(c.periods), "period", "periods"),
			c.level, percent(stoodShare))
	default:
		claimCountedTerms(p, &c)
	}
	return true
}

// lookCountedPs is the same for gomaxprocs-over-quota, whose ps Ps are more than the quota has room
// for.
func lookCountedPs(p *Pass, ps int) bool {
	r, k := p.Ledger, p.Ledger.Kernel
	why := unseen(k, kernel.SightThrottling)
	if why == "" || k.ThrottledNS > 0 {
		return false
	}
	c := countedThrottling(p)
	risk := fmt.Sprintf("GOMAXPROCS is %d with a quota of %s CPUs: a risk, but", ps, cpusText(r.CPUs.Quota))
	switch {
	case !c.known:
		p.Blind(fmt.Sprintf("%s %s", risk, why))
	case c.ns == 0:
		p.Absent("%s no level of its cgroup was out of quota in any period, by cpu.stat", risk)
	case c.little():
		if !p.requests() {
			p.Bound(0, ratio(int64(c.ns), wall(k)), finding.OfWall)
		}
		p.Clear("%s by cpu.stat %s was out of its quota for %s only", risk, c.level, finding.Duration(int64(c.ns)))
	case joined(r):
		p.ClaimWhere(ownQueue)
		p.ClaimLacking(lacksForOwn)
		claimCounted(p, &c)
	case stoodStill(p) < stoodShare:
		p.Bound(0, stoodStill(p), finding.OfWall)
		p.Clear("%s for only %s of the wall time no thread of the process ran while %s was out of its quota", risk, percent(stoodStill(p)), c.level)
	default:
		claimCountedTerms(p, &c)
	}
	return true
}

// unlessThrottled doubts that threads waited for those who had the CPUs, where they may as well
// have been out of quota.
func unlessThrottled(p *Pass) {
	c := countedThrottling(p)
	if c.most-c.part >= 0.5 && !p.Found("cpu-throttled") && !p.Found("gomaxprocs-over-quota") {
		p.Doubt("%s was out of its quota for up to %s of the time in which no thread of the process ran and one was queued, and without privilege that looks the same", c.level, percent(c.most))
	}
}
