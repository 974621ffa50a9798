package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/whystall/whystall/internal/finding"
)

// arrange puts the nearer cause first, and under it what it makes look present on the same host or
// pod. Figures of different units are not ranked against each other: wall time comes first.
func (l *look) arrange() {
	fs := l.r.Findings
	// A cause of the same scope is nearer than one of the host.
	for _, near := range []bool{true, false} {
		for i := range fs {
			for j := range fs {
				if i != j && fs[i].BecauseOf == "" && (fs[i].Scope == fs[j].Scope) == near && l.behind(&fs[j], &fs[i]) {
					fs[i].BecauseOf = fs[j].Cause
					break
				}
			}
		}
	}
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(rankOf(a.Unit), rankOf(b.Unit)), cmp.Compare(b.Lost, a.Lost),
			cmp.Compare(ruleNamed(a.Rule).Order, ruleNamed(b.Rule).Order))
	})
	var out []Finding
	taken := make([]bool, len(fs))
	var add func(i int)
	add = func(i int) {
		taken[i] = true
		out = append(out, fs[i])
		for j := range fs {
			if !taken[j] && fs[j].BecauseOf == fs[i].Cause && l.meet(&fs[i], &fs[j]) {
				add(j)
			}
		}
	}
	for _, roots := range []bool{true, false} {
		for i := range fs {
			if !taken[i] && (!roots || fs[i].BecauseOf == "") {
				add(i)
			}
		}
	}
	l.r.Findings = append([]Finding{}, out...)
}

// behind reports whether a cause is behind an effect.
func (l *look) behind(cause, effect *Finding) bool {
	return hides(cause, effect) && !hides(effect, cause) && l.together(cause, effect) && l.meet(cause, effect)
}

// hides reports whether a makes b look present.
func hides(a, b *Finding) bool {
	r := ruleNamed(a.Rule)
	return slices.Contains(r.Hides, b.Cause) || a.Rule != b.Rule &&
		b.Confidence == finding.Possible && a.Confidence != finding.Possible && slices.Contains(r.Instead, b.Cause)
}

// lateEffect is how much later than its cause an effect may start: load grows, and thresholds are
// crossed one after another. It is a quarter of a short look.
const lateEffect = 5 * time.Minute

// together reports whether an effect started when its cause had, or not long after it. What started
// before is none, and what started long after needs another reason.
func (l *look) together(cause, effect *Finding) bool {
	if cause.Since == nil || effect.Since == nil {
		return true
	}
	fuzzy := time.Duration(effect.SinceErrNS) + leastBout/10
	if !cause.Earlier {
		fuzzy += time.Duration(cause.SinceErrNS)
	}
	later := effect.Since.Sub(*cause.Since)
	return (later >= -fuzzy || effect.Earlier && cause.Earlier) && later <= min(lateEffect, l.o.Since/4)+fuzzy
}

func ruleNamed(name string) *Rule {
	for _, r := range rules {
		if r.Name == name {
			return r
		}
	}
	return &Rule{}
}

// meet reports whether two findings have a member in common: the same pod, or the same host.
func (l *look) meet(a, b *Finding) bool {
	for _, x := range a.Members {
		for _, y := range b.Members {
			if !sameCluster(l.p.Cluster, x.Labels, y.Labels) {
				continue
			}
			if x.Labels["pod"] != "" && y.Labels["pod"] != "" {
				if x.Labels["pod"] == y.Labels["pod"] && x.Labels["namespace"] == y.Labels["namespace"] {
					return true
				}
				continue
			}
			if h := l.hostOf(x.Labels); h != "" && h == l.hostOf(y.Labels) {
				return true
			}
		}
	}
	return false
}

func sameCluster(names []string, a, b Labels) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return a[n] != "" && b[n] != "" && a[n] != b[n] })
}

// hostOf is the host of a member; "" not known.
func (l *look) hostOf(m Labels) string {
	if n := l.nodes[m["namespace"]+"/"+m["pod"]]; n != "" {
		return n
	}
	if m["node"] != "" {
		return m["node"]
	}
	if m["pod"] != "" {
		return ""
	}
	return host(m["instance"])
}

// rankOf orders units: what is surely wall time first.
func rankOf(u Unit) int {
	return slices.Index([]Unit{WallShare, Throttled, CPUShare, Tasks, Goroutines, Share, Memory,
		Events, Ratio, State}, u)
}
