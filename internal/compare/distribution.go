package compare

import "math"

// Bin is the part of each side's requests that took at least Low and less than Up ns.
type Bin struct {
	Low    int64   `json:"low_ns"`
	Up     int64   `json:"up_ns"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// binsPerDouble is how many bins a doubling of the time has: neighbours differ by a fifth.
const binsPerDouble = 4

// distribution counts the requests of both sides by how long they took; nil where a side has none.
// Where not every request is kept, cells of the density are put where their middle is.
func distribution(before, after []*Run) []Bin {
	b, a := binned(before), binned(after)
	if len(b) == 0 || len(a) == 0 {
		return nil
	}
	least, most := math.MaxInt, math.MinInt
	for _, side := range []map[int]float64{b, a} {
		for i := range side {
			least, most = min(least, i), max(most, i)
		}
	}
	bins := make([]Bin, 0, most-least+1)
	edge := func(i int) int64 { return int64(math.Exp2(float64(i) / binsPerDouble)) }
	for i := least; i <= most; i++ {
		bins = append(bins, Bin{edge(i), edge(i + 1), b[i], a[i]})
	}
	return bins
}

// binned is the parts of a side's requests by bin.
func binned(runs []*Run) map[int]float64 {
	bins, n := map[int]float64{}, 0.0
	add := func(ns, count int64) {
		bins[int(math.Floor(binsPerDouble*math.Log2(float64(max(ns, 1)))))] += float64(count)
		n += float64(count)
	}
	for _, r := range runs {
		if r.Result == nil {
			continue
		}
		s := &r.Result.Series
		for _, d := range s.Dots {
			if s.Whole {
				add(d.NS, 1)
			}
		}
		for _, c := range s.Density.Cells {
			add(int64(math.Sqrt(float64(max(c.Low, 1))*float64(max(c.Up, 1)))), c.N)
		}
	}
	for i := range bins {
		bins[i] /= n
	}
	return bins
}
