package fleet

import (
	"cmp"
	"context"
	"slices"
)

// parts are matchers that split all members of a rule, so that no question reads more samples than
// it may: by cluster, then by the last letter of the host's or pod's name. nil: it cannot be split
// far enough. One part without matchers: it need not be split.
func (l *look) parts(r *Rule, samples int64) [][]string {
	parts := [][]string{nil}
	each := func() int64 { return samples / int64(len(parts)) }
	if each() <= l.o.MaxSamples {
		return parts
	}
	parts = l.byCluster()
	if each() <= l.o.MaxSamples {
		return parts
	}
	label := "instance"
	if (r.Key == ByContainer || r.Key == ByPod) && !l.p.Standalone {
		label = "pod"
	}
	var finer [][]string
	for _, p := range parts {
		for _, letters := range []string{"01", "23", "45", "67", "89", "a-i", "j-r", "^0-9a-r"} {
			finer = append(finer, append(slices.Clone(p), label+"=~"+quoted("[^:]*["+letters+"](:.*)?")))
		}
	}
	if parts = finer; each() > l.o.MaxSamples || len(parts) > mostParts {
		return nil
	}
	return parts
}

// mostParts is into how many questions one is split.
const mostParts = 200

// partly is env for one part.
func (l *look) partly(part []string) *env {
	e := l.env(l.o.Since)
	e.match, e.first = append(e.match, part...), true
	return e
}

// worst asks each part for its worst members, and keeps the worst of them.
func (l *look) worst(ctx context.Context, r *Rule, samples int64) (found []Sample, err error) {
	for _, part := range l.split {
		got, err := l.instant(ctx, r.Title, topk(l.o.Top, r.Loss(l.partly(part))), samples/int64(len(l.split)))
		if err != nil {
			return nil, err
		}
		found = append(found, got...)
	}
	slices.SortStableFunc(found, func(a, b Sample) int { return cmp.Compare(b.Value, a.Value) })
	return found[:min(len(found), l.o.Top)], nil
}
