package compare

import (
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// made is a recording of one entry point whose slow requests wait for a lock.
type made struct {
	p99, lock, queue int64   // ns; of a slow request: the lock, the run queue behind others
	count            int64   // requests in 10 s
	others           float64 // CPUs
	blind            bool    // neighbours are not known
	start            int64
	notFound         bool
	bound            int64 // of the lock where it is not found
	trace            bool  // no kernel records
	fresh            string
	once             int // how many separate stretches it lacks
}

func (m made) run() *Run {
	if m.count == 0 {
		m.count = 10000
	}
	const slow = 100
	wall := m.p99 + m.lock/10
	r := &account.Result{Begin: 0, End: 10e9}
	r.Reader.Format = 26
	r.Requests = account.Requests{Count: m.count, P50: m.p99 / 10, P99: m.p99, Max: 2 * m.p99, Slow: slow,
		Groups: []account.Group{{Entry: "main.serve", Kind: "net/http", Count: m.count, P50: m.p99 / 10, P99: m.p99, Max: 2 * m.p99, Slow: slow}}}
	r.Slow = account.Column{Requests: slow, WallNS: wall * slow, Accounts: []account.Account{
		{Leaf: account.LeafOnCPU, Class: account.ClassLock, Site: "main.get", NS: m.lock * slow, Events: leastEvents - m.once},
		{Leaf: account.LeafNoCPU, Class: account.ClassOwn, Detail: "tar", NS: m.queue * slow},
		{Leaf: account.LeafNetwork, Class: account.ClassOwn, NS: (wall - m.lock - m.queue) * slow},
	}}
	if !m.trace {
		r.Kernel = &account.Kernel{Joined: true, Begin: 0, End: 10e9, OnNS: 1e9}
	}
	run := &Run{Name: "x", Result: r, OthersCPUs: m.others, OthersKnown: !m.blind, PID: 7, Started: m.start}
	claims := []finding.Claim{{Leaf: string(account.LeafOnCPU), NS: m.lock * slow}}
	if m.notFound {
		run.Found.RuledOut = []finding.RuledOut{{Cause: "lock-contention", Bounds: []finding.Bound{{Scope: finding.Slow, NS: m.bound, Of: finding.OfRequest}}}}
	} else {
		run.Found.Findings = []finding.Finding{{Cause: "lock-contention", Scope: finding.Slow, Explains: finding.Explains{NS: m.lock * slow}, Claims: claims}}
	}
	if m.fresh != "" {
		run.Found.Findings = append(run.Found.Findings, finding.Finding{Cause: m.fresh, Scope: finding.Slow, Explains: finding.Explains{NS: m.lock * slow}, Claims: claims})
	}
	return run
}

func runs(ms ...made) (all []*Run) {
	for _, m := range ms {
		all = append(all, m.run())
	}
	return all
}

func TestVerdicts(t *testing.T) {
	ill := made{p99: 50e6, lock: 40e6, start: 1}
	cured := made{p99: 2e6, notFound: true, bound: 1e5, start: 2}
	with := func(m made, f func(*made)) made { f(&m); return m }
	for _, c := range []struct {
		name          string
		before, after []*Run
		want          Outcome
		gate          Gate // "" none
	}{
		{"cured", runs(ill), runs(cured), Confirmed, ""},
		{"a third is left, and it is still found", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock = 20e6, 13e6 })), CannotTell, TooLittle},
		{"nothing changed", runs(ill), runs(with(ill, func(m *made) { m.start = 2; m.p99 = 55e6 })), NotConfirmed, ""},
		{"a little less", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock = 38e6, 30e6 })), CannotTell, TooLittle},
		{"worse", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock = 150e6, 120e6 })), Worse, ""},
		{"worse under more load", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock, m.count = 150e6, 120e6, 15000 })), CannotTell, LoadRose},
		{"cured under less load", runs(ill), runs(with(cured, func(m *made) { m.count = 5000 })), CannotTell, LoadFell},
		{"a client that waits asks more often", runs(ill), runs(with(cured, func(m *made) { m.count = 40000 })), Confirmed, ""},
		{"neighbours left, and requests had waited behind them alone", runs(with(ill, func(m *made) { m.lock, m.queue, m.others = 4e6, 46e6, 1 })), runs(with(cured, func(m *made) { m.p99 = 4e6 })), CannotTell, OthersFell},
		{"neighbours left, and the fall is as large without their waits", runs(with(ill, func(m *made) { m.lock, m.queue, m.others = 20e6, 18e6, 1 })), runs(cured), Confirmed, ""},
		{"the cause is gone, and requests wait behind others instead", runs(ill), runs(with(cured, func(m *made) { m.p99, m.queue = 50e6, 48e6 })), CannotTell, OthersRose},
		{"worse, by one stretch of time", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock, m.once = 150e6, 120e6, 4 })), CannotTell, FewEvents},
		{"neighbours left, and requests had not waited for them", runs(with(ill, func(m *made) { m.others = 1 })), runs(cured), Confirmed, ""},
		{"neighbours came", runs(ill), runs(with(ill, func(m *made) { m.p99, m.lock, m.others = 150e6, 120e6, 1 })), CannotTell, OthersRose},
		{"neighbours are not known, and it fell by half", runs(with(ill, func(m *made) { m.blind = true })), runs(with(ill, func(m *made) { m.p99, m.lock, m.blind = 25e6, 18e6, true })), CannotTell, TooLittle},
		{"the account is gone, and p99 is not", runs(ill), runs(with(cured, func(m *made) { m.p99 = 50e6 })), CannotTell, Disagree},
		{"too few requests", runs(ill), runs(with(cured, func(m *made) { m.count = 20 })), CannotTell, FewRequests},
		{"other evidence", runs(ill), runs(with(cured, func(m *made) { m.trace = true })), CannotTell, OtherEvidence},
		{"it has another name now", runs(ill), runs(with(ill, func(m *made) { m.p99, m.notFound, m.fresh = 30e6, true, "logger-lock" })), CannotTell, Disagree},
		{"three starts tell a little less", runs(ill, with(ill, func(m *made) { m.start, m.p99 = 2, 52e6 }), with(ill, func(m *made) { m.start, m.p99 = 3, 49e6 })),
			runs(made{p99: 38e6, lock: 30e6, start: 4}, made{p99: 37e6, lock: 29e6, start: 5}, made{p99: 39e6, lock: 31e6, start: 6}), Confirmed, ""},
		{"three recordings of one start do not", runs(ill, with(ill, func(m *made) { m.p99 = 52e6 }), with(ill, func(m *made) { m.p99 = 49e6 })),
			runs(made{p99: 38e6, lock: 30e6, start: 4}, made{p99: 37e6, lock: 29e6, start: 4}, made{p99: 39e6, lock: 31e6, start: 4}), CannotTell, TooLittle},
	} {
		got := Sides(c.before, c.after)
		if len(got.Verdicts) != 1 {
			t.Errorf("%s: %d verdicts", c.name, len(got.Verdicts))
			continue
		}
		v := got.Verdicts[0]
		if v.Outcome != c.want || c.gate == "" && len(v.Gates) > 0 || c.gate != "" && !slices.Contains(v.Gates, c.gate) {
			t.Errorf("%s: %s %v, want %s %s", c.name, v.Outcome, v.Gates, c.want, c.gate)
		}
	}
}

func TestNothingBefore(t *testing.T) {
	healthy := made{p99: 2e6, notFound: true}
	c := Sides(runs(healthy), runs(made{p99: 50e6, lock: 40e6}))
	if c.Status() != 3 || len(c.Verdicts) != 0 || len(c.New) != 1 {
		t.Errorf("status %d, %d verdicts, %d new", c.Status(), len(c.Verdicts), len(c.New))
	}
}

func TestEmptyRecording(t *testing.T) {
	empty := &Run{Name: "empty", Result: &account.Result{}}
	for _, c := range []*Comparison{Sides([]*Run{empty}, runs(made{p99: 1e6, lock: 1e6})), Sides(runs(made{p99: 50e6, lock: 40e6}), []*Run{empty}), Sides([]*Run{{}}, []*Run{{}})} {
		if c.Status() != 3 {
			t.Errorf("status %d of an empty recording", c.Status())
		}
	}
}
