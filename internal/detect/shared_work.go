package detect

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/finding"
)

// What causes say that are CPU time, by samples: page-fault, kernel-lock, spinning, softirq.

// everyScope is of causes which slow requests, all requests, or the process as a whole may pay.
var everyScope = []finding.Scope{finding.Slow, finding.Usual, finding.Process}

// workFloor is for slow requests.
var workFloor = Floor{NS: 5e6, Share: 0.10}

// lookWork claims CPU time of these kinds, and the same part of the queue for CPUs behind threads
// of the process: without that work the queue would be shorter.
func lookWork(p *Pass, kinds ...account.WorkKind) {
	p.queueBehind(kinds...)
	if p.fewSamples() {
		return
	}
	w := p.ClaimWork(kinds...)
	if p.Scope() == finding.Process {
		p.SetFloor(Floor{Share: processShare})
	}
	if w.NS == 0 && len(p.claims) == 0 {
		p.Clear("%s", p.noWork(kinds...))
	}
}

// queueBehind claims what requests wait behind threads of the process that do this work, where they
// do little else.
func (p *Pass) queueBehind(kinds ...account.WorkKind) {
	k := p.Ledger.Kernel
	if p.Scope() == finding.Process || !joined(p.Ledger) || k.OnCPU == nil || k.OnCPU.NS <= 0 {
		return
	}
	if w := k.OnCPU.Of(kinds...); ratio(w.Low, k.OnCPU.NS) >= processLow {
		p.claimQueue(scale(k.OnNS, w.NS, k.OnCPU.NS))
	}
}

// fewSamples reports whether samples say nothing of this round. It speaks then, unless something
// was claimed. The time on CPUs itself is a bound of whatever went on there.
func (p *Pass) fewSamples() bool {
	why := p.blindWork()
	switch {
	case why == "":
		return false
	case len(p.claims) > 0:
	case visible(p.Column()):
		var ns int64
		for i := range p.Column().Accounts {
			if a := &p.Column().Accounts[i]; a.Leaf == account.LeafOnCPU {
				ns += a.NS
			}
		}
		bound := finding.Bound{Scope: p.board.scope, NS: perRequest(p.Column(), ns),
			Share: ratio(ns, p.Column().WallNS), Of: finding.OfRequest}
		if below := p.below(ns); below != "" && !p.tooMuch(bound) {
			p.Bound(perRequest(p.Column(), ns), ratio(ns, p.Column().WallNS), finding.OfRequest)
			p.Clear("all time on CPUs: %s", below)
			return true
		}
		fallthrough
	default:
		p.Blind(why)
	}
	return true
}

// blindWork says why samples cannot be read, "" if they can.
func (p *Pass) blindWork() string {
	k := kernelOf(p)
	on := p.samples()
	switch {
	case on != nil && on.Samples >= account.LeastSamples:
		return ""
	case k != nil && on == nil && unseen(k, kernel.SightSamples) != "":
		return unseen(k, kernel.SightSamples)
	case on == nil:
		return "what CPU time went into: no sample of its threads' stacks; record with privilege (whystall doctor), while it works"
	}
	return fmt.Sprintf("what CPU time went into: only %s in this time (%d are needed): %s",
		times(on.Samples, "sample", "samples"), account.LeastSamples, longer(k, on.Samples))
}

// longer says for how long to record for enough samples at the same load. They come by chance, so
// it is half as long again.
func longer(k *account.Kernel, samples int64) string {
	if k == nil || samples <= 0 {
		return "record for longer, or under load"
	}
	s := math.Ceil(1.5 * float64(wall(k)) / 1e9 * account.LeastSamples / float64(samples))
	if s > mostSeconds {
		return "record under more load"
	}
	return fmt.Sprintf("record for about %.0f s (--for %.0fs), or under more load", s, s)
}

// mostSeconds is for how long somebody may be asked to record.
const mostSeconds = 300

// noWork says that no sample met such work, and what that bounds.
func (p *Pass) noWork(kinds ...account.WorkKind) string {
	on := p.samples()
	return fmt.Sprintf("none of %d samples met it: at most %s of the CPU time", on.Samples,
		percent(ratio(on.Of(kinds...).High, on.NS)))
}

// works are the parts of these kinds, the largest first.
func works(on *account.OnCPU, kinds ...account.WorkKind) (l []*account.Work) {
	if on == nil {
		return nil
	}
	for i := range on.Works {
		if slices.Contains(kinds, on.Works[i].Kind) {
			l = append(l, &on.Works[i])
		}
	}
	return l
}

// sumWorks adds up works of on, as if all were of one kind.
func sumWorks(on *account.OnCPU, kind account.WorkKind, l []*account.Work) account.Work {
	if on == nil {
		return account.Work{}
	}
	part := *on
	part.Works = nil
	for _, w := range l {
		same := *w
		same.Kind = kind
		part.Works = append(part.Works, same)
	}
	return part.Of(kind)
}

// best is the division that has most to say about names: the process' own has all samples.
func (p *Pass) best() *account.OnCPU {
	if k := kernelOf(p); k != nil && k.OnCPU != nil && k.OnCPU.Samples >= account.LeastSamples {
		return k.OnCPU
	}
	return p.samples()
}

// workSites adds up the sites of these works, the largest first.
func workSites(l []*account.Work) (out []account.Site) {
	for _, w := range l {
		for _, s := range w.Sites {
			if i := slices.IndexFunc(out, func(o account.Site) bool { return o.Func == s.Func }); i >= 0 {
				out[i].NS += s.NS
				out[i].N += s.N
			} else {
				out = append(out, s)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b account.Site) int { return int(min(max(b.NS-a.NS, -1), 1)) })
	return out
}

// workLines is the evidence: what was claimed with its interval, then its parts and their sites.
func workLines(p *Pass, what string, kinds ...account.WorkKind) {
	on := p.samples()
	if w := on.Of(kinds...); w.Samples > 0 {
		p.Proof("CPU samples", "%s: %s of the CPU time of %s (%s to %s at 95 %%), %d of %d samples",
			what, percent(ratio(w.NS, on.NS)), p.whose(), percent(ratio(w.Low, on.NS)),
			percent(ratio(w.High, on.NS)), w.Samples, on.Samples)
	}
	all := p.best()
	if all == nil {
		return
	}
	if all != on {
		if w := all.Of(kinds...); w.Samples > 0 {
			p.Proof("CPU samples", "of the whole process: %s (%s to %s), %d of %d samples",
				percent(ratio(w.NS, all.NS)), percent(ratio(w.Low, all.NS)),
				percent(ratio(w.High, all.NS)), w.Samples, all.Samples)
		}
	}
	for i, w := range works(all, kinds...) {
		if i == 4 {
			break
		}
		at := ""
		if len(w.Sites) > 0 {
			at = ", from " + sites(w.Sites, w.NS, 3)
		}
		if w.Name != "" || at != "" {
			p.Proof("CPU samples", "%s of the process' CPU time: %s%s", percent(ratio(w.NS, all.NS)), orKind(w), at)
		}
	}
	queueLine(p, what)
}

// orKind is a work's name, its kind if it has none.
func orKind(w *account.Work) string {
	if w.Name == "" {
		return string(w.Kind)
	}
	return w.Name
}

// whose names the time that samples divide.
func (p *Pass) whose() string {
	switch {
	case p.Scope() == finding.Process || !visible(p.Column()):
		return "the process"
	case p.samples().OfAll:
		return "all requests"
	}
	return p.who()
}

// costs says in a summary what was granted, and of whose time it is.
func (p *Pass) costs() string {
	if len(p.pools) > 0 {
		return fmt.Sprintf("the process spends %s of its CPU time", percent(ratio(p.pooled(), p.total)))
	}
	return fmt.Sprintf("%s spend %s (%s of their time)", p.who(), p.per(p.NS()), p.share(p.NS()))
}

// names lists the first of some works in a few words.
func names(l []*account.Work, most int) string {
	var s []string
	for _, w := range l[:min(len(l), most)] {
		if w.Name != "" && !slices.Contains(s, w.Name) {
			s = append(s, w.Name)
		}
	}
	return strings.Join(s, ", ")
}
