package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "cpu-throttled",
	Title:  "The CPU quota of a cgroup stops the process",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	// A tenth of the slow requests' time. Throttling comes in tens of ms, so the absolute part only
	// keeps noise out.
	Floor: Floor{NS: 5e6, Share: 0.10},
	Hint:  cpuHints,
	Doc: `What happens
  A cgroup with a CPU quota (cpu.max; cpu.cfs_quota_us) gets that much CPU time in each period, as
  a rule of 100 ms, on all CPUs together. When it is used up, every thread of the group that wants
  to run is stopped until the next period, whatever it holds: a lock, the end of a stop-the-world,
  a request. Many threads at once use the quota up in the first few ms of a period; the rest is a
  pause of the whole process. CPU usage stays low, since stopped threads use none.

Evidence
  Threads that left their CPU because of the quota, each marked by the kernel (Linux 6.18 and
  later), until the period's timer let them run again; the queue after that is cpu-contention's.
  Where the quota is: cpu.max and cpu.stat of every ancestor, since any of them may have it. The
  part of wall time in which no thread ran and one was throttled. Before 6.18 only the group is
  marked, not the thread: supported at most. Where no request is visible, the share of wall time.
  An ordinary user sees no marks, but may read cpu.stat. The part of the time in which no thread
  ran though one wanted to, and a level was out of its quota by its own count, is claimed then:
  supported, or possible where it is less than half. Without a visible request 2 % of wall time is
  enough there, in pauses of 10 ms or more: as many of the requests come meanwhile and wait.

Not to be taken for
  Contention: other threads had the CPU then; here it may have been idle. nr_throttled by itself:
  a program at its quota is throttled in 93-98 % of its periods, and so are cured ones. A quota
  that is used up by work for which nobody waits. Throttling far below the quota, on Linux before
  5.4 and without the backport of de53fd7aedb: CPUs kept slices that expired.

Remedy
  Raise or remove the quota, at the level named. A share (cpu.weight, cpu.shares, CPU requests)
  protects neighbours without stopping anybody. Fewer threads at once: GOMAXPROCS, GC workers,
  pool sizes (gomaxprocs-over-quota is then the root). cpu.max.burst (5.14) lets a group save
  quota for bursts. A longer period makes pauses rarer and longer, a shorter one the reverse.

Verify
  whystall diagnose under the same load: 'throttled' of slow requests falls, and p99 with it.
  nr_throttled is no measure.

Sources
  Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst; kubernetes#67577, #70585,
  #97445; golang/go#59715; the case "GC pauses often above 100 ms", 2019.`,
	Look: lookThrottled,
	Tell: tellThrottled,
})

// stoodShare is the least part of wall time that makes throttling worth a finding where no request
// is visible: with periods of 100 ms, a pause of 10 ms in each.
const stoodShare = 0.10

func lookThrottled(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	if lookCounted(p) {
		return
	}
	if joined(r) {
		claimThrottled(p)
		untold := k.Untold[kernel.Sockets]
		if stood := ratio(k.StoodNS, wall(k)); untold > 0.5 && stood >= stoodShare &&
			r.CPUs != nil && p.below(p.Claimed()) != "" {
			// For the runtime, a request that arrives while the process stands still starts when
			// that is over.
			p.unsaid, p.claims = p.claims, nil
			p.claimTerm(termThrottled, r.CPUs.ThrottledNS, stood)
			p.Cap("since when sockets had data was recorded %s of the time only: what requests waited before the runtime knew of them is not in their time", percent(1-untold))
			return
		}
		if len(p.claims) == 0 {
			p.Clear("no thread was throttled while %s needed it%s", p.who(), quotaText(r.CPUs))
		}
		return
	}
	if n, _, share := slowStandstills(p, true); n > 0 && r.CPUs != nil && !p.board.seen {
		p.claimTerm(termThrottled, r.CPUs.ThrottledNS, share)
		return
	}
	stood, enough := p.stood(0)
	if r.CPUs == nil || !enough {
		if share := stoodStill(p); share < processUses {
			stood = share // too rare, whatever the part
		}
		p.Bound(0, stood, finding.OfWall)
		p.Clear("%s%s", p.stoodText(), quotaText(r.CPUs))
		return
	}
	p.claimTerm(termThrottled, r.CPUs.ThrottledNS, stood)
}

// stood is the part of time in which the quota let no thread of the process run, and whether that
// is worth a finding. It counts from a tenth of wall time up, where no request is visible. A
// process with little to do stands still for a small part of that, and for a large one of the time
// in which it has work: that counts too, if the pauses are no rare accident. So does, where no
// request is visible, what its threads lost: many of them use the quota up early, and then all
// wait. more is what they lost to the same cause beside the quota.
func (p *Pass) stood(more int64) (share float64, enough bool) {
	k := p.Ledger.Kernel
	share = ratio(k.StoodNS, wall(k))
	if !p.board.seen && share >= stoodShare {
		return share, true
	}
	ofWork := ratio(k.StoodNS, k.WorkNS)
	if !p.board.seen {
		ofWork = max(ofWork, ratio(k.ThrottledNS+more, wantedCPU(k).wanted))
	}
	return ofWork, ofWork >= processShare && share >= processUses
}

// stoodShares says for which part of wall time the process stood still, and of its work.
func (p *Pass) stoodShares() string {
	k := p.Ledger.Kernel
	t := "for " + percent(stoodStill(p)) + " of the time"
	if k.WorkNS > 0 && k.StoodNS > 0 {
		t += " (" + percent(ratio(k.StoodNS, k.WorkNS)) + " of that in which it had work)"
	}
	return t
}

func (p *Pass) stoodText() string {
	k := p.Ledger.Kernel
	least := fmt.Sprintf("its threads were throttled for %s of the time in which they wanted a CPU; reported from %s and %s up", percent(ratio(k.ThrottledNS, wantedCPU(k).wanted)), percent(stoodShare), percent(processShare))
	if p.board.seen {
		least = "reported from " + percent(processShare) + " of its work up"
	}
	return fmt.Sprintf("%s no thread of the process ran and one was throttled (%s)", p.stoodShares(), least)
}

// slowStandstills counts the standstills that took as long as the user calls slow: those of the
// quota (throttled), or those for lack of a CPU. It returns the longest of them, and their share of
// all such standstills. Without such a limit there are none.
func slowStandstills(p *Pass, throttled bool) (n int, longest account.Standstill, share float64) {
	var all, these int64
	for _, s := range p.Ledger.Kernel.Standstills {
		d := s.End - s.Begin
		if p.Facts.SlowOver == 0 || d < p.Facts.SlowOver {
			continue
		}
		all += d
		if throttled == (2*s.ThrottledNS >= d) {
			if n == 0 {
				longest = s // the longest come first
			}
			n++
			these += d
		}
	}
	return n, longest, ratio(these, all)
}

// claimThrottled claims what requests lost to the quota: their own thread, or one that they waited
// for, was throttled, or a thread that held a P.
func claimThrottled(p *Pass) {
	p.ClaimWhere(leaf(account.LeafThrottled))
	p.ClaimLacking(lacks(account.LeafThrottled))
	p.claimHeld(p.Ledger.Kernel.ThrottledNS)
}

func quotaText(c *account.CPUs) string {
	switch {
	case c == nil:
		return ""
	case c.Quota <= 0:
		return "; no level that was seen has a quota"
	}
	return fmt.Sprintf("; the quota is %s CPUs at %s", cpusText(c.Quota), c.QuotaAt)
}

func cpusText(q float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", q), "0"), ".")
}

func tellThrottled(p *Pass, f *finding.Finding) {
	k, c := p.Ledger.Kernel, p.Ledger.CPUs
	at, quota := throttledAt(p)
	where := "a cgroup is out of its CPU quota"
	if at != "" {
		where = "the cgroup " + at + " is out of its CPU quota"
		if quota > 0 {
			where += " of " + cpusText(quota) + " CPUs"
		}
	}
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("%s no thread of the process may run, because %s", p.stoodShares(), where)
		if n, longest, _ := slowStandstills(p, true); n > 0 {
			f.Summary = fmt.Sprintf("the process stood still for %s or more %s, at most for %s at %s, because %s",
				finding.Duration(p.Facts.SlowOver), times(int64(n), "time", "times"),
				finding.Duration(longest.End-longest.Begin), p.at(longest.Begin), where)
		}
	} else {
		f.Summary = fmt.Sprintf("%s stand still for %s (%s of their time) because %s", p.who(),
			p.per(p.NS()), p.share(p.NS()), where)
	}
	if k.ThrottledNS > 0 {
		p.Proof("kernel records",
			"no thread of the process ran and one was throttled for %s of %s, %s",
			finding.Duration(k.StoodNS), finding.Duration(wall(k)), percent(stoodStill(p)))
	}
	countedLine(p)
	threadsLine(p)
	heldLine(p)
	quotaProof(p)
	levelProof(p)
	through := p.tagged(func(t *account.Tags) int64 { return t.STWNS })
	if through > 0 {
		p.Proof(p.column(), "%s of it while the world was stopped or being stopped: long pauses are its symptom", p.share(through))
	}
	measureThrottled(p)
	if who := othersUseQuota(c); who != "" {
		f.Summary += "; " + who
		p.Proof("kernel records", "%s", who)
		f.Remedy = append(f.Remedy, "give the others in "+c.QuotaAt+
			" a cgroup and a quota of their own, or move this process out of it")
	}
	full := c != nil && c.QuotaNS > 0 && float64(c.UsedNS) > 0.9*float64(c.QuotaNS)
	if full {
		f.Remedy = append(f.Remedy, "the quota is used to "+percent(ratio(c.UsedNS, c.QuotaNS))+
			": raise it, or give the process less to do; fewer threads alone give back only a part")
		if ps, _ := procsOf(p); ps > limitCPUs(c) && limitCPUs(c) > 0 {
			f.Remedy = append(f.Remedy,
				fmt.Sprintf("meanwhile GOMAXPROCS=%d (now %d): the quota then lasts longer into each period", limitCPUs(c), ps))
		}
	} else if c != nil && c.QuotaNS > 0 && c.UsedNS > 0 {
		f.Remedy = append(f.Remedy, "only "+percent(ratio(c.UsedNS, c.QuotaNS))+
			" of the quota is used: bursts of many threads use it up early in a period; fewer threads at once (GOMAXPROCS, pools), or cpu.max.burst")
	}
	f.Remedy = append(f.Remedy, raiseQuota(p, at)...)
	f.Verify = p.verify("'throttled' of " + p.who() +
		" falls; nr_throttled is no measure, it stays high in cured programs too")
}

// measureThrottled counts what is measured: the kernel's mark on the thread says both who was
// awaited and what held it.
func measureThrottled(p *Pass) {
	k := p.Ledger.Kernel
	switch {
	case k.ThrottledNS == 0: // counted, of the group
	case len(p.pools) > 0:
		p.measured = p.pooled()
	default:
		p.measure()
	}
	if !k.PerTask && k.ThrottledNS > 0 {
		p.Cap("before Linux 6.18 the kernel marks the throttled group, not the thread")
	}
}

// throttledAt names the cgroup whose quota it is: the level whose own count of throttled time grew
// most, or otherwise the one with the least quota.
func throttledAt(p *Pass) (path string, quota float64) {
	var most float64
	for level, grew := range levels(p, "/cgroup/level/cpu/throttled:ns") {
		if grew > most || grew == most && grew > 0 && len(level) < len(path) {
			path, most = level, grew
		}
	}
	if path != "" {
		for _, rec := range p.Set.All("/cgroup/level/cpu/quota:cpus") {
			if rec.Text == path {
				return path, rec.Value
			}
		}
		return path, 0
	}
	if c := p.Ledger.CPUs; c != nil && c.Quota > 0 {
		return c.QuotaAt, c.Quota
	}
	return "", 0
}

// levels is how much a counter grew, by level of the cgroup.
func levels(p *Pass, stream string) map[string]float64 {
	first, grew := map[string]float64{}, map[string]float64{}
	for _, rec := range p.Set.All(stream) {
		if rec.Shape != evidence.Counter {
			continue
		}
		if v, ok := first[rec.Text]; !ok {
			first[rec.Text] = rec.Value
		} else if d := rec.Value - v; d > 0 {
			grew[rec.Text] = d
		}
	}
	return grew
}

func quotaProof(p *Pass) {
	c := p.Ledger.CPUs
	if c == nil || c.Quota <= 0 {
		if rec, ok := p.Set.Fact("/cgroup/hidden:text"); ok {
			p.Proof("not checked", "the quota is at a level that could not be seen: %s", rec.Text)
		}
		return
	}
	used := ""
	if c.UsedNS > 0 && c.QuotaNS > 0 {
		used = fmt.Sprintf(", of which the group used %s (%s)", finding.Duration(c.UsedNS),
			percent(ratio(c.UsedNS, c.QuotaNS)))
	}
	p.Proof("cgroup: "+c.QuotaAt, "the effective quota is %s CPUs of %d allowed: %s in %s%s",
		cpusText(c.Quota), c.Allowed, finding.Duration(c.QuotaNS), finding.Duration(c.WallNS), used)
}

func levelProof(p *Pass) {
	grew := levels(p, "/cgroup/level/cpu/throttled:ns")
	n := 0
	for _, rec := range p.Set.All("/cgroup/level/cpu/quota:cpus") {
		if n++; n > 4 {
			break
		}
		p.Proof("cpu.stat of "+rec.Text, "quota %s CPUs; throttled for %s, summed over its CPUs",
			cpusText(rec.Value), finding.Duration(int64(grew[rec.Text])))
	}
}

// raiseQuota is the commands that raise a quota, by the version of the cgroup.
func raiseQuota(p *Pass, at string) []string {
	if at == "" {
		at = "/GROUP"
	}
	path := strings.TrimPrefix(at, "/sys/fs/cgroup")
	var rs []string
	if rec, ok := p.Set.Fact("/cgroup/version:text"); ok && rec.Text == "v1" {
		dir := at
		if !strings.HasPrefix(at, "/sys/fs/cgroup") {
			dir = "/sys/fs/cgroup/cpu" + path
		}
		rs = append(rs, "raise the quota: echo 200000 > "+dir+
			"/cpu.cfs_quota_us (2 CPUs; -1 removes it); it costs the neighbours what this process then uses")
	} else {
		rs = append(rs, "raise the quota: echo '200000 100000' > /sys/fs/cgroup"+path+
			"/cpu.max (2 CPUs; 'max 100000' removes it); it costs the neighbours what this process then uses")
	}
	return append(rs, "the same in a unit: systemctl set-property UNIT CPUQuota=200%; in Kubernetes resources.limits.cpu, or requests alone, which become a share and stop nobody")
}
