package oldclock

import (
	"cmp"
	"math"
	"slices"
)

// The table has a number for each pair of a runtime's thread and a kernel's.
const tableMost = 1 << 20

const fewMarks = 8 // of one thread of the runtime: too few to know it by

// table counts at one offset how often each thread of the kernel's was on a CPU as one of the
// runtime's made an event.
type table struct {
	threads int
	n       []int32 // by machine: marks
	hits    []int32 // by machine and thread
	active  []stay  // scratch
}

func newTable(x *marks, k *stays) *table {
	t := &table{threads: len(k.tids), n: make([]int32, len(x.machines))}
	t.hits = make([]int32, len(t.n)*t.threads)
	return t
}

// count fills the table. l and the stays are in order of time, and so is one walk over both. A
// stay is tol longer at both ends.
func (t *table) count(l []mark, k *stays, c Clock, tol int64) {
	clear(t.n)
	clear(t.hits)
	t.active = t.active[:0]
	next := 0
	for _, q := range l {
		at := c.Mono(q.at)
		if at < k.begin || at >= k.end {
			continue
		}
		for next < len(k.list) && k.list[next].begin-tol <= at {
			t.enter(k.list[next])
			next++
		}
		t.n[q.m]++
		row := t.hits[int(q.m)*t.threads:][:t.threads]
		for i := 0; i < len(t.active); {
			if a := &t.active[i]; a.end+tol < at {
				t.active[i] = t.active[len(t.active)-1]
				t.active = t.active[:len(t.active)-1]
				continue
			}
			row[t.active[i].th]++
			i++
		}
	}
}

// enter puts a thread on its CPU. It may be there still, within the tolerance.
func (t *table) enter(s stay) {
	for i := range t.active {
		if t.active[i].th == s.th {
			t.active[i].end = s.end
			return
		}
	}
	t.active = append(t.active, s)
}

// pair says that one of the runtime's threads is one of the kernel's.
type pair struct {
	m, th int32
	llr   float64 // how much likelier that is than chance
}

const (
	pairLeast = 3 // of llr
	// pairAhead is how much likelier than any other a pair must be where a thread is named.
	pairAhead = 3
)

// pairs lists those that may be, the likeliest first.
func (t *table) pairs(k *stays) (l []pair) {
	span := float64(max(k.end-k.begin, 1))
	for m, n := range t.n {
		for th := range t.threads {
			h := float64(t.hits[m*t.threads+th])
			if 2*h < float64(n) || h == 0 {
				continue
			}
			p := min(max(float64(k.onNS[th])/span, 0.001), 0.95)
			llr := h*math.Log(0.98/p) + (float64(n)-h)*math.Log(0.02/(1-p))
			if llr > pairLeast {
				l = append(l, pair{int32(m), int32(th), llr})
			}
		}
	}
	slices.SortFunc(l, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.llr, a.llr), cmp.Compare(a.m, b.m), cmp.Compare(a.th, b.th))
	})
	return l
}

// match decides which thread is which: the pairs that chance explains least, each thread once. -1
// is unknown. Of the marks it returns how many were judged, and how many of these fall where their
// thread was not on a CPU.
func (t *table) match(k *stays, ahead float64) (of []int32, judged, missed int64) {
	l := t.pairs(k)
	of = make([]int32, len(t.n))
	next := make([]float64, len(t.n)) // what the second best thread of each is worth
	for i := range of {
		of[i] = -1
	}
	taken := make([]bool, t.threads)
	best := make([]float64, len(t.n))
	for _, p := range l {
		switch {
		case of[p.m] < 0 && !taken[p.th]:
			of[p.m], taken[p.th], best[p.m] = p.th, true, p.llr
		case of[p.m] >= 0 && !taken[p.th]:
			next[p.m] = max(next[p.m], p.llr)
		}
	}
	for m, n := range t.n {
		if of[m] >= 0 && best[m]-next[m] < ahead {
			of[m] = -1
		}
		if n < fewMarks {
			continue
		}
		judged += int64(n)
		missed += int64(n)
		if of[m] >= 0 {
			missed -= int64(t.hits[m*t.threads+int(of[m])])
		}
	}
	return of, judged, missed
}
