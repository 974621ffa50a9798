package ledger

import (
	"sort"

	"github.com/whystall/whystall/internal/capacity"
	"github.com/whystall/whystall/internal/sched"
)

// enough knows when no thread of the process lacked a CPU. A trace that names no threads does not
// show which of them ran a goroutine. But at such a time it was none that waited for a CPU, so what
// the goroutine did took as long as it took.
type enough struct {
	ready bool
	// Relative to the joiner's base, in order: some thread was queued or throttled, or nothing is
	// known of it.
	short capacity.Times
	sum   []int64 // of the time in short before each
}

func (x *enough) init(j *joiner) {
	x.ready = true
	begin, end := j.k.Span()
	j.k.Each(begin, end, func(_ uint32, s *sched.Stretch) {
		switch s.Doing {
		case sched.Queued, sched.Throttled:
		case sched.Unknown:
			if s.Begin == begin {
				return // not seen yet: for all that is known it slept
			}
		default:
			return
		}
		x.short = append(x.short, capacity.Span{Lo: s.Begin - j.base, Hi: s.End - j.base})
	})
	x.short = x.short.Merge()
	x.sum = make([]int64, len(x.short))
	for i, all := 0, int64(0); i < len(x.short); i++ {
		x.sum[i] = all
		all += x.short[i].Hi - x.short[i].Lo
	}
}

// before is how much of the time before t some thread lacked a CPU.
func (x *enough) before(t int64) int64 {
	i := sort.Search(len(x.short), func(i int) bool { return x.short[i].Lo >= t }) - 1
	if i < 0 {
		return 0
	}
	return x.sum[i] + min(t, x.short[i].Hi) - x.short[i].Lo
}

// enough is for how much of [lo,hi) the threads of the process had the CPUs that they wanted.
func (j *joiner) enough(lo, hi int64) int64 {
	if lo, hi = max(lo, j.begin), min(hi, j.end); lo >= hi {
		return 0
	}
	if !j.had.ready {
		j.had.init(j)
	}
	return hi - lo - (j.had.before(hi) - j.had.before(lo))
}
