package detect

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "cpu-contention",
	Title: "Threads wait for a CPU that others have",
	Needs: []string{KernelRecords},
	// Beside requests that lose nothing, what neighbours took from other threads is no finding:
	// each host has them, and in healthy programs it reached half of the CPUs.
	Scopes: []finding.Scope{finding.Slow, finding.Usual},
	// A thread that waits less than a few time slices of the kernel (2.8 ms here, 4 ms in many) met
	// the neighbours that every host has.
	Floor: queueFloor,
	Fast:  never,
	Hint:  cpuHints,
	Doc: `What happens
  A thread that is ready to run waits in a CPU's run queue, because another thread runs there: a
  neighbour's, or one of the same process. While it waits, it may hold a lock, the end of a
  stop-the-world, or a P with goroutines queued behind it, so that many requests wait for one
  thread. Go calls the goroutine "running" all the while.

Evidence
  Switch records of all CPUs: for each wait of a thread of the target, who had that CPU, by
  command, pid and cgroup. Time in the slow column: "no CPU (own threads)" or "no CPU (NAME)". If
  a CPU was idle while a thread waited for it, that is said: it is wake-up latency, or the
  hypervisor ran something else (steal is printed beside it). Where no request is visible: the CPU
  time that others took while threads of the target were queued.

Not to be taken for
  Throttling: a thread that is out of quota waits for nobody (cpu-throttled). Steal: the
  hypervisor took the CPU, and no neighbour here is to blame. A full Go run queue, with the
  threads on their CPUs (sched-latency). More Ps than CPUs: the other threads are Go's own then,
  and the number of Ps is the root (gomaxprocs, gomaxprocs-over-quota). Many more runnable threads
  than CPUs: runqueue-saturation. A busy neighbour that took nothing from a request. A lock whose
  holder waits behind threads of its own process (lock-contention, logger-lock).

Remedy
  Neighbours: move them (taskset -pc, cpuset.cpus, systemd AllowedCPUs=), lower their weight
  (cpu.weight, CPUWeight=, nice), or give this process a larger one. A weight costs the neighbour
  only what both want at once. Own threads: fewer of them, or more CPUs.

Verify
  whystall diagnose under the same load: "no CPU" of slow requests falls, and the neighbour is
  gone from the list.

Sources
  Documentation/scheduler/sched-eevdf.rst, admin-guide/cgroup-v2.rst (cpu.weight); LinuxKI's run
  queue reports; golang/go#17969 (idle GC workers disturb neighbours).`,
	Look: lookContention,
	Tell: tellContention,
})

// A tenth of the CPUs that the target may use, taken while it was queued there, and a fifth of the
// CPU time that it wanted. A busy host takes less from a healthy process.
const (
	othersShare = 0.10
	queuedShare = finding.QueuedForCPU
)

func lookContention(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	unlessThrottled(p)
	if joined(r) {
		claimContention(p)
		if len(p.claims) == 0 {
			behind := "no CPU"
			if ns := behindRecorder(r); ns > 0 {
				behind = fmt.Sprintf("no CPU, except %s of their time for those that this recording had", percent(ratio(ns, r.Slow.WallNS)))
			}
			p.Clear("%s waited for %s; %s", p.who(), behind, queuedText(k))
		}
		return
	}
	_, others, _ := queueShare(k)
	o := wantedCPU(k)
	if !k.AllTasks && ratio(o.queued, o.wanted) >= queuedShare {
		p.Blind(fmt.Sprintf("who had the CPUs for which its threads were queued during %s of the time in which they wanted one: without privilege the switches of other processes are not recorded (see whystall doctor)", percent(ratio(o.queued, o.wanted))))
		return
	}
	if n, _, share := slowStandstills(p, false); n > 0 && r.CPUs != nil && r.CPUs.OthersNS > 0 {
		p.claimTerm(termOthers, r.CPUs.OthersNS, share)
		return
	}
	if r.CPUs == nil || ratio(r.CPUs.OthersNS, r.CPUs.TotalNS) < othersShare || ratio(others, o.wanted) < queuedShare {
		p.Bound(0, ratio(others, o.wanted), finding.OfWall)
		p.Clear("others took %s of the CPUs while its threads were queued; %s", percent(othersOf(r)), queuedText(k))
		return
	}
	p.claimTerm(termOthers, r.CPUs.OthersNS, ratio(others, workTime(k)))
}

func claimContention(p *Pass) {
	reclaims := hostReclaims(p) // kswapd and kcompactd belong to direct-reclaim then
	usual := p.board.scope == finding.Usual
	load := usual || p.Ledger.Native && fairShare(p.Ledger) != nil
	kept := func(what account.Leaf, who string) bool {
		if load && isOwn(who) {
			return false // what high load is: every request waits for the ones before it
		}
		return what == account.LeafNoCPU && !isIdle(who) && who != recorder && !(reclaims && isReclaimer(who))
	}
	// Where a lock's holder waits behind threads of the process, the lock is the root: they do the
	// process's own work, and those who wait would not without it, as in Go's run queue.
	p.ClaimWhere(func(a *account.Account) bool {
		return kept(a.Leaf, a.Detail) && !(a.Class == account.ClassLock && isOwn(a.Detail))
	})
	// A P whose thread is queued behind another of the process waits for the process's own work, as
	// other Ps' threads do.
	p.ClaimLacking(func(what account.Leaf, who string) bool { return kept(what, who) && !isOwn(who) })
	if usual {
		return
	}
	if p.below(p.Claimed()) != "" {
		// Nobody had the CPU. It is worth saying, with a doubt, where that is what was lost.
		p.ClaimWhere(func(a *account.Account) bool { return a.Leaf == account.LeafNoCPU && isIdle(a.Detail) })
		p.ClaimLacking(func(what account.Leaf, who string) bool { return what == account.LeafNoCPU && isIdle(who) })
	}
	part := p.Ledger.Kernel.QueuedNS
	if own, others, _ := queueShare(p.Ledger.Kernel); own > others {
		part = max(0, part-own) // Ps' threads wait mostly for the process's own work
	}
	p.claimHeld(part)
}

func othersOf(r *account.Result) float64 {
	if r.CPUs == nil {
		return 0
	}
	return ratio(r.CPUs.OthersNS, r.CPUs.TotalNS)
}

func queuedText(k *account.Kernel) string {
	o := wantedCPU(k)
	own, others, _ := queueShare(k)
	return fmt.Sprintf("its threads were queued for %s of the time in which they wanted a CPU (behind own threads %s, behind others %s)",
		percent(ratio(o.queued, o.wanted)), percent(ratio(own, o.wanted)), percent(ratio(others, o.wanted)))
}

// nobodyRecorded stands for whoever had a CPU where the records do not say: switches of others were
// folded, or not recorded.
const nobodyRecorded = "somebody who was not recorded"

// grantedBehind sums what was granted by who had the CPU.
func grantedBehind(p *Pass) (own, idle, others int64, names []account.Instead) {
	by := map[string]int64{}
	add := func(who string, ns int64) {
		switch {
		case isOwn(who):
			own += ns
		case isIdle(who):
			idle += ns
		default:
			others += ns
			if who == "" {
				who = nobodyRecorded
			}
			by[who] += ns
		}
	}
	p.granted(func(a *account.Account, ns int64) {
		if a.Leaf == account.LeafNoCPU {
			add(a.Detail, ns)
		}
		all := lacking(a, lacks(account.LeafNoCPU))
		for i := range a.Instead {
			if w := &a.Instead[i]; a.Leaf == account.LeafRunnable && w.Leaf() == account.LeafNoCPU {
				add(w.Who, scale(min(ns, all), w.NS, all))
			}
		}
	})
	for who, ns := range by {
		names = append(names, account.Instead{Who: who, NS: ns})
	}
	sort.Slice(names, func(i, j int) bool {
		if names[i].NS != names[j].NS {
			return names[i].NS > names[j].NS
		}
		return names[i].Who < names[j].Who
	})
	return own, idle, others, names
}

func tellContention(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	ownQ, othersQ, _ := queueShare(k)
	var own, idle, others int64
	var names []account.Instead
	if len(p.pools) > 0 {
		own, others = 0, p.pooled()
		f.Summary = fmt.Sprintf("others took %s of CPU time (%s of what the process may use) while its threads were queued for it", finding.Duration(p.pooled()), percent(ratio(p.pooled(), p.total)))
		if n, longest, _ := slowStandstills(p, false); n > 0 {
			f.Summary += fmt.Sprintf("; it made the process stand still for %s or more %s, at most %s at %s", finding.Duration(p.Facts.SlowOver), times(int64(n), "time", "times"),
				finding.Duration(longest.End-longest.Begin), p.at(longest.Begin))
		}
		p.measured = p.pooled()
	} else {
		own, idle, others, names = grantedBehind(p)
		behind := "threads of the process itself"
		switch {
		case others >= own && others >= idle && len(names) > 0:
			behind = names[0].Who
			if top, n := neighbour(k, ""); behind == nobodyRecorded && k.AllTasks && n > 0 {
				behind = "other processes; of the few turns that were recorded one by one most were " + top.Comm + "'s"
			} else if len(names) > 1 && 4*names[1].NS > names[0].NS {
				behind += " and " + names[1].Who
			}
		case idle > own:
			behind = "nobody: the CPU was idle, so this is wake-up latency or steal"
		}
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for a CPU, mostly behind %s",
			p.who(), p.per(p.NS()), p.share(p.NS()), behind)
		p.Proof(p.column(), "behind own threads %s, behind others %s, with the CPU idle %s",
			p.share(own), p.share(others), p.share(idle))
		p.measure()
	}
	if n := neighbours(k, false, 5); n != "" {
		p.Proof("kernel records: who held the CPU where threads were queued", "others: %s", n)
	}
	if ownQ > 0 {
		p.Proof("kernel records: who held the CPU where threads were queued", "own threads: %s", finding.Duration(ownQ))
	}
	threadsLine(p)
	heldLine(p)
	steal(p)
	if !k.AllTasks {
		p.Cap("switches of other processes were not recorded, so it is not known who ran instead")
	}
	if 2*idle > own+others+idle {
		p.Doubt("most of the time the CPU was idle while the thread was queued there: this is wake-up latency or steal, and no neighbour")
	}
	if idle > own+others {
		f.Remedy = append(f.Remedy,
			"a virtual machine: look at steal (top, /proc/stat), and ask for a host that is less full",
			"bare metal: look for idle states that take long to leave; cpupower idle-set -D 50 forbids them and costs power")
	} else if own > others {
		f.Remedy = append(f.Remedy,
			fmt.Sprintf("own threads wait for each other (%.1f wanted a CPU on average): run fewer threads at once, or use more CPUs", k.RunnableAvg))
	} else {
		who := ""
		if len(names) > 0 {
			who = names[0].Who
		}
		top, n := neighbour(k, who)
		work := kernelThread(k, who)
		if work != "" {
			f.Remedy = append(f.Remedy, fmt.Sprintf("%s is the kernel's own thread and does %s", who, work))
			// Moving a program is worth it if that has not much less of the CPUs.
			if next := movable(k); next.Comm == "" || 4*next.NS < cpuTimeOf(k, who) {
				n = 0
			} else {
				top, n = neighbour(k, next.Comm)
			}
		}
		switch {
		case n == 0:
			who = "the neighbour"
		case n == 1:
			who = top.Comm
			f.Remedy = append(f.Remedy,
				fmt.Sprintf("move %s away: taskset -apc CPUS %d, or cpuset.cpus of its cgroup; it then has fewer CPUs", top.Comm, top.PID))
		default:
			who = top.Comm
			f.Remedy = append(f.Remedy,
				fmt.Sprintf("move the %d processes %s away: cpuset.cpus of their cgroup (AllowedCPUs= of the unit), or start them under taskset -c CPUS; they then have fewer CPUs", n, top.Comm))
		}
		f.Remedy = append(lightness(p), f.Remedy...)
		if n > 0 || work == "" {
			f.Remedy = append(f.Remedy,
				"use weights: systemctl set-property UNIT CPUWeight=1000 for this process, or renice 19 for "+who+"; it costs the other only where both want the same CPU")
		}
		if othersQ == 0 {
			f.Remedy = append([]string{"see who it is: top -H; cat /proc/pressure/cpu"}, f.Remedy...)
		}
	}
	f.Verify = p.verify("'no CPU' of " + p.who() + " falls")
	if p.Ledger.Requests.Count == 0 {
		f.Verify = p.verify("'taken by others' and the threads' 'queued' fall")
	}
}

// lightness looks for a weight below the usual. Then it matters less who else is on the CPUs than
// that this process yields to them. Weights count only within one group, of threads and of groups
// alike, so this proves no more than a handicap.
func lightness(p *Pass) (remedies []string) {
	if rec, ok := p.Set.Fact("/process/nice:nice"); ok && rec.Value > 0 {
		p.Proof("process: stat",
			"its own nice is %.0f: beside a thread of its cgroup with nice 0, one of its threads gets about 1/%.0f of a CPU", rec.Value, 1+math.Pow(1.25, rec.Value))
		pid := "PID"
		for _, b := range p.Ledger.Kernel.Neighbours {
			if b.Own && b.PID > 0 {
				pid = strconv.Itoa(int(b.PID))
			}
		}
		remedies = append(remedies,
			fmt.Sprintf("give its weight back: renice 0 -p $(ls /proc/%s/task), and remove nice, or Nice= of its unit, from the way it is started", pid))
	}
	if rec, ok := p.Set.Fact("/cgroup/cpu/weight:weight"); ok {
		usual, name := 100.0, "cpu.weight"
		if rec.Text == "shares" {
			usual, name = 1024, "cpu.shares"
		}
		if rec.Value > 0 && 2*rec.Value <= usual {
			p.Proof("cgroup", "%s of its group is %.0f: beside a group with the usual %.0f it gets about 1/%.0f of a CPU", name, rec.Value, usual, 1+usual/rec.Value)
			remedies = append(remedies,
				fmt.Sprintf("raise %s of its cgroup from %.0f to %.0f (CPUWeight= of the unit; in Kubernetes resources.requests.cpu)", name, rec.Value, usual))
		}
	}
	return remedies
}

// neighbour returns the largest of the others, and how many processes have its name. Those called
// who come first, if there are any.
func neighbour(k *account.Kernel, who string) (top account.Neighbour, n int) {
	for pass := 0; pass < 2 && n == 0; pass++ {
		for _, b := range k.Neighbours {
			if b.Own || b.PID == 0 || b.Comm == recorder || strings.HasPrefix(b.Comm, "swapper") ||
				pass == 0 && b.Comm != who || n > 0 && b.Comm != top.Comm {
				continue
			}
			if n++; n == 1 {
				top = b
			}
		}
	}
	return top, n
}
