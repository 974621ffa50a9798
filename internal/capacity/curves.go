package capacity

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

// mostBins is how many points the curves of threads have.
const mostBins = 600

// AddCurves adds to r the curves of threads and of memory that the kernel's records and the
// readings give. It leaves them out where their clock is not that of r.
func AddCurves(r *account.Result, k *sched.Timeline, set *evidence.Set) {
	shift := int64(0)
	switch {
	case r.Kernel != nil && r.Kernel.Whole:
		shift = r.Kernel.ShiftNS
	case !r.Monotonic:
		return
	}
	if k != nil {
		r.Curves = append(r.Curves, threadCurves(k, r.Begin+shift, r.End+shift, shift)...)
	}
	if set == nil {
		return
	}
	curve := func(stream string, kind account.CurveKind) (c account.Curve) {
		c.Kind = kind
		for _, x := range set.All(stream) {
			if x.Shape == evidence.Sample && x.Time != 0 && len(c.Points) < account.MostPoints {
				c.Points = append(c.Points, account.CurvePoint{At: x.Time - shift, Value: x.Value})
			}
		}
		return c
	}
	rss := curve("/process/rss:bytes", account.CurveRSS)
	if len(rss.Points) > 1 {
		r.Curves = append(r.Curves, rss)
	}
	huge := curve("/process/anon-huge:bytes", account.CurveHuge)
	if len(huge.Points) > 0 {
		r.Curves = append(r.Curves, huge)
	}
	// A process' own huge pages are read once, since that walks all of its memory. Over time they
	// are known of its cgroup or else of the host, where these are not much larger than it.
	for _, c := range []account.Curve{curve("/cgroup/memory/anon-huge:bytes",
		account.CurveHugeGroup), curve("/host/memory/anon-huge:bytes", account.CurveHugeHost)} {
		if len(huge.Points) < 2 && len(c.Points) > 1 && highest(c) > 0 && highest(c) <= mostBeside*highest(rss) {
			r.Curves = append(r.Curves, c)
			break
		}
	}
	if l, ok := set.Fact("/cgroup/memory/limit:bytes"); ok && l.Value > 0 {
		r.Curves = append(r.Curves, account.Curve{Kind: account.CurveMemoryLimit,
			Points: []account.CurvePoint{{At: r.Begin, Value: l.Value}, {At: r.End, Value: l.Value}}})
	}
}

// mostBeside is how many times as large as the process a curve beside it may be.
const mostBeside = 3

func highest(c account.Curve) (most float64) {
	for _, p := range c.Points {
		most = max(most, p.Value)
	}
	return most
}

// threadCurves is how many threads of the target were in each state that wants a CPU.
func threadCurves(k *sched.Timeline, lo, hi, shift int64) (out []account.Curve) {
	width := (hi - lo) / mostBins
	if width <= 0 {
		return nil
	}
	kinds := []account.CurveKind{account.CurveOnCPU, account.CurveQueued, account.CurveThrottled}
	var ns [3][mostBins]int64
	k.Each(lo, lo+width*mostBins, func(_ uint32, s *sched.Stretch) {
		at := -1
		switch s.Doing {
		case sched.OnCPU:
			at = 0
		case sched.Queued:
			at = 1
		case sched.Throttled:
			at = 2
		}
		if at < 0 {
			return
		}
		for b := (s.Begin - lo) / width; b < mostBins && lo+b*width < s.End; b++ {
			ns[at][b] += min(s.End, lo+(b+1)*width) - max(s.Begin, lo+b*width)
		}
	})
	for i, kind := range kinds {
		c, any := account.Curve{Kind: kind}, false
		for b, n := range ns[i] {
			any = any || n > 0
			c.Points = append(c.Points, account.CurvePoint{At: lo + int64(b)*width - shift,
				Value: float64(n) / float64(width)})
		}
		if any {
			out = append(out, c)
		}
	}
	return out
}
