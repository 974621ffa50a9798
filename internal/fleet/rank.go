package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"
)

// findings groups the ill members by workload and makes a finding of each group.
func (l *look) findings(ctx context.Context, r *Rule, sick []*candidate, with bool) error {
	groups := map[string][]*candidate{}
	var order []string
	for _, c := range sick {
		w := c.labels.workload()
		if !c.agreed { // not as sure as those whose other counter agrees
			w += "\x00"
		}
		if groups[w] == nil {
			order = append(order, w)
		}
		groups[w] = append(groups[w], c)
	}
	sort.SliceStable(order, func(i, j int) bool { return total(groups[order[i]]) > total(groups[order[j]]) })
	peers := l.peers(ctx, r)
	all := l.everywhere(ctx, r, sick, with)
	before := map[string][2]float64{}
	l.before(ctx, r, sick, before)
	for _, w := range order {
		cs := groups[w]
		if peers.Known && !r.Levels && base(r, cs, peers) {
			l.r.LookAlikes = append(l.r.LookAlikes, LookAlike{
				Cause: r.Cause, Count: len(cs), Members: l.list(r, cs, before),
				Text: "all of this kind lose about as much: the usual of this fleet, and no fault of these",
			})
			continue
		}
		f := l.finding(ctx, r, cs, with, before)
		f.Peers = peers
		f.Everywhere = all
		if len(order) == 1 {
			f.Ill, f.Seen = all.Ill, all.Seen // more than were looked at closely
		}
		l.r.Findings = append(l.r.Findings, f)
	}
	return nil
}

func total(cs []*candidate) (sum float64) {
	for _, c := range cs {
		sum += c.value
	}
	return sum
}

// base reports whether the whole fleet is like these: its median is above the least, and theirs is
// not far above that.
func base(r *Rule, cs []*candidate, p Peers) bool {
	return p.Median >= r.Least && medianValue(cs) < 2*p.Median && len(cs) >= 3
}

func medianValue(cs []*candidate) float64 {
	v := make([]float64, len(cs))
	for i, c := range cs {
		v[i] = c.value
	}
	slices.Sort(v)
	return v[(len(v)-1)/2]
}

// finding puts one group together.
func (l *look) finding(ctx context.Context, r *Rule, cs []*candidate, with bool, before map[string][2]float64) Finding {
	f := Finding{
		Cause: r.Cause, Rule: r.Name, Scope: r.Scope, Title: r.Title, Unit: r.Unit, Workload: cs[0].labels.workload(),
		Group: Labels{}, Ill: len(cs), Worst: cs[0].value, Median: medianValue(cs),
		Members: l.list(r, cs, before), Evidence: []Evidence{},
		Query: topk(l.o.Top, r.Loss(l.partly(nil))), Capture: []string{},
	}
	if !r.Levels {
		f.Peak = cs[0].when.largest
	}
	f.Confidence, f.Why = sureOf(r, cs, with)
	for k, v := range cs[0].labels {
		if !slices.ContainsFunc(cs, func(c *candidate) bool { return c.labels[k] != v }) {
			f.Group[k] = v
		}
	}
	for _, c := range cs {
		if !r.Levels {
			f.Lost += c.value * l.o.Since.Seconds()
		}
		f.Bouts = max(f.Bouts, c.when.bouts)
		f.Gaps = f.Gaps || c.when.gaps
		if c.when.bouts > 0 && (f.Since == nil || c.when.start.Before(*f.Since)) {
			start := c.when.start.UTC()
			f.Since, f.SinceErrNS, f.Earlier = &start, int64(c.when.err), c.when.earlier
		}
	}
	l.proof(ctx, r, cs[0], &f)
	f.Capture = l.capture(ctx, r, cs[0].labels)
	return f
}

func (l *look) list(r *Rule, cs []*candidate, before map[string][2]float64) []Member {
	names := l.p.labels(r.Key)
	list := []Member{}
	for _, c := range cs {
		m := Member{Labels: c.labels, Name: c.labels.name(), Value: c.value, Yesterday: -1, LastWeek: -1}
		if b, ok := before[c.labels.at(names)]; ok {
			m.Yesterday, m.LastWeek = b[0], b[1]
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b Member) int { return cmp.Compare(b.Value, a.Value) })
	return list
}

// proof asks for the other figures of the worst member, at its worst moment.
func (l *look) proof(ctx context.Context, r *Rule, c *candidate, f *Finding) {
	e := l.of(r, []Labels{c.labels})
	names := l.p.labels(r.Key)
	for _, p := range r.Proof {
		if l.series[p.Needs] == 0 {
			continue
		}
		query := p.Expr(e)
		got, err := l.engine.Instant(ctx, query, minTime(c.when.worst, l.o.At))
		if err != nil {
			continue
		}
		for _, s := range got {
			if s.Labels.at(names) == c.labels.at(names) {
				f.Evidence = append(f.Evidence, Evidence{fmt.Sprintf(p.Text, Amount(s.Value, p.Unit)), query})
			}
		}
	}
}

// Amount writes a figure of a unit with two digits: engines do not agree on more.
func Amount(v float64, u Unit) string {
	two := func(x float64) string {
		if x >= 100 || x <= -100 {
			return strconv.FormatFloat(x, 'f', 0, 64)
		}
		return strconv.FormatFloat(x, 'g', 2, 64)
	}
	switch u {
	case Share, CPUShare:
		return two(100*v) + " %"
	case Memory:
		return two(v/(1<<20)) + " MiB"
	case WallShare:
		return two(v) + " s/s"
	case Throttled:
		return two(v) + " s/s"
	case Tasks:
		return two(v) + " task-s/s"
	case Goroutines:
		return two(v) + " goroutine-s/s"
	case Events:
		return two(v) + "/s"
	}
	return two(v)
}

// peers asks how everybody of this kind fares.
func (l *look) peers(ctx context.Context, r *Rule) (p Peers) {
	if len(l.split) > 1 {
		return p // quantiles of parts do not add up
	}
	loss := r.Loss(l.partly(nil))
	for _, q := range []struct {
		at  string
		set *float64
	}{{"0.5", &p.Median}, {"0.99", &p.P99}} {
		got, err := l.instant(ctx, "how everybody else fares", "quantile("+q.at+", "+loss+")", l.costOf(r, l.o.Since))
		if err != nil || len(got) == 0 {
			return Peers{}
		}
		*q.set = got[0].Value
	}
	p.Known = true
	return p
}

// before asks for the same figure a day and a week before.
func (l *look) before(ctx context.Context, r *Rule, cs []*candidate, out map[string][2]float64) {
	names := l.p.labels(r.Key)
	for _, c := range cs {
		out[c.labels.at(names)] = [2]float64{-1, -1}
	}
	for i, offset := range []time.Duration{24 * time.Hour, 7 * 24 * time.Hour} {
		e := l.of(r, labelsOfAll(cs))
		e.window, e.offset = l.o.Since, offset
		got, err := l.engine.Instant(ctx, r.Loss(e), l.o.At)
		if err != nil {
			return
		}
		for _, s := range got {
			if b, ok := out[s.Labels.at(names)]; ok {
				b[i] = s.Value
				out[s.Labels.at(names)] = b
			}
		}
	}
}
