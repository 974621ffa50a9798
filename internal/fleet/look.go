package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/whystall/whystall/internal/finding"
)

// Ask is what is wanted of a fleet.
type Ask struct {
	Since         time.Duration `json:"since_ns"`
	At            time.Time     `json:"at"`
	ClusterLabels []string      `json:"cluster_labels,omitempty"` // nil: found
	Match         []string      `json:"match,omitempty"`          // matchers for every question: namespace="shop"
	Top           int           `json:"top"`                      // how many members of a cause are looked at closely
	MaxSamples    int64         `json:"max_samples"`
	DryRun        bool          `json:"dry_run,omitempty"`
}

// Bounds of one look.
const (
	leastWindow = 5 * time.Minute
	leastBout   = 5 * time.Minute // of what a rule goes by, within the time asked for
)

// look is one run.
type look struct {
	engine *Engine
	o      Ask
	p      Profile
	series map[string]int64 // of each metric
	r      *Result
	// clusters are the values of the labels that tell clusters apart.
	clusters []Labels
	split    [][]string // the parts in which the present rule is asked
	known    map[string][]Sample
	nodes    map[string]string // of pods, by namespace/pod; "" not known
}

// Look asks an engine about its fleet. The error is one after which nothing could be asked; what
// was answered before it is in the result.
//
//  1. Coverage: which labels, metrics and targets there are, and what is missing.
//  2. For each rule two questions of the whole fleet: the worst members, and how many there are.
//  3. Of the worst members alone: other counters, peers, the day and the week before, and since
//     when.
//  4. What stands behind what.
func Look(ctx context.Context, e *Engine, o Ask) (*Result, error) {
	l := &look{engine: e, o: o, known: map[string][]Sample{}, r: &Result{
		Schema: SchemaVersion, At: o.At.UTC(), SinceNS: int64(o.Since),
		Coverage: Coverage{Cluster: []string{}, Jobs: []Job{}, Blind: []Blind{}, Failing: []Count{}},
		Findings: []Finding{}, LookAlikes: []LookAlike{}, RuledOut: []RuledOut{}, NotChecked: []NotChecked{},
	}}
	if e.o.Record != "" {
		if err := keepAsk(e.o.Record, o); err != nil {
			return l.r, err
		}
	}
	l.r.Engine = e.info(ctx)
	err := l.coverage(ctx)
	if err == nil {
		for i, r := range rules {
			if err = l.rule(ctx, r); err == nil {
				continue
			}
			for _, r := range rules[i:] {
				l.refused(r, err)
			}
			break
		}
	}
	l.arrange()
	l.r.Cost, l.r.Engine.Warnings = e.spent()
	return l.r, err
}

// env is where expressions are asked; no window is the newest value.
func (l *look) env(window time.Duration) *env {
	return &env{p: &l.p, window: window, match: l.match()}
}

func (l *look) match() []string { return slices.Clone(l.o.Match) }

// window is over how long the present is averaged.
func (l *look) window() time.Duration {
	return max(min(leastWindow, l.o.Since), 4*time.Duration(l.r.Coverage.IntervalNS))
}

// instant asks one question, if it may be asked. samples is what it makes the engine read.
// Rules share expressions: what was asked is not asked again.
func (l *look) instant(ctx context.Context, purpose, query string, samples int64) ([]Sample, error) {
	if got, ok := l.known[query]; ok {
		return got, nil
	}
	l.engine.reads(samples)
	got, err := l.engine.Instant(ctx, query, l.o.At)
	if err == nil && len(got) <= mostKept {
		l.known[query] = got
	}
	return got, err
}

// mostKept is the longest answer that is kept for the next who asks.
const mostKept = 500

// cost estimates what a rule's questions over a window make the engine read: all series of its
// metrics, a sample each scrape.
func (l *look) costOf(r *Rule, window time.Duration) int64 {
	interval := max(time.Duration(l.r.Coverage.IntervalNS), 15*time.Second)
	var series int64
	for _, lists := range [][]string{r.Needs, r.AndNeeds, r.Uses} {
		for _, m := range lists {
			series += l.series[m]
		}
	}
	return series * int64(max(1, window/interval))
}

// rule asks for one cause.
func (l *look) rule(ctx context.Context, r *Rule) error {
	for _, m := range r.Needs {
		if l.series[m] == 0 {
			l.lacks(r, []string{m})
			return nil
		}
	}
	if r.Pods && l.p.Standalone {
		l.not(r, "containers have no pods' names there, so nothing tells which Go program runs in which")
		return nil
	}
	loss := r.Loss(l.partly(nil))
	with := r.And != nil && l.has(r.AndNeeds)
	if r.And != nil && !with && r.AloneNot {
		l.lacks(r, r.AndNeeds)
		return nil
	}
	samples := l.costOf(r, l.o.Since)
	worst := topk(l.o.Top, loss)
	if l.o.DryRun {
		l.r.DryRun = append(l.r.DryRun, Question{worst, "the worst members: " + r.Title, samples})
		return nil
	}
	if l.split = l.parts(r, samples); l.split == nil {
		l.not(r, fmt.Sprintf("it would read about %d million samples, and %d million are allowed: ask about less with --since or --match, or allow more with --max-samples", samples/1e6, l.o.MaxSamples/1e6))
		return nil
	}
	found, err := l.worst(ctx, r, samples)
	if tooMuch(err) && len(l.split) == 1 { // by the engine's own limit
		if l.split = l.parts(r, 2*l.o.MaxSamples); l.split != nil {
			found, err = l.worst(ctx, r, samples)
		}
	}
	switch {
	case hopeless(err):
		return err
	case err != nil:
		l.refused(r, err)
		return nil
	}
	if len(found) == 0 && r.Unit == State { // all have another one
		l.r.RuledOut = append(l.r.RuledOut, RuledOut{Cause: r.Cause, Rule: r.Name, Unit: r.Unit, Least: r.Least})
		return nil
	}
	if len(found) == 0 {
		l.not(r, "no target had a value in this time")
		return nil
	}
	if found[0].Value == 0 && l.constant(ctx, r) {
		l.not(r, "its counters are constant zeros there, as exporters show what the kernel does not count (containers' pressure: cgroup v1)")
		return nil
	}
	if err := l.candidates(ctx, r, found, with); err != nil {
		if hopeless(err) {
			return err
		}
		l.refused(r, err)
	}
	return nil
}

// constant reports whether all of a rule's counters have been 0 from the start on.
func (l *look) constant(ctx context.Context, r *Rule) bool {
	for _, m := range r.Counts {
		if l.series[m] == 0 {
			continue
		}
		got, err := l.instant(ctx, "whether anything is counted", "max("+l.env(0).sel(m, nil, 0)+")", l.series[m])
		if err != nil || len(got) > 0 && got[0].Value > 0 {
			return false
		}
	}
	return len(r.Counts) > 0
}

func (l *look) has(metrics []string) bool {
	return !slices.ContainsFunc(metrics, func(m string) bool { return l.series[m] == 0 })
}

func (l *look) not(r *Rule, why string) {
	l.r.NotChecked = append(l.r.NotChecked, NotChecked{Cause: r.Cause, Rule: r.Name, Why: why})
}

// refused says that an engine did not answer what a rule had to know.
func (l *look) refused(r *Rule, err error) {
	l.r.NotChecked = append(l.r.NotChecked, NotChecked{Cause: r.Cause, Rule: r.Name, Why: err.Error(), Refused: true})
}

func (l *look) lacks(r *Rule, metrics []string) {
	l.r.NotChecked = append(l.r.NotChecked, NotChecked{Cause: r.Cause, Rule: r.Name,
		Why: "no target has " + joined(metrics), Lacks: metrics})
}

// candidate is a member that may be ill.
type candidate struct {
	labels Labels
	value  float64 // the mean loss over the time asked for
	agreed bool    // the other counter agrees
	unseen bool    // the other counter is not there
	when   when
}

// candidates looks at the worst members closely and makes findings of those that are ill.
func (l *look) candidates(ctx context.Context, r *Rule, found []Sample, with bool) error {
	least := r.Least
	if !r.Levels {
		// A bout of five minutes is enough, however long the time asked for, or of half of that.
		least *= float64(min(leastBout, l.o.Since/2)) / float64(l.o.Since)
	}
	var cs []*candidate
	worst := 0.0
	for _, s := range found {
		worst = max(worst, s.Value)
		if s.Value >= least {
			cs = append(cs, &candidate{labels: s.Labels, value: s.Value})
		}
	}
	if len(cs) > 0 {
		if err := l.closely(ctx, r, cs, with); err != nil {
			return err
		}
	}
	ill := slices.DeleteFunc(slices.Clone(cs), func(c *candidate) bool { return !c.when.ill })
	var sick, alike []*candidate
	for _, c := range ill {
		switch {
		case !with || c.agreed:
			sick = append(sick, c)
		case c.unseen && !r.AloneNot:
			sick = append(sick, c)
		case !c.unseen:
			alike = append(alike, c)
		}
	}
	if len(alike) > 0 && r.Like != "" {
		a := LookAlike{Cause: r.Cause, Text: r.Like, Count: len(alike), Members: []Member{}}
		for _, c := range alike {
			a.Members = append(a.Members, Member{Labels: c.labels, Name: c.labels.name(),
				Value: c.value, Yesterday: -1, LastWeek: -1})
		}
		l.r.LookAlikes = append(l.r.LookAlikes, a)
	}
	if len(sick) == 0 {
		against := Against("")
		switch {
		case len(ill) > 0:
			against = Disagrees
		case worst >= r.Least:
			against = Brief
		}
		l.r.RuledOut = append(l.r.RuledOut, RuledOut{r.Cause, r.Name, l.members(ctx, r), worst,
			r.Unit, r.Least, against})
		return nil
	}
	return l.findings(ctx, r, sick, with)
}

// members is how many members were asked; 0: not known.
func (l *look) members(ctx context.Context, r *Rule) int {
	n, _ := l.sum(ctx, r.Loss, l.split, l.costOf(r, l.o.Since))
	return n
}

// of makes matchers for exactly these members.
func (l *look) of(r *Rule, members []Labels) *env {
	e := l.env(l.window())
	label := "instance"
	if (r.Key == ByContainer || r.Key == ByPod) && !l.p.Standalone {
		label = "pod"
	}
	if m := among(members, label); m != "" {
		e.match = append(e.match, m)
	}
	if label == "pod" {
		if m := among(members, "namespace"); m != "" {
			e.match = append(e.match, m)
		}
	}
	return e
}

func labelsOfAll(cs []*candidate) (all []Labels) {
	for _, c := range cs {
		all = append(all, c.labels)
	}
	return all
}

// closely asks when the candidates were ill, and whether the other counter agreed then.
func (l *look) closely(ctx context.Context, r *Rule, cs []*candidate, with bool) error {
	e := l.of(r, labelsOfAll(cs))
	if err := l.whens(ctx, r, e, cs); err != nil {
		return err
	}
	if !with {
		return nil
	}
	names := l.p.labels(r.Key)
	// The other counter is asked at the worst moment of each, and members share few such moments.
	moments := map[time.Time][]*candidate{}
	for _, c := range cs {
		if c.when.ill {
			at := minTime(c.when.worst.Truncate(l.window()/2).Add(l.window()/2), l.o.At)
			moments[at] = append(moments[at], c)
		}
	}
	for at, some := range moments {
		got, err := l.engine.Instant(ctx, r.And(e), at)
		if err != nil {
			return err
		}
		for _, c := range some {
			c.agreed = slices.ContainsFunc(got, func(s Sample) bool { return s.Labels.at(names) == c.labels.at(names) })
		}
	}
	return l.unseen(ctx, r, e, cs)
}

func minTime(a, b time.Time) time.Time {
	if a.After(b) {
		return b
	}
	return a
}

// unseen marks the candidates that lack the other counter.
func (l *look) unseen(ctx context.Context, r *Rule, e *env, cs []*candidate) error {
	if len(r.AndNeeds) == 0 {
		return nil // it goes by metrics that the loss needs, too
	}
	names := l.p.labels(r.Key)
	has := map[string]bool{}
	got, err := l.engine.Instant(ctx, e.now(r.Key, r.AndNeeds[0]), l.o.At)
	if err != nil {
		return err
	}
	for _, s := range got {
		has[s.Labels.at(names)] = true
	}
	for _, c := range cs {
		c.unseen = !c.agreed && !has[c.labels.at(names)]
	}
	return nil
}

// sureOf is how sure a finding of these members is, and why.
func sureOf(r *Rule, cs []*candidate, with bool) (finding.Confidence, string) {
	if r.And != nil && (!with || !slices.ContainsFunc(cs, func(c *candidate) bool { return c.agreed })) {
		why := r.Alone
		if why == "" {
			why = r.Why
		}
		return finding.Possible, why
	}
	return r.Sure, r.Why
}
