package detect

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
)

// run is what all detectors said of one recording, one board a scope.
type run struct{ boards []*board }

// rounds makes the boards. All detectors look at the slow requests, or where there are none at the
// process. In the other rounds those look that have the scope.
//
// A round sees the result as if its requests were the slow ones: what was written for the slow
// column holds for the usual one as it stands. In the round of the process there are no requests.
func rounds(r *account.Result) *run {
	slow, usual := r != nil && visible(&r.Slow), r != nil && visible(&r.Median)
	process := newBoard(r, finding.Process)
	process.all = !slow
	var bs []*board
	if slow {
		b := newBoard(r, finding.Slow)
		b.all = true
		bs = append(bs, b)
	}
	if usual {
		view := *r
		view.Slow = r.Median
		bs = append(bs, newBoard(&view, finding.Usual))
	}
	if slow {
		view := *r
		view.Slow, view.Median = account.Column{}, account.Column{}
		process = newBoard(&view, finding.Process)
		process.seen = true
	}
	bs = append(bs, process)
	pools := map[string][]taker{} // one ledger of CPUs and memory, whoever speaks of it
	for i, b := range bs {
		b.pools, b.before = pools, bs[:i]
	}
	return &run{boards: bs}
}

func visible(c *account.Column) bool { return c.Requests > 0 && c.WallNS > 0 }

// looks reports whether a detector looks in this round.
func (b *board) looks(d *Detector) bool {
	if !b.all && !slices.Contains(d.Scopes, b.scope) {
		return false
	}
	if b.seen && d.Beside != nil && !d.Beside(b.r) {
		return false
	}
	// What it claimed of the process in another round is not claimed again.
	q := b.earlier(d)
	return q == nil || len(q.pools) == 0
}

// earlier is the first round's pass in which the detector found its cause, nil if there is none.
func (b *board) earlier(d *Detector) *Pass {
	for _, e := range b.before {
		for _, q := range e.passes {
			if q.det == d && q.outcome == found {
				return q
			}
		}
	}
	return nil
}

// look is steps 1 to 5.
func look(ds []*Detector, r *account.Result, set *evidence.Set, facts Facts) *run {
	if set == nil {
		set = &evidence.Set{}
	}
	all := rounds(r)
	for _, b := range all.boards {
		for _, d := range ds {
			if d.Go && noGo(r, facts) || d.Native && (r == nil || !r.Native) || d.Applies != nil &&
				!d.Applies(r, facts) || !b.looks(d) {
				continue
			}
			p := &Pass{Ledger: b.r, Set: set, Facts: facts, det: d, board: b, first: b.earlier(d)}
			b.passes = append(b.passes, p)
			p.look()
		}
	}
	for _, b := range all.boards {
		for _, p := range b.passes {
			if p.outcome == found {
				p.finding = p.words()
				for _, c := range p.unsaid {
					b.left[c.account] -= min(c.ns, b.left[c.account])
				}
			}
		}
	}
	for _, ps := range all.causes() {
		if p := said(ps); p.outcome == found {
			p.elsewhere(ps)
		}
	}
	return all
}

// look is steps 3 and 4 for one detector in one round.
func (p *Pass) look() {
	if p.missing = p.lacking(); len(p.missing) > 0 {
		if p.det.Hint != nil && p.Ledger != nil {
			p.missing = append(p.missing, p.det.Hint(p.Ledger)...)
		}
		p.outcome = notChecked
		return
	}
	p.guard(p.det.Look)
	if p.outcome == undecided {
		p.board.arbitrate(p)
	}
	p.board.sampled(p)
	p.bound()
	if why := p.Facts.halted(); why != "" && p.outcome == found {
		// If the halt was long, it may be what took a request's time.
		if k := kernelOf(p); k != nil && 20*p.Facts.Halted.NS < wall(k) {
			p.Cap("%s", why)
		} else {
			p.Doubt("%s", why)
		}
	}
}

// lost is the part of time that threads lost by waiting ns in all. Where no request is visible it
// is of wall time: somebody waits all the time. Beside requests it is of the time in which threads
// had work, since a process of many threads loses little by one that waits.
func (p *Pass) lost(ns int64) float64 {
	k := kernelOf(p)
	if !p.board.seen {
		return ratio(ns, wall(k))
	}
	return ratio(ns, wantedCPU(k).wanted+ns)
}

// capProcess caps a finding of the process: who paid is not known.
func (p *Pass) capProcess() {
	if p.board.seen {
		p.Cap("it is of the process as a whole: which requests paid for it is not shown")
		return
	}
	p.Cap("no request is visible: it is not known who waited for these threads")
}

// Scope is that of this round.
func (p *Pass) Scope() finding.Scope { return p.board.scope }

// Column is the requests of this round: slow or usual ones; none in the round of the process.
func (p *Pass) Column() *account.Column { return &p.Ledger.Slow }

// who names those who lose time in this round.
func (p *Pass) who() string {
	switch {
	case p.board.scope == finding.Usual:
		return "usual requests"
	case p.board.scope == finding.Slow:
		return "slow requests"
	}
	return "its threads"
}

// column names the source of what was read of their accounts.
func (p *Pass) column() string {
	if p.board.scope == finding.Usual {
		return "ledger: median column"
	}
	return "ledger: slow column"
}
