package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
)

// and adds a span to a set in the making. What touches the last one becomes part of it. A set of
// more than MaxSpans is merged, and thinned where that does not help.
func (l Times) and(s Span) Times {
	if n := len(l); n > 0 && s.Lo >= l[n-1].Lo && s.Lo <= l[n-1].Hi {
		l[n-1].Hi = max(l[n-1].Hi, s.Hi)
		return l
	}
	l = append(l, s)
	if len(l) >= MaxSpans {
		l = l.Merge().atMost(MaxSpans / 2)
	}
	return l
}

// atMost closes the shortest holes until there are n spans at most.
func (l Times) atMost(n int) Times {
	for len(l) > n {
		f := Flight{List: l}
		f.closeHoles()
		l = f.List
	}
	return l
}

// bands are the times of one kind, each moved by shift.
func bands(kind account.BandKind, l Times, shift int64) (out []account.Band) {
	for _, s := range l.Merge().atMost(account.MostBands) {
		out = append(out, account.Band{Kind: kind, Begin: s.Lo + shift, End: s.Hi + shift})
	}
	return out
}

// Marks are GC cycles as bands.
func Marks(l Times) []account.Band { return bands(account.BandMark, l, 0) }

// levels are the counters of waiting that are shown over time.
var levels = []string{
	"/cgroup/psi/cpu/some:ns", "/cgroup/psi/io/some:ns", "/cgroup/psi/memory/some:ns",
	"/host/psi/cpu/some:ns", "/host/psi/io/some:ns", "/host/psi/memory/some:ns",
}

// mostPoints bounds the points of a level: an hour of readings, one a second.
const mostPoints = 4096

// AddSeries adds to r's series what the kernel's records and the readings beside them show. Shift
// is what to add to a time of r for CLOCK_MONOTONIC.
func AddSeries(r *account.Result, set *evidence.Set, shift int64) {
	s := &r.Series
	if r.Kernel != nil {
		for _, b := range r.Kernel.Bands {
			b.Begin, b.End = b.Begin-shift, b.End-shift
			s.Bands = append(s.Bands, b)
		}
	}
	SortBands(s.Bands)
	if set == nil {
		return
	}
	for _, stream := range levels {
		if l := level(set.All(stream), stream, shift); len(l.Points) > 0 {
			s.Levels = append(s.Levels, l)
		}
	}
}

// SortBands orders bands by their start.
func SortBands(l []account.Band) {
	slices.SortFunc(l, func(a, b account.Band) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.End, b.End))
	})
}

// level is how much a counter grew between its readings. What fell was restarted, and is left out.
func level(l []evidence.Record, stream string, shift int64) account.Level {
	out := account.Level{Stream: stream}
	var last *evidence.Record
	for i := range l {
		r := &l[i]
		if r.Shape != evidence.Counter || r.Time == 0 {
			continue
		}
		if last != nil && r.Time > last.Time && r.Value >= last.Value && len(out.Points) < mostPoints {
			share := min(1, (r.Value-last.Value)/float64(r.Time-last.Time))
			out.Points = append(out.Points, account.LevelPoint{Begin: last.Time - shift,
				End: r.Time - shift, Share: share})
		}
		last = r
	}
	return out
}
