package detect

import (
	"fmt"

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
  nothing that the next round goes by, so only another thread can end it. Their share of the CPU
  time with its 95 % interval, the functions, and who calls them where stacks say it. A loop that
  calls a function in each round is not known: it is the program's own code in the report's "on
  CPU".

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

// lookSpinning leaves out what a Go program's runtime does for itself: it yields while it collects
// garbage. A program that spins is met now and then before it yields, with its own function on the
// stack, so that its work has a site.
func lookSpinning(p *Pass) {
	on, all := p.samples(), p.best()
	runtimes := map[string]bool{}
	if !noGo(p.Ledger, p.Facts) {
		for _, w := range works(all, account.WorkSpin) {
			runtimes[w.Name] = len(w.Sites) == 0
		}
	}
	spin, left := on.Of(account.WorkSpin), false
	for _, w := range works(on, account.WorkSpin) {
		if runtimes[w.Name] {
			left = true
			spin.NS, spin.Samples = spin.NS-w.NS, spin.Samples-w.Samples
			spin.Low, spin.High = max(0, spin.Low-w.High), max(spin.NS, spin.High-w.Low)
		}
	}
	p.ownLoops(on, spin)
	if !left {
		lookWork(p, account.WorkSpin)
		return
	}
	if p.Scope() == finding.Process {
		p.SetFloor(Floor{Share: processShare})
	}
	if spin.NS == 0 {
		p.unclaimed(spin)
		p.Clear("the threads yield, and no function of the program was met at it: Go's runtime does so while it sweeps and assists")
		return
	}
	p.claimWork(spin)
}

// ownLoops lets the program's own computing bound what spinning may cost: a loop of its own that
// waits has no name which tells it from work.
func (p *Pass) ownLoops(on *account.OnCPU, spin account.Work) {
	if on == nil || on.Samples < account.LeastSamples {
		return
	}
	own := on.Of(account.WorkOwn)
	p.unclaimed(own)
	if 2*spin.NS < own.NS && ratio(own.NS, on.NS) >= workFloor.Share {
		p.Missing("whether the program's own code waits in loops that call a function in each round, or whose instructions were not read: samples cannot tell them from computing, perf annotate shows them")
	}
}

func tellSpinning(p *Pass, f *finding.Finding) {
	l := works(p.best(), account.WorkSpin)
	where := names(l, 2)
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
	threadsLine(p)
	at, instead := where, where
	switch {
	case len(callers) > 0:
		at = callers[0].Func
	case len(l) > 0 && l[0].Name == account.SpinLoop && len(l[0].Sites) > 0:
		at, instead = l[0].Sites[0].Func, "the loop"
	}
	f.Remedy = append(f.Remedy,
		"let waiters sleep in "+at+": a mutex, a condition or a channel instead of "+instead+"; while it is free a mutex costs no more, and a wait costs a switch",
		"hold the lock for less, or divide it; no more threads that may spin at once than CPUs")
	f.Verify = p.verify("spinning is gone, and the CPU time of a request falls by its share")
}
