package capacity

import "slices"

// span is a stretch of time.
type Span struct{ Lo, Hi int64 }

// spans are disjoint and in order once merged.
type Times []Span

// maxSpans bounds what requests in flight may take: beyond it the shortest holes between them are closed.
const MaxSpans = 1 << 17

// merge sorts and joins what overlaps or touches.
func (l Times) Merge() Times {
	slices.SortFunc(l, func(a, b Span) int {
		switch {
		case a.Lo < b.Lo:
			return -1
		case a.Lo > b.Lo:
			return 1
		}
		return 0
	})
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

// without is what of [lo,hi) l leaves.
func (l Times) Without(lo, hi int64) (out Times) {
	i, _ := slices.BinarySearchFunc(l, lo, func(s Span, at int64) int {
		if s.Hi <= at {
			return -1
		}
		return 1
	})
	for ; i < len(l) && l[i].Lo < hi; i++ {
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

// flight collects when requests were under way: they come in the order of their ends.
type Flight struct{ List Times }

// add takes a request.
func (f *Flight) Add(lo, hi int64) {
	if lo >= hi {
		return
	}
	to := len(f.List)
	for to > 0 && f.List[to-1].Lo > hi {
		to-- // some are told a little late
	}
	from := to
	for from > 0 && f.List[from-1].Hi >= lo { // those that this one touches
		from--
		lo, hi = min(lo, f.List[from].Lo), max(hi, f.List[from].Hi)
	}
	f.List = slices.Replace(f.List, from, to, Span{lo, hi})
	if len(f.List) >= MaxSpans {
		f.halve()
	}
}

// halve closes the shorter half of the holes.
func (f *Flight) halve() {
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
