package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
)

// readTiDBDeadlocks reads TiDB's table of the deadlocks that it has ended, a row for each
// transaction in one.
func readTiDBDeadlocks(r *result, t *sqlTable) {
	n, last := map[string]int{}, map[string]string(nil)
	for _, row := range t.rows {
		if id := row["deadlock_id"]; len(n) < mostOwners {
			n[id]++
		}
		last = row
	}
	if last == nil {
		return
	}
	line := fmt.Sprintf("%s of transactions; in the last one %d waited for each other",
		attach.Plural(len(n), "deadlock"), n[last["deadlock_id"]])
	if at := last["occur_time"]; at != "" {
		line += ", at " + short(at)
	}
	r.figure(line)
	if text := valueOf(last, "current_sql_digest_text", "digest_text"); text != "" && text != "NULL" {
		r.figure("one of its statements: " + short(text))
	}
	r.Means = "Transactions waited for each other's locks in a circle, and one of them was ended, outside what whystall can look into."
	r.outside(lockCircle, line, 0)
	r.Not = "That it slowed others down: a deadlock is ended at once, and one transaction has to start again."
}

// readTiDBTrx reads TiDB's table of transactions that are open at this instant.
func readTiDBTrx(r *result, t *sqlTable) {
	states, waits := map[string]int{}, 0
	for _, row := range t.rows {
		state := row["state"]
		if state == "LockWaiting" || state == "" && row["waiting_start_time"] != "" &&
			row["waiting_start_time"] != "NULL" {
			waits++
		}
		if state != "" {
			states[state]++
		}
	}
	r.Glance = true
	if len(states) > 0 {
		r.figure("states: " + listed(states))
	}
	r.Not = "One glance. A transaction that is open and idle keeps its locks; whether somebody waits for them is in data_lock_waits."
	if waits == 0 {
		r.Means = "No transaction of these waits for a lock at this instant."
		return
	}
	line := fmt.Sprintf("%d of %d transactions wait for a lock", waits, len(t.rows))
	r.figure(line)
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.next("SELECT * FROM information_schema.data_lock_waits",
		"names the transaction that holds the lock, while it waits")
}

// traceSteps is how many steps of a trace are named.
const traceSteps = 3

// readTiDBTrace reads TRACE FORMAT='row': the steps of one statement, each with its start and how
// long it took.
func readTiDBTrace(r *result, t *sqlTable) {
	type step struct {
		name string
		took float64
	}
	var steps []step
	var first, last time.Time
	for _, row := range t.rows {
		took, ok := seconds(row["duration"])
		at, err := time.Parse("15:04:05.999999999", row["startts"])
		if !ok || err != nil {
			continue
		}
		if end := at.Add(time.Duration(took * 1e9)); len(steps) == 0 || end.After(last) {
			last = end
		}
		if len(steps) == 0 || at.Before(first) {
			first = at
		}
		steps = append(steps, step{strings.TrimLeft(row["operation"], "│├└─ "), took})
	}
	if len(steps) == 0 {
		r.Means = "Its steps cannot be read."
		return
	}
	whole := last.Sub(first).Seconds()
	r.figure("from the first step to the end of the last: " + dur(whole))
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(b.took, a.took) })
	var list []string
	for _, s := range steps[:min(traceSteps, len(steps))] {
		list = append(list, s.name+" "+dur(s.took))
	}
	r.figure("its longest steps: " + strings.Join(list, ", "))
	r.fact(FactStatement, whole*1e3, "")
	r.Means = "It has the steps of one statement as TiDB ran it; what a step waited for is not in it."
	if whole < quick {
		r.Means = "The statement was fast when it was traced."
	}
	r.Not = "The steps hold those that run within them: their times do not add up. Other runs of the statement may differ."
}
