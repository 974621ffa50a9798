package fleet

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// coverage asks what the exporters show. It also says which labels name clusters, which metrics
// there are, and how many series of each: so what later questions cost is known before.
func (l *look) coverage(ctx context.Context) error {
	if err := l.profile(ctx); err != nil {
		return err
	}
	l.depth(ctx)
	if err := l.names(ctx); err != nil {
		return err
	}
	l.standalone(ctx)
	l.jobs(ctx)
	if l.r.Coverage.IntervalNS == 0 {
		l.interval(ctx)
	}
	l.blind(ctx)
	l.failing(ctx)
	return ctx.Err()
}

// profile finds the labels that tell clusters apart.
func (l *look) profile(ctx context.Context) error {
	if len(l.o.ClusterLabels) > 0 {
		l.p.Cluster = l.o.ClusterLabels
	} else {
		up, err := l.instant(ctx, "which labels tell clusters apart", "count by ("+joined(clusterLabels)+") (up)", 0)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, s := range up {
			if c := s.Labels.only(clusterLabels); len(c) > 0 && !seen[c.String()] {
				seen[c.String()] = true
				l.clusters = append(l.clusters, c)
			}
		}
		for _, name := range clusterLabels {
			if slices.ContainsFunc(up, func(s Sample) bool { return s.Labels[name] != "" }) {
				l.p.Cluster = append(l.p.Cluster, name)
			}
		}
	}
	l.r.Coverage.Cluster = append([]string{}, l.p.Cluster...)
	return nil
}

// depth looks at no more time than the engine has samples of. Means over time of which nothing is
// known would hide what there is, and quiet would be said of it.
func (l *look) depth(ctx context.Context) {
	held := func(at time.Time) (bool, error) {
		l.engine.reads(0)
		got, err := l.engine.Instant(ctx, "count("+l.env(0).sel("up", nil, 0)+")", at)
		return len(got) > 0, err
	}
	from, to := l.o.At.Add(-l.o.Since), l.o.At
	if there, err := held(from); there || err != nil {
		return
	}
	if there, err := held(to); !there || err != nil {
		return
	}
	for to.Sub(from) > max(l.o.At.Sub(to)/50, time.Minute/2) {
		middle := from.Add(to.Sub(from) / 2).Truncate(time.Second)
		there, err := held(middle)
		if err != nil {
			return
		}
		if there {
			to = middle
		} else {
			from = middle
		}
	}
	if span := max(l.o.At.Sub(to), time.Minute); span < l.o.Since*19/20 {
		oldest := to.UTC()
		l.r.Coverage.Oldest, l.r.Coverage.AskedNS = &oldest, int64(l.o.Since)
		l.o.Since, l.r.SinceNS = span, int64(span)
	}
}

// namesAtOnce is how many names one question asks about: some engines do not split regular
// expressions of more than 4 KB.
const namesAtOnce = 40

// names counts the series of each metric that is wanted. Engines refuse a question that touches too
// many series: then half of the names are asked about at a time.
func (l *look) names(ctx context.Context) error {
	l.series = map[string]int64{}
	var ask func(names []string) error
	ask = func(names []string) error {
		matchers := append([]string{"__name__=~" + quoted(strings.Join(names, "|"))}, l.match()...)
		got, err := l.instant(ctx, "which metrics there are", "count by (__name__) ({"+
			strings.Join(matchers, ",")+"})", 0)
		if tooMuch(err) {
			if len(names) == 1 {
				l.series[names[0]] = manySeries
				return nil
			}
			if err := ask(names[:len(names)/2]); err != nil {
				return err
			}
			return ask(names[len(names)/2:])
		}
		for _, s := range got {
			l.series[s.Labels["__name__"]] = int64(s.Value)
		}
		return err
	}
	all := slices.DeleteFunc(wanted(), func(n string) bool { return n == cpuSeconds })
	for names := range slices.Chunk(all, namesAtOnce) {
		if err := ask(names); err != nil {
			return err
		}
	}
	// It has eight series a CPU, of which rules ask for one.
	got, err := l.instant(ctx, "how many CPUs there are", "count("+
		l.env(0).sel(cpuSeconds, []string{cpuMode("idle")}, 0)+")", 0)
	switch {
	case tooMuch(err):
		l.series[cpuSeconds] = manySeries
	case err != nil:
		return err
	case len(got) > 0:
		l.series[cpuSeconds] = int64(got[0].Value)
	}
	return nil
}

const cpuSeconds = "node_cpu_seconds_total"

// manySeries is taken where an engine refuses to count: the smallest limit of one that does.
const manySeries = 300_000

// standalone finds out whether containers have Kubernetes' names.
func (l *look) standalone(ctx context.Context) {
	const usage = "container_cpu_usage_seconds_total"
	if l.series[usage] == 0 {
		return
	}
	e := l.env(0)
	got, err := l.instant(ctx, "whether containers have Kubernetes' names", "count("+
		e.sel(usage, []string{`container!=""`}, 0)+")", l.series[usage])
	l.p.Standalone = err == nil && len(got) == 0
}

// mostJobs is how many jobs are listed.
const mostJobs = 50

func (l *look) jobs(ctx context.Context) {
	by := "(" + joined(append(slices.Clone(l.p.Cluster), "job")) + ")"
	names := append(slices.Clone(l.p.Cluster), "job")
	e := l.env(0)
	targets, err := l.instant(ctx, "targets by job", topk(mostJobs, "count by "+by+" ("+e.sel("up", nil, 0)+")"), 0)
	if err != nil {
		return
	}
	at := map[string]*Job{}
	for _, s := range targets {
		l.r.Coverage.Jobs = append(l.r.Coverage.Jobs, Job{Labels: s.Labels.only(names), Targets: int(s.Value)})
	}
	slices.SortFunc(l.r.Coverage.Jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(b.Targets, a.Targets), cmp.Compare(a.Labels.String(), b.Labels.String()))
	})
	for i := range l.r.Coverage.Jobs {
		j := &l.r.Coverage.Jobs[i]
		at[j.Labels.at(names)] = j
	}
	each := func(purpose, query string, set func(*Job, float64)) {
		got, err := l.instant(ctx, purpose, query, 0)
		if err != nil {
			return
		}
		for _, s := range got {
			if j := at[s.Labels.at(names)]; j != nil {
				set(j, s.Value)
			}
		}
	}
	each("targets that are down", "count by "+by+" ("+e.sel("up", nil, 0)+" == 0)",
		func(j *Job, v float64) { j.Down = int(v) })
	// Two spans: an engine that has just started has not been scraping for the longer one.
	for _, span := range []time.Duration{10 * time.Minute, 2 * time.Minute} {
		each("scrape intervals", "quantile by "+by+" (0.1, count_over_time("+e.sel("up", nil, span)+
			"))", func(j *Job, v float64) {
			if v > 1.5 && (j.IntervalNS == 0 || v >= 4) {
				every := int64(math.Round(span.Seconds()/v)) * int64(time.Second)
				if j.IntervalNS == 0 || every < j.IntervalNS/2 {
					j.IntervalNS = every
				}
			}
		})
	}
	each("scrapes that failed", "1 - avg by "+by+" (avg_over_time("+e.sel("up", nil, l.o.Since)+
		"))", func(j *Job, v float64) { j.Missed = v })
	for _, j := range l.r.Coverage.Jobs {
		l.r.Coverage.IntervalNS = max(l.r.Coverage.IntervalNS, j.IntervalNS)
	}
}

// interval finds the scrape interval by the metrics of rules, where no series up says it: --match
// may ask for a label that up has not. Rates over less than two samples would have gaps, and a
// member that is ill all the time would look as if it were so for moments.
func (l *look) interval(ctx context.Context) {
	for _, key := range []Key{ByHost, ByContainer, ByService} {
		metric := ""
		for _, r := range rules {
			for _, m := range r.Needs {
				if r.Key == key && l.series[m] > 0 &&
					(metric == "" || cmp.Or(cmp.Compare(l.series[m], l.series[metric]), cmp.Compare(m, metric)) < 0) {
					metric = m
				}
			}
		}
		if metric == "" {
			continue
		}
		span := 10 * time.Minute
		got, err := l.instant(ctx, "scrape intervals", "quantile(0.1, count_over_time("+
			l.env(0).sel(metric, nil, span)+"))", l.series[metric])
		if err == nil && len(got) > 0 && got[0].Value > 1.5 {
			l.r.Coverage.IntervalNS = max(l.r.Coverage.IntervalNS,
				int64(math.Round(span.Seconds()/got[0].Value))*int64(time.Second))
		}
	}
}

// blind asks, for each kind of metrics, how many targets lack them.
func (l *look) blind(ctx context.Context) {
	for i := range wants {
		w := &wants[i]
		if l.series[w.Anchor] == 0 {
			continue
		}
		e := l.env(0)
		by := append(slices.Clone(l.p.Cluster), "job")
		if w.Key == ByContainer || w.Key == ByPod {
			by = append(slices.Clone(l.p.Cluster), "namespace")
			if l.p.Standalone {
				by = append(slices.Clone(l.p.Cluster), "instance")
			}
		}
		var extra []string
		if strings.HasPrefix(w.Anchor, "container_") {
			extra = e.real()
		}
		anchor := e.now(w.Key, w.Anchor, extra...)
		whole := "count(" + anchor + ")"
		lack := "count by (" + joined(by) + ") (" + anchor + ")"
		if l.series[w.Metrics[0]] > 0 {
			lack = "count by (" + joined(by) + ") (" + e.unless(w.Key, anchor, e.now(w.Key, w.Metrics[0])) + ")"
		}
		all, err := l.instant(ctx, "who could show: "+w.What, whole, l.series[w.Anchor])
		if err != nil || len(all) == 0 {
			continue
		}
		got, err := l.instant(ctx, "who does not show: "+w.What, topk(l.o.Top, lack),
			l.series[w.Anchor]+l.series[w.Metrics[0]])
		if err != nil || len(got) == 0 {
			continue
		}
		b := Blind{What: w.What, Of: int(all[0].Value), Remedy: w.Remedy, Rules: []string{}}
		if b.Lack = b.Of; l.series[w.Metrics[0]] > 0 {
			n, err := l.instant(ctx, "how many do not show: "+w.What, "count("+
				e.unless(w.Key, anchor, e.now(w.Key, w.Metrics[0]))+")", l.series[w.Anchor]+l.series[w.Metrics[0]])
			if err != nil || len(n) == 0 {
				continue
			}
			b.Lack = int(n[0].Value)
		}
		for _, s := range got {
			b.Where = append(b.Where, Count{s.Labels.only(by), int(s.Value)})
		}
		slices.SortFunc(b.Where, func(x, y Count) int {
			return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.Labels.String(), y.Labels.String()))
		})
		for _, r := range rules {
			if slices.ContainsFunc(w.Metrics,
				func(m string) bool { return slices.Contains(r.Needs, m) || slices.Contains(r.AndNeeds, m) }) {
				b.Rules = append(b.Rules, r.Name)
			}
		}
		l.r.Coverage.Blind = append(l.r.Coverage.Blind, b)
	}
}

// collectors are those of node_exporter whose failing blinds a rule.
const collectors = "pressure|schedstat|vmstat|buddyinfo|stat|softnet|netstat|meminfo"

func (l *look) failing(ctx context.Context) {
	if l.series["node_boot_time_seconds"] == 0 {
		return
	}
	by := append(slices.Clone(l.p.Cluster), "job", "collector")
	e := l.env(0)
	got, err := l.instant(ctx, "collectors that fail",
		topk(l.o.Top, fmt.Sprintf("count by (%s) (%s == 0)", joined(by),
			e.sel("node_scrape_collector_success", []string{"collector=~" + quoted(collectors)}, 0))), 0)
	if err != nil {
		return
	}
	for _, s := range got {
		l.r.Coverage.Failing = append(l.r.Coverage.Failing, Count{s.Labels.only(by), int(s.Value)})
	}
	slices.SortFunc(l.r.Coverage.Failing, func(x, y Count) int { return cmp.Compare(y.N, x.N) })
}
