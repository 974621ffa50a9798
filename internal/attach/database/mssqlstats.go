package database

import (
	"cmp"
	"fmt"
	"slices"
)

// readMSStats reads sys.dm_os_wait_stats: sums since the start of the server, or since somebody
// cleared them.
func readMSStats(r *result, t *sqlTable) {
	type sum struct {
		what     string
		total, n float64
	}
	var list []sum
	for _, row := range t.rows {
		what := valueOf(row, "wait_type")
		total := num(row, "wait_time_ms") / 1e3
		if what == "" || msIdle.MatchString(what) || total <= 0 {
			continue
		}
		list = append(list, sum{what, total, num(row, "waiting_tasks_count")})
	}
	slices.SortStableFunc(list, func(a, b sum) int { return cmp.Compare(b.total, a.total) })
	for _, s := range list[:min(3, len(list))] {
		line := fmt.Sprintf("%s: %s in all", s.what, dur(s.total))
		if s.n > 0 {
			line += fmt.Sprintf(", %s waits of %s in the mean", count(s.n), dur(s.total/s.n))
		}
		r.figure(line)
	}
	r.Boot = true
	if len(list) == 0 {
		r.Means = "No wait is in it but those of sessions that have nothing to do."
		return
	}
	r.Means = "Sums since the start or since they were cleared: what sessions waited for most in all that time, and not now."
	r.Not = "That the first of them makes anything slow: a sum has no rate, and waits of many sessions at one time add up."
	r.next("the same twice, a minute apart, or SELECT * FROM sys.dm_exec_requests", "what they wait for now")
}
