package compare

import "math"

// byStart puts the values of a side's recordings together by start of the process: what differs
// between starts, no recording of one of them shows. The mean of each start is one value.
func byStart(runs []*Run, value func(*Run) (float64, bool)) (xs []float64) {
	at := map[any]int{}
	var n []float64
	for _, r := range runs {
		x, ok := value(r)
		if !ok {
			continue
		}
		key := r.start()
		i, known := at[key]
		if !known {
			i = len(xs)
			at[key] = i
			xs, n = append(xs, 0), append(n, 0)
		}
		xs[i] += x
		n[i]++
	}
	for i := range xs {
		xs[i] /= n[i]
	}
	return xs
}

// starts is how many starts of the process a side has.
func starts(runs []*Run) int {
	return len(byStart(runs, func(*Run) (float64, bool) { return 0, true }))
}

// interval is the 95 % interval of the difference of two sides' means, by Welch's t test. Both
// sides need at least two values.
func interval(before, after []float64) (low, high float64) {
	mb, vb := meanVar(before)
	ma, va := meanVar(after)
	nb, na := float64(len(before)), float64(len(after))
	se2 := vb/nb + va/na
	d := ma - mb
	if se2 == 0 {
		return d, d
	}
	// The degrees of freedom of Welch and Satterthwaite.
	df := se2 * se2 / (vb*vb/(nb*nb*(nb-1)) + va*va/(na*na*(na-1)))
	half := student(df) * math.Sqrt(se2)
	return d - half, d + half
}

func meanVar(xs []float64) (mean, variance float64) {
	for _, x := range xs {
		mean += x
	}
	mean /= float64(len(xs))
	for _, x := range xs {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / float64(len(xs)-1)
}

// student is the 97.5 % quantile of Student's t distribution. The table is of whole degrees of
// freedom, rounded down, which makes intervals wider.
func student(df float64) float64 {
	table := [...]float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131}
	switch i := int(df); {
	case i < 1:
		return table[0]
	case i <= len(table):
		return table[i-1]
	case i < 30:
		return 2.131
	}
	return 2.042
}
