package detect

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

type outcome uint8

const (
	undecided outcome = iota
	found
	clear
	notChecked
	failed
)

// Pass is what one detector sees of one recording, and what it says about it.
//
// Look speaks with these verbs:
//
//	Claim, ClaimWhere, ClaimLacking   time of accounts of the slow requests
//	ClaimCPU, claimTerm, ClaimBytes   a part of a total: no request is visible, or memory is lost
//	Clear      the cause was looked for and is not there: see bounds.go
//	Absent     the same where there is nothing that could cost time
//	Bound      what it can cost at most, where claims do not say
//	Blind      nothing could be looked at
//	Missing    a part could not be looked at; what was found or cleared stands
//	Doubt      the finding is possible and no more
//	Cap        the finding is supported and no more
//	ClaimWork  CPU time that samples show in some kind of work
//	SetFloor   another floor for what is claimed now
//	Found      reports whether an earlier detector found its cause
//
// A Look that claims nothing and says nothing means: clear, slow requests lost no time to it.
//
// Tell adds evidence with Proof, and says with measure, or by setting measured, how much of what
// was granted is measured at both ends: who was awaited, and what held it. A finding whose measured
// part reaches 80 % is proven, unless it was doubted or capped (grade.go).
type Pass struct {
	Ledger *account.Result // nil without an execution trace and without the kernel's records
	Set    *evidence.Set
	Facts  Facts

	det     *Detector
	board   *board
	first   *Pass // of an earlier round, in which the cause was found
	outcome outcome
	why     string   `prose:"yes"` // why it is clear, or failed
	missing []string `prose:"yes"`

	claims      []claim
	floor       *Floor        // instead of the detector's
	claimedEver int64         // the sum of all claims, also of those that were taken back
	lackedQueue int64         // of the claims: Go's run queue, while threads that held Ps lacked something
	heldQueue   int64         // of the claims: Go's run queue that would have been empty otherwise
	queueAtWork map[int]int64 // by account: what claims of Go's run queue are a part of, if not of all
	cpuQueue    int64         // of the claims: the queue for CPUs, as the cause takes a part of the threads' CPU time
	goQueue     int64         // of the claims: Go's run queue, likewise
	goQueued    map[int]int64 // the same by account
	unsaid      []claim       // what pools stand for of the slow column, though it is too little to be claimed
	pools       []poolClaim   // instead of claims, where no request is visible or memory is lost
	total       int64         // what the pools are a share of
	bytes       bool          // pools hold bytes
	waited      bool          // pools hold time in which threads waited, and no CPU's
	bounds      []finding.Bound
	asked       bool          // ClaimWork was
	work        workClaim     // what of all claims rests on samples
	weight      float64       // the share of what everybody lost, to rank pools beside claims
	convoy      *account.Lock // of lock-contention: background goroutines queue for it

	partly     string  `prose:"yes"` // evidence that was recorded a part of the time only
	unrecorded float64 // the part of the recording without it

	root *Pass // the cause that this is a mechanism of
	via  *Pass // the mechanism of root that took most of the same time: the chain goes through it
	// symptom lists causes of which this is a symptom if they were found, though they claim of
	// another ledger; the likeliest first.
	symptom  []string
	follows  bool   // a queue at least twice as long is likely to bring it about
	within   string // the cause which claims the same time for the same reason, if it was found
	silent   bool   // what was claimed is silent by nature: a silence is no sign of anything else
	doubt    string `prose:"yes"` // why the finding is possible and no more
	capped   string `prose:"yes"` // why it is supported and no more
	measured int64  // of what was granted: who was awaited and what held it are both measured
	finding  finding.Finding
}

// claim is a part of one account of the slow column. granted is what is left of it after
// arbitration.
type claim struct {
	account     int
	ns, granted int64
}

// Claim claims ns of an account of the slow column, by its index.
func (p *Pass) Claim(account int, ns int64) {
	if ns <= 0 {
		return
	}
	p.claimedEver += ns
	for i := range p.claims {
		if c := &p.claims[i]; c.account == account {
			c.ns += ns
			return
		}
	}
	p.claims = append(p.claims, claim{account: account, ns: ns})
}

// ClaimWhere claims whole accounts.
func (p *Pass) ClaimWhere(ok func(*account.Account) bool) {
	for i := range p.Ledger.Slow.Accounts {
		if a := &p.Ledger.Slow.Accounts[i]; ok(a) {
			p.Claim(i, a.NS)
		}
	}
}

// ClaimCPU claims a part of a total of CPU time, for causes that make every request equally slow.
func (p *Pass) ClaimCPU(ns, total int64) { p.pool("CPU time seen by "+p.det.Name, ns, total, total) }

// ClaimBytes claims a part of a term of the memory ledger, which holds so many bytes. Shares are of
// the total.
func (p *Pass) ClaimBytes(term string, bytes, holds, total int64) {
	p.bytes = true
	p.pool(term, bytes, holds, total)
}

// Claimed is the sum of what was claimed so far.
func (p *Pass) Claimed() (ns int64) {
	for _, c := range p.claims {
		ns += c.ns
	}
	return ns
}

// SetFloor sets another floor for what this detector claims now. The reason stands at the call.
func (p *Pass) SetFloor(f Floor) { p.floor = &f }

// Clear says that the cause was looked for and is not there.
func (p *Pass) Clear(format string, args ...any) {
	p.outcome, p.why = clear, fmt.Sprintf(format, args...)
}

// Blind says that nothing could be looked at, and what was missing.
func (p *Pass) Blind(missing ...string) {
	p.outcome, p.missing = notChecked, append(p.missing, missing...)
}

// Missing says that a part could not be looked at; what was found or cleared stands.
func (p *Pass) Missing(format string, args ...any) {
	p.missing = append(p.missing, fmt.Sprintf(format, args...))
}

// Doubt caps the finding at possible. The first reason is the one that is printed.
func (p *Pass) Doubt(format string, args ...any) {
	if p.doubt == "" {
		p.doubt = fmt.Sprintf(format, args...)
	}
}

// Proof attaches a line of evidence.
func (p *Pass) Proof(source, format string, args ...any) {
	p.finding.Evidence = append(p.finding.Evidence,
		finding.Evidence{Text: fmt.Sprintf(format, args...), Source: source})
}

// Found reports whether an earlier detector found its cause.
func (p *Pass) Found(name string) bool {
	for _, b := range append(p.board.before[:len(p.board.before):len(p.board.before)], p.board) {
		for _, q := range b.passes {
			if q.det.Name == name && q.outcome == found {
				return true
			}
		}
	}
	return false
}

// Cap caps the finding at supported. The first reason is the one that is printed.
func (p *Pass) Cap(format string, args ...any) {
	if p.capped == "" {
		p.capped = fmt.Sprintf(format, args...)
	}
}

// NS is what was granted.
func (p *Pass) NS() (ns int64) {
	for _, c := range p.claims {
		ns += c.granted
	}
	return ns
}

// per prints ns per request of the column.
func (p *Pass) per(ns int64) string { return finding.Duration(perRequest(&p.Ledger.Slow, ns)) }

// share prints ns as a share of those requests' time.
func (p *Pass) share(ns int64) string { return percent(ratio(ns, p.Ledger.Slow.WallNS)) }

// granted calls f for each account of which something was granted, the largest first.
func (p *Pass) granted(f func(a *account.Account, ns int64)) {
	cs := append([]claim(nil), p.claims...)
	sort.SliceStable(cs, func(i, j int) bool { return cs[i].granted > cs[j].granted })
	for _, c := range cs {
		if c.granted > 0 {
			f(&p.Ledger.Slow.Accounts[c.account], c.granted)
		}
	}
}

// byLeaf sums up what was granted by the accounts' leaves, the largest first.
func (p *Pass) byLeaf() (cs []finding.Claim) {
	p.granted(func(a *account.Account, ns int64) {
		i := slices.IndexFunc(cs, func(c finding.Claim) bool { return c.Leaf == string(a.Leaf) })
		if i < 0 {
			i = len(cs)
			cs = append(cs, finding.Claim{Leaf: string(a.Leaf)})
		}
		cs[i].NS += ns
	})
	sort.SliceStable(cs, func(i, j int) bool { return cs[i].NS > cs[j].NS })
	return cs
}

// tagged sums a tag over what was granted, in proportion to the account.
func (p *Pass) tagged(tag func(*account.Tags) int64) (ns int64) {
	p.granted(func(a *account.Account, granted int64) { ns += scale(tag(&a.Tags), granted, a.NS) })
	return ns
}

// words makes the finding from what was granted.
func (p *Pass) words() finding.Finding {
	f := &p.finding
	f.Cause, f.Title, f.Scope = p.det.Name, p.det.Title, p.board.scope
	if len(p.pools) > 0 {
		f.Scope = finding.Process
	}
	f.Evidence, f.Remedy = []finding.Evidence{}, []string{}
	if p.root != nil {
		f.BecauseOf = p.root.det.Name
		if p.via != nil {
			f.BecauseOf = p.via.det.Name
		}
	}
	switch {
	case p.convoy != nil: // no request's time, and no CPU's
		f.Explains.WaitedNS, f.Share = p.pooled(), p.weight
	case len(p.pools) > 0 && p.waited:
		f.Explains.WaitedNS, f.Share = p.pooled(), ratio(p.pooled(), p.total)
	case len(p.pools) > 0 && p.bytes:
		f.Explains.Bytes, f.Share = p.pooled(), ratio(p.pooled(), p.total)
	case len(p.pools) > 0:
		f.Explains.CPUNS, f.Share = p.pooled(), ratio(p.pooled(), p.total)
	default:
		f.Explains.NS, f.Share = p.NS(), ratio(p.NS(), p.Ledger.Slow.WallNS)
		f.Claims = p.byLeaf()
		p.quote()
		p.lackedLine()
		p.standstill()
	}
	p.guard(func(p *Pass) { p.det.Tell(p, f) })
	p.grade(f)
	if f.Verify == "" {
		f.Verify = p.verify("")
	}
	return *f
}

// quote adds the accounts that the claim rests on as evidence: the largest, and up to three others
// that are 1 % of the slow requests' time or more.
func (p *Pass) quote() {
	var rest []string // too small to be printed one by one, unless there is only one
	var restNS int64
	n := 0
	p.granted(func(a *account.Account, ns int64) {
		usual := ""
		if m := &p.Ledger.Median; m.Requests > 0 && p.board.scope == finding.Slow {
			usual = ", usual requests " + finding.Duration(perRequest(m, scale(usualNS(p.Ledger, a), ns, a.NS)))
		}
		text := fmt.Sprintf("%s per request (%s%s) %s", p.per(ns), p.share(ns), usual, accountName(a))
		if n++; n > 4 || n > 1 && ns*100 < p.Ledger.Slow.WallNS {
			rest = append(rest, text)
			restNS += ns
			return
		}
		p.Proof(p.column(), "%s", text)
	})
	switch len(rest) {
	case 0:
	case 1:
		p.Proof(p.column(), "%s", rest[0])
	default:
		p.Proof(p.column(), "%d more accounts of this kind: %s per request", len(rest), p.per(restNS))
	}
}

// standstill doubts a claim whose time mostly passed while the whole process stood still. The state
// that a goroutine was in then says nothing about the reason.
func (p *Pass) standstill() {
	s := &p.Ledger.Silences
	ns := p.tagged(func(t *account.Tags) int64 { return t.SilenceNS })
	if ns == 0 || p.silent || joined(p.Ledger) {
		return
	}
	p.Proof("execution trace: silences",
		"%s of it passed while no thread of the process recorded anything for 20 ms or more, though work was runnable (%d silences, %s in all, the longest %s)",
		percent(ratio(ns, p.NS())), s.N, finding.Duration(s.NS), finding.Duration(s.Max))
	if scale(ns, s.FewNS, s.NS)*2 > p.NS() {
		p.Doubt("for most of this time the whole process stood still, with fewer goroutines running than Ps; throttling by a CPU quota and an overloaded host look like this, and only the kernel's records can separate them")
	}
}

// at prints an instant: in UTC where the recording has it, otherwise since its start.
func (p *Pass) at(ns int64) string {
	if r := p.Ledger; r.Wall {
		return time.Unix(0, ns+r.WallOffset).UTC().Format("15:04:05.000 UTC")
	}
	return fmt.Sprintf("+%.3f s", float64(ns-p.Ledger.Begin)/1e9)
}

// verify is the command that checks the remedy, and what it should show.
func (p *Pass) verify(want string) string {
	cmd := p.Facts.Again
	if cmd == "" {
		cmd = "whystall diagnose --pprof http://HOST:PORT --for 20s"
	}
	if want == "" {
		want = p.det.Name + " is gone from the findings"
		if p.Ledger != nil && p.Ledger.Requests.P99 > 0 {
			want += " and p99 is below " + finding.Duration(p.Ledger.Requests.P99)
		}
	}
	return cmd + "   # under the same load; " + want
}

// accountName names an account as the ledger's row does.
func accountName(a *account.Account) string {
	return account.Words(account.Named{Class: a.Class, Leaf: a.Leaf, Actor: a.Actor, Site: a.Site,
		Detail: a.Detail, Holder: a.Holder}, func(s string) string { return s })
}
