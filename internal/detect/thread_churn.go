package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "thread-churn",
	Title:  "Threads are made and ended all the time",
	Needs:  []string{KernelRecords},
	Scopes: []finding.Scope{finding.Slow, finding.Usual, finding.Process},
	Floor:  Floor{NS: 2e6, Share: 0.10},
	Doc: `What happens
  A thread for each connection, query or task, made and ended thousands of times a second. glibc
  keeps some 40 MiB of stacks, five of 8 MiB. Beyond that each ending thread unmaps its stack, and
  each creation maps one, under the stack cache's lock. The holder of that lock is in munmap or
  madvise, which takes mmap_lock and waits for other CPUs to flush their TLBs. So creations queue,
  while the CPU is never full, and one took 30 ms.

Evidence
  Threads made and ended a second, how long they live, time from creation to first run. Time of
  slow requests in creating and ending threads: the creation itself, a newborn thread's wait for a
  CPU, the stack cache's lock, mmap_lock and TLB flushes in munmap and madvise of stacks. The last
  three stand under it as mechanisms.

Not to be taken for
  Many threads that live long: that is no churn, whatever their number. A few dozen threads a
  second of a thread-per-connection server: without lost time there is no finding. A run queue
  full of threads that live (runqueue-saturation).

Remedy
  A pool of threads that live: in MariaDB thread_cache_size or thread_handling=pool-of-threads, in
  applications an executor with a bounded queue; clients that keep their connections. A larger
  stack cache: GLIBC_TUNABLES=glibc.pthread.stack_cache_size=BYTES (documented from glibc 2.34
  on). Smaller stacks (pthread_attr_setstacksize), of which more fit. Each costs resident memory.

Verify
  whystall diagnose under the same load: threads made a second fall, and the time to the first run
  with them.

Sources
  In-depth analysis of TiFlash: the blocking problem of thread creation and release under
  multi-concurrency, PingCAP; the glibc manual, POSIX Thread Tunables; libc-alpha
  2023-March/146704.`,
	Look: lookChurn,
	Tell: tellChurn,
})

// 100 threads a second are one in 10 ms. Below that, creations of 100 us are a hundredth of a CPU.
const churnRate = 100

// churnShare is the part of the threads' CPU time from which it is worth a finding where the CPUs
// are full: the same as of slow requests' time.
const churnShare = 0.10

// churnWords are parts of names of functions that make and end threads and their stacks.
var churnWords = []string{"pthread_create", "allocate_stack", "start_thread", "__nptl_",
	"stack_cache", "clone", "thread_create", "std::thread", "pthread_exit", "exit_thread",
	"newosproc", "pthread_join", "advise_stack", "free_stack", account.OfItsStack}

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
		// If a neighbour or a quota keeps the holder off its CPU, those are the cause.
		if a.Leaf == account.LeafThrottled || a.Leaf == account.LeafNoCPU && !isOwn(a.Detail) {
			return 0
		}
		return a.NS
	}
	// Any thread would wait for a CPU that a neighbour has, and for a quota.
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

// stackCache is the lock at an account's site if functions that make and end threads take it: the C
// library's, around the stacks that it keeps. No symbol has its name.
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
	// A program that only grows makes many threads and ends none.
	turn := min(c.Created, c.Exited)
	text := fmt.Sprintf("threads made: %s, ended: %s", perSecond(c.Created, k), perSecond(c.Exited, k))
	if c.CPUNS > 0 {
		text += fmt.Sprintf(", which took %s of its threads' CPU time, by samples", percent(ratio(c.CPUNS, k.OnNS)))
	}
	if rate(turn, k) < churnRate {
		boundChurn(p)
		p.Clear("%s (looked into from %d a second up)", text, churnRate)
		return
	}
	if joined(r) {
		for i := range r.Slow.Accounts {
			p.Claim(i, churnNS(k, &r.Slow.Accounts[i]))
		}
		p.claimQueue(c.CPUNS)
		if why := p.below(p.Claimed()); why != "" {
			p.claims, p.cpuQueue = nil, 0
			// Where the CPUs are full, each request pays a little for it, and throughput falls.
			if u := r.CPUs; p.board.scope == finding.Slow && u != nil &&
				ratio(c.CPUNS, k.OnNS) >= churnShare && ratio(u.RunningNS+u.OthersNS, u.TotalNS) >= full {
				p.claimTerm(termRunning, min(c.CPUNS, u.RunningNS), ratio(c.CPUNS, k.OnNS))
				p.Cap("how much CPU time it takes is known from samples only")
				return
			}
			p.Clear("%s; %s", text, why)
		}
		return
	}
	if p.board.seen {
		// What neighbours make longer is theirs. CPU time is not.
		if p.ClaimWork(account.WorkThreads).NS == 0 {
			boundChurn(p)
			p.Clear("%s", text)
		}
		return
	}
	ns := c.CreateNS + c.ExitNS
	if r.CPUs == nil || p.lost(ns) < stallShare {
		boundChurn(p)
		p.Clear("%s; %s blocked or queued while making and ending them", text, finding.Duration(ns))
		return
	}
	p.claimTerm(termUnused, min(ns, r.CPUs.UnusedNS), p.lost(ns))
	if ns > r.CPUs.UnusedNS {
		p.claimTerm(termRunning, min(ns-r.CPUs.UnusedNS, r.CPUs.RunningNS), p.lost(ns))
	}
	p.capProcess()
}

// churnEach is CPU time that a thread takes to be made and ended. It bounds it where no sample met
// it.
const churnEach = 100e3

func boundChurn(p *Pass) {
	k := p.Ledger.Kernel
	c := &k.Churn
	if rate(min(c.Created, c.Exited), k) < 1 {
		p.Bound(0, 0, p.whole()) // what looks alike is not of threads that are made
		return
	}
	if p.requests() {
		var ns int64
		for i := range p.Column().Accounts {
			ns += churnNS(k, &p.Column().Accounts[i])
		}
		p.Bound(perRequest(p.Column(), ns), ratio(ns, p.Column().WallNS), finding.OfRequest)
		return
	}
	cpu := float64(c.CPUNS)
	if on := p.samples(); on != nil && on.Samples >= account.LeastSamples {
		cpu = max(cpu, float64(on.Of(account.WorkThreads).High))
	} else if cpu == 0 {
		cpu = churnEach * float64(min(c.Created, c.Exited))
	}
	share := min(1, cpu/float64(max(1, k.OnNS)))
	if !p.board.seen {
		share = max(share, p.lost(c.CreateNS+c.ExitNS))
	}
	p.Bound(0, share, finding.OfCPU)
}

func tellChurn(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	c := &k.Churn
	if len(p.pools) > 0 && p.work.ns > 0 {
		f.Summary = fmt.Sprintf("%s threads are made and as many ended, which takes %s of its threads' CPU time", perSecond(c.Created, k), percent(ratio(p.pooled(), p.total)))
		p.measured = p.pooled()
	} else if len(p.pools) > 0 && joined(p.Ledger) {
		f.Summary = fmt.Sprintf("%s threads are made and as many ended, which takes %s of its threads' CPU time (%s), and the CPUs are full", perSecond(c.Created, k), percent(ratio(c.CPUNS, k.OnNS)), finding.Duration(c.CPUNS))
		p.measured = p.pooled()
	} else if len(p.pools) > 0 {
		f.Summary = fmt.Sprintf("%s threads are made and as many ended, which takes %s",
			perSecond(c.Created, k), finding.Duration(c.CreateNS+c.ExitNS))
		p.measured = p.pooled()
	} else {
		f.Summary = fmt.Sprintf("%s lose %s (%s of their time) making and ending threads: %s are made", p.who(), p.per(p.NS()), p.share(p.NS()), perSecond(c.Created, k))
		p.measure()
	}
	p.Proof("kernel records", "%d threads made (%s), %d ended (%s); half of those that ended lived %s or less", c.Created, perSecond(c.Created, k), c.Exited, perSecond(c.Exited, k), finding.Duration(c.LifeP50))
	p.Proof("kernel records", "from creation to first run: p50 %s, p99 %s, the longest %s",
		finding.Duration(c.FirstP50), finding.Duration(c.FirstP99), finding.Duration(c.FirstMax))
	p.Proof("kernel records", "all threads together were blocked or queued for %s making threads, and for %s ending them and returning their stacks", finding.Duration(c.CreateNS), finding.Duration(c.ExitNS))
	if c.CPUNS > 0 {
		p.Proof("CPU samples", "%s of its threads' %s on CPUs in making and ending threads",
			finding.Duration(c.CPUNS), finding.Duration(k.OnNS))
	}
	queueLine(p, "making and ending threads")
	if len(c.Makers) > 0 {
		p.Proof("kernel records", "made by %s", sites(c.Makers, 0, 3))
	}
	for i := range k.Futexes {
		if fu := &k.Futexes[i]; ofChurn(fu.Name) || ofSites(fu.Sites) {
			p.Proof("kernel records", "%s: %s, %s in all, up to %d in the queue%s", churnLock(fu),
				times(fu.Waits, "wait", "waits"), finding.Duration(fu.WaitNS), fu.MaxQueue,
				inferredText(fu.Inferred || fu.Name == ""))
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
	f.Remedy = append(f.Remedy, "keep threads: a pool with a bounded queue"+who+
		"; a database: thread_cache_size, pool-of-threads; clients: keep connections. It costs the memory of idle threads",
		"GLIBC_TUNABLES=glibc.pthread.stack_cache_size=1073741824 (1 GiB of stacks kept), or smaller stacks (pthread_attr_setstacksize, ulimit -s); with a steady stream of threads it changed nothing in one measurement")
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
