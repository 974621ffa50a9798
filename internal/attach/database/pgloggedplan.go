package database

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var pgPlanLine = pattern.New(`duration: ([\d.]+) ms  ?plan:`)

// loggedPlans are the times of the plans that auto_explain writes, in seconds, and where the lines
// of the slowest one are.
func loggedPlans(lines []paste.Line) (took []float64, slowest []paste.Line) {
	most := 0.0
	for at, l := range lines {
		m := pgPlanLine.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		ms, _ := number(m[1])
		took = append(took, ms/1e3)
		if ms <= most {
			continue
		}
		most, slowest = ms, nil
		for n := at + 1; n < len(lines) && !pgLine.MatchString(lines[n].Text); n++ {
			slowest = lines[at+1 : n+1]
		}
	}
	return took, slowest
}

// tellLoggedPlan says which node of the slowest plan has the time, where the log has their times.
func tellLoggedPlan(r *result, lines []paste.Line, total float64) {
	first := slices.IndexFunc(lines, func(l paste.Line) bool { return pgIsNode.MatchString(l.Text) })
	if first < 0 || total < 0.1 {
		return
	}
	nodes := parsePGPlan(unsplit(lines[first:]))
	if len(nodes) == 0 || nodes[0].total <= 0 {
		return
	}
	stopAtLimits(nodes)
	worst := slices.MaxFunc(nodes, func(a, b *node) int { return cmp.Compare(a.self, b.self) })
	line := fmt.Sprintf("the plan of the slowest: %s took %s of %s by itself", worst.name, dur(worst.self), dur(total))
	r.figure(line)
	if n := worstGuess(nodes); n != nil {
		r.figure(fmt.Sprintf("%s: estimated %s rows, found %s", n.name, count(n.est), count(n.act)))
	}
	if worst.self < 0.5*total || worst.cut {
		return
	}
	r.Not = "Only plans above auto_explain.log_min_duration are in it; a plan's time is without planning and sending."
	r.outside("the plan: "+worst.name, line, ratio(worst.self, total))
	r.next("EXPLAIN (ANALYZE, BUFFERS) the statement", "shows whether the pages came from memory")
}

// planned takes the plans' times for those of statements where the log has no others: a plan's time
// is a part of its statement's.
func (e *pgEvents) planned(r *result, p *attach.Part) {
	took, slowest := loggedPlans(p.Lines)
	if len(took) == 0 {
		return
	}
	if len(e.durations) == 0 {
		e.durations = took
		r.figure(attach.Plural(len(took), "plan") + " of auto_explain: " + spread(took))
	}
	if len(r.Signs) == 0 && 2*slices.Max(took) >= slices.Max(e.durations) {
		tellLoggedPlan(r, slowest, slices.Max(took))
	}
}
