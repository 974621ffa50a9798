package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Entry is one entry point on both sides. Counts and times are medians over a side's recordings.
type Entry struct {
	Entry  string      `json:"entry"`
	Kind   string      `json:"kind"`
	Before EntryFigure `json:"before"`
	After  EntryFigure `json:"after"`
}

// EntryFigure is the requests of one entry point on one side.
type EntryFigure struct {
	Count int64 `json:"count"`
	P50   int64 `json:"p50_ns"`
	P99   int64 `json:"p99_ns"`
	Max   int64 `json:"max_ns"`
}

type entryKey struct{ entry, kind string }

// entries lists the entry points that both sides have, the one with most slow requests' time
// first, and the number of those that only one side has.
func entries(before, after []*Run) (both []Entry, alone int) {
	b, a := groups(before), groups(after)
	for key, x := range b {
		y, ok := a[key]
		if !ok {
			alone++
			continue
		}
		both = append(both, Entry{key.entry, key.kind, figure(x), figure(y)})
	}
	for key := range a {
		if _, ok := b[key]; !ok {
			alone++
		}
	}
	slices.SortFunc(both, func(x, y Entry) int {
		return cmp.Or(cmp.Compare(y.weight(), x.weight()), cmp.Compare(x.Entry, y.Entry), cmp.Compare(x.Kind, y.Kind))
	})
	return both, alone
}

func (e *Entry) weight() float64 { return float64(e.Before.Count) * float64(e.Before.P99) }

func groups(runs []*Run) map[entryKey][]account.Group {
	all := map[entryKey][]account.Group{}
	for _, r := range runs {
		if r.Result == nil {
			continue
		}
		for _, g := range r.Result.Requests.Groups {
			if g.Count > 0 {
				key := entryKey{g.Entry, g.Kind}
				all[key] = append(all[key], g)
			}
		}
	}
	return all
}

func figure(gs []account.Group) EntryFigure {
	of := func(get func(account.Group) int64) int64 {
		var xs []int64
		for _, g := range gs {
			xs = append(xs, get(g))
		}
		return medianOf(xs)
	}
	return EntryFigure{
		Count: of(func(g account.Group) int64 { return g.Count }),
		P50:   of(func(g account.Group) int64 { return g.P50 }),
		P99:   of(func(g account.Group) int64 { return g.P99 }),
		Max:   of(func(g account.Group) int64 { return g.Max }),
	}
}

func medianOf[T cmp.Ordered](xs []T) T {
	var none T
	if len(xs) == 0 {
		return none
	}
	s := slices.Sorted(slices.Values(xs))
	return s[(len(s)-1)/2]
}

// leastRequests is how many requests of an entry point each side needs for its latency to be
// compared. Below 100 the p99 is the longest of them, which a fall by a third still has to reach.
const leastRequests = 30

// latency is the logarithm of a run's latency over the entry points that both sides have: the mean
// over them, weighted as before. So a changed mix of requests changes nothing. Of usual requests it
// is p50, else p99. ok is false where too few requests are known.
func latency(r *Run, both []Entry, scope finding.Scope) (log float64, ok bool) {
	if r.Result == nil {
		return 0, false
	}
	var sum, weights float64
	for _, e := range both {
		if e.Before.Count < leastRequests || e.After.Count < leastRequests {
			continue
		}
		for _, g := range r.Result.Requests.Groups {
			if g.Entry != e.Entry || g.Kind != e.Kind || g.Count < leastRequests {
				continue
			}
			ns := g.P99
			if scope == finding.Usual {
				ns = g.P50
			}
			w := e.weight()
			sum += w * math.Log(float64(max(ns, 1)))
			weights += w
		}
	}
	if weights == 0 {
		return 0, false
	}
	return sum / weights, true
}
