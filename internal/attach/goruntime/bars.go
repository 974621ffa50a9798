package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// bars is a histogram that a program drew of its own figures, such as those of runtime/metrics: a
// bound of a bucket on each line, and a mark for each value.
var bars = &attach.Kind{
	Name:  "histogram with marks",
	Hints: []string{"*", "#", "=", "@"},
	Claim: claimBars,
	Read:  readBars,
}

const (
	leastBars = 6
	mostMarks = 400 // on a line; more are drawn to a scale
)

// barLine parses "0.0107:	**" to the bound and the number of marks.
func barLine(s string) (bound float64, marks int, ok bool) {
	s = strings.TrimSpace(s)
	at := strings.IndexAny(s, " \t:|")
	if at <= 0 {
		return 0, 0, false
	}
	bound, ok = number(s[:at])
	bar := strings.Trim(s[at:], " \t:|")
	if !ok || bar == "" || len(bar) > mostMarks || !strings.Contains("*#=@", bar[:1]) ||
		strings.Trim(bar, bar[:1]) != "" {
		return 0, 0, false
	}
	return bound, len(bar), true
}

func claimBars(lines []paste.Line) int {
	last := -1.0
	n := while(lines, func(s string) bool {
		bound, _, ok := barLine(s)
		ok = ok && bound > last
		last = bound
		return ok
	})
	return attach.ClaimIf(n >= leastBars, n)
}

// farApart is how many times the bound before it a bound is that starts another group of values.
const farApart = 10

func readBars(p *attach.Part) attach.Reading {
	var bounds []float64
	var marks []int
	all := 0
	for _, line := range p.Lines {
		if bound, n, ok := barLine(line.Text); ok {
			bounds, marks, all = append(bounds, bound), append(marks, n), all+n
		}
	}
	if len(bounds) == 0 {
		return attach.Reading{Title: "a histogram drawn with marks", State: attach.CannotTell,
			Means: "no line of it could be read"}
	}
	below, median, gap := 0, 0.0, 0
	for i, n := range marks {
		if below < (all+1)/2 && below+n >= (all+1)/2 {
			median = bounds[i]
		}
		below += n
		if i > 0 && bounds[i-1] > 0 && bounds[i]/bounds[i-1] >= farApart &&
			(gap == 0 || bounds[i]/bounds[i-1] > bounds[gap]/bounds[gap-1]) {
			gap = i
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("a histogram drawn with marks, %d buckets", len(bounds)),
		State: attach.CannotTell,
		Figures: []string{fmt.Sprintf("%d marks: the one in the middle is at %g, the last at %g",
			all, median, bounds[len(bounds)-1])},
		Means: "how some values spread; of what, and in which unit, its lines do not say",
		Not:   "that each mark is one value, or that the values are ms: runtime/metrics has seconds",
		Next: []attach.Next{{Command: "GODEBUG=gctrace=1",
			Why: "if these are pauses of GC: each stop, with its unit and when it was"}}}
	if gap > 0 {
		above := 0
		for _, n := range marks[gap:] {
			above += n
		}
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d marks (%s) are at %g or more, and none between that and %g", above,
				percent(ratio(float64(above), float64(all))), bounds[gap], bounds[gap-1]))
	}
	return r
}
