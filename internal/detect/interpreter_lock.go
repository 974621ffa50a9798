package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:    "interpreter-lock",
	Title:   "Threads wait for the one lock of their interpreter",
	Needs:   []string{KernelRecords},
	Floor:   lockFloor,
	Fast:    never,
	Scopes:  []finding.Scope{finding.Slow, finding.Usual},
	Native:  true,
	Applies: hasInterpreter,
	Doc: `What happens
  CPython and Ruby run the program's code on one thread at a time: the one that holds the
  interpreter's lock (GIL, GVL). A thread that comes back from a call must take it again. Where
  another thread computes, CPython's waiter waits for 5 ms, then asks it to let go; Ruby's waits
  for up to 100 ms. A request that computes for 0.1 ms, and gives the lock away once for its
  reading and once for its writing, then takes 5 to 10 ms, or 100 and more. One thread that
  computes is enough, and no number of threads or permits helps: there is one lock.

Evidence
  Slow and usual column: time in which the request's thread waits for the interpreter's lock, or
  for a thread that does. The lock is known by its futexes: CPython waits at a condition nowhere
  else, Ruby does so in functions that give the lock away and take it back. All of these words are
  one lock here. Who let go first after the wait started had the lock until then. Waits that ran
  out of time show the hand-over: after them the waiter asked for the lock. Where a wait ended that
  way and no release is seen, the thread that ran meanwhile is taken for the holder.

Not to be taken for
  A lock of the program, as threading.Lock or Mutex: lock-contention or pool-exhaustion. One thread
  that computes its own requests: that is own computing, and nobody waits for the lock. An
  extension that computes without the lock: then nobody waits either. A holder without a CPU:
  cpu-contention or cpu-throttled, and the lock is their mechanism. Builds of CPython without a
  GIL (3.13t and later) have no such waits. Java has no such lock, and Node runs its program on one
  thread, where requests wait for no lock but for that thread.

Remedy
  Processes instead of threads: gunicorn or uvicorn workers, multiprocessing; puma workers in Ruby,
  or Ractors. Move what computes out: to a process of its own (ProcessPoolExecutor, a queue of
  jobs), or into code that lets the lock go (NumPy, zlib and hashlib do for large inputs; Cython's
  nogil). Where threads must stay: sys.setswitchinterval(0.0005) makes CPython's waiters ask after
  0.5 ms instead of 5, which costs switches and shortens each wait. A build of CPython without a
  GIL, where the extensions bear it. To find what computes: py-spy record --gil, rbspy record.

Verify
  whystall diagnose under the same load: waiting for the interpreter's lock falls below the floor,
  and p50 and p99 of clients fall with it.

Sources
  CPython: Python/ceval_gil.c (take_gil, drop_gil; the interval is 5000 us), docs of
  sys.setswitchinterval and of threading; David Beazley, Understanding the Python GIL, PyCon 2010;
  PEP 703. Ruby: thread_pthread.c and thread.c (TIME_QUANTUM of 100 ms), docs of Ractor; puma's
  docs/architecture.md. Node: nodejs.org, Don't Block the Event Loop.`,
	Look: lookInterpreter,
	Tell: tellInterpreter,
})

// interpreterLocks lists the interpreters' locks that threads waited for, the longest waits first.
func interpreterLocks(k *account.Kernel) (l []*account.Futex) {
	if k == nil {
		return nil
	}
	for i := range k.Futexes {
		if f := &k.Futexes[i]; f.Kind == account.FutexInterpreter {
			l = append(l, f)
		}
	}
	return l
}

// hasInterpreter reports whether the target is an interpreter with a lock, or was seen to have one.
func hasInterpreter(r *account.Result, facts Facts) bool {
	return facts.Runtime == "python" || facts.Runtime == "ruby" || r != nil && len(interpreterLocks(r.Kernel)) > 0
}

func lookInterpreter(p *Pass) {
	r := p.Ledger
	if !joined(r) {
		lookInterpreterUnused(p)
		return
	}
	for i := range p.Column().Accounts {
		a := &p.Column().Accounts[i]
		p.Claim(i, min(a.NS, a.Tags.InterpreterNS))
	}
	if len(p.claims) > 0 {
		return
	}
	if unseen := unseen(r.Kernel, kernel.SightWaitStacks); unseen != "" && len(interpreterLocks(r.Kernel)) == 0 {
		p.Blind(unseen)
		return
	}
	p.Clear("%s waited for no interpreter's lock, by the kernel's records", p.who())
}

// lookInterpreterUnused looks where no request is visible: at CPUs that were not used while threads
// waited for the lock.
func lookInterpreterUnused(p *Pass) {
	r := p.Ledger
	if r == nil || r.Kernel == nil || r.CPUs == nil {
		p.Blind("no request is visible, and not how CPUs were used")
		return
	}
	ns := unusedFor(r, account.InsteadInterpreter)
	if share := ratio(ns, r.CPUs.TotalNS); share < 0.2 {
		p.Bound(0, share, finding.OfWall)
		p.Clear("no request is visible; CPUs were unused while threads waited for the interpreter's lock for %s of the time (reported from 20 %% up)", percent(share))
		return
	}
	p.claimTerm(termUnused, ns, ratio(ns, r.CPUs.TotalNS))
	p.Cap("these waits belong to no visible request, so it is not known whether anybody waited for them")
}

func tellInterpreter(p *Pass, f *finding.Finding) {
	locks := interpreterLocks(p.Ledger.Kernel)
	name, which := account.Interpreter("").Lock(), account.Interpreter("")
	if len(locks) > 0 {
		which = locks[0].Interpreter
		name = which.Lock()
	}
	holder := ""
	if len(locks) > 0 && len(locks[0].Holders) > 0 {
		holder = locks[0].Holders[0].Who
	}
	if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("%s of the CPUs are not used while threads of the process wait for %s", percent(ratio(p.pooled(), p.total)), name)
		f.Verify = p.verify("CPUs are unused for less than 20 % of the time while threads wait for " + name)
	} else {
		did := map[string]int64{}
		p.granted(func(a *account.Account, ns int64) { did[string(a.Leaf)] += ns })
		f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for %s, of which there is one in the process", p.who(), p.per(p.NS()), p.share(p.NS()), name)
		if unseen := did[string(account.LeafLock)]; 2*unseen > p.NS() {
			p.Proof("kernel records", "for %s of it the holder is not known", percent(ratio(unseen, p.NS())))
		} else {
			f.Summary += "; its holders meanwhile: " + holderText(did)
		}
		f.Verify = p.verify("waiting for " + name + " is below " + p.per(p.NS()) + " per request")
	}
	for _, l := range locks {
		p.Proof("kernel records: futex", "%s", futexLine(l))
		if l.Asked > 0 {
			p.Proof("kernel records: futex",
				"%d of these waits ran out of time, after %s on average: then the waiter asked the holder to let go", l.Asked, finding.Duration(l.AskedNS/l.Asked))
		}
	}
	for _, t := range busiest(p, 3) {
		p.Proof("kernel records: threads", "%s (thread %d) was on a CPU %s of the time", t.Comm,
			t.TID, percent(ratio(t.OnNS, wall(p.Ledger.Kernel))))
	}
	if c := p.Ledger.CPUs; c != nil {
		p.Proof("ledger: CPUs",
			"the process ran on %[2]s of its %[1]d CPUs, others took %[3]s; more processes serve faster as far as CPUs are free", c.Allowed, percent(ratio(c.RunningNS, c.TotalNS)), percent(ratio(c.OthersNS, c.TotalNS)))
	}
	p.Cap("who holds the interpreter's lock is known by its releases only")
	f.Remedy = append(f.Remedy, interpreterRemedies(which, holder)...)
}

// interpreterRemedies are those of one interpreter. holder is the thread that had the lock most of
// the time, "" not known.
func interpreterRemedies(which account.Interpreter, holder string) []string {
	find := "what its threads compute"
	if holder != "" {
		find = "what " + holder + " computes"
	}
	if which == account.Ruby {
		return []string{
			"use processes instead of threads: puma -w (workers) with fewer threads each, or Ractors for what computes",
			"move " + find + " to a process of its own (a queue of jobs); rbspy record --pid PID names the methods",
		}
	}
	return []string{
		"use processes instead of threads: gunicorn or uvicorn with more workers, multiprocessing, ProcessPoolExecutor",
		"move " + find + " to a process of its own, or into code that lets the lock go; py-spy record --gil --pid PID names the functions",
		"as a stopgap, sys.setswitchinterval(0.0005): waiters ask for the lock after 0.5 ms instead of 5, at the price of more switches; a build of CPython without a GIL (PEP 703) has no such lock",
	}
}

// unusedFor is the CPU time that was not used while work waited for something of that kind.
func unusedFor(r *account.Result, kind account.InsteadKind) (ns int64) {
	if r.CPUs == nil {
		return 0
	}
	for _, u := range r.CPUs.Unused {
		if u.Kind == kind {
			ns += u.NS
		}
	}
	return min(ns, r.CPUs.UnusedNS)
}
