package goruntime

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// readDifference reads one profile less another one, as -diff_base and -base print it.
func (p *profile) readDifference(r *attach.Reading) {
	unit := func(v float64) string { return fmt.Sprintf("%+.4g", v) }
	switch {
	case p.kind == profCPU || p.kind == profMutex || p.kind == profBlock || p.kind == profDelay:
		unit = func(v float64) string { return sign(v) + finding.Duration(int64(math.Abs(v))) }
	case (p.kind == profHeap || p.kind == profAllocs) && !p.objects:
		unit = func(v float64) string { return sign(v) + finding.Bytes(int64(math.Abs(v))) }
	}
	r.State = attach.CannotTell
	r.Means = "it is a difference of two profiles: what is negative is less than in the base, and no sum is what a run used"
	r.Not = "what the program uses most: functions that are alike in both profiles are not in it"
	fns := make([]string, 0, len(p.flat))
	for fn := range p.flat {
		fns = append(fns, fn)
	}
	weight := func(fn string) float64 { return max(math.Abs(p.flat[fn]), math.Abs(p.cum[fn])) }
	slices.SortFunc(fns, func(a, b string) int {
		if weight(a) != weight(b) {
			if weight(a) > weight(b) {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	if p.accounted != 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("by its head what it shows is %s in all", unit(p.accounted)))
	}
	for _, fn := range fns[:min(3, len(fns))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s in itself, %s with what it calls", fn,
			unit(p.flat[fn]), unit(p.cum[fn])))
	}
	if p.total > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("shares are of %s", strings.TrimPrefix(unit(p.total), "+")))
	}
}

func sign(v float64) string {
	switch {
	case v < 0:
		return "-"
	case v > 0:
		return "+"
	}
	return ""
}
