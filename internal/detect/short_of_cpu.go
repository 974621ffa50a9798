package detect

import (
	"fmt"

	"github.com/whystall/whystall/internal/ledger"
)

// A quarter of the socket calls' time in calls that no work explains means that threads lose about as much of
// whatever they do [healthy, 2 CPUs: 0-3 %, on a busy host up to 15 %; beside 8 CPU hogs 16-89 %]. Few such calls may
// be one hiccup of the host.
const (
	longCallsShare = 4   // one in
	longCallsWall  = 200 // one in, of the recording
	longCallsLeast = 5
)

// shortOfCPU tells by what it shows that the threads of the process were kept off their CPUs, "" if it does not. Then
// all that is measured on a running goroutine, a GC worker or a stopping P is longer than its work, and what took
// long is not thereby the cause.
func shortOfCPU(r *ledger.Result) string {
	if r == nil {
		return ""
	}
	s := &r.Sockets
	if s.Long < longCallsLeast || s.LongNS < s.NS/longCallsShare || s.LongNS < r.Capacity.WallNS/longCallsWall {
		return ""
	}
	return fmt.Sprintf("threads of the process were kept off their CPUs: of %s in reads and writes of sockets, which do not block, %s passed in %d of %d calls that took 2 ms or more",
		dur(s.NS), percent(ratio(s.LongNS, s.NS)), s.Long, s.N)
}

// unlessShortOfCPU takes claims back which a lack of CPU explains as well, if they are enough for a finding. Where
// frequent-gc was found on what does not stretch, they are its mechanisms.
func unlessShortOfCPU(p *Pass) {
	why := shortOfCPU(p.Ledger)
	if why == "" || p.Found("frequent-gc") || p.board.below(p.det.Floor, p.Claimed()) != "" {
		return
	}
	p.Blind(fmt.Sprintf("whether %s per slow request (%s) are its own: %s; that stretches whatever they do, so give the process its CPUs and record again",
		p.per(p.Claimed()), p.share(p.Claimed()), why))
	p.claims = nil
}

// unlessStretched does the same where most of the claim is of accounts that a lack of CPU can stretch, and usual
// requests do not know them: a lock held for 20 us, a stat of 10 us. What costs usual requests a twentieth of what it
// costs slow ones is there without it [a log line of 1.5 ms under its lock: a twelfth].
func unlessStretched(p *Pass, can func(*ledger.Account) bool) {
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

// unlessStandstill takes claims back that mostly passed while no thread recorded anything. A GC cycle's pause does
// next to no work: whoever stood still meanwhile did not because of it.
func unlessStandstill(p *Pass) {
	var silent int64
	for _, c := range p.claims {
		a := &p.Ledger.Slow.Accounts[c.account]
		silent += scale(a.Tags.SilenceNS, c.ns, a.NS)
	}
	if p.outcome != undecided || 2*silent <= p.Claimed() || p.board.below(p.det.Floor, p.Claimed()) != "" {
		return
	}
	p.Blind(fmt.Sprintf("whether %s per slow request (%s) are GC's: %s of it passed while no thread of the process recorded anything for 20 ms or more, which a pause does not make; see who else uses the CPUs, and record again",
		p.per(p.Claimed()), p.share(p.Claimed()), percent(ratio(silent, p.Claimed()))))
	p.claims = nil
}
