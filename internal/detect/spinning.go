package detect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "spinning",
	Title:  "Threads burn CPU time waiting for each other: they spin",
	Needs:  []string{KernelRecords},
	Floor:  workFloor,
	Scopes: everyScope,
	Doc: `What happens
  A thread that finds a lock taken looks again and again instead of sleeping: a spin lock, or a
  loop around sched_yield or runtime.Gosched. On a CPU of its own it loses little if the lock is
  free within some hundred ns. If the holder works for longer, every waiter burns a CPU meanwhile.
  If the holder was put off its CPU, the waiters may have taken that CPU, and spin out their time
  slices. The kernel and top show busy threads, and no wait at all: to every tool that looks for
  locks by sleeping threads, nobody waits.

Evidence
  Samples of the stacks of the process' threads that met them in functions which do nothing but
  look again: pthread_spin_lock, sched_yield, runtime.Gosched, the pauses of Go's own locks. Or in a
  loop that somebody wrote himself, around an atomic flag or a ticket: it is known by its
  instructions, which the recorder reads from the program's file on amd64. A round of it changes
  nothing that the next round goes by, so only another thread can end it; it may call functions of
  the same file that do no more. Their share of the CPU time with its 95 % interval, the functions,
  and who calls them where stacks say it. Code made at run time (Java) is read from the process'
  memory. A loop that calls through pointers or into other files is known where it pauses (PAUSE);
  else it is the program's own code in the report's "on CPU". Threads that sleep for less than a ms
  again and again look as often: the CPU time that goes into beginning and ending sleeps counts
  with theirs. In Go a goroutine that yields between two looks costs a round of the scheduler for
  each. So does one that sleeps for a moment, again and again at one place: as much of the
  scheduler's time counts as such sleeps are of all ends of waits. Requests queue for Ps and CPUs
  behind all that; the same part of their queue counts.

Not to be taken for
  A spin lock that is held for nanoseconds: it takes a few percent. Spinning of the kernel for its
  own locks (kernel-lock). A program that polls devices or queues on a CPU of its own by design
  (DPDK): that takes its CPU too, and harms nobody who has another. A mutex whose waiters sleep:
  lock-contention. Go's scheduler, which looks for work for some us before its threads sleep.

Remedy
  A lock that sleeps: pthread_mutex_t, which costs nothing more while it is free; with
  PTHREAD_MUTEX_ADAPTIVE_NP it spins a little first. In Go sync.Mutex, a channel or sync.Cond
  instead of a loop around Gosched. Hold the lock for less: no computing, no calls into the kernel
  under it. Several locks instead of one, or no more spinners than CPUs.

Verify
  whystall diagnose under the same load: spinning is gone from the findings, and the CPU time per
  request falls by its share.

Sources
  pthread_spin_init(3): user-space spin locks are not applicable as a general locking solution;
  PostgreSQL's s_lock.c, which sleeps after some rounds; golang/go#22758; M. Malte Skarupke,
  "Measuring Mutexes, Spinlocks and how Bad the Linux Scheduler Really is", and L. Torvalds' answer
  to it, 2020: do not use spin locks in user space unless you know what you are doing.`,
	Look: lookSpinning,
	Tell: tellSpinning,
})

func lookSpinning(p *Pass) {
	on, all := p.samples(), p.best()
	spin := spun(p, on, all)
	p.ownLoops(on, spin)
	p.behindSpinners(spun(p, all, all))
	if p.fewSamples() {
		return
	}
	if p.Scope() == finding.Process {
		p.SetFloor(Floor{Share: processShare})
	}
	switch {
	case spin.NS > 0:
		p.claimWork(spin)
	case on.Of(account.WorkSpin).NS > 0:
		p.unclaimed(spin)
		p.Clear("the threads yield, and no function of the program was met at it: Go's runtime does so while it sweeps and assists")
	case len(p.claims) == 0:
		p.unclaimed(spin)
		p.Clear("%s", p.noWork(account.WorkSpin))
	}
}

// spinWorks are the parts of on that are spinning of the program. It leaves out what a Go program's
// runtime does for itself: it yields while it collects garbage. A program that spins is met now and
// then before it yields, with its own function on the stack, so that its work has a site in all.
// Short sleeps one after another are looks, too.
func spinWorks(p *Pass, on, all *account.OnCPU) (l []*account.Work) {
	isGo := !noGo(p.Ledger, p.Facts)
	sited := map[string]bool{}
	for _, w := range works(all, account.WorkSpin) {
		sited[w.Name] = len(w.Sites) > 0
	}
	for _, w := range works(on, account.WorkSpin) {
		if !isGo || sited[w.Name] {
			l = append(l, w)
		}
	}
	k := kernelOf(p)
	if !isGo && k != nil && k.ShortSleepers > 0 {
		for _, w := range works(on, account.WorkSwitch, account.WorkSyscall, account.WorkLibrary) {
			if sleepCalls[w.Name] {
				l = append(l, w)
			}
		}
	}
	if k != nil && on == k.OnCPU {
		l = append(l, napWorks(p, on)...)
	}
	return l
}

// napRate is how many short sleeps a second make a goroutine one that polls.
const napRate = 100

// polls reports whether goroutines look for something again and again with short sleeps between.
func polls(r *account.Result) bool {
	return r != nil && float64(r.Naps.N) >= napRate*float64(max(r.Capacity.WallNS, 1))/1e9
}

// napWorks are the parts of Go's scheduler that short sleeps take: as many of its rounds as they
// are of all ends of waits.
func napWorks(p *Pass, on *account.OnCPU) (l []*account.Work) {
	n := &p.Ledger.Naps
	if !polls(p.Ledger) {
		return nil
	}
	for _, w := range works(on, account.WorkGoSched) {
		part := *w
		part.Samples, part.NS = scale(w.Samples, n.N, n.Wakes), scale(w.NS, n.N, n.Wakes)
		part.Low, part.High = scale(w.Low, n.N, n.Wakes), scale(w.High, n.N, n.Wakes)
		part.Sites = n.Sites
		l = append(l, &part)
	}
	return l
}

// sleepCalls are the calls of threads that sleep for a time, by their names as works.
var sleepCalls = map[string]bool{"nanosleep": true, "clock_nanosleep": true, "usleep": true}

// spun adds them up.
func spun(p *Pass, on, all *account.OnCPU) account.Work {
	return sumWorks(on, account.WorkSpin, spinWorks(p, on, all))
}

// behindSpinners claims what requests waited for CPUs, and in Go for Ps, behind threads that spin:
// the same part of it as of the process' CPU time. In Go their own turns between two looks are
// among that.
func (p *Pass) behindSpinners(w account.Work) {
	k := kernelOf(p)
	if p.Scope() == finding.Process || k == nil || !joined(p.Ledger) || k.OnCPU == nil ||
		k.OnCPU.NS <= 0 || ratio(w.Low, k.OnCPU.NS) < processLow {
		return
	}
	p.claimQueue(scale(k.OnNS, w.NS, k.OnCPU.NS))
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		if a.Leaf == account.LeafRunnable {
			part := scale(max(0, a.NS-notAtWork(a)-p.claimed(i)), w.NS, k.OnCPU.NS)
			p.claimGoQueue(i, part)
		}
	}
}

// ownLoops lets the program's own computing bound what spinning may cost: a loop of its own that
// waits has no name which tells it from work.
func (p *Pass) ownLoops(on *account.OnCPU, spin account.Work) {
	if on == nil || on.Samples < account.LeastSamples {
		return
	}
	own := sumWorks(on, account.WorkOwn,
		slices.DeleteFunc(works(on, account.WorkOwn, account.WorkInterprets), func(w *account.Work) bool {
			return w.Kind == account.WorkInterprets && w.Name != account.MadeCode
		}))
	p.unclaimed(own)
	if 2*spin.NS < own.NS && ratio(own.NS, on.NS) >= workFloor.Share {
		p.Missing("whether the program's own code waits in loops whose instructions were not read, or which call functions through pointers or of other files: samples cannot tell them from computing, perf annotate shows them")
	}
}

func tellSpinning(p *Pass, f *finding.Finding) {
	l := spinWorks(p, p.best(), p.best())
	where := names(l, 2)
	if len(l) > 0 && l[0].Kind == account.WorkGoSched {
		where = "short sleeps"
	}
	if where == "" {
		where = "a function without a name"
	}
	callers := workSites(l)
	if len(l) > 0 && l[0].Name == account.SpinLoop && len(callers) > 0 {
		where, callers = account.SpinLoop+" in "+callers[0].Func, nil
	}
	f.Summary = fmt.Sprintf("%s looking again and again for what is not there yet, in %s", p.costs(), where)
	if len(callers) > 0 {
		f.Summary += ", called by " + callers[0].Func
	}
	workLines(p, "spinning", account.WorkSpin)
	sleepLine(p, l)
	napLine(p, l)
	goQueueLine(p)
	threadsLine(p)
	at, instead := where, where
	switch {
	case len(callers) > 0:
		at = callers[0].Func
	case len(l) > 0 && l[0].Name == account.SpinLoop && len(l[0].Sites) > 0:
		at, instead = l[0].Sites[0].Func, "the loop"
	}
	f.Remedy = append(f.Remedy,
		"let waiters sleep in "+at+": a mutex, a condition or a channel instead of "+instead+
			"; while it is free a mutex costs no more, and a wait costs a switch",
		"hold the lock for less, or divide it; no more threads that may spin at once than CPUs")
	f.Verify = p.verify("spinning is gone, and the CPU time of a request falls by its share")
}

// sleepLine says how much CPU time goes into short sleeps.
func sleepLine(p *Pass, l []*account.Work) {
	var ns int64
	for _, w := range l {
		if w.Kind != account.WorkSpin && w.Kind != account.WorkGoSched {
			ns += w.NS
		}
	}
	if k := kernelOf(p); ns > 0 && k != nil {
		p.Proof("CPU samples", "%s of the process' CPU time goes into beginning and ending sleeps",
			percent(ratio(ns, p.best().NS)))
		p.Proof("kernel records",
			"%s for less than a ms 100 times a second or more (%s such sleeps)",
			times(int64(k.ShortSleepers), "thread sleeps", "threads sleep"), perSecond(k.ShortSleeps, k))
	}
}

// napLine says how often goroutines sleep for a moment, and what that takes.
func napLine(p *Pass, l []*account.Work) {
	n := &p.Ledger.Naps
	var ns int64
	for _, w := range l {
		if w.Kind == account.WorkGoSched {
			ns += w.NS
		}
	}
	if ns == 0 {
		return
	}
	k, wall := kernelOf(p), float64(max(p.Ledger.Capacity.WallNS, 1))/1e9
	p.Proof("execution trace",
		"%.0f times a second a goroutine sleeps for less than 2 ms after it did so at the same place: %s of all ends of waits; mostly at %s",
		float64(n.N)/wall, percent(ratio(n.N, n.Wakes)), whoSleeps(n))
	p.Proof("CPU samples", "Go's scheduler takes %s of the process' CPU time, and the same part of that is due to them: %s",
		percent(ratio(k.OnCPU.Of(account.WorkGoSched).NS, k.OnCPU.NS)), percent(ratio(ns, k.OnCPU.NS)))
	if 2*ns > k.OnCPU.Of(account.WorkSpin).NS {
		p.Cap("what a short sleep costs is inferred from its part of all ends of waits")
	}
}

// whoSleeps names the places of short sleeps.
func whoSleeps(n *account.Naps) string {
	var all []string
	for _, s := range n.Sites[:min(len(n.Sites), 3)] {
		all = append(all, fmt.Sprintf("%s %s", s.Func, percent(ratio(s.N, n.N))))
	}
	return strings.Join(all, ", ")
}

// goQueueLine says what was claimed of Go's run queue, and why.
func goQueueLine(p *Pass) {
	if p.goQueue == 0 {
		return
	}
	p.Proof(p.column(), "%s of it in Go's run queue: the same part of the process' CPU time goes into spinning", p.share(p.goQueue))
	if 2*p.goQueue > p.NS() {
		p.Cap("how much of the run queue is due to it is known from samples only")
	}
}
