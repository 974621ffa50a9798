package goruntime

import (
	"cmp"
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
	r.Means = "it is a difference of two profiles" + p.ofWhat() + ": what is negative is less than in the base, and no sum is what a run used"
	r.Not = "what the program uses most: functions that are alike in both profiles are not in it"
	fns := make([]string, 0, len(p.flat))
	for fn := range p.flat {
		fns = append(fns, fn)
	}
	// The callers of a changed function change as much as it does. So functions stand in the order
	// of what changed in themselves.
	slices.SortFunc(fns, func(a, b string) int {
		return cmp.Or(cmp.Compare(math.Abs(p.flat[b]), math.Abs(p.flat[a])),
			cmp.Compare(math.Abs(p.cum[b]), math.Abs(p.cum[a])), strings.Compare(a, b))
	})
	shares := ""
	if p.total > 0 {
		shares = fmt.Sprintf("; shares are of %s", strings.TrimPrefix(unit(p.total), "+"))
	}
	if p.accounted != 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("by its head what it shows is %s in all", unit(p.accounted))+shares)
		shares = ""
	}
	for _, fn := range fns[:min(3, len(fns))] {
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s in itself, %s with what it calls", fn,
			unit(p.flat[fn]), unit(p.cum[fn])))
	}
	if shares != "" {
		r.Figures = append(r.Figures, strings.TrimPrefix(shares, "; "))
	}
}

// ofWhat says what the two profiles are of; "": the text does not say.
func (p *profile) ofWhat() string {
	switch {
	case p.vague, p.guessed, p.objects:
		return ""
	case p.kind == profHeap:
		return " of memory in use"
	case p.kind == profAllocs:
		return " of memory that was allocated since the start"
	case p.kind == profCPU:
		return " of CPU time"
	}
	return ""
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
