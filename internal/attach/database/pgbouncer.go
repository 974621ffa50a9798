package database

import (
	"fmt"

	"github.com/whystall/whystall/internal/finding"
)

// readBouncer reads PgBouncer's SHOW POOLS: its clients, and its connections to the server.
func readBouncer(r *result, t *sqlTable) {
	r.Glance = true
	pools, worst, most, free := 0, "", 0.0, true
	for _, row := range t.rows {
		waiting := num(row, "cl_waiting")
		if waiting == 0 {
			continue
		}
		pools++
		if waiting <= most {
			continue
		}
		oldest := num(row, "maxwait") + num(row, "maxwait_us")/1e6
		idle := num(row, "sv_idle") + num(row, "sv_used")
		most, free = waiting, idle > 0 || num(row, "sv_active") == 0
		worst = fmt.Sprintf("pool %s of %s: %.0f clients wait, the oldest for %s; %.0f connections to the server in use, %.0f free",
			short(row["database"]), short(row["user"]), waiting, dur(oldest), num(row, "sv_active"), idle)
	}
	if pools == 0 {
		r.figure("nobody waits for a connection at this instant")
		r.Means = "No client of PgBouncer waits for a connection to the server at this instant."
		return
	}
	r.figure(worst)
	r.Means = "Clients wait for a connection to the server, and none is free: what those who have one do decides."
	r.Not = "Whether the database is slow or clients leave transactions open: a connection counts as in use until its transaction ends."
	if free {
		r.Means = "Clients wait for a connection to the server that is not made, or not handed out yet."
		r.candidate("pool-exhaustion", worst)
	} else {
		r.found("pool-exhaustion", finding.Possible, worst, 0)
	}
	r.next("SELECT state, count(*), max(now() - state_change) FROM pg_stat_activity GROUP BY 1",
		"whether connections are active, or idle in a transaction")
}
