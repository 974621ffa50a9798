package oldclock

import (
	"math"
	"slices"
	"sort"
)

const (
	windows    = 16
	windowFew  = 16  // marks
	outlierOf  = 200 // one mark of so many may be wrong
	pointsMost = 1 << 14
	// The runtime measures its clock's rate over the whole trace. More drift than this is no drift.
	driftMost = 200e-6
	widenMost = 20e3 // ns
)

// plateau is where the offset may be in one stretch of the trace, by what all marks there allow.
type plateau struct{ at, lo, hi float64 }

// refine finds offset and drift within tol of c. Each mark allows the offsets at which it falls
// into a stay of its thread. In each of some windows nearly all marks agree on a range. The lines
// through all these ranges are what offset and drift may be.
func refine(l []mark, k *stays, of []int32, c Clock, tol, step int64) (Clock, bool) {
	for 2*tol/step > pointsMost {
		step *= 2
	}
	var found []plateau
	for w := range windows {
		lo, hi := len(l)*w/windows, len(l)*(w+1)/windows
		if p, ok := allowed(l[lo:hi], k, of, c, tol, step); ok {
			found = append(found, p)
		}
	}
	first, last := float64(l[0].at), float64(l[len(l)-1].at)
	for by := float64(0); by <= widenMost; by += by + float64(step) {
		a, b, ok := lines(found, first, last, by)
		if !ok {
			continue
		}
		slope := (b.lo + b.hi - a.lo - a.hi) / 2 / max(last-first, 1)
		c.Shift += int64(math.Round((a.lo+a.hi)/2 - slope*first))
		c.Drift += slope
		c.Error = int64(math.Ceil(max(a.hi-a.lo, b.hi-b.lo) / 2))
		return c, true
	}
	return c, false
}

// lines says where the lines through all ranges, each widened, are at the trace's first and last
// mark. A line that is farthest at either end touches the ends of two ranges.
func lines(l []plateau, first, last, by float64) (a, b plateau, ok bool) {
	a, b = plateau{first, math.Inf(1), math.Inf(-1)}, plateau{last, math.Inf(1), math.Inf(-1)}
	try := func(at, y, slope float64) {
		if max(slope, -slope) > driftMost {
			return
		}
		for _, p := range l {
			if v := y + slope*(p.at-at); v < p.lo-by-1e-3 || v > p.hi+by+1e-3 {
				return
			}
		}
		ok = true
		v, w := y+slope*(first-at), y+slope*(last-at)
		a.lo, a.hi = min(a.lo, v), max(a.hi, v)
		b.lo, b.hi = min(b.lo, w), max(b.hi, w)
	}
	for _, p := range l {
		for _, y := range [2]float64{p.lo - by, p.hi + by} {
			try(p.at, y, driftMost)
			try(p.at, y, -driftMost)
			for _, q := range l {
				if d := q.at - p.at; d > 0 {
					try(p.at, y, (q.lo-by-y)/d)
					try(p.at, y, (q.hi+by-y)/d)
				}
			}
		}
	}
	return a, b, ok
}

// allowed is the range on which nearly all marks agree, relative to c. False: they leave it open.
func allowed(l []mark, k *stays, of []int32, c Clock, tol, step int64) (plateau, bool) {
	n := int(2*tol/step) + 1
	sums := make([]int32, n+1)
	marks, first, last := int32(0), int64(0), int64(0)
	for _, q := range l {
		th := of[q.m]
		if th < 0 {
			continue
		}
		at := c.Mono(q.at)
		by := k.by[th]
		i := sort.Search(len(by), func(i int) bool { return by[i].end > at-tol })
		if i == len(by) || by[i].begin > at+tol || by[i].begin <= at-tol && by[i].end >= at+tol {
			continue // it says nothing
		}
		if marks == 0 {
			first = q.at
		}
		last = q.at
		marks++
		for ; i < len(by) && by[i].begin <= at+tol; i++ {
			b := max(0, (by[i].begin-at+tol+step-1)/step)
			e := min(int64(n), (by[i].end-at+tol)/step+1)
			if b < e {
				sums[b]++
				sums[e]--
			}
		}
	}
	if marks < windowFew {
		return plateau{}, false
	}
	best := int32(0)
	for i := range n {
		if i > 0 {
			sums[i] += sums[i-1]
		}
		best = max(best, sums[i])
	}
	least := best - marks/outlierOf
	lo, hi := slices.IndexFunc(sums[:n], func(s int32) bool { return s >= least }), n-1
	for sums[hi] < least {
		hi--
	}
	if lo == 0 || hi == n-1 || 2*best < marks {
		return plateau{}, false
	}
	return plateau{float64(first+last) / 2, float64(int64(lo)*step - tol), float64(int64(hi)*step - tol)}, true
}
