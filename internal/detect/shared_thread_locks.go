package detect

import (
	"fmt"
	"sort"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// lookThreadLocks claims waits of threads for locks that no trace shows: of native code, and of the
// runtime itself. The account's leaf is what the holder did meanwhile; where that is a lack of CPU
// or of quota, earlier detectors have it.
func lookThreadLocks(p *Pass) {
	k := kernelOf(p)
	if k == nil || !joined(p.Ledger) {
		return
	}
	for i := range p.Ledger.Slow.Accounts {
		a := &p.Ledger.Slow.Accounts[i]
		switch {
		case a.Class == account.ClassLock: // claimed already
		case a.Tags.MonitorNS > 0: // threads hand these on by messages
			p.Claim(i, min(ofProgram(a)-p.claimed(i), a.Tags.MonitorNS))
		case a.Leaf == account.LeafLock, a.Leaf == account.LeafAsleep && runtimeLock(k, a.Detail):
			var through int64
			for _, s := range a.Through {
				through += s.NS
			}
			p.Claim(i, max(0, ofProgram(a)-through))
		}
	}
	p.ClaimLacking(func(what account.Leaf, who string) bool { return what == account.LeafAsleep && runtimeLock(k, who) })
}

// runtimeLock reports whether the runtime waits for one of its own locks in fn, by the futexes that
// were seen.
func runtimeLock(k *account.Kernel, fn string) bool {
	for i := range k.Futexes {
		f := &k.Futexes[i]
		if f.Kind != account.FutexRuntime || fn == "" {
			continue
		}
		if f.Name == fn {
			return true
		}
		for _, s := range f.Sites {
			if s.Func == fn {
				return true
			}
		}
	}
	return false
}

// lockFutex reports whether a futex is a lock of the program. Waits for a condition, say, are waits
// for work, and an interpreter's lock is a cause of its own.
func lockFutex(f *account.Futex) bool { return f.Kind.Lock() && f.Kind != account.FutexInterpreter }

// sleepNames lists where threads slept, the longest first.
func sleepNames(p *Pass) string {
	by := map[string]int64{}
	p.granted(func(a *account.Account, ns int64) {
		if (a.Leaf == account.LeafAsleep || a.Leaf == account.LeafLock) && a.Detail+a.Site != "" {
			name := a.Detail
			if name == "" {
				name = a.Site
			}
			by[name] += ns
		}
	})
	var names []string
	for n := range by {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool {
		if by[names[i]] != by[names[j]] {
			return by[names[i]] > by[names[j]]
		}
		return names[i] < names[j]
	})
	return strings.Join(names[:min(2, len(names))], ", ")
}

// futexLine says what is known of a futex.
func futexLine(f *account.Futex) string {
	t := fmt.Sprintf("%s (%s)%s: %s, %s in all, up to %d in the queue", churnLock(f), f.Kind, inferredText(f.Inferred || f.Name == "" && ofSites(f.Sites)), times(f.Waits, "wait", "waits"), finding.Duration(f.WaitNS), f.MaxQueue)
	if len(f.Holders) > 0 {
		t += "; held by " + whoList(f.Holders, 3)
	}
	if len(f.HolderNS) > 0 {
		t += "; its holders meanwhile: " + holderText(f.HolderNS)
	}
	return t
}

func holderText(m map[string]int64) string {
	var ws []account.Instead
	for k, v := range m {
		ws = append(ws, account.Instead{Who: k, NS: v})
	}
	sort.Slice(ws, func(i, j int) bool {
		if ws[i].NS != ws[j].NS {
			return ws[i].NS > ws[j].NS
		}
		return ws[i].Who < ws[j].Who
	})
	return whoList(ws, 4)
}

// tellRuntimeLocks writes the finding where most of the time is sleep on locks of the runtime or of
// C code, whose holders are not followed.
func tellRuntimeLocks(p *Pass, f *finding.Finding) {
	names := sleepNames(p)
	if names == "" {
		names = "functions without a name"
	}
	f.Summary = fmt.Sprintf("threads of %s sleep %s (%s of their time) on locks of the runtime or of C code, in %s", p.who(), p.per(p.NS()), p.share(p.NS()), names)
	tellRuntimeFutexes(p)
	p.Cap("the name of the lock is inferred from the function that takes it")
	f.Remedy = append(f.Remedy, "the runtime's page heap (allocSpan, freeSpan): allocate fewer large objects, reuse buffers, use a newer Go; its scheduler (findRunnable, schedule): fewer goroutines that sleep and wake, fewer Ps",
		"C code: make fewer calls at once, or see the library's own settings")
	f.Verify = p.verify("sleeping in " + names + " is below " + p.per(p.NS()) + " per request")
}

func tellRuntimeFutexes(p *Pass) {
	k := kernelOf(p)
	if k == nil {
		return
	}
	n := 0
	for i := range k.Futexes {
		if f := &k.Futexes[i]; f.Kind == account.FutexRuntime && n < 2 {
			n++
			p.Proof("kernel records: futex", "%s", futexLine(f))
		}
	}
}

// tellThreadLocks is the finding for native programs.
func tellThreadLocks(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	did := map[string]int64{}
	var sites []account.Instead
	by := map[string]int64{}
	p.granted(func(a *account.Account, ns int64) {
		did[string(a.Leaf)] += ns
		name := a.Site
		if name == "" {
			name = a.Detail
		}
		if name == "" {
			name = "a function without a name"
		}
		by[name] += ns
	})
	for n, ns := range by {
		sites = append(sites, account.Instead{Who: n, NS: ns})
	}
	sort.Slice(sites, func(i, j int) bool {
		if sites[i].NS != sites[j].NS {
			return sites[i].NS > sites[j].NS
		}
		return sites[i].Who < sites[j].Who
	})
	f.Summary = fmt.Sprintf("%s wait %s (%s of their time) for a lock, in %s", p.who(), p.per(p.NS()), p.share(p.NS()), sites[0].Who)
	unseen := did[string(account.LeafLock)] + did[string(account.LeafLockUnseen)]
	if 2*unseen > p.NS() {
		p.Proof("kernel records", "for %s of it the holder is not known", percent(ratio(unseen, p.NS())))
		p.Cap("who held the lock is not known for most of it")
	} else {
		f.Summary += fmt.Sprintf("; its holders meanwhile: %s", holderText(did))
	}
	p.Proof(p.column(), "where they wait: %s", whoList(sites, 4))
	var top *account.Futex
	for i := range k.Futexes {
		if fu := &k.Futexes[i]; lockFutex(fu) {
			if top == nil {
				top = fu
			}
			if fu.WaitNS*5 >= top.WaitNS {
				p.Proof("kernel records: futex", "%s", futexLine(fu))
			}
		}
	}
	p.measure()
	if p.tagged(func(t *account.Tags) int64 { return t.MonitorNS }) > 0 {
		p.Cap("who holds a Java monitor is known by who woke the waiter")
		f.Remedy = append(f.Remedy, "find which object's: jstack PID, or a recording of JFR with jdk.JavaMonitorEnter")
	}
	mostly := account.Leaf(most(did))
	f.Remedy = append(f.Remedy, threadLockRemedy(mostly, sites[0].Who)...)
	f.Verify = p.verify("waiting for the lock is below " + p.per(p.NS()) + " per request")
}

func threadLockRemedy(mostly account.Leaf, site string) []string {
	does := "in '" + string(mostly) + "'"
	if mostly == account.LeafTimer {
		does = "asleep for a timer"
	}
	switch mostly {
	case account.LeafTimer, account.LeafNetwork, account.LeafDisk, account.LeafPipe, account.LeafSyscall, account.LeafAsleep:
		return []string{"do not wait under the lock taken at " + site + ": the holder is " + does + " while the others queue; release it around the call"}
	case account.LeafOnCPU:
		return []string{"shorten what runs under the lock taken at " + site + ", or shard it: by key, by thread, a read-write lock where most only read"}
	}
	return []string{"find who holds the lock taken at " + site + ": gdb -p PID -batch -ex 'thread apply all bt' stops the process for a moment", "shorten what is done under it, or shard it"}
}

// lookFutexes looks where no request is visible, or none that waits for a lock. It claims CPUs that
// were not used while work waited for locks.
func lookFutexes(p *Pass, why string) {
	r := p.Ledger
	if r == nil || r.Kernel == nil || r.CPUs == nil {
		// A profile has no requests: what it counts may be background work, for which nobody
		// waited.
		p.Blind(why, profileAlone(p))
		return
	}
	if unseen := unseen(r.Kernel, kernel.SightWaitStacks); unseen != "" && len(r.Kernel.Futexes) == 0 {
		p.Blind(why, unseen)
		return
	}
	ns := lockUnused(r)
	if ratio(ns, r.CPUs.TotalNS) < 0.2 && r.Requests.None == account.NoneNoTrace {
		p.Blind(why, "locks of goroutines, which leave their threads as they wait: it needs an execution trace")
		return
	}
	if ratio(ns, r.CPUs.TotalNS) < 0.2 {
		p.Bound(0, ratio(ns, r.CPUs.TotalNS), finding.OfWall)
		p.Clear("no request that waits for a lock is visible; CPUs were unused while threads waited for locks for %s of the time (reported from 20 %% up)", percent(ratio(ns, r.CPUs.TotalNS)))
		return
	}
	p.claimTerm(termUnused, ns, ratio(ns, r.CPUs.TotalNS))
	p.Cap("these waits belong to no visible request, so it is not known whether anybody waited for them")
}

// lockUnused is the CPU time that was not used while work waited for locks.
func lockUnused(r *account.Result) int64 { return unusedFor(r, account.InsteadLock) }

func tellFutexes(p *Pass, f *finding.Finding) {
	k := p.Ledger.Kernel
	f.Summary = fmt.Sprintf("%s of the CPUs are not used while threads of the process wait for locks", percent(ratio(p.pooled(), p.total)))
	n := 0
	name := "the lock"
	for i := range k.Futexes {
		if fu := &k.Futexes[i]; lockFutex(fu) && n < 3 {
			if n++; n == 1 && len(fu.Sites) > 0 {
				name = fu.Sites[0].Func
			}
			p.Proof("kernel records: futex", "%s", futexLine(fu))
		}
	}
	threadsLine(p)
	f.Remedy = append(f.Remedy, threadLockRemedy("", name)...)
}
