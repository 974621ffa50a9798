package detect

import (
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/finding"
)

// aside is how many times more of its time usual requests, or the process, must lose to a cause for
// it to stand before one of slow requests: whoever asks why some are slow wants that first.
const aside = 3

// result is steps 6 and 7: what every detector said.
func (r *run) result() (out finding.Result) {
	out.Findings, out.RuledOut = r.ranked(), []finding.RuledOut{}
	for _, b := range r.boards {
		if b.all {
			out.Left = b.left
		}
	}
	for _, ps := range r.causes() {
		switch p := said(ps); p.outcome {
		case clear:
			out.RuledOut = append(out.RuledOut, finding.RuledOut{Cause: p.det.Name, Why: p.why, Bounds: boundsOf(ps)})
		case failed:
			// A detector's fault must not cost the report, nor pass for "not there".
			p.missing = []string{"the detector failed: " + p.why + "; please report this"}
		case found:
			continue
		}
		if missing := missing(ps); len(missing) > 0 {
			out.NotChecked = append(out.NotChecked, finding.NotChecked{Cause: ps[0].det.Name, Missing: missing})
		}
	}
	return out
}

// causes lists each detector's passes, by round, in the order in which detectors look.
func (r *run) causes() (all [][]*Pass) {
	at := map[*Detector]int{}
	for _, b := range r.boards {
		for _, p := range b.passes {
			i, ok := at[p.det]
			if !ok {
				i = len(all)
				at[p.det] = i
				all = append(all, nil)
			}
			all[i] = append(all[i], p)
		}
	}
	slices.SortStableFunc(all,
		func(a, b []*Pass) int { return slices.Index(order, a[0].det.Name) - slices.Index(order, b[0].det.Name) })
	return all
}

// said is the pass that speaks for a detector: the first in which it found its cause, otherwise one
// that failed or could not look, otherwise the first.
func said(ps []*Pass) *Pass {
	for _, o := range []outcome{found, failed, notChecked} {
		for _, p := range ps {
			if p.outcome == o {
				return p
			}
		}
	}
	return ps[0]
}

// boundsOf lists what each round says that the cause can cost at most.
func boundsOf(ps []*Pass) (all []finding.Bound) {
	for _, p := range ps {
		all = append(all, p.bounds...)
	}
	return all
}

// missing is what could not be looked at in any round.
func missing(ps []*Pass) (all []string) {
	for _, p := range ps {
		for _, m := range p.missing {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

// ranked lists the findings: roots by what they cost, each followed by its mechanisms.
func (r *run) ranked() []finding.Finding {
	by := map[*Detector]*Pass{}
	var all []*Pass
	for _, ps := range r.causes() {
		if p := said(ps); p.outcome == found {
			by[p.det] = p
			all = append(all, p)
		}
	}
	var roots []*Pass
	under := map[*Pass][]*Pass{}
	for _, p := range all {
		root := p
		for root.root != nil && by[root.root.det] != nil {
			root = by[root.root.det] // as it was found first: a root there is one everywhere
		}
		if root == p {
			p.finding.BecauseOf = ""
			roots = append(roots, p)
		} else {
			under[root] = append(under[root], p)
		}
	}
	sort.SliceStable(roots, func(i, j int) bool { return roots[i].rank() > roots[j].rank() })
	fs := []finding.Finding{}
	for _, p := range roots {
		if p.board.scope == finding.Slow && p.finding.Explains.NS > 0 {
			p.finding.BeyondUsual = max(0, min(p.finding.Share, p.excess()))
		}
		fs = append(fs, p.finding)
		sort.SliceStable(under[p], func(i, j int) bool { return under[p][i].NS() > under[p][j].NS() })
		for _, q := range under[p] {
			fs = append(fs, q.finding)
		}
	}
	return fs
}

// elsewhere adds what a cause costs in the scopes after the one in which it was found.
func (p *Pass) elsewhere(ps []*Pass) {
	for _, q := range ps {
		switch {
		case q == p || q.outcome != found:
		case q.board.scope == finding.Usual:
			p.Proof(q.column(), "usual requests lose %s to it, %s of their time", q.per(q.NS()), q.share(q.NS()))
		case len(q.pools) > 0 && q.work.ns > 0:
			p.Proof("CPU samples", "of all CPU time of the process it takes %s", percent(ratio(q.pooled(), q.total)))
		case len(q.pools) > 0 && q.waited:
			p.Proof("kernel records",
				"its threads lose %s of the time in which they have work to it", percent(ratio(q.pooled(), q.total)))
		case len(q.pools) > 0 && q.weight > 0:
			p.Proof("kernel records", "the process loses %s of its time to it", percent(min(1, q.weight)))
		}
	}
}

// excess puts what a cause costs on one scale: the part of a request's time, or of the process'.
func (p *Pass) excess() float64 {
	whole := int64(1e12) // poolScore's, without requests
	if p.Ledger != nil && p.Ledger.Slow.WallNS > 0 {
		whole = p.Ledger.Slow.WallNS
	}
	return ratio(p.score(), whole)
}

// rank is by what findings are ordered.
func (p *Pass) rank() float64 {
	rank := p.excess()
	if p.follows {
		rank /= aside // what explains that queue stands before it
	}
	if p.board.scope != finding.Slow {
		rank /= aside
		if p.waited && p.doubt != "" {
			rank /= aside // nobody is known to have waited for these threads
		}
	}
	return rank
}
