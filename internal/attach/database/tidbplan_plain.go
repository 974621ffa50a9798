package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readPlainPlan reads EXPLAIN without ANALYZE: estimates, and no time.
func readPlainPlan(r *result, ops []*operator) attach.Reading {
	r.Title = "TiDB EXPLAIN, " + attach.Plural(len(ops), "operator") + ", not run: no times in it"
	most := slices.MaxFunc(ops, func(a, b *operator) int { return cmp.Compare(a.est, b.est) })
	all := joinText(ops)
	cartesian := strings.Contains(all, "CARTESIAN")
	line := fmt.Sprintf("%s rows estimated in %s", count(most.est), most.name)
	if most.est == 1 {
		line = "1 row estimated in " + most.name
	}
	if most.est < 0 {
		line = "no estimate of rows"
	}
	if cartesian {
		line = "CARTESIAN join: " + line
	}
	r.figure(line)
	pseudo(r, ops)
	full := 0
	for _, o := range ops {
		if strings.Contains(o.name, "TableFullScan") || strings.Contains(o.name, "TableScan") &&
			strings.Contains(o.text, "[-inf,+inf]") {
			full++
		}
	}
	if full > 0 {
		r.figure(attach.Plural(full, "full scan") + " of a table")
	}
	r.Not = "A plan without ANALYZE has estimates only: it shows no time, and nothing was measured."
	switch {
	case cartesian:
		r.outside("the plan: a cartesian join", line, 0)
		r.Means = "If this statement is slow, the plan is the reason that lies nearest: a cartesian join, outside what whystall can look into."
	case full > 0 && most.est >= 1e6:
		r.outside("the plan: it reads whole tables", line, 0)
		r.Means = "If this statement is slow, the plan is the reason that lies nearest: it reads a whole table, outside what whystall can look into."
	default:
		r.Means = "Nothing in the estimates stands out; whether the statement is slow, and where, it does not say."
	}
	r.next("EXPLAIN ANALYZE the statement", "runs it and has the times of each operator and task")
	return r.done(attach.CannotTell)
}

// pseudo says which tables have no statistics.
func pseudo(r *result, ops []*operator) {
	without, reads := 0, 0
	var tables []string
	for _, o := range ops {
		m := planTable.FindStringSubmatch(o.text)
		if m == nil {
			continue
		}
		reads++
		if strings.Contains(o.text, "stats:pseudo") {
			without++
			if !slices.Contains(tables, m[1]) {
				tables = append(tables, m[1])
			}
		}
	}
	switch {
	case !strings.Contains(joinText(ops), "stats:pseudo"):
	case without == reads:
		r.figure("stats:pseudo: the estimates rest on no statistics")
	case without == 0:
		r.figure("stats:pseudo: estimates rest on no statistics")
	default:
		r.figure(fmt.Sprintf("stats:pseudo: the estimates of %d of %d reads rest on no statistics (%s)",
			without, reads, strings.Join(tables[:min(3, len(tables))], ", ")))
	}
}

// planTable is the table that an operator reads.
var planTable = pattern.New(`\btable:([^\s,|]{1,64})`)
