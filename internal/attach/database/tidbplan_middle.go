package database

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// measured reports whether a row has any time of its operator.
func (o *operator) measured() bool { return o.time >= 0 || o.client > 0 || o.server >= 0 }

// openTop reports whether an operator that stands below none of the others has no time. Of rows
// from the middle of a plan, that one may have had most of the time. Old versions have no times of
// what the store runs, only of what waits for it.
func openTop(ops []*operator) bool {
	top := ops[0].depth
	for _, o := range ops {
		if o.depth > top {
			continue
		}
		if top = o.depth; o.task == "root" && !o.measured() {
			return true
		}
	}
	return false
}

// readMiddle reads rows from the middle of a plan which show neither where it starts nor all times.
func readMiddle(r *result, ops []*operator) attach.Reading {
	r.Title = fmt.Sprintf("TiDB EXPLAIN ANALYZE, %s from the middle of a plan", attach.Plural(len(ops), "operator"))
	slow := slices.MaxFunc(ops, func(a, b *operator) int { return cmp.Compare(a.time, b.time) })
	if slow.time >= 0 {
		line := fmt.Sprintf("the longest of those that have their time: %s, %s", slow.name, dur(slow.time))
		if slow.act >= 0 && slow.est >= 0 {
			line += fmt.Sprintf("; %s rows, estimated %s", count(slow.act), count(slow.est))
		}
		r.figure(line)
	}
	for _, o := range ops {
		if o.task == "root" && !o.measured() && o.est >= 0 {
			r.figure(fmt.Sprintf("%s: estimated %s rows, its time is not in the text", o.name, count(o.est)))
			break
		}
	}
	r.Means = "Where the statement's time is, these rows do not say: they are a part of its plan, and not all of them have their times."
	r.Not = "That the operators whose times are here are the slow ones."
	r.next("EXPLAIN ANALYZE again, the whole of it", "names the operator that has the time")
	return r.done(attach.CannotTell)
}

// noNewEstimates says why to try another plan, where no estimate of many rows was far too low.
func noNewEstimates(ops []*operator, slow *operator) string {
	known := false
	for _, o := range ops {
		if o.est < 0 || o.act < 0 || slices.Contains(under(ops, o), slow) {
			continue
		}
		if known = true; o.act >= 10*max(1, o.est) {
			return "whether another plan is faster; estimates that are far off are of few rows"
		}
	}
	if !known {
		return "whether another plan is faster"
	}
	return "nothing that it rests on found ten times the rows estimated, so new statistics are not the first thing to try"
}
