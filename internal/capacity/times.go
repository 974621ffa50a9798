package capacity

import (
	"cmp"
	"slices"
)

// Span is a stretch of time [Lo,Hi), on whatever clock its user has.
type Span struct{ Lo, Hi int64 }

// Times is a set of instants: spans which are disjoint, do not touch, and are in order. A list of
// any spans becomes one by Merge.
type Times []Span

// Merge makes a set of any list of spans, in place. Empty spans are dropped.
func (l Times) Merge() Times {
	slices.SortFunc(l, func(a, b Span) int { return cmp.Compare(a.Lo, b.Lo) })
	n := 0
	for _, s := range l {
		if s.Lo >= s.Hi {
			continue
		}
		if n > 0 && s.Lo <= l[n-1].Hi {
			l[n-1].Hi = max(l[n-1].Hi, s.Hi)
			continue
		}
		l[n] = s
		n++
	}
	return l[:n]
}

// after is the index of the first span that ends after t.
func (l Times) after(t int64) int {
	i, _ := slices.BinarySearchFunc(l, t, func(s Span, t int64) int {
		if s.Hi <= t {
			return -1
		}
		return 1
	})
	return i
}

// Without is the part of [lo,hi) that is not in the set.
func (l Times) Without(lo, hi int64) (out Times) {
	for i := l.after(lo); i < len(l) && l[i].Lo < hi; i++ {
		if l[i].Lo > lo {
			out = append(out, Span{lo, l[i].Lo})
		}
		lo = l[i].Hi
	}
	if lo < hi {
		out = append(out, Span{lo, hi})
	}
	return out
}

// overlap is how long the part of s is that is in the set.
func (l Times) overlap(s Span) (ns int64) {
	for i := l.after(s.Lo); i < len(l) && l[i].Lo < s.Hi; i++ {
		ns += max(0, min(s.Hi, l[i].Hi)-max(s.Lo, l[i].Lo))
	}
	return ns
}

// MaxSpans bounds what the times of requests may take: 2 MiB. Beyond it the shortest holes are
// closed.
const MaxSpans = 1 << 17

// Flight collects when requests were under way, as a set that grows by requests that have ended.
// They come in the order of their ends, or nearly: nearly each is put at the end of the list.
type Flight struct{ List Times }

// Add takes a request.
func (f *Flight) Add(lo, hi int64) {
	if lo >= hi {
		return
	}
	to := len(f.List)
	for to > 0 && f.List[to-1].Lo > hi {
		to-- // some requests come a little late
	}
	from := to
	for from > 0 && f.List[from-1].Hi >= lo { // spans that this one touches become part of it
		from--
		lo, hi = min(lo, f.List[from].Lo), max(hi, f.List[from].Hi)
	}
	f.List = slices.Replace(f.List, from, to, Span{lo, hi})
	if len(f.List) >= MaxSpans {
		f.closeHoles()
	}
}

// closeHoles closes the shorter half of the holes. A short time without any request then counts as
// if there had been one.
func (f *Flight) closeHoles() {
	holes := make([]int64, 0, len(f.List))
	for i := 1; i < len(f.List); i++ {
		holes = append(holes, f.List[i].Lo-f.List[i-1].Hi)
	}
	slices.Sort(holes)
	limit := holes[len(holes)/2]
	n := 0
	for i := 1; i < len(f.List); i++ {
		if f.List[i].Lo-f.List[n].Hi <= limit {
			f.List[n].Hi = f.List[i].Hi
			continue
		}
		n++
		f.List[n] = f.List[i]
	}
	f.List = f.List[:n+1]
}
