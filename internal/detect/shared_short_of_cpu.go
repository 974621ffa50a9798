package detect

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Socket calls and wake-ups should take microseconds. If a quarter of their time passes in moments
// of 2 ms and more, threads lose about that much of whatever they do. Measured on 2 CPUs: 0-5 %
// each in a healthy process, up to 15 % on a busy host, 12-84 % beside 8 CPU hogs, 3-89 % with half
// a CPU of quota. A few such moments may be one hiccup of the host.
const (
	longShare = 4   // one in
	longWall  = 200 // one in, of the recording
	longLeast = 5
)

func tooLong(r *account.Result, m *account.Moments) bool {
	return m.Long >= longLeast && m.LongNS >= m.NS/longShare && m.LongNS >= r.Capacity.WallNS/longWall
}

// shortOfCPU says what shows that the threads of the process were kept off their CPUs, "" if
// nothing does. If they were, all that is measured on a running goroutine, a GC worker or a
// stopping P is longer than its work, and what took long need not be the cause.
func shortOfCPU(r *account.Result) string {
	// Where the accounts have the kernel's leaves, the time is divided, and nothing has to be
	// guessed.
	if r == nil || joined(r) && !r.Kernel.Whole {
		return ""
	}
	var why []string
	if k := kernelShort(r); k != "" {
		why = append(why, k)
	}
	if s := &r.Sockets; tooLong(r, s) {
		why = append(why, fmt.Sprintf("of %s in reads and writes of sockets, which do not block, %s passed in %d of %d calls, which took 2 ms or more",
			finding.Duration(s.NS), percent(ratio(s.LongNS, s.NS)), s.Long, s.N))
	}
	if w := &r.Wakes; tooLong(r, w) {
		why = append(why, fmt.Sprintf("work waited 2 ms or more beside an idle P %d times, which is %s of all such waiting (%s)",
			w.Long, percent(ratio(w.LongNS, w.NS)), finding.Duration(w.NS)))
	}
	if len(why) == 0 {
		return ""
	}
	return "threads of the process were kept off their CPUs: " + strings.Join(why, ", and ")
}

// cpuHints lists reasons to look for a lack of CPU where the kernel's records are missing.
func cpuHints(r *account.Result) (hints []string) {
	const how = "; on the host see cat /proc/pressure/cpu, the cgroup's cpu.stat (nr_throttled) and top"
	// A shared host stands still now and then. A twentieth of the slow requests' time is no
	// accident.
	if 20*r.Silences.SlowNS >= r.Slow.WallNS && r.Silences.SlowNS > 0 {
		hints = append(hints, fmt.Sprintf("a reason to look: %s with no event of any thread for 20 ms or more while work was runnable, %s in all, %s of the slow requests' time",
			times(r.Silences.N, "silence", "silences"), finding.Duration(r.Silences.NS),
			finding.Duration(r.Silences.SlowNS))+how)
	}
	if why := shortOfCPU(r); why != "" {
		hints = append(hints, "a reason to look: "+why+how)
	}
	return hints
}

// hadCPU reports whether most of the claim, and enough of it for a finding, passed while no thread
// of the process waited for a CPU.
func (p *Pass) hadCPU() bool {
	var ns int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		ns += scale(a.Tags.EnoughNS, c.ns, a.NS)
	}
	return 2*ns > p.Claimed() && p.below(ns) == ""
}

// unlessShortOfCPU takes back claims that a lack of CPU explains as well, if they are large enough
// for a finding. Where frequent-gc was found by what a lack of CPU cannot stretch, they are its
// mechanisms.
func unlessShortOfCPU(p *Pass) {
	why := shortOfCPU(p.Ledger)
	if why == "" || p.Found("frequent-gc") || p.below(p.Claimed()) != "" {
		return
	}
	if p.hadCPU() {
		return
	}
	p.Blind(fmt.Sprintf("whether %s per slow request (%s) are its own doing: %s; that stretches whatever they do, so give the process its CPUs and record again",
		p.per(p.Claimed()), p.share(p.Claimed()), why))
	p.claims = nil
}

// unlessStretched does the same where most of the claim is on accounts that a lack of CPU can
// stretch and that usual requests do not have: a lock held for 20 us, a stat of 10 us. What costs
// usual requests a twentieth of what it costs slow ones is there without a lack of CPU [a log line
// of 1.5 ms under its lock: a twelfth].
func unlessStretched(p *Pass, can func(*account.Account) bool) {
	if shortOfCPU(p.Ledger) == "" {
		return
	}
	var stretched, usual int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		if can(a) {
			stretched += c.ns
		}
		usual += scale(usualNS(p.Ledger, a), c.ns, a.NS)
	}
	if 2*stretched > p.Claimed() && 20*perRequest(&p.Ledger.Median, usual) < perRequest(&p.Ledger.Slow, p.Claimed()) {
		unlessShortOfCPU(p)
	}
}

// unlessStandstill takes back claims that mostly passed in one or two pauses in which no thread
// recorded anything. A GC cycle's pause does next to no work: it is not the reason if everything
// stood still once. Pauses that are long again and again wait for something that is as silent, for
// example a loop that cannot be preempted.
func unlessStandstill(p *Pass) {
	var silent int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		silent += scale(a.Tags.SilenceNS, c.ns, a.NS)
	}
	var first, second int64
	for i := range p.Ledger.STWs {
		switch ns := p.Ledger.STWs[i].SlowNS; {
		case ns > first:
			first, second = ns, first
		case ns > second:
			second = ns
		}
	}
	if joined(p.Ledger) || p.outcome != undecided || 2*(first+second) < p.Claimed() ||
		2*silent <= p.Claimed() || p.below(p.Claimed()) != "" {
		return
	}
	p.Blind(fmt.Sprintf("whether %s per slow request (%s) are GC's doing: %s of it passed while no thread of the process recorded anything for 20 ms or more, which a pause does not cause; see who else uses the CPUs, and record again",
		p.per(p.Claimed()), p.share(p.Claimed()), percent(ratio(silent, p.Claimed()))))
	p.claims = nil
}

// locksAreNew reports whether usual requests wait a twentieth, or less, of what slow ones wait
// behind the same locks.
func locksAreNew(r *account.Result) bool {
	var slow, usual int64
	for i := range r.Slow.Accounts {
		if a := &r.Slow.Accounts[i]; a.Class == account.ClassLock {
			slow += a.NS
			usual += usualNS(r, a)
		}
	}
	return 20*perRequest(&r.Median, usual) < perRequest(&r.Slow, slow)
}
