package books

import "math/bits"

// Histogram counts durations in buckets of 3 %. What it says does not depend on the order in which
// they came, and two histograms add up to one. The zero value is ready.
type Histogram struct {
	N       int64
	buckets []uint32
}

// bucket is the bucket of a duration. Up to 31 ns each duration has its own; from there on each
// octave has 32.
func bucket(ns int64) int {
	if ns < 32 {
		return int(max(ns, 0))
	}
	e := bits.Len64(uint64(ns)) - 1
	return (e-4)*32 + int(ns>>(e-5)) - 32
}

// bucketStart is the least duration of a bucket.
func bucketStart(i int) int64 {
	if i < 32 {
		return int64(i)
	}
	e := i/32 + 4
	return int64(i%32+32) << (e - 5)
}

// Add counts a duration. The buckets grow by an octave more than it needs.
func (h *Histogram) Add(ns int64) {
	i := bucket(ns)
	if i >= len(h.buckets) {
		h.buckets = append(h.buckets, make([]uint32, i+33-len(h.buckets))...)
	}
	h.buckets[i]++
	h.N++
}

// merge adds another histogram.
func (h *Histogram) merge(o *Histogram) {
	for len(h.buckets) < len(o.buckets) {
		h.buckets = append(h.buckets, 0)
	}
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
	h.N += o.N
}

// Quantile is the least duration of the bucket that the quantile lies in. It looks from above,
// since high quantiles are what is mostly asked for.
func (h *Histogram) Quantile(q float64) int64 {
	if h.N == 0 {
		return 0
	}
	left := h.N - int64(q*float64(h.N))
	for i := len(h.buckets) - 1; i >= 0; i-- {
		left -= int64(h.buckets[i])
		if left <= 0 {
			return bucketStart(i)
		}
	}
	return 0
}

// least is the least duration of the bucket that the n-th longest lies in.
func (h *Histogram) least(n int64) int64 {
	for i := len(h.buckets) - 1; i >= 0; i-- {
		if n -= int64(h.buckets[i]); n <= 0 {
			return bucketStart(i)
		}
	}
	return 0
}

// quantiles is Quantile for three at once, in one walk over the buckets.
func (h *Histogram) quantiles(qs [3]float64) (durations [3]int64) {
	const found = int64(1<<63 - 1) // in left: this one needs no more
	var left [3]int64
	for k, q := range qs {
		left[k] = h.N - int64(q*float64(h.N))
	}
	need := min(left[0], left[1], left[2])
	var above int64
	for i := len(h.buckets) - 1; i >= 0 && need < found; i-- {
		if above += int64(h.buckets[i]); above < need {
			continue
		}
		for k, l := range left {
			if above >= l {
				durations[k], left[k] = bucketStart(i), found
			}
		}
		need = min(left[0], left[1], left[2])
	}
	return durations
}

// above counts the durations in buckets above that of ns.
func (h *Histogram) above(ns int64) (n int64) {
	for i := bucket(ns) + 1; i < len(h.buckets); i++ {
		n += int64(h.buckets[i])
	}
	return n
}
