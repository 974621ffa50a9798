package toll

import "math"

// pair is what was counted in a slice, and of what: work or time.
type pair struct{ count, of float64 }

// ratio is the sum of counts by the sum of what they are of, with half of its 95 % interval. The
// error is the usual one of a ratio of sums (Cochran, Sampling Techniques, 6.3), with Student's t
// for so few slices.
func ratio(ps []pair) Figure {
	var count, of float64
	for _, p := range ps {
		count += p.count
		of += p.of
	}
	if of <= 0 {
		return Figure{}
	}
	f := Figure{Value: count / of}
	if len(ps) < fewestSlices {
		return f
	}
	var squares float64
	for _, p := range ps {
		d := p.count - f.Value*p.of
		squares += d * d
	}
	n := float64(len(ps))
	f.Error = student(len(ps)-1) * math.Sqrt(squares*n/(n-1)) / of
	f.Known = true
	return f
}

// fewestSlices is how many slices an interval needs at least.
const fewestSlices = 4

// student is the 97.5 % quantile of Student's t.
func student(freedom int) float64 {
	table := [...]float64{0, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20,
		2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09, 2.09}
	if freedom < len(table) {
		return table[freedom]
	}
	return 2.04
}

// growth is by how much b is more than a, as a share of a, with half of its 95 % interval. Values
// below floor count as floor: a share of next to nothing says nothing.
func growth(a, b Figure, floor float64) (share, half float64, known bool) {
	if !a.Known || !b.Known {
		return 0, 0, false
	}
	base := max(a.Value, floor)
	if base <= 0 {
		return 0, 0, false
	}
	return (b.Value - a.Value) / base, math.Hypot(a.Error, b.Error) / base, true
}
