package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "thread-churn",
	Title: "Threads are made and ended all the time",
	Needs: []string{KernelRecords},
	Floor: Floor{NS: 2e6, Share: 0.10},
	Doc: `What happens
  A thread for each connection, query or task, made and ended thousands of times a second. glibc
  keeps some 40 MiB of stacks, five of 8 MiB; beyond that each end of a thread unmaps its stack,
  and each creation maps one, under the stack cache's lock. Its holder sits in munmap or madvise,
  which takes mmap_lock and waits for other CPUs to flush their TLBs; so creations queue, at a CPU
  that is never full, and one took 30 ms.

Evidence
  Threads made and ended a second, how long they live, time from creation to first run; time of
  slow requests in creating and ending threads: the creation itself, a newborn thread's wait for a
  CPU, the stack cache's lock, mmap_lock and TLB flushes in munmap and madvise of stacks. The
  latter stand under it as mechanisms.

Not to be taken for
  Many threads that live long: no churn, whatever their number. A few dozen threads a second of a
  thread-per-connection server: no finding without time lost. A run queue full of threads that
  live (runqueue-saturation).

Remedy
  A pool of threads that live: in MariaDB thread_cache_size or thread_handling=pool-of-threads, in
  applications an executor with a bounded queue; clients that keep their connections. A larger
  stack cache: GLIBC_TUNABLES=glibc.pthread.stack_cache_size=BYTES (glibc 2.34 and later document
  it), smaller stacks (pthread_attr_setstacksize): more of them fit. Each costs resident memory.

Verify
  whystall diagnose under the same load: threads made a second fall, time to first run with them.

Sources
  In-depth analysis of TiFlash: the blocking problem of thread creation and release under
  multi-concurrency, PingCAP; the glibc manual, POSIX Thread Tunables; libc-alpha
  2023-March/146704.`,
	Look: lookChurn,
	Tell: tellChurn,
})

// 100 threads a second are one in 10 ms: below that a creation of 100 us is a hundredth of a CPU.
const churnRate = 100

// churnShare is the part of the threads' CPU time from which on it is worth a finding where the CPUs are full, as that of slow requests is.
const churnShare = 0.10

// churnWords are functions that make and end threads, and their stacks.
var churnWords = []string{"pthread_create", "allocate_stack", "start_thread", "__nptl_", "stack_cache", "clone", "thread_create", "std::thread", "pthread_exit", "exit_thread", "newosproc", "pthread_join", "advise_stack", "free_stack", "of its stack, as the thread ends"}

func ofChurn(names ...string) bool {
	for _, n := range names {
		for _, w := range churnWords {
			if n != "" && strings.Contains(n, w) {
				return true
			}
		}
	}
	return false
}

// churnNS is the part of an account that passed in making and ending threads.
func churnNS(k *account.Kernel, a *account.Account) int64 {
	if ofChurn(a.Site, a.Detail) {
		return a.NS
	}
	if a.Class == account.ClassLock && stackCache(k, a.Site) != nil {
		// A holder that a neighbour or a quota keeps from its CPU is held up by those.
		if a.Leaf == account.LeafThrottled || a.Leaf == account.LeafNoCPU && !isOwn(a.Detail) {
			return 0
		}
		return a.NS
	}
	// A thread that lives would wait for a neighbour's CPU, and for a quota, as well.
	ns := a.Tags.NewbornNS
	if a.Leaf == account.LeafThrottled || a.Leaf == account.LeafNoCPU && !isOwn(a.Detail) {
		ns = 0
	}
	var at int64
	for _, s := range a.Sites {
		if ofChurn(s.Func, s.Via) {
			at += s.NS
		}
	}
	for _, s := range a.Through {
		if ofChurn(s.Func, s.Via) {
			at = max(at, s.NS)
		}
	}
	return min(a.NS, max(ns, at))
}

// stackCache gives the lock at an account's site if it is taken by what makes and ends threads: the C library's, around the stacks it
// keeps. Nothing exports its name.
func stackCache(k *account.Kernel, site string) *account.Futex {
	for i := range k.Futexes {
		f := &k.Futexes[i]
		if f.Kind == account.FutexMutex && f.Site != "" && site == f.Site && ofSites(f.Sites) {
			return f
		}
	}
	return nil
}

func lookChurn(p *Pass) {
	r, k := p.Ledger, p.Ledger.Kernel
	c := &k.Churn
	if why := unseen(k, kernel.SightThreadsMade); why != "" && c.Created == 0 {
		p.Blind(why)
		return
	}
	// A program that only grows makes many and ends none.
	turn := min(c.Created, c.Exited)
	text := fmt.Sprintf("threads made: %s, ended: %s", perSecond(c.Created, k), perSecond(c.Exited, k))
	if c.CPUNS > 0 {
		text += fmt.Sprintf(", which took %s of its threads' CPU time, by samples", percent(ratio(c.CPUNS, k.OnNS)))
	}
	if rate(turn, k) < churnRate {
		p.Clear("%s; worth a look from %d a second on", text, churnRate)
		return
	}
	if joined(r) {
		for i := range r.Slow.Accounts {
			p.Claim(i, churnNS(k, &r.Slow.Accounts[i]))
		}
		p.claimQueue(c.CPUNS)
		if why := p.board.below(p.det.Floor, p.Claimed()); why != "" {
			p.claims, p.queued = nil, 0
			// Where the CPUs are full each request pays for it a little, and throughput does.
			if u := r.CPUs; u != nil && ratio(c.CPUNS, k.OnNS) >= churnShare && ratio(u.RunningNS+u.OthersNS, u.TotalNS) >= full {
				p.claimTerm(termRunning, min(c.CPUNS, u.RunningNS), ratio(c.CPUNS, k.OnNS))
				p.Cap("how much CPU time it takes is known by samples only")
				return
			}
			p.Clear("%s; %s", text, why)
		}
		return
	}
	ns := c.CreateNS + c.ExitNS
	if r.CPUs == nil || ratio(ns, wall(k)) < stallShare {
		p.Clear("%s; %s blocked or queued in making and ending them", text, finding.Duration(ns))
		return
	}
	p.claimTerm(termUnused, min(ns, r.CPUs.UnusedNS), ratio(ns, wall(k)))
	if ns > r.CPUs.UnusedNS {
		p.claimTerm(termRunning, min(ns-r.CPUs.UnusedNS, r.CPUs.RunningNS), ratio(ns, wall(k)))
	}
	p.Cap("no request is visible: who waited for these threads is not known")
}

func tellChurn(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	c := &k.Churn
	if len(p.pools) > 0 && joined(p.Ledger) {
		f.Summary = fmt.Sprintf("%s threads are made and as many ended, which takes %s of its threads' CPU time (%s), and the CPUs are full", perSecond(c.Created, k), percent(ratio(c.CPUNS, k.OnNS)), finding.Duration(c.CPUNS))
		p.known = p.pooled()
	} else if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("%s threads are made and as many ended, which takes %s", perSecond(c.Created, k), finding.Duration(c.CreateNS+c.ExitNS))
		p.known = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("slow requests lose %s (%s of their time) in making and ending threads: %s are made", p.per(p.NS()), p.share(p.NS()), perSecond(c.Created, k))
		p.measure()
	}
	p.Proof("kernel records", "%d threads made (%s), %d ended (%s); of those that ended half lived %s or less", c.Created, perSecond(c.Created, k), c.Exited, perSecond(c.Exited, k), finding.Duration(c.LifeP50))
	p.Proof("kernel records", "from creation to first run: p50 %s, p99 %s, longest %s", finding.Duration(c.FirstP50), finding.Duration(c.FirstP99), finding.Duration(c.FirstMax))
	p.Proof("kernel records", "blocked or queued in making threads %s, in ending them and returning their stacks %s, all threads together", finding.Duration(c.CreateNS), finding.Duration(c.ExitNS))
	if c.CPUNS > 0 {
		p.Proof("CPU samples", "%s of its threads' %s on CPUs in making and ending threads", finding.Duration(c.CPUNS), finding.Duration(k.OnNS))
	}
	queueLine(p, "making and ending threads")
	if len(c.Makers) > 0 {
		p.Proof("kernel records", "made by %s", sites(c.Makers, 0, 3))
	}
	for i := range k.Futexes {
		if fu := &k.Futexes[i]; ofChurn(fu.Name) || ofSites(fu.Sites) {
			p.Proof("kernel records", "%s: %s, %s in all, up to %d in the queue%s", churnLock(fu), times(fu.Waits, "wait", "waits"), finding.Duration(fu.WaitNS), fu.MaxQueue, inferredText(fu.Inferred || fu.Name == ""))
			break
		}
	}
	spansLine(p, "waits for mmap_lock", &k.MmapLock)
	if k.TLB.N > 0 {
		p.Proof("kernel records", "TLB flushes by the process: %s", perSecond(k.TLB.N, k))
	}
	who := ""
	if len(c.Makers) > 0 {
		who = " (made at " + c.Makers[0].Func + ")"
	}
	f.Remedy = append(f.Remedy, "keep threads: a pool with a bounded queue"+who+"; a database: thread_cache_size, pool-of-threads; clients: keep connections. It costs the memory of idle threads",
		"GLIBC_TUNABLES=glibc.pthread.stack_cache_size=1073741824 (1 GiB of stacks kept), or smaller stacks (pthread_attr_setstacksize, ulimit -s); in a steady stream of threads it changed nothing where it was measured")
	f.Verify = p.verify("threads made a second fall")
}

func churnLock(f *account.Futex) string {
	if f.Name == "" && ofSites(f.Sites) {
		return "the C library's stack cache lock"
	}
	return orUnknownLock(f.Name)
}

func ofSites(ss []account.Site) bool {
	for _, s := range ss {
		if ofChurn(s.Func) {
			return true
		}
	}
	return false
}

func orUnknownLock(name string) string {
	if name == "" {
		return "a lock"
	}
	return name
}

func inferredText(inferred bool) string {
	if inferred {
		return " (its name is inferred)"
	}
	return ""
}
