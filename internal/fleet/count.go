package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// everywhere counts the ill members and all members: thousands, without listing one.
//
//  1. Those whose loss is above the least are counted by namespace or job: one metric is read.
//  2. If they are no more than were looked at closely, the ill ones are known.
//  3. Else the other counter is asked for too, in those namespaces or jobs only: a join of a whole
//     fleet takes an engine five times as long as one metric of it.
func (l *look) everywhere(ctx context.Context, r *Rule, sick []*candidate, with bool) (n Everywhere) {
	n.Where = []Count{}
	cost := l.costOf(r, l.o.Since)
	n.Seen, _ = l.sum(ctx, r.Loss, l.split, cost)
	defer func() { n.Ill = max(n.Ill, len(sick)); n.Seen = max(n.Seen, n.Ill) }()
	lose := func(e *env) string { return above(r.Loss(e), r.Least) }
	ill := lose
	if with && r.And != nil {
		ill = func(e *env) string { return e.and(r.Key, lose(e), r.And(e)) }
	}
	if len(l.split) > 1 {
		n.Ill, _ = l.sum(ctx, ill, l.split, cost)
		return n
	}
	all := [][]string{nil}
	some, whole, err := l.where(ctx, r, lose, all, cost)
	switch {
	case err != nil:
		return n
	case whole && countAll(some) <= l.o.Top:
		n.Where = l.whereOf(r, sick)
		return n
	case with && r.And != nil && whole:
		some, whole, err = l.where(ctx, r, ill, [][]string{l.within(r, some)}, cost)
	case with && r.And != nil:
		some, whole, err = l.where(ctx, r, ill, l.gently(cost), cost)
	}
	if err != nil {
		return n
	}
	n.Where, n.Ill = some[:min(len(some), mostGroups)], countAll(some)
	if !whole {
		n.Ill, _ = l.sum(ctx, ill, l.gently(cost), cost)
	}
	return n
}

// groupBy is by which labels members are counted without being listed.
func (l *look) groupBy(r *Rule) []string {
	by := slices.Clone(l.p.Cluster)
	switch {
	case r.Scope == Host, r.Scope == Service && r.Key == ByService:
		return append(by, "job")
	case l.p.Standalone:
		return append(by, "instance")
	}
	return append(by, "namespace")
}

// mostGroups is how many groups are named where ill members were counted.
const mostGroups = 30

// where counts what an expression gives by group, the largest groups first. whole: these are all.
func (l *look) where(ctx context.Context, r *Rule, expr func(*env) string, parts [][]string,
	cost int64) (list []Count, whole bool, err error) {
	by := l.groupBy(r)
	whole, list = true, []Count{}
	for _, part := range parts {
		query := topk(mostGroups, "count by ("+joined(by)+") ("+expr(l.partly(part))+")")
		got, err := l.instant(ctx, "how many there are, and where", query, cost/int64(len(parts)))
		if err != nil {
			return nil, false, err
		}
		whole = whole && len(got) < mostGroups
		for _, s := range got {
			list = append(list, Count{s.Labels.only(by), int(s.Value)})
		}
	}
	return sorted(list), whole, nil
}

// whereOf counts members by group.
func (l *look) whereOf(r *Rule, cs []*candidate) []Count {
	list := []Count{}
	for _, c := range cs {
		at := c.labels.only(l.groupBy(r))
		i := slices.IndexFunc(list, func(x Count) bool { return x.Labels.String() == at.String() })
		if i < 0 {
			i, list = len(list), append(list, Count{at, 0})
		}
		list[i].N++
	}
	return sorted(list)
}

func sorted(list []Count) []Count {
	slices.SortFunc(list, func(x, y Count) int {
		return cmp.Or(cmp.Compare(y.N, x.N), cmp.Compare(x.Labels.String(), y.Labels.String()))
	})
	return list
}

func countAll(list []Count) (n int) {
	for _, c := range list {
		n += c.N
	}
	return n
}

// within makes matchers for these groups.
func (l *look) within(r *Rule, groups []Count) (matchers []string) {
	var all []Labels
	for _, g := range groups {
		all = append(all, g.Labels)
	}
	for _, label := range l.groupBy(r) {
		if !slices.ContainsFunc(all, func(x Labels) bool { return x[label] == "" }) {
			matchers = append(matchers, among(all, label))
		}
	}
	return matchers
}

// mostJoined is how many samples one question may join, where it can be asked in parts.
const mostJoined = 1_000_000

// gently divides a question by cluster, if a join of the whole fleet would be large.
func (l *look) gently(cost int64) [][]string {
	if cost > mostJoined {
		return l.byCluster()
	}
	return [][]string{nil}
}

// byCluster is one part for each cluster.
func (l *look) byCluster() [][]string {
	if len(l.clusters) < 2 {
		return [][]string{nil}
	}
	var parts [][]string
	for _, c := range l.clusters {
		var m []string
		for _, name := range l.p.Cluster {
			m = append(m, name+"="+quoted(c[name]))
		}
		parts = append(parts, m)
	}
	return parts
}

// sum adds up the count of what an expression gives, part by part.
func (l *look) sum(ctx context.Context, expr func(*env) string, parts [][]string, samples int64) (n int, err error) {
	for _, part := range parts {
		got, err := l.instant(ctx, "how many there are",
			fmt.Sprintf("count(%s)", expr(l.partly(part))), samples/int64(len(parts)))
		if err != nil {
			return 0, err
		}
		if len(got) > 0 {
			n += int(got[0].Value)
		}
	}
	return n, nil
}
