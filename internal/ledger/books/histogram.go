package books

import "math/bits"

// histogram counts durations in buckets of 3 %: its sums depend on no order.
type Histogram struct {
	N int64
	b []uint32
}

func bucket(ns int64) int {
	if ns < 32 {
		return int(max(ns, 0))
	}
	e := bits.Len64(uint64(ns)) - 1
	return (e-4)*32 + int(ns>>(e-5)) - 32
}

// bucketAt is the least duration of a bucket.
func bucketAt(i int) int64 {
	if i < 32 {
		return int64(i)
	}
	e := i/32 + 4
	return int64(i%32+32) << (e - 5)
}

func (h *Histogram) Add(ns int64) {
	i := bucket(ns)
	if i >= len(h.b) {
		h.b = append(h.b, make([]uint32, i+33-len(h.b))...)
	}
	h.b[i]++
	h.N++
}

func (h *Histogram) merge(o *Histogram) {
	for len(h.b) < len(o.b) {
		h.b = append(h.b, 0)
	}
	for i, n := range o.b {
		h.b[i] += n
	}
	h.N += o.N
}

// quantile is the least duration of the bucket that the quantile lies in.
func (h *Histogram) Quantile(q float64) int64 {
	if h.N == 0 {
		return 0
	}
	// from above: what is asked for is mostly there
	left := h.N - int64(q*float64(h.N))
	for i := len(h.b) - 1; i >= 0; i-- {
		left -= int64(h.b[i])
		if left <= 0 {
			return bucketAt(i)
		}
	}
	return 0
}

// least is the least duration of the bucket that the n-th longest lies in.
func (h *Histogram) least(n int64) int64 {
	for i := len(h.b) - 1; i >= 0; i-- {
		if n -= int64(h.b[i]); n <= 0 {
			return bucketAt(i)
		}
	}
	return 0
}

// quantiles is quantile of three at once.
func (h *Histogram) quantiles(qs [3]float64) (at [3]int64) {
	const none = int64(1<<63 - 1)
	var left [3]int64
	for k, q := range qs {
		left[k] = h.N - int64(q*float64(h.N))
	}
	need := min(left[0], left[1], left[2])
	var above int64
	for i := len(h.b) - 1; i >= 0 && need < none; i-- {
		if above += int64(h.b[i]); above < need {
			continue
		}
		for k, l := range left {
			if above >= l {
				at[k], left[k] = bucketAt(i), none
			}
		}
		need = min(left[0], left[1], left[2])
	}
	return at
}

// above counts what lies in buckets over that of ns.
func (h *Histogram) above(ns int64) (n int64) {
	for i := bucket(ns) + 1; i < len(h.b); i++ {
		n += int64(h.b[i])
	}
	return n
}
