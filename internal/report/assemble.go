package report

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Source is what a report is made of.
type Source struct {
	Target   Target
	Inputs   []Input
	Ledger   *account.Result // nil: no execution trace could be read
	Found    finding.Result
	Gaps     []Gap  // of inputs other than the trace
	SlowOver int64  // ns, as asked for; 0: the slowest 1 % of each group
	Entry    string // as asked for
	Cost     Cost
	Errors   []string
	Tiers    []Tier
	Attached *Attached
}

// New assembles a report. It checks the sums once more: a reader of the report must know if one
// does not hold.
func New(s Source) *Report {
	r := &Report{
		Schema: SchemaVersion, Target: s.Target, Inputs: s.Inputs, Cost: s.Cost,
		Findings: s.Found.Findings, RuledOut: s.Found.RuledOut, NotChecked: s.Found.NotChecked,
		Errors: append([]string{}, s.Errors...), Gaps: []Gap{}, Tiers: s.Tiers, ledger: s.Ledger, Attached: s.Attached,
	}
	if l := s.Ledger; l != nil {
		r.fromLedger(l)
		r.Rest = r.rest(s.Found.Left)
	} else {
		r.Requests.NoRequestsCause = "no execution trace was read"
		r.Recording.Clock = "trace start"
	}
	r.Gaps = append(r.Gaps, s.Gaps...)
	r.Requests.SlowSelect = "the slowest 1 % of each group, at least 10 in all"
	if s.SlowOver > 0 {
		r.Requests.SlowSelect = "those over " + finding.Duration(s.SlowOver)
	}
	if s.Entry != "" {
		r.Requests.SlowSelect += ", of entries that match " + s.Entry
	}
	r.Unseen = r.unseen()
	r.noNulls()
	return r
}

func (r *Report) fromLedger(l *account.Result) {
	clock := wallClock{l.Wall, l.WallOffset}
	r.Recording = Recording{
		BeginUTC: clock.utc(l.Begin), EndUTC: clock.utc(l.End),
		BeginNS: l.Begin, EndNS: l.End, Clock: "trace start",
	}
	if l.Monotonic {
		r.Recording.Clock = "monotonic"
	}
	if l.Reader.Format > 0 {
		r.Recording.TraceFormat = fmt.Sprintf("go1.%d", l.Reader.Format)
	}
	if r.Target.GOMAXPROCS == 0 {
		r.Target.GOMAXPROCS = l.Capacity.Procs
	}
	if r.Target.CPUs == 0 {
		r.Target.CPUs = l.Capacity.CPUs
	}
	q := &l.Requests
	r.Requests.Requests = *q
	r.Requests.LeftOut = counted(q.LeftOut)
	for _, g := range q.Groups {
		var n int64
		for _, c := range g.LeftOut {
			n += c.N
		}
		g.LeftOut = counted(g.LeftOut)
		r.Requests.Groups = append(r.Requests.Groups, Group{Group: g, LeftOutCount: n})
	}
	for _, s := range q.Slowest {
		wall := s.End - s.Begin
		r.Requests.Slowest = append(r.Requests.Slowest, Request{
			Request: s, UTC: clock.utc(s.Begin), OffsetNS: s.Begin - l.Begin, WallNS: wall,
			Accounts: accounts(s.Accounts, wall),
		})
	}
	r.Native, r.Series, r.Locks = l.Native, l.Series, l.Locks
	r.Ledger = Ledger{Slow: column(&l.Slow), Median: column(&l.Median), All: column(&l.All),
		Capacity: capacity(&l.Capacity), Profiled: l.Profiled}
	checkSum(r, "ledger of slow requests", l.Slow.WallNS, l.Slow.Accounts,
		func(a account.Account) int64 { return a.NS })
	checkSum(r, "ledger of median requests", l.Median.WallNS, l.Median.Accounts,
		func(a account.Account) int64 { return a.NS })
	checkSum(r, "ledger of all requests", l.All.WallNS, l.All.Accounts, func(a account.Account) int64 { return a.NS })
	checkSum(r, "capacity ledger", l.Capacity.TotalNS, r.Ledger.Capacity.Accounts, capacityNS)
	for i := range l.Slow.Accounts {
		switch a := &l.Slow.Accounts[i]; a.Leaf {
		case account.LeafOnCPU:
			r.NotLookedAt.RunningNS += a.NS
		case account.LeafSyscall:
			r.NotLookedAt.SyscallNS += a.NS
		}
	}
	r.fromKernel(l)
	r.NotLookedAt.Silences = l.Silences
	for _, g := range l.Gaps {
		r.Gaps = append(r.Gaps, Gap{BeginNS: g.Begin, EndNS: g.End, BeginUTC: clock.utc(g.Begin),
			Source: traceSource, Reason: g.Reason})
	}
	for _, lack := range l.Lacks {
		if !lack.OffCPU || !r.joined() {
			r.Lacks = append(r.Lacks, lack.Text)
		}
	}
	c := &r.Cost
	c.MaxHeap, c.Bytes, c.Events = max(c.MaxHeap, l.Reader.MaxHeap), l.Reader.Bytes, l.Reader.Events
	if c.ExplainNS == 0 {
		c.ExplainNS = l.Reader.NS
	}
}

// checkSum reports an error if a ledger's parts do not add up to its total.
func checkSum[T any](r *Report, ledger string, total int64, parts []T, amount func(T) int64) {
	var sum int64
	for _, p := range parts {
		sum += amount(p)
	}
	if sum != total {
		r.Errors = append(r.Errors,
			fmt.Sprintf("internal error: the %s adds up to %d of %d; please report this", ledger, sum, total))
	}
}

func capacityNS(a CapacityRow) int64 { return a.NS }

// counted returns the reasons that occurred.
func counted(cs []account.Count) []account.Count {
	return slices.DeleteFunc(append([]account.Count{}, cs...), func(c account.Count) bool { return c.N <= 0 })
}

func column(c *account.Column) Column {
	return Column{Requests: c.Requests, WallNS: c.WallNS, Accounts: accounts(c.Accounts, c.WallNS), OnCPU: c.OnCPU}
}

func accounts(as []account.Account, wall int64) []Account {
	out := make([]Account, 0, len(as))
	for _, a := range as {
		t := AccountTags{Tags: a.Tags, TurnNS: a.Tags.PermitNS + a.Tags.ServingNS}
		out = append(out, Account{Account: a, Share: share(a.NS, wall), Tags: t})
	}
	return out
}

func capacity(c *account.Capacity) Capacity {
	out := Capacity{Capacity: *c, Accounts: []CapacityRow{
		{Cause: "running the program", NS: c.RunningNS},
		{Cause: "garbage collection", NS: c.GCNS},
		{Cause: "in a syscall", NS: c.SyscallNS},
		{Cause: "world stopped", NS: c.StoppedNS},
		{Cause: "idle while work waited", NS: c.IdleWorkNS},
		{Cause: "idle", NS: c.IdleNS},
		{Cause: "unexplained", NS: c.UnknownNS},
	}}
	shares(out.Accounts, c.TotalNS)
	return out
}

func shares(rows []CapacityRow, whole int64) {
	for i := range rows {
		rows[i].Share = share(rows[i].NS, whole)
	}
}

func share(ns, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return float64(ns) / float64(whole)
}

// noNulls makes every list a list, so that a reader of the JSON need not handle null.
func (r *Report) noNulls() {
	list(&r.Inputs)
	list(&r.Findings)
	list(&r.RuledOut)
	list(&r.NotChecked)
	list(&r.Lacks)
	list(&r.Tiers)
	list(&r.Unseen)
	list(&r.Cost.Recorder)
	list(&r.Requests.LeftOut)
	list(&r.Requests.Groups)
	list(&r.Requests.Slowest)
	list(&r.Ledger.Slow.Accounts)
	list(&r.Ledger.Median.Accounts)
	list(&r.Ledger.All.Accounts)
	list(&r.Ledger.Capacity.Accounts)
	r.Findings = append([]finding.Finding{}, r.Findings...)
	for i := range r.Findings {
		list(&r.Findings[i].Evidence)
		list(&r.Findings[i].Remedy)
	}
	r.NotChecked = append([]finding.NotChecked{}, r.NotChecked...)
	for i := range r.NotChecked {
		list(&r.NotChecked[i].Missing)
	}
}

func list[T any](s *[]T) {
	if *s == nil {
		*s = []T{}
	}
}
