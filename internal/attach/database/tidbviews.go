package database

import (
	"fmt"

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
	r.Means = "Transactions took locks in opposite orders, and one of them was ended, outside what whystall can look into."
	r.outside("locks in the database's own tables, taken in opposite orders", line, 0)
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
		r.figure("states: " + commonest(states))
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
