package detect

import (
	"fmt"
	"math"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// KernelRecords is the need of detectors that read the kernel's records of the target's threads.
const KernelRecords = "/kernel/records"

// Terms of the capacity ledger of CPUs, for claims where no request is visible.
const (
	termRunning   = "CPUs: running"
	termThrottled = "CPUs: throttled"
	termOthers    = "CPUs: taken by others"
	termUnused    = "CPUs: unused"
)

// termThreads is the time in which threads had work, or waited for what a detector claims.
const termThreads = "time of threads with work: "

// unseen says why the first missing one of the sights is missing, "" if none is.
func unseen(k *account.Kernel, sights ...kernel.Sight) string {
	for _, m := range k.Missing {
		if m.Concerns(sights...) {
			return m.Why
		}
	}
	return ""
}

// needs says that the claim rests on an extra of the recorder, which may have been recorded a part
// of the time only.
func (p *Pass) needs(x kernel.Extra, what string) {
	p.partly, p.unrecorded = what, p.Ledger.Kernel.Untold[x]
}

// sampled corrects "clear" where it was decided from a part of the records: had as much been lost
// in the rest, would it still be clear?
func (b *board) sampled(p *Pass) {
	if p.unrecorded <= 0 {
		return
	}
	told := fmt.Sprintf("%s: recorded %s of the time only, since to record all of them would cost too much", p.partly, percent(1-p.unrecorded))
	switch {
	case p.outcome == found:
		p.Cap("%s", told)
	case p.outcome == clear && (!joined(p.Ledger) || p.unrecorded > 0.99 ||
		p.below(int64(float64(p.claimedEver)/(1-p.unrecorded))) == ""):
		p.outcome = notChecked
		p.missing = append(p.missing, told+" (--budget 60 records more): "+p.why)
	case p.outcome == clear:
		p.why += "; " + told
	}
}

// claimTerm claims a part of the capacity ledger; its share is of all CPUs that the target may use.
// weight is the share of wall time that was lost: one thread of a machine of 64 CPUs that is
// throttled all the time has lost all of its time.
func (p *Pass) claimTerm(term string, ns int64, weight float64) {
	c := p.Ledger.CPUs
	holds := map[string]int64{termRunning: c.RunningNS, termThrottled: c.ThrottledNS,
		termOthers: c.OthersNS, termUnused: c.UnusedNS}[term]
	p.pool(term, min(ns, holds), holds, c.TotalNS)
	p.weight = weight
	p.SetFloor(Floor{})
}

// cpuDemand says how threads spent the time in which they wanted a CPU, by the kernel's records.
type cpuDemand struct{ wanted, on, queued, throttled int64 }

func wantedCPU(k *account.Kernel) cpuDemand {
	return cpuDemand{wanted: k.OnNS + k.QueuedNS + k.ThrottledNS, on: k.OnNS, queued: k.QueuedNS,
		throttled: k.ThrottledNS}
}

// claimWait claims what threads waited, where no request is visible: a part of the time in which
// they had work or waited for this. CPUs say nothing of it: whether they were idle meanwhile, or
// had other work, the threads waited as long.
func (p *Pass) claimWait(ns int64) {
	all := max(workTime(p.Ledger.Kernel), ns)
	p.pool(termThreads+p.det.Name, ns, all, all)
	p.waited = true
	p.SetFloor(Floor{})
}

// workTime is the time in which threads had work: they wanted a CPU, or waited for a disk, also for
// a page of a file or of swap.
func workTime(k *account.Kernel) int64 { return wantedCPU(k).wanted + k.Disk.NS + k.Major.NS }

// kernelShort says by the kernel's records that threads were kept off their CPUs, "" if they were
// not. The limit is a quarter of the time in which they wanted one. Goroutines that Go called
// running were on a CPU for 32-59 % of it beside 8 hogs, 5-36 % with half a CPU of quota, 44 % with
// 76 Ps on two CPUs, and 79 % in a healthy process.
func kernelShort(r *account.Result) string {
	if r == nil || r.Kernel == nil {
		return ""
	}
	o := wantedCPU(r.Kernel)
	if o.wanted < wall(r.Kernel)/100 || 4*o.on > 3*o.wanted {
		return ""
	}
	return fmt.Sprintf("of the time in which they wanted a CPU they were on one %s, throttled %s, queued %s, by the kernel's records",
		percent(ratio(o.on, o.wanted)), percent(ratio(o.throttled, o.wanted)), percent(ratio(o.queued, o.wanted)))
}

// isOwn reports whether a thread waited for a CPU behind threads of its own process.
func isOwn(detail string) bool {
	return detail == account.OwnThreads
}

// isIdle reports whether the CPU had nothing to run while a thread waited there.
func isIdle(detail string) bool {
	return detail == account.WakeUpLatency
}

// queueShare divides the time that threads were queued: behind own threads, behind others, and
// beside an idle CPU.
func queueShare(k *account.Kernel) (own, others, idle int64) {
	for _, n := range k.Neighbours {
		switch {
		case n.Own:
			own += n.NS
		case n.PID == 0 || isIdle(n.Comm) || strings.HasPrefix(n.Comm, "swapper"):
			idle += n.NS
		default:
			others += n.NS
		}
	}
	return own, others, idle
}

// limitCPUs is the number of Ps for which the effective quota has room: max(1, ceil(quota)); 0
// without a quota.
func limitCPUs(c *account.CPUs) int {
	if c == nil || c.Quota <= 0 || c.Quota > 1e6 {
		return 0
	}
	return max(1, int(math.Ceil(c.Quota-1e-6)))
}

// neighbours lists who had the CPUs meanwhile, the largest first.
func neighbours(k *account.Kernel, own bool, most int) string {
	var all int64
	for _, n := range k.Neighbours {
		all += n.NS
	}
	var parts []string
	for _, n := range k.Neighbours {
		if n.Own != own || len(parts) == most || 100*n.NS < all {
			continue
		}
		who := n.Comm
		if n.PID != 0 {
			who += fmt.Sprintf(" (pid %d", n.PID)
			if n.Cgroup != "" && n.Cgroup != "/" {
				who += ", cgroup " + n.Cgroup
			}
			who += ")"
		} else if who == "" {
			who = "nobody: the CPU was idle"
		}
		parts = append(parts, fmt.Sprintf("%s %s, %s", who, finding.Duration(n.NS), percent(ratio(n.NS, all))))
	}
	return strings.Join(parts, "; ")
}

// threadsLine says what the target's threads did.
func threadsLine(p *Pass) {
	k := kernelOf(p)
	p.Proof("kernel records: threads",
		"in %s, %d threads: on a CPU %s, queued %s, throttled %s in all; %.1f on a CPU or queued on average, %d at most",
		finding.Duration(wall(k)), k.ThreadsSeen, finding.Duration(k.OnNS),
		finding.Duration(k.QueuedNS), finding.Duration(k.ThrottledNS), k.RunnableAvg, k.RunnableMax)
}

// steal says what the hypervisor took, where that is known and not little.
func steal(p *Pass) {
	if c := p.Ledger.CPUs; c != nil && c.WallNS > 0 && 100*c.StealNS > c.WallNS {
		p.Proof("/proc/stat", "steal: the hypervisor ran something else for %s, all CPUs of the host together", finding.Duration(c.StealNS))
	}
}

// spansLine says how many stretches of a kind there were, where, and in which threads.
func spansLine(p *Pass, what string, s *account.Spans) {
	if s.N == 0 {
		return
	}
	k := kernelOf(p)
	t := fmt.Sprintf("%s: %d (%s)", what, s.N, perSecond(s.N, k))
	if s.NS > 0 {
		t += fmt.Sprintf(", %s in all, the longest %s", finding.Duration(s.NS), finding.Duration(s.Max))
	}
	p.Proof("kernel records", "%s", t)
	if len(s.Sites) > 0 {
		p.Proof("kernel records", "%s at %s", what, sites(s.Sites, s.NS, 4))
	}
	if w := whoList(s.By, 4); w != "" {
		p.Proof("kernel records", "%s by %s", what, w)
	}
	if w := whoList(s.Flags, 4); w != "" {
		p.Proof("kernel records", "%s: %s", what, w)
	}
}

// whoList prints names with their time, or their number where no time is known.
func whoList(ws []account.Instead, most int) string {
	var all int64
	for _, w := range ws {
		all += w.NS
	}
	var parts []string
	for i, w := range ws {
		if i == most {
			break
		}
		t := w.Who
		if all > 0 {
			t += " " + percent(ratio(w.NS, all))
		}
		parts = append(parts, t)
	}
	return strings.Join(parts, ", ")
}

// timeIn sums the accounts of a column for which a condition holds.
func timeIn(c *account.Column, is func(*account.Account) bool) (ns int64) {
	for i := range c.Accounts {
		if a := &c.Accounts[i]; is(a) {
			ns += a.NS
		}
	}
	return ns
}

// leaf accepts accounts by what the last actor was doing.
func leaf(ls ...account.Leaf) func(*account.Account) bool {
	return func(a *account.Account) bool {
		for _, l := range ls {
			if a.Leaf == l {
				return true
			}
		}
		return false
	}
}

// late is the part of an account that passed before the runtime noticed that the goroutine could
// run.
func late(a *account.Account) int64 { return min(a.NS, a.Tags.SocketNS+a.Tags.DueNS) }

// wouldBeBusy is how busy the Ps would have been if their threads had never been kept off a CPU:
// the same work in less time.
func wouldBeBusy(r *account.Result) float64 {
	o, c := wantedCPU(r.Kernel), &r.Capacity
	return ratio(used(c), c.TotalNS) * ratio(o.on, o.wanted)
}

// full is how busy Ps are where goroutines queue for one, whatever CPU the threads get.
const full = 0.8

// claimHeld claims a part of the time that goroutines waited for a P. If the threads were kept off
// their CPUs, and the same work would have left Ps idle otherwise, that queue has the same cause.
// part is this cause's part of what the threads lost. It is added only to a claim that is large
// enough by itself.
func (p *Pass) claimHeld(part int64) {
	r := p.Ledger
	if p.below(p.Claimed()) != "" || kernelShort(r) == "" || r.Capacity.TotalNS == 0 || wouldBeBusy(r) >= full {
		return
	}
	o := wantedCPU(r.Kernel)
	lost := o.queued + o.throttled
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; a.Leaf == account.LeafRunnable {
			ns := max(0, scale(a.NS-late(a), min(part, lost), lost)-p.claimed(i))
			p.Claim(i, ns)
			p.heldQueue += ns
		}
	}
}

// heldLine says what was claimed of Go's run queue, and why.
func heldLine(p *Pass) {
	ns := p.grantedOf(leaf(account.LeafRunnable)) - p.lackedNS()
	if ns <= 0 {
		return
	}
	o := wantedCPU(p.Ledger.Kernel)
	p.Proof(p.column(), "%s of it in Go's run queue: the threads that held the Ps, or were to wake up for them, were on a CPU for only %s of the time in which they wanted one; with CPUs the same work would have kept the Ps busy %s of the time",
		p.share(ns), percent(ratio(o.on, o.wanted)), percent(wouldBeBusy(p.Ledger)))
}

// claimed is what was claimed of an account.
func (p *Pass) claimed(account int) int64 {
	for _, c := range p.claims {
		if c.account == account {
			return c.ns
		}
	}
	return 0
}

// claimQueue claims a part of the time that slow requests were queued behind threads of the
// process: ns of those threads' CPU time is no work, and without it the queue would be shorter by
// that part at least.
func (p *Pass) claimQueue(ns int64) {
	k := p.Ledger.Kernel
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if !ownQueue(a) || k.OnNS <= 0 || ns <= 0 {
			continue
		}
		part := scale(a.NS-p.claimed(i), min(ns, k.OnNS), k.OnNS)
		p.Claim(i, part)
		p.cpuQueue += part
	}
}

// queueLine says what was claimed of the queue for CPUs, and why.
func queueLine(p *Pass, what string) {
	if p.cpuQueue == 0 {
		return
	}
	p.Proof(p.column(), "%s of it queued behind threads of the process: the same part of those threads' CPU time goes into %s", p.share(p.cpuQueue), what)
	if 2*p.cpuQueue > p.NS() {
		p.Cap("how much of the queue for CPUs is due to it is known from samples only")
	}
}
