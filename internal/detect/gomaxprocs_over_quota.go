package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "gomaxprocs-over-quota",
	Title:  "GOMAXPROCS is above the CPU quota",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	Go:     true,
	Floor:  Floor{NS: 5e6, Share: 0.10},
	Doc: `What happens
  GOMAXPROCS Ps run on as many threads at once, and a GC cycle wakes workers on all idle ones. A
  quota of half a CPU then lasts for less than a ms of each period, and for the rest of the period
  the process stands still. Whoever was to stop the world, or to start it again, is throttled or
  queued behind the process's own threads. Requests see pauses of 100 ms, with a tenth of a CPU in
  use.

Evidence
  GOMAXPROCS > max(1, ceil(effective quota in CPUs)); the effective quota is the least of all
  ancestors. And time that was lost to it: throttled, or queued behind own threads, with more
  threads at once than the quota has CPUs. Both are in the kernel's records. Long stop-the-worlds
  and ragged barriers stand under it as its symptoms.

Not to be taken for
  A large number of Ps that costs nothing: without lost time there is no finding. A program that
  is throttled with a single busy thread: any number of Ps is throttled alike (cpu-throttled).
  Neighbours on the CPU: their part is cpu-contention's. GOMAXPROCS 2 at half a CPU is Go 1.25's
  own floor; it is this cause all the same if time was lost.

Remedy
  GOMAXPROCS=N, where N is the quota rounded up, at least 1. Set it by hand, by
  go.uber.org/automaxprocs, or by Go 1.25 and later, which looks at the cgroup's own limit, at no
  ancestor's (golang/go#81180), and never goes below 2. Or raise the quota. It costs: fewer
  goroutines run at once where the quota had room for bursts. With one P the symptom goes while
  throttling may stay: in one measurement half of the loss stayed.

Verify
  whystall diagnose under the same load: judge by requests, p99 and 'throttled'. Pauses and
  nr_throttled prove nothing.

Sources
  The case "GC pauses often above 100 ms", 40 QPS at a tenth of a core, GOMAXPROCS 76 with half a
  CPU, 2019; golang/go#59715, #74283, #81180; go.uber.org/automaxprocs.`,
	Look: lookOverQuota,
	Tell: tellOverQuota,
})

func lookOverQuota(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	limit := limitCPUs(r.CPUs)
	ps, from := procsOf(p)
	switch {
	case r.CPUs == nil:
		p.Blind("the effective CPU quota: the cgroup was not read")
		return
	case limit == 0:
		if rec, ok := p.Set.Fact("/cgroup/hidden:text"); ok && k.ThrottledNS > 0 {
			p.Blind("the quota that throttles it is at a level that is not visible from here: " + rec.Text)
			return
		}
		p.Absent("no CPU quota at any level that was seen")
		return
	case ps == 0:
		p.Blind("GOMAXPROCS: neither the trace, nor /metrics, nor the environment has it")
		return
	case ps <= limit:
		p.Absent("GOMAXPROCS is %d with a quota of %s CPUs", ps, cpusText(r.CPUs.Quota))
		return
	}
	if one := oneThread(r, limit); one != "" {
		p.Absent("GOMAXPROCS is %d with a quota of %s CPUs, but %s: fewer Ps would be throttled alike", ps, cpusText(r.CPUs.Quota), one)
		return
	}
	if who := othersUseQuota(r.CPUs); who != "" {
		p.Absent("GOMAXPROCS is %d with a quota of %s CPUs, but %s: fewer Ps would be throttled alike", ps, cpusText(r.CPUs.Quota), who)
		return
	}
	if share, back := usedUp(r), givesBack(r.CPUs, ps, limit); share > 0.9 && back < leastBack {
		p.Absent("GOMAXPROCS is %d with a quota of %s CPUs, but its work uses %s of that with any number of Ps, and %s would shorten each standstill by only %s",
			ps, cpusText(r.CPUs.Quota), percent(share), times(int64(limit), "P", "Ps"), percent(back))
		return
	}
	if lookCountedPs(p, ps) {
		return
	}
	if !joined(r) {
		own, _, _ := queueShare(k)
		stood, enough := p.stood(own)
		if !enough {
			if share := stoodStill(p); share < processUses {
				stood = share
			}
			p.Bound(0, stood, finding.OfWall)
			p.Clear("GOMAXPROCS is %d with a quota of %s CPUs: a risk, but only %s", ps,
				cpusText(r.CPUs.Quota), p.stoodText())
			return
		}
		p.claimTerm(termThrottled, r.CPUs.ThrottledNS, stood)
		// Between two standstills its threads wait behind each other, which fewer Ps end as well.
		p.weight = max(p.weight, ratio(k.ThrottledNS+own, wantedCPU(k).wanted))
		if from != "" {
			p.Cap("GOMAXPROCS is not measured, but %s", from)
		}
		return
	}
	p.ClaimWhere(leaf(account.LeafThrottled))
	p.ClaimLacking(lacks(account.LeafThrottled))
	throttled := p.Claimed()
	p.ClaimWhere(ownQueue)
	p.ClaimLacking(lacksForOwn)
	own, _, _ := queueShare(k)
	p.claimHeld(k.ThrottledNS + own)
	if why := p.below(p.Claimed()); why != "" || throttled == 0 {
		p.Clear("GOMAXPROCS is %d with a quota of %s CPUs: a risk, but %s lost only %s each to throttling and %s behind own threads",
			ps, cpusText(r.CPUs.Quota), p.who(), p.per(throttled), p.per(p.Claimed()-throttled))
	}
}

// ownQueue reports whether the account is waiting for a CPU behind the process's own threads.
func ownQueue(a *account.Account) bool { return a.Leaf == account.LeafNoCPU && isOwn(a.Detail) }

// lacksForOwn is the same for threads that held Ps.
func lacksForOwn(what account.Leaf, who string) bool { return what == account.LeafNoCPU && isOwn(who) }

// claimOwnQueue claims such waits, and the part of Go's run queue that they cause.
func claimOwnQueue(p *Pass) {
	p.ClaimWhere(ownQueue)
	p.ClaimLacking(lacksForOwn)
	own, _, _ := queueShare(p.Ledger.Kernel)
	p.claimHeld(own)
}

// oneThread says that no more threads than the quota has CPUs wanted to run at once, "" if more
// did. The number of Ps did not use the quota up then. While such a process stands still, about one
// thread is throttled for each CPU of the limit, and sysmon.
func oneThread(r *account.Result, limit int) string {
	k := r.Kernel
	if k.RunnableMax > 0 && k.RunnableMax <= limit {
		return fmt.Sprintf("at most %s wanted a CPU at once", times(int64(k.RunnableMax), "thread", "threads"))
	}
	if k.StoodNS > 0 {
		if at := ratio(k.ThrottledNS, k.StoodNS); at < 1.25*float64(limit) {
			return fmt.Sprintf("while it stood still %.1f threads were throttled on average", at)
		}
	}
	return ""
}

// usedUp is the part of the quota that the group would use with any number of Ps. It leaves out
// GC's idle-priority workers, which run on any free P.
func usedUp(r *account.Result) float64 {
	c := r.CPUs
	if c == nil || c.QuotaNS <= 0 {
		return 0
	}
	spent := float64(c.UsedNS)
	if g := &r.Capacity; g.IdleGCNS > 0 {
		spent -= ratio(g.IdleGCNS, g.RunningNS+g.SyscallNS+g.GCNS) * float64(c.RunningNS)
	}
	return spent / float64(c.QuotaNS)
}

// leastBack is the least part that fewer Ps must give back to be the remedy where all of the quota
// is used.
const leastBack = 0.25

// givesBack is the part of a standstill that limit Ps instead of ps would save. n CPUs at once use
// up a quota of q CPUs after q/n of the period, and stand still for the rest [a server used 97 % of
// 0.22 CPUs: clients saw a p99 of 72 ms with 8 Ps, 71 with 2, 65 with 1; the formula says 12 %].
func givesBack(c *account.CPUs, ps, limit int) float64 {
	n := ps
	if c.Allowed > 0 {
		n = min(n, c.Allowed)
	}
	now, then := 1-c.Quota/float64(n), 1-c.Quota/float64(limit)
	if now <= 0 {
		return 0
	}
	return 1 - max(0, then)/now
}

// othersUseQuota says that other processes in the group with the quota used most of what was used,
// "" if they did not. The target is throttled for what they do then.
func othersUseQuota(c *account.CPUs) string {
	switch {
	case c == nil || c.Quota <= 0:
	case c.GroupOthersNS > c.GroupOwnNS:
		name := ""
		if len(c.GroupOthers) > 0 && c.GroupOthers[0].Who != "" {
			name = ", mostly " + c.GroupOthers[0].Who
		}
		return fmt.Sprintf("of the CPU time that %s used %s went to other processes in it%s",
			c.QuotaAt, percent(ratio(c.GroupOthersNS, c.GroupOthersNS+c.GroupOwnNS)), name)
	case c.UsedNS > 2*c.RunningNS && c.RunningNS > 0:
		return fmt.Sprintf("of the CPU time that %s used %s went to other processes in it",
			c.QuotaAt, percent(ratio(c.UsedNS-c.RunningNS, c.UsedNS)))
	}
	return ""
}

// procsOf is GOMAXPROCS. from says how it is known if it was not read from the runtime.
func procsOf(p *Pass) (ps int, from string) {
	if ps, _ = procs(p); ps > 0 {
		return ps, ""
	}
	if rec, ok := p.Set.Fact("/env/GOMAXPROCS:procs"); ok && rec.Value >= 1 && rec.Value < 1e6 {
		return int(rec.Value), "taken from the environment"
	}
	// Without the variable the runtime takes the CPUs of its affinity mask. From Go 1.25 on it
	// takes the quota as well, with a floor of 2.
	if c := p.Ledger.CPUs; c != nil && c.Allowed > 0 && seesNoQuota(p.Facts.GoVersion) {
		return c.Allowed, "the runtime's default, the CPUs it may use"
	}
	return 0, ""
}

// seesNoQuota reports whether a version of Go ignores the cgroup's quota. A version that is not
// known does not count.
func seesNoQuota(version string) bool {
	n := evidence.GoMinor(version)
	return n > 0 && n < 25
}

func tellOverQuota(p *Pass, f *finding.Finding) {
	r, k := p.Ledger, p.Ledger.Kernel
	ps, from := procsOf(p)
	limit, quota := limitCPUs(r.CPUs), cpusText(r.CPUs.Quota)
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("GOMAXPROCS is %d with a quota of %s CPUs at %s; %s no thread of the process is allowed to run", ps, quota, r.CPUs.QuotaAt, p.stoodShares())
	} else {
		queued := p.grantedOf(ownQueue)
		throttled := p.grantedOf(leaf(account.LeafThrottled, account.LeafNoCPU)) - queued
		f.Summary = fmt.Sprintf("GOMAXPROCS is %d with a quota of %s CPUs at %s; %s lose %s (%s of their time) to it: throttled %s, queued behind own threads %s",
			ps, quota, r.CPUs.QuotaAt, p.who(), p.per(p.NS()), p.share(p.NS()), p.share(throttled), p.share(queued))
	}
	if from == "" {
		from = "read from the runtime"
	}
	if len(p.pools) > 0 {
		own, _, _ := queueShare(k)
		o := wantedCPU(k)
		p.Proof("kernel records: threads",
			"of the time in which its threads wanted a CPU they were throttled %s, and queued behind each other %s", percent(ratio(o.throttled, o.wanted)), percent(ratio(own, o.wanted)))
	}
	p.Proof("runtime", "GOMAXPROCS is %d, %s; the quota has room for %d", ps, from, limit)
	quotaProof(p)
	if k.ThrottledNS > 0 {
		p.Proof("kernel records",
			"no thread of the process ran and one was throttled for %s of the time; meanwhile %.1f threads were throttled on average; at most %d were on a CPU or queued at once",
			percent(ratio(k.StoodNS, wall(k))), ratio(k.ThrottledNS, max(1, k.StoodNS)), k.RunnableMax)
	}
	countedLine(p)
	heldLine(p)
	measureThrottled(p)
	set := fmt.Sprintf("GOMAXPROCS=%d in the environment", limit)
	if minor := evidence.GoMinor(p.Facts.GoVersion); minor >= 25 {
		by := "see what sets it to %d: runtime.GOMAXPROCS, GODEBUG=containermaxprocs=0, a limit set after the start"
		if rec, ok := p.Set.Fact("/env/GOMAXPROCS:procs"); ok && int(rec.Value) == ps {
			by = "or take GOMAXPROCS=%d out of it"
		}
		set += fmt.Sprintf(" ("+by+
			"); by itself Go 1.%d follows the cgroup's own limit and no ancestor's, and never goes below 2", ps, minor)
	} else {
		set += ", or import _ \"go.uber.org/automaxprocs\"; or build with Go 1.25 or later, which takes it from the cgroup's own limit and from no ancestor's, and never goes below 2"
	}
	f.Remedy = append(f.Remedy, set,
		"or raise the quota to what the Ps use; see cpu-throttled")
	if c := r.CPUs; c.QuotaNS > 0 && float64(c.UsedNS) > 0.9*float64(c.QuotaNS) {
		f.Remedy = append(f.Remedy, "the quota is used to "+percent(ratio(c.UsedNS, c.QuotaNS))+
			": fewer Ps give back a part; the rest needs a larger quota or less work")
	}
	f.Verify = p.verify("'throttled' of " + p.who() + " falls, and p99 with it; judge by requests, not by pauses")
}

// grantedOf is what was granted of the accounts that ok accepts.
func (p *Pass) grantedOf(ok func(*account.Account) bool) (sum int64) {
	p.granted(func(a *account.Account, ns int64) {
		if ok(a) {
			sum += ns
		}
	})
	return sum
}
