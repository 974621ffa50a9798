package detect

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:   "lock-contention",
	Title:  "Requests queue for a lock",
	Needs:  []string{Trace, mutexStream, KernelRecords},
	Scopes: everyScope,
	Beside: besideConvoy,
	Floor:  lockFloor,
	Doc: `What happens
  Requests wait for a sync.Mutex or sync.RWMutex that others hold. It may be inside singleflight,
  a pool or a cache. After 1 ms of waiting a sync.Mutex enters starvation mode: each unlock hands
  it to the head of the queue, which first has to be scheduled. With many waiters the lock is then
  mostly held by goroutines that wait for a P, and throughput falls suddenly while the CPU is not
  full.

Evidence
  Slow column: time behind the lock's site, divided by what those who unlocked it did: on CPU,
  runnable, asleep, in a syscall. Hand-offs in which the woken waiter was runnable. A trace has no
  address of a lock and no event when it is taken. Holders are therefore inferred from successive
  unlocks, which caps the finding at supported. A mutex profile, where its rate is set, is a
  second counter; it also shows the runtime's own locks, which a trace does not. With the kernel's
  records: futex waits of the runtime's own locks (page heap, scheduler; since Go 1.24 inferred
  from the function that locks), and those of native threads, with the holder where the lock's
  word or its wakers show it. Where the process' work is not in requests, but in goroutines of its
  own: the waits of all goroutines for one lock, from a second a second and a quarter of the time
  in which they have work up.

Not to be taken for
  Waits of the garbage collector and of stop-the-worlds: their reason in the trace is the same
  ("sync"), their stack is not (gc-queue, stw-pause). A WaitGroup or Cond: these wait for work,
  not for a lock. One site is not one lock: a mutex in every object of a type has one site and
  many queues. A system call under the lock (a slow pipe, a disk): the call is the root then. A
  process without CPU: if requests lose more in the plain run queue than behind holders in it,
  sched-latency is the root, and the lock repeats it. A holder that is descheduled or queued
  behind a neighbour: what keeps the holder is the root, and the lock its mechanism. One or two
  such holds that many requests share are not even a mechanism. Neither is a throttled holder:
  without the lock the quota would stop the waiters as well. A logger's lock: logger-lock.
  Python's GIL and Ruby's GVL: interpreter-lock. Java's safepoints: jvm-safepoint.

Remedy
  What the holders did decides. On CPU: shorten the section, shard it, or copy on write. Runnable:
  fewer hand-offs (batch, shard) or more CPU; a shorter section hardly helps. Asleep or in a call:
  do not wait under the lock. RWMutex: one slow reader stops the writer, and the waiting writer
  stops every new reader.

Verify
  whystall diagnose under the same load: time behind the named site falls, no other site takes its
  place, and throughput rises.

Sources
  Arthur Mao, Go runtime related problems in TiDB production environment, Gopher China 2020: QPS
  stops at 60 % CPU. golang/go#33747 (collapse under starvation mode); sync/mutex.go for the two
  modes; golang/go#61427, #61428 for the page heap's locks.`,
	Look: func(p *Pass) {
		if lookConvoy(p) {
			return
		}
		if why := p.blindTrace(); why != "" {
			lookFutexes(p, why)
			return
		}
		p.tasksUnseen()
		lookLocks(p, notLogger)
		lookThreadLocks(p)
		if len(p.claims) == 0 && p.outcome == undecided {
			if p.Ledger.Native && lockUnused(p.Ledger) > 0 {
				lookFutexes(p, "")
				return
			}
			switch {
			case p.Ledger.Native:
				p.Clear("%s waited for no lock, by the kernel's records", p.who())
			case slices.ContainsFunc(p.Ledger.Slow.Accounts,
				func(a account.Account) bool { return a.Class == account.ClassLock }):
				p.Clear("%s waited for no lock of the program except a logger's, by the execution trace: see logger-lock", p.who())
			default:
				p.Clear("%s waited for no lock of the program, by the execution trace", p.who())
			}
		}
		if kernelOf(p) == nil {
			lookRuntimeLocks(p)
		}
	},
	Tell: func(p *Pass, f *finding.Finding) {
		if p.convoy != nil {
			tellConvoy(p, f)
			return
		}
		if len(p.pools) > 0 {
			tellFutexes(p, f)
			return
		}
		if p.Ledger.Native {
			tellThreadLocks(p, f)
			return
		}
		if asleep := p.grantedOf(func(a *account.Account) bool {
			return a.Class != account.ClassLock && (a.Leaf == account.LeafAsleep || a.Leaf == account.LeafLock)
		}); 2*asleep > p.NS() {
			tellRuntimeLocks(p, f)
			return
		}
		locks := claimedLocks(p, notLogger)
		mostly, share := tellLocks(p, locks)
		site, at := "an unnamed site", "an unnamed site"
		if len(locks) > 0 {
			sites := waitedAt(p, locks[0])
			site, at = sites[0], strings.Join(sites, ", ")
		}
		tellRuntimeFutexes(p)
		f.Summary = lockSummary(p, "a lock taken at", site, mostly, share)
		lockRemedies(f, mostly, at)
		f.Verify = p.verify("waiting behind " + site + " is below " + p.per(p.NS()) + " per request")
	},
})

func notLogger(l *account.Lock) bool { return !isLogger(l) }
