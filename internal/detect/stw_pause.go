package detect

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

var _ = register(&Detector{
	Name:  "stw-pause",
	Title: "Stop-the-world pauses hold requests up",
	Needs: []string{Trace},
	Go:    true,
	// Go stops the world twice in a cycle, for tens of microseconds. A healthy process with many Ps
	// has ranges of several ms in which no request lost anything. So lost time counts, never the
	// range.
	Floor: Floor{NS: 5e6, Share: 0.10},
	Fast:  never,
	Doc: `What happens
  The runtime stops every P: twice in a GC cycle (sweep termination, mark termination), and for
  ReadMemStats, goroutine profiles, changes of GOMAXPROCS, and the start and end of a trace. A
  stop has three parts. Until the last P stopped: all but that P are idle. Stopped: the initiator
  works. Starting: other goroutines run again, and only the initiator is still waking threads. The
  third part is often the longest, and delays only the initiator.

Evidence
  Slow column: "stop-the-world", by kind. For the pauses that cost most: who initiated them,
  where, who was awaited last and what it did, and the three parts. With the trace alone, the
  awaited one is inferred from the last P that stopped (supported at most). With the kernel's
  records each long pause is followed, hop by hop, to who woke the initiator and what kept that
  thread: throttled, no CPU because of whom, asleep on which lock. The pause then stands under
  that cause. A wake-up that arrives while the initiator is briefly awake to check again is not
  seen: calls of futex are not recorded, as that would cost each system call of the host 90 ns.
  Then the last P that stopped names the awaited one, supported at most. Formats before Go 1.22
  give range and kind only, and name only the collector's. Other stops show there as one goroutine
  that runs while all other Ps are idle and goroutines wait for one: supported at most.

Not to be taken for
  A long range in which no request lost time. Pauses of our own recording, the trace's start and
  end: they are named and not counted; whystall asks for no profile while it traces. ReadMemStats
  or goroutine profiles on a timer (expvar, an old metrics client, a profiling agent, a logging
  loop): this is a real cause, but it is the scrape and not GC; look at the kind. Waits for the
  end of marking, which no pause figure contains: gc-queue. A CPU quota or hogs: the awaited
  thread had no CPU, and long pauses are a symptom. Long socket calls, late wake-ups and a single
  pause without any event show that; GC's pauses are "not checked" then.

Remedy
  By kind. ReadMemStats: use runtime/metrics instead, or scrape less. Goroutine profiles: without
  debug=2, and less often. GC, with one goroutine awaited for long: a loop without preemption
  points (Go before 1.14), or one huge clear or copy (makeslice or memmove of 100s of MB), which
  can be done in chunks. GC, with nobody in particular awaited: fewer cycles (GOGC), fewer Ps,
  more CPU.

Verify
  whystall diagnose under the same load: "stop-the-world" of slow requests falls. Judge by what
  requests lost, not by the longest range.

Sources
  golang/go#10958 (tight loops), #35825, #31222, #42642 (large memclr), #13613, #63423, #63340
  (ReadMemStats, goroutine profile), #73835 (GOMEMLIMIT exceeded); cockroachdb/cockroach#119461.`,
	Look: lookSTW,
	Tell: tellSTW,
})

func lookSTW(p *Pass) {
	r := p.Ledger
	// Our own pauses are not the service's. What they cost is subtracted account by account, as far
	// as it goes.
	ours := map[string]int64{}
	var oursNS int64
	for i := range r.STWs {
		if s := &r.STWs[i]; s.Ours {
			ours[s.Kind] += s.SlowNS
			oursNS += s.SlowNS
		}
	}
	oursLeft := oursNS
	for i := range r.Slow.Accounts {
		a := &r.Slow.Accounts[i]
		if !stwLeaf(a.Leaf) {
			// Joined, a stop-the-world is a path: the account is what held it up, and the tag says
			// that it was on the way.
			if joined(r) && keptOff(a.Leaf) {
				off := min(a.Tags.STWNS, oursLeft)
				oursLeft -= off
				p.Claim(i, min(a.NS, a.Tags.STWNS-off))
			}
			continue
		}
		off := min(a.NS, ours[a.Detail])
		ours[a.Detail] -= off
		p.Claim(i, a.NS-off)
	}
	claimNameless(p)
	// While a stack dump or ReadMemStats works, no other thread can record anything.
	p.silent = !gcPauses(p)
	if !p.silent {
		unlessShortOfCPU(p)
		unlessStandstill(p)
		if p.outcome != undecided {
			return
		}
	}
	if why := p.below(p.Claimed()); why != "" {
		longest := "no stop-the-world of 100 us or more"
		if len(r.STWs) > 0 {
			s := &r.STWs[0]
			longest = fmt.Sprintf("the longest of %s took %s (%s)%s",
				times(int64(len(r.STWs)), "range", "ranges"), finding.Duration(s.End-s.Begin), s.Kind, oursText(s))
		}
		if oursNS > 0 {
			longest += fmt.Sprintf("; pauses of our own recording, %s per slow request, are not counted", p.per(oursNS))
		}
		p.Clear("%s; slow requests lost %s each (%s of their time)", longest, p.per(p.Claimed()), p.share(p.Claimed()))
	}
}

// gcPauses reports whether half of what was claimed is pauses of GC cycles. These stop the world
// for next to nothing, so what makes them long is elsewhere. Other kinds do work while it is
// stopped.
func gcPauses(p *Pass) bool {
	var gc int64
	for _, c := range p.claims {
		if a := &p.Ledger.Slow.Accounts[c.account]; account.StopsForGC(a.Detail) {
			gc += c.ns
		}
	}
	return 2*gc >= p.Claimed()
}

func oursText(s *account.STW) string {
	if s.Ours {
		return ", our own recording"
	}
	return ""
}

// keptOff reports whether the leaf is something that the kernel's records show of a thread off its
// CPU.
func keptOff(l account.Leaf) bool {
	switch l {
	case account.LeafThrottled, account.LeafNoCPU, account.LeafAsleep, account.LeafFault,
		account.LeafReclaim, account.LeafMemcg, account.LeafCompaction,
		account.LeafMmapLock, account.LeafTLB, account.LeafDisk, account.LeafNUMA,
		account.LeafKernelLock, account.LeafPipe, account.LeafLock:
		return true
	}
	return false
}

func stwLeaf(l account.Leaf) bool {
	return l == account.LeafSTW || l == account.LeafSTWWork || l == account.LeafSTWQueue
}

func tellSTW(p *Pass, f *finding.Finding) {
	if who := nameless(p); who != "" {
		tellNameless(p, f, who)
		return
	}
	kinds, order := map[string]int64{}, []string{}
	p.granted(func(a *account.Account, ns int64) {
		if !stwLeaf(a.Leaf) {
			return
		}
		if _, ok := kinds[a.Detail]; !ok {
			order = append(order, a.Detail)
		}
		kinds[a.Detail] += ns
	})
	if len(order) == 0 {
		order = append(order, costliest(p.Ledger))
	}
	kind := order[0]
	for _, k := range order {
		if kinds[k] > kinds[kind] {
			kind = k
		}
	}
	worst, n := worstSTW(p.Ledger, kind)
	f.Summary = fmt.Sprintf("%s stand still for %s (%s of their time) while the world is stopped, mostly for %s", p.who(), p.per(p.NS()), p.share(p.NS()), orUnknown(kind))
	awaited := map[string]int64{}
	var stopping, stopped, starting int64
	for _, s := range worst {
		p.Proof("execution trace: stop-the-world", "%s", stwLine(p, s))
		if s.LastStop > 0 {
			stopping += s.LastStop - s.Begin
			stopped += s.Start - s.LastStop
			if s.Awaited != "" {
				awaited[s.Awaited] += s.LastStop - s.Begin
			}
		}
		starting += max(0, s.End-s.Start)
	}
	if n > len(worst) {
		every := ""
		if t := period(p.Ledger, kind); t > 0 && !account.StopsForGC(kind) {
			every = ", one every " + finding.Duration(t)
		}
		p.Proof("execution trace: stop-the-world", "%d of at least 100 us of this kind%s", n, every)
	}
	if who := most(awaited); who != "" && stopping > stopped {
		f.Summary += fmt.Sprintf("; in the worst of them most of the time passes until the last P stops, which was running %s", who)
	}
	if stopping+stopped > 0 {
		p.Proof("execution trace: stop-the-world",
			"in these: %s until the last P stopped, %s stopped, %s starting (delays the initiator only)", finding.Duration(stopping), finding.Duration(stopped), finding.Duration(starting))
	}
	if joined(p.Ledger) {
		tellBarriers(p, false)
		p.fairControl()
		p.measure()
	} else {
		p.Proof("not checked",
			"why the awaited thread was late: that needs the kernel's records; the awaited goroutine is inferred from the last P that stopped")
	}
	if p.root != nil && joined(p.Ledger) {
		f.Remedy = append(f.Remedy, "the pauses are a symptom: see "+p.finding.BecauseOf)
	} else {
		stwRemedy(p, f, kind, worst, most(awaited))
	}
	f.Verify = p.verify("'stop-the-world' of slow requests is below " + p.per(p.NS()) + " per request")
}

// costliest is the kind of stop-the-world that cost slow requests most.
func costliest(r *account.Result) string {
	by := map[string]int64{}
	for i := range r.STWs {
		if s := &r.STWs[i]; !s.Ours {
			by[s.Kind] += s.SlowNS
		}
	}
	if r.Kernel != nil && len(by) == 0 {
		for i := range r.Kernel.Barriers {
			if b := &r.Kernel.Barriers[i]; b.Kind != account.SafePoint {
				by[b.Kind] += b.SlowNS
			}
		}
	}
	return most(by)
}

// tellBarriers says what the costliest stop-the-worlds, or ragged barriers, waited for. Their steps
// are in the ledger's list of barriers, from which the report prints them.
func tellBarriers(p *Pass, ragged bool) {
	k := p.Ledger.Kernel
	var bs []*account.Barrier
	grades := map[account.Grade]int64{}
	for i := range k.Barriers {
		b := &k.Barriers[i]
		if (b.Kind == account.SafePoint) != ragged {
			continue
		}
		bs = append(bs, b)
		grades[b.Grade] += b.SlowNS
	}
	slices.SortStableFunc(bs, func(a, b *account.Barrier) int { return cmp.Compare(b.SlowNS, a.SlowNS) })
	what := "stop-the-worlds"
	if ragged {
		what = "ragged barriers"
	}
	for i, b := range bs {
		if i == 2 {
			break
		}
		t := fmt.Sprintf("%s at %s, %s: %s", finding.Duration(b.End-b.Begin), p.at(b.Begin), b.Kind,
			whoList(b.Leaves, 4))
		if !ragged {
			t += fmt.Sprintf("; the world stopped %s, only the initiator delayed %s",
				finding.Duration(b.StoppedNS), finding.Duration(b.DelayedNS))
		}
		p.Proof("kernel records: "+what, "%s (%s)", t, orUnknown(string(b.Grade)))
	}
	if len(bs) > 0 {
		p.Proof("kernel records: "+what,
			"%d were followed, step by step under PAUSES; %s of what they cost slow requests is proven, %s supported", len(bs),
			percent(ratio(grades[account.GradeProven], sumOf(grades))),
			percent(ratio(grades[account.GradeSupported], sumOf(grades))))
	}
}

func sumOf(m map[account.Grade]int64) (sum int64) {
	for _, v := range m {
		sum += v
	}
	return sum
}

// worstSTW returns the three pauses of a kind that cost requests most, and how many there are.
func worstSTW(r *account.Result, kind string) (worst []*account.STW, n int) {
	for i := range r.STWs {
		s := &r.STWs[i]
		if s.Kind != kind || s.Ours {
			continue
		}
		n++
		at := len(worst)
		for at > 0 && worst[at-1].SlowNS < s.SlowNS {
			at--
		}
		if at < 3 {
			worst = append(worst[:at], append([]*account.STW{s}, worst[at:]...)...)
			worst = worst[:min(3, len(worst))]
		}
	}
	return worst, n
}

// period is the median distance between pauses of a kind: a scrape's rhythm gives it away.
func period(r *account.Result, kind string) int64 {
	var at, gaps []int64
	for i := range r.STWs {
		if s := &r.STWs[i]; s.Kind == kind && !s.Ours {
			at = append(at, s.Begin)
		}
	}
	slices.Sort(at)
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	if len(gaps) < 3 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

func stwLine(p *Pass, s *account.STW) string {
	t := fmt.Sprintf("%s, %s, at %s", finding.Duration(s.End-s.Begin), orUnknown(s.Kind), p.at(s.Begin))
	if s.Initiator != "" {
		t += ", by " + s.Initiator
	}
	if s.Site != "" && s.Site != s.Initiator {
		t += " in " + s.Site
	}
	switch {
	case s.LastStop > 0:
		t += fmt.Sprintf(": %s until the last P stopped", finding.Duration(s.LastStop-s.Begin))
		if s.Awaited != "" {
			t += " (" + s.Awaited
			if len(s.AwaitedStack) > 0 && s.AwaitedStack[0] != s.Awaited {
				t += " in " + s.AwaitedStack[0]
			}
			t += ")"
		}
		t += fmt.Sprintf(", %s stopped, %s starting", finding.Duration(s.Start-s.LastStop),
			finding.Duration(s.End-s.Start))
	case s.Start > 0 && s.Start < s.End:
		t += fmt.Sprintf(": nobody was awaited, %s stopped, %s starting",
			finding.Duration(s.Start-s.Begin), finding.Duration(s.End-s.Start))
	}
	if s.SlowRequests > 0 {
		t += fmt.Sprintf("; %s lost %s in all", times(int64(s.SlowRequests), "slow request",
			"slow requests"), finding.Duration(s.SlowNS))
	}
	return t
}

func stwRemedy(p *Pass, f *finding.Finding, kind string, worst []*account.STW, awaited string) {
	who := ""
	if len(worst) > 0 && worst[0].Site != "" {
		who = " (" + worst[0].Site + ")"
	}
	switch kind {
	case account.StopReadMemStats:
		f.Remedy = append(f.Remedy, "read runtime/metrics instead of runtime.ReadMemStats"+who+
			": it does not stop the world; or scrape less often",
			"with an old metrics client: upgrade prometheus/client_golang (v1.12 and later use runtime/metrics); expvar's memstats calls ReadMemStats at every request")
	case account.StopGoroutineProfile, account.StopProfileCleanup, account.StopAllStacks, account.StopAllStacks1:
		f.Remedy = append(f.Remedy, "take goroutine profiles less often"+who+
			", and never with debug=2: it stops the world for as long as it writes every stack")
	case account.StopGOMAXPROCS:
		f.Remedy = append(f.Remedy, "do not call runtime.GOMAXPROCS repeatedly"+who)
	case account.StopMarkTermination, account.StopSweepTermination:
		if awaited != "" {
			f.Remedy = append(f.Remedy, "break up what "+awaited+
				" does in one go: clear and copy large slices in chunks, no long loops without calls under Go before 1.14")
		}
		if v := p.Ledger.Reader.Format; v > 0 && v < 22 {
			f.Remedy = append(f.Remedy,
				"Go before 1.14 cannot preempt a loop without calls, and every pause waits until it ends: look for one (a CPU profile has it), or build with a newer Go")
		}
		f.Remedy = append(f.Remedy, "fewer cycles: raise GOGC with GOMEMLIMIT as the guard")
		if !joined(p.Ledger) {
			f.Remedy = append(f.Remedy,
				"see whether the process gets its CPUs: the cgroup's cpu.stat (nr_throttled), cat /proc/pressure/cpu; GOMAXPROCS not above the quota")
		}
	default:
		f.Remedy = append(f.Remedy, "find who stops the world"+who+" and do it less often")
	}
}

// most is the key with the largest value.
func most(m map[string]int64) (key string) {
	for k, v := range m {
		if key == "" || v > m[key] || v == m[key] && k < key {
			key = k
		}
	}
	return key
}

func orUnknown(s string) string {
	if s == "" {
		return "an unknown kind"
	}
	return s
}
