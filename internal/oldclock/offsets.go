package oldclock

import (
	"math"
	"slices"
	"sort"
)

const (
	binLeast  = 10e3 // ns
	binsMost  = 1 << 22
	backsMost = 20_000
	tracMost  = 3_000
	offLeast  = 100e3 // ns
	// around is how far to both sides the usual number of pairs is measured, in bins.
	around    = 2000
	peaksMost = 6
	apart     = 1e6 // ns: offsets nearer than this are one, but for their precision
)

// widths of a peak, in bins: threads that wake up make an event within microseconds, threads that
// were preempted when their goroutine next does something.
var widths = [...]int{3, 10, 50}

// offset is one that may be right.
type offset struct {
	at  int64
	tol int64 // how far off it may be
	z   float64
}

// bounds are the least and the largest offset at which the recordings fit: they were made around
// each other.
func bounds(x *marks, k *stays) (lo, hi int64) {
	a, b := k.begin-x.begin, k.end-x.end
	lo, hi = min(a, b), max(a, b)
	slack := min(x.end-x.begin, k.end-k.begin, 6e9) / 2
	return lo - slack, hi + slack
}

// offsets lists offsets at which unusually many silences end as some thread comes to a CPU.
func offsets(x *marks, k *stays) (l []offset) {
	lo, hi := bounds(x, k)
	came, off := k.came(offLeast, backsMost)
	var ends []int64
	for _, q := range x.quiets {
		if q.to-q.from >= off {
			ends = append(ends, q.to)
		}
	}
	bin := max(binLeast, (hi-lo)/binsMost+1)
	n := int((hi-lo)/bin) + 1
	sums := make([]uint32, n+1)
	step := len(ends)/tracMost + 1
	for i := 0; i < len(ends); i += step {
		first := ends[i] + lo
		for j := sort.Search(len(came), func(j int) bool { return came[j] >= first }); j < len(came); j++ {
			b := (came[j] - first) / bin
			if b >= int64(n) {
				break
			}
			sums[b+1]++
		}
	}
	for i := range n {
		sums[i+1] += sums[i]
	}
	for _, w := range widths {
		l = append(l, peaks(sums, w, lo, bin)...)
	}
	return l
}

// peaks lists the windows of w bins that stand out most from what is around them.
func peaks(sums []uint32, w int, lo, bin int64) []offset {
	var l []offset
	n := len(sums) - 1
	for i := 0; i+w <= n; i++ {
		from, to := max(0, i-around), min(n, i+w+around)
		in := float64(sums[i+w] - sums[i])
		usual := float64(sums[to]-sums[from]) * float64(w) / float64(to-from)
		o := offset{at: lo + (int64(i)+int64(w)/2)*bin, tol: int64(w)*bin + 2*binLeast,
			z: (in - usual) / math.Sqrt(usual+1)}
		if len(l) == peaksMost && o.z <= l[len(l)-1].z || in < 5 {
			continue
		}
		if near := slices.IndexFunc(l, func(p offset) bool { return max(p.at-o.at, o.at-p.at) < apart }); near >= 0 {
			if l[near].z >= o.z {
				continue
			}
			l = slices.Delete(l, near, near+1)
		}
		at := sort.Search(len(l), func(i int) bool { return l[i].z < o.z })
		l = slices.Insert(l, at, o)
		l = l[:min(len(l), peaksMost)]
	}
	return l
}
