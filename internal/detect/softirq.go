package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "softirq",
	Title:  "Interrupts' work for others runs on the service's time",
	Needs:  []string{KernelRecords},
	Floor:  workFloor,
	Scopes: everyScope,
	Doc: `What happens
  A packet that arrives raises a softirq, which handles it at once, on whatever thread has that CPU.
  With many packets the service's thread stands on its CPU and the kernel works for somebody else
  there: for another socket of the host, for a bridge, a filter with many rules, packets that are
  dropped in the end. The time is booked to the thread. What does not fit is done by ksoftirqd, an
  ordinary thread, behind which the service's threads queue; so to a look at run queues it is one
  more neighbour.

Evidence
  Samples of kernel stacks of the process' threads within softirqs and device interrupts that came
  while they ran, by kind (NET_RX, TIMER, BLOCK...). Left out are softirqs within the thread's own
  calls, and as much as its own calls on sockets took, since its own packets cost about that much
  once more. Waits for a CPU behind ksoftirqd. Beside them two counters of the host that do not
  depend on samples: the time in interrupts and softirqs of /proc/stat, and the softirqs of
  /proc/softirqs by kind.

Not to be taken for
  The service's own packets: a proxy or a cache that spends a third of its time in softirqs does
  its work. A neighbour's threads (cpu-contention). Steal: the hypervisor's work is on no stack
  (cpu-steal). A single long softirq, which a mean does not show.

Remedy
  Spread the queues of the network device over CPUs, and keep them off those of the service:
  /proc/irq/N/smp_affinity, ethtool -L, RPS (/sys/class/net/DEV/queues/rx-N/rps_cpus), irqbalance's
  IRQBALANCE_BANNED_CPULIST. Or pin the service elsewhere (taskset, cpuset.cpus). Find who gets
  the packets (sar -n DEV 1; ss -s; nstat), and drop what nobody wants early: in XDP, or by the
  device's own filters. A firewall of many rules: sets instead of lists.

Verify
  whystall diagnose under the same load: softirq is gone, and so is its part of "no CPU
  (ksoftirqd)".

Sources
  Documentation/networking/scaling.rst (RSS, RPS, RFS); proc(5): /proc/stat, /proc/softirqs;
  lwn.net/Articles/520076 (software interrupts and realtime); lwn.net/Articles/925540 (when
  ksoftirqd takes over, and the latency that brings).`,
	Look: lookSoftirq,
	Tell: tellSoftirq,
})

// ksoftirqd is how the kernel's threads for softirqs are called, followed by their CPU's number.
const ksoftirqd = "ksoftirqd"

// deviceInterrupt is the name of interrupts of devices among the works of interrupts.
const deviceInterrupt = "device"

// foreign is the CPU time that interrupts and softirqs took which were for others.
type foreign struct {
	work account.Work // all of them
	own  int64        // the thread's own calls on sockets, and softirqs within them
	ns   int64        // for others, by estimate
	low  int64
	high int64
}

// foreignOf estimates it. A packet of one's own costs about as much in softirqs as in the calls
// that send or receive it [loopback, 32-byte messages: 0.6 to 1.2]. What is beyond that, is for
// others. Nothing is where softirqs take less than twice what the calls take.
func foreignOf(on *account.OnCPU) (f foreign) {
	if on == nil {
		return f
	}
	f.work = on.Of(account.WorkSoftirq)
	for _, w := range works(on, account.WorkInterrupt) {
		if w.Name == deviceInterrupt {
			f.work.NS, f.work.Samples, f.work.Low, f.work.High = f.work.NS+w.NS, f.work.Samples+
				w.Samples, f.work.Low+w.Low, f.work.High+w.High
		}
	}
	f.own = on.Of(account.WorkNetwork, account.WorkOwnSoftirq, account.WorkCopy).NS
	for _, w := range works(on, account.WorkSyscall) {
		if slices.Contains(socketCalls, w.Name) {
			f.own += w.NS
		}
	}
	f.high = max(0, f.work.High-f.own)
	if f.work.NS >= 2*f.own {
		f.ns, f.low = f.work.NS-f.own, max(0, f.work.Low-f.own)
	}
	return f
}

// socketCalls are system calls by which data comes from a socket or goes there.
var socketCalls = []string{"read", "write", "readv", "writev", "recvfrom", "sendto", "recvmsg",
	"sendmsg", "recvmmsg", "sendmmsg", "sendfile64", "splice", "io_uring_enter"}

func lookSoftirq(p *Pass) {
	claimKsoftirqd(p)
	queueBehindSoftirqs(p)
	if p.fewSamples() {
		return
	}
	f := foreignOf(p.samples())
	if f.ns > 0 {
		p.claimWork(account.Work{NS: f.ns, Low: f.low, High: f.high, Samples: f.work.Samples})
	} else {
		p.unclaimed(account.Work{High: f.high})
	}
	if p.Scope() == finding.Process {
		p.SetFloor(Floor{Share: processShare})
	}
	if len(p.claims) > 0 || len(p.pools) > 0 {
		return
	}
	on := p.samples()
	if f.work.NS == 0 {
		p.Clear("%s", p.noWork(account.WorkSoftirq))
		return
	}
	p.Clear("softirqs and interrupts of devices took %s of the CPU time, its own calls on sockets %s", percent(ratio(f.work.NS, on.NS)), percent(ratio(f.own, on.NS)))
}

// claimKsoftirqd claims waits for a CPU behind ksoftirqd. Its work may be for this process: that is
// so where the process does much on sockets itself, and then it is claimed only if it does not.
func claimKsoftirqd(p *Pass) {
	if !joined(p.Ledger) || p.Scope() == finding.Process {
		return
	}
	k := p.Ledger.Kernel
	if f := foreignOf(k.OnCPU); k.OnCPU != nil && f.ns == 0 && 5*f.own > k.OnCPU.NS {
		return
	}
	behind := func(what account.Leaf, who string) bool {
		return what == account.LeafNoCPU && strings.HasPrefix(who, ksoftirqd)
	}
	p.ClaimWhere(func(a *account.Account) bool { return behind(a.Leaf, a.Detail) })
	p.ClaimLacking(behind)
}

// queueBehindSoftirqs claims what requests wait behind threads of the process on whose time
// softirqs ran.
func queueBehindSoftirqs(p *Pass) {
	k := p.Ledger.Kernel
	if p.Scope() == finding.Process || !joined(p.Ledger) || k.OnCPU == nil {
		return
	}
	if f := foreignOf(k.OnCPU); ratio(f.low, k.OnCPU.NS) >= processLow {
		p.claimQueue(scale(k.OnNS, f.ns, k.OnCPU.NS))
	}
}

// hostSoftirqs is the part of the host's CPU time in interrupts and softirqs, of all that was not
// idle, and the softirqs a second by kind. ok is false where it was not read.
func hostSoftirqs(p *Pass) (busy float64, ns int64, ok bool) {
	irq, _, ok1 := p.Set.Delta("/host/cpu/irq:ns")
	user, _, ok2 := p.Set.Delta("/host/cpu/user:ns")
	system, _, ok3 := p.Set.Delta("/host/cpu/system:ns")
	if !ok1 || !ok2 || !ok3 || user+system <= 0 {
		return 0, 0, false
	}
	return irq / (user + system), int64(irq), true
}

func tellSoftirq(p *Pass, f *finding.Finding) {
	on := p.samples()
	o := foreignOf(on)
	behind := p.grantedOf(func(a *account.Account) bool {
		return a.Leaf == account.LeafNoCPU && strings.HasPrefix(a.Detail, ksoftirqd)
	})
	kinds := softirqKinds(p)
	f.Summary = fmt.Sprintf("%s in interrupts and softirqs for others (%s)", p.costs(), kinds)
	if behind > 0 {
		f.Summary += fmt.Sprintf("; %s of it waiting behind ksoftirqd", p.per(behind))
	}
	if o.work.NS > 0 {
		workLines(p, "softirqs", account.WorkSoftirq)
		p.Proof("CPU samples",
			"its own calls on sockets, and softirqs within them, took %s of the CPU time: so much of the softirqs is taken for its own packets", percent(ratio(o.own, on.NS)))
	}
	hostSoftirqLines(p, o)
	threadsLine(p)
	f.Remedy = append(f.Remedy,
		"see whose packets they are: sar -n DEV 1, nstat, ss -s; and which CPUs handle them: watch -d cat /proc/softirqs",
		"keep them off the CPUs of this process: /proc/irq/N/smp_affinity, rps_cpus of the device's queues, ethtool -L; or pin the process elsewhere (taskset -apc CPUS PID); the other CPUs then have that work",
		"drop what nobody wants before the network stack sees it (XDP, the device's filters); fewer rules in the firewall")
	f.Verify = p.verify("softirq is gone, and with it waits behind ksoftirqd")
}

// softirqKinds names the kinds that are known, the largest first. A sample that came late, when
// interrupts were let in again, has lost its kind.
func softirqKinds(p *Pass) string {
	l := slices.DeleteFunc(works(p.best(), account.WorkSoftirq),
		func(w *account.Work) bool { return w.Name == "other" })
	if s := names(l, 2); s != "" {
		return s
	}
	return "of a kind that is not known"
}

// hostSoftirqLines compares with the host's own counters, and doubts what they do not show.
func hostSoftirqLines(p *Pass, o foreign) {
	busy, ns, ok := hostSoftirqs(p)
	if !ok {
		return
	}
	p.Proof("/proc/stat", "all CPUs together were in interrupts and softirqs for %s, %s of the time in which they were not idle", finding.Duration(ns), percent(busy))
	for _, kind := range []string{"net-rx", "net-tx", "timer", "block", "tasklet", "rcu"} {
		stream := "/host/softirqs/" + kind + ":softirqs"
		if n, span, ok := p.Set.Delta(stream); ok && span > 0 && n/(float64(span)/1e9) >= 1000 {
			p.Proof("/proc/softirqs", "%s: %.0f a second on all CPUs",
				strings.ToUpper(strings.ReplaceAll(kind, "-", "_")), n/(float64(span)/1e9))
		}
	}
	if all := foreignOf(p.Ledger.Kernel.OnCPU); all.ns > 0 && ns < all.ns/4 {
		p.Doubt("/proc/stat counts %s in interrupts and softirqs of all CPUs, and samples of this process alone %s", finding.Duration(ns), finding.Duration(all.ns))
	}
}
