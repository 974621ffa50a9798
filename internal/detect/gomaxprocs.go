package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

const procsStream = "/go/sched/gomaxprocs:threads"

var _ = register(&Detector{
	Name:  "gomaxprocs",
	Title: "GOMAXPROCS does not fit the CPUs",
	Needs: []string{Trace, procsStream},
	Go:    true,
	Floor: queueFloor,
	Fast:  never,
	Doc: `What happens
  GOMAXPROCS is how many goroutines may run at once. Far fewer Ps than CPUs: goroutines queue for
  a P while CPUs are idle. More Ps than CPUs: threads that Go calls running wait for a CPU in the
  kernel while they hold a P, a lock or the end of a stop-the-world; under a quota all of them are
  throttled together.

Evidence
  GOMAXPROCS (trace or metrics) against the CPUs that the process may use. Too few: slow requests
  wait while other goroutines have all Ps and CPUs are idle; where that is not measured, all Ps
  busy and goroutines runnable all the time. Too many: silences with fewer goroutines running than
  Ps. The setting alone is a risk and never a cause: without lost time there is no finding. Only
  the kernel's records show whether CPUs were idle, or threads queued behind threads of the same
  process; without them the finding is possible and no more.

Not to be taken for
  A CPU quota below GOMAXPROCS: gomaxprocs-over-quota. Neighbours on the CPUs: cpu-contention. A
  full server: as many Ps as CPUs, all busy, is sched-latency. GOMAXPROCS 2 with a limit below one
  CPU: it is by design since Go 1.25 (golang/go#74283). An upgrade to Go 1.25 or later: GOMAXPROCS
  follows the cgroup's limit since then, and may have dropped.

Remedy
  Too few: raise GOMAXPROCS to the CPUs. GODEBUG=containermaxprocs=0 if Go 1.25 lowered it and no
  throttling shows. Too many: set GOMAXPROCS to the effective quota, the minimum over all
  ancestors of the cgroup (Go looks at one, golang/go#81180). Then verify on requests, not on
  pauses.

Verify
  whystall diagnose under the same load with the new setting: p99 falls. Fewer or shorter pauses
  alone are no proof; nr_throttled may stay high in a cured run too.

Sources
  golang/go#81180, #74283, #59715, #18534; observIQ/bindplane-otel-collector#3630; the case "GC
  pauses often above 100 ms": GOMAXPROCS 76 with a quota of half a CPU, 2019.`,
	Look: lookGomaxprocs,
	Tell: tellGomaxprocs,
})

// procs is GOMAXPROCS and the CPUs that the target may use; 0 is not known.
func procs(p *Pass) (ps, cpus int) {
	if p.Ledger != nil {
		ps, cpus = p.Ledger.Capacity.Procs, p.Ledger.Capacity.CPUs
	}
	if v, ok := latest(p, procsStream); ok && ps == 0 && v > 0 && v < 1e6 {
		ps = int(v)
	}
	if p.Ledger != nil && p.Ledger.CPUs != nil && p.Ledger.CPUs.Allowed > 0 {
		cpus = p.Ledger.CPUs.Allowed
	}
	if cpus == 0 {
		cpus = p.Facts.CPUs
	}
	return ps, cpus
}

func lookGomaxprocs(p *Pass) {
	ps, cpus := procs(p)
	switch {
	case ps == 0:
		p.Blind("GOMAXPROCS: neither the trace nor /metrics has it")
		return
	case cpus == 0:
		p.Blind(fmt.Sprintf("how many CPUs the target may use (GOMAXPROCS is %d): compare it with nproc and the cgroup's cpu.max on its host", ps))
		return
	case p.blindTrace() != "":
		if ps == cpus {
			p.Absent("GOMAXPROCS is %d, as many as CPUs", ps)
			return
		}
		p.Blind(fmt.Sprintf("whether time is lost to GOMAXPROCS %d with %d CPUs: it needs an execution trace", ps, cpus))
		return
	case p.Found("gomaxprocs-over-quota"):
		p.Absent("GOMAXPROCS is %d with %d CPUs, but the quota is smaller: see gomaxprocs-over-quota", ps, cpus)
	case 2*ps <= withinQuota(p, cpus):
		lookTooFew(p, ps, cpus)
	case ps > cpus:
		lookTooMany(p, ps, cpus)
	default:
		quota := ""
		if q := withinQuota(p, cpus); q < cpus {
			quota = fmt.Sprintf(" and a quota that has room for %d", q)
		}
		p.Absent("GOMAXPROCS is %d with %d CPUs%s", ps, cpus, quota)
	}
}

// withinQuota is for how many of the CPUs the quota has room: more Ps than that are no remedy.
func withinQuota(p *Pass, cpus int) int {
	if p.Ledger != nil {
		if q := limitCPUs(p.Ledger.CPUs); q > 0 {
			return min(q, cpus)
		}
	}
	return cpus
}

// lookTooFew claims waiting for a P. If the kernel's records show idle CPUs, it claims what slow
// requests waited while other goroutines had all Ps: work comes in bursts. Otherwise all Ps must
// have been busy, with work for twice as many, during the whole recording.
func lookTooFew(p *Pass, ps, cpus int) {
	if idle, ok := idleCPUs(p.Ledger); ok {
		if idle < 0.25 {
			p.Clear("GOMAXPROCS is %d with %d CPUs, but the CPUs were idle only %s of the time", ps,
				cpus, percent(idle))
			return
		}
		for i := range p.Ledger.Slow.Accounts {
			if a := &p.Ledger.Slow.Accounts[i]; a.Leaf == account.LeafRunnable {
				p.Claim(i, a.NS-notAtWork(a)-instead(a, account.InsteadIdle)-instead(a, account.InsteadUnknown)-late(a))
			}
		}
		if why := p.below(p.Claimed()); why != "" {
			p.Clear("GOMAXPROCS is %d with %d CPUs; slow requests waited %s each while other goroutines had all Ps", ps, cpus, p.per(p.Claimed()))
		}
		return
	}
	c := &p.Ledger.Capacity
	if idle := ratio(c.IdleNS+c.IdleWorkNS+c.IdleGCNS, c.TotalNS); idle > 0.15 || c.RunnableAvg < float64(ps) {
		p.Clear("GOMAXPROCS is %d with %d CPUs, but Ps were idle %s of the time and %.1f goroutines were waiting for one on average", ps, cpus, percent(idle), c.RunnableAvg)
		return
	}
	p.ClaimWhere(func(a *account.Account) bool { return a.Leaf == account.LeafRunnable })
	p.Doubt("it is not measured that CPUs were idle meanwhile")
}

// idleCPUs is the part of the CPUs that the target may use which nobody used.
func idleCPUs(r *account.Result) (share float64, ok bool) {
	if r == nil || r.CPUs == nil || r.Kernel == nil || !r.Kernel.AllTasks || r.CPUs.TotalNS == 0 {
		return 0, false
	}
	return ratio(r.CPUs.IdleNS, r.CPUs.TotalNS), true
}

// lookTooMany claims what requests waited behind own threads, where the kernel's records show it,
// or otherwise what passed while the process stood still.
func lookTooMany(p *Pass, ps, cpus int) {
	if joined(p.Ledger) {
		claimOwnQueue(p)
		if why := p.below(p.Claimed()); why != "" {
			p.Clear("GOMAXPROCS is %d with %d CPUs: a risk, but slow requests waited only %s each for a CPU behind own threads", ps, cpus, p.per(p.Claimed()))
		}
		return
	}
	s := &p.Ledger.Silences
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		p.Claim(i, min(a.NS, scale(a.Tags.SilenceNS, s.FewNS, s.NS)))
	}
	if why := p.below(p.Claimed()); why != "" {
		p.Clear("GOMAXPROCS is %d with %d CPUs: a risk, but slow requests lost only %s each while the process stood still", ps, cpus, p.per(p.Claimed()))
		return
	}
	p.Doubt("it is not measured that the number of Ps made the process stand still; a busy host does the same")
}

func tellGomaxprocs(p *Pass, f *finding.Finding) {
	ps, cpus := procs(p)
	c := &p.Ledger.Capacity
	p.Proof("execution trace", "GOMAXPROCS is %d", ps)
	p.Proof("host", "%s", times(int64(cpus), "CPU", "CPUs"))
	if idle, ok := idleCPUs(p.Ledger); ok && ps < cpus {
		p.Proof("kernel records", "of %d CPUs x %s, %s were idle", p.Ledger.CPUs.Allowed,
			finding.Duration(p.Ledger.CPUs.WallNS), percent(idle))
	}
	switch {
	case ps < cpus:
		which := "the only P"
		if ps > 1 {
			which = fmt.Sprintf("one of %d Ps", ps)
		}
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for %s, on a machine with %d CPUs",
			p.who(), p.per(p.NS()), p.share(p.NS()), which, cpus)
		p.Proof("ledger: capacity",
			"Ps were busy %s of the time; %.1f goroutines waited for one on average, %d at most",
			percent(1-ratio(c.IdleNS+c.IdleWorkNS, c.TotalNS)), c.RunnableAvg, c.RunnableMax)
		set := fmt.Sprintf("GOMAXPROCS=%d, or unset it", withinQuota(p, cpus))
		if _, ok := idleCPUs(p.Ledger); !ok {
			set = "if top shows idle CPUs and there is no quota: " + set
		}
		f.Remedy = append(f.Remedy, set,
			"Go 1.25 and later take it from the cgroup's limit (see cpu.max); GODEBUG=containermaxprocs=0 turns that off")
	case joined(p.Ledger):
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for a CPU behind other threads of the process: GOMAXPROCS is %d with %d CPUs", p.who(), p.per(p.NS()), p.share(p.NS()), ps, cpus)
		threadsLine(p)
		heldLine(p)
		p.measure()
		if !p.Ledger.Kernel.AllTasks {
			p.Cap("switches of other processes were not recorded")
		}
		f.Remedy = append(f.Remedy,
			fmt.Sprintf("GOMAXPROCS=%d or less; it costs nothing where all CPUs were in use anyway", cpus))
	default:
		f.Summary = fmt.Sprintf("%s lose %s (%s of their time) while the whole process stands still, and GOMAXPROCS (%d) is above the CPUs (%d)", p.who(), p.per(p.NS()), p.share(p.NS()), ps, cpus)
		f.Remedy = append(f.Remedy,
			fmt.Sprintf("GOMAXPROCS=%d or less: the smallest quota among the cgroup's ancestors (cat cpu.max, or cpu.cfs_quota_us / cpu.cfs_period_us)", cpus),
			"see throttling: nr_throttled and throttled time in the cgroup's cpu.stat")
	}
	f.Verify = p.verify("p99 is below " + finding.Duration(p.Ledger.Requests.P99) +
		"; judge by requests, not by pauses")
}
