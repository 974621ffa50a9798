package database

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func readPGDatabase(r *result, t *sqlTable) {
	var worst map[string]string
	for _, row := range t.rows {
		if worst == nil || num(row, "blks_read")+num(row, "blks_hit") > num(worst, "blks_read")+num(worst, "blks_hit") {
			worst = row
		}
	}
	if worst == nil {
		return
	}
	read, hit := num(worst, "blks_read"), num(worst, "blks_hit")
	if read+hit > 0 {
		r.figure(fmt.Sprintf("%s: %s of blocks were found in shared buffers, %s blocks were not",
			short(valueOf(worst, "datname")), percent(hit, read+hit), count(read)))
	}
	r.figure(fmt.Sprintf("%s commits, %s rollbacks, %s deadlocks", count(num(worst, "xact_commit")),
		count(num(worst, "xact_rollback")), count(num(worst, "deadlocks"))))
	if n := num(worst, "temp_bytes"); n > 0 {
		r.figure(bytesText(n) + " in temporary files: sorts and hashes that did not fit into work_mem")
	}
	r.Boot = true
	r.Means = "Counters since they were reset: a block that was not in shared buffers may have been in the page cache."
	r.next("the same query twice, ten seconds apart", "what was added")
}

func readBgwriter(r *result, t *sqlTable) {
	if len(t.rows) == 0 {
		return
	}
	row := t.rows[0]
	timed, asked := num(row, "checkpoints_timed", "num_timed"), num(row, "checkpoints_req", "num_requested")
	r.figure(fmt.Sprintf("%s checkpoints by time, %s asked for: because the log was full, or by a command", count(timed), count(asked)))
	if n := num(row, "buffers_backend"); n > 0 {
		r.figure(fmt.Sprintf("%s buffers written by backends themselves, of them %s with fsync",
			count(n), count(num(row, "buffers_backend_fsync"))))
	}
	r.Boot = true
	r.Means = "Counters since they were reset."
	if asked > timed && asked >= 10 {
		r.Means = "Most checkpoints were asked for, as a rule because the log was full (max_wal_size): each writes all dirty buffers, and slows down what runs meanwhile."
	}
	r.Not = "Whether a statement waited for a checkpoint."
	r.next("log_checkpoints = on, then the log", "how long each checkpoint took, and its fsync")
}

func readPGTables(r *result, t *sqlTable) {
	var scans, dead map[string]string
	for _, row := range t.rows {
		if scans == nil || num(row, "seq_tup_read") > num(scans, "seq_tup_read") {
			scans = row
		}
		if dead == nil || num(row, "n_dead_tup") > num(dead, "n_dead_tup") {
			dead = row
		}
	}
	if scans != nil && num(scans, "seq_tup_read") > 0 {
		r.figure(fmt.Sprintf("%s: %s rows read in %s scans of the whole table",
			short(valueOf(scans, "relname")), count(num(scans, "seq_tup_read")), count(num(scans, "seq_scan"))))
	}
	if dead != nil && num(dead, "n_dead_tup") > 0 {
		name := short(valueOf(dead, "relname"))
		if name == "" {
			name = "one table"
		}
		r.figure(fmt.Sprintf("%s: %s dead rows beside %s live ones", name,
			count(num(dead, "n_dead_tup")), count(num(dead, "n_live_tup"))))
	}
	r.Boot = true
	if scans == nil || num(scans, "seq_tup_read") == 0 {
		deadRows(r, dead)
		return
	}
	r.Means = "Counters since they were reset: which tables are read whole, and not whether that is slow."
	r.next("EXPLAIN (ANALYZE, BUFFERS) the slow statement", "whether it scans the table, and how long that takes")
}

// deadRows says what it means that a table has many dead rows.
func deadRows(r *result, row map[string]string) {
	if row == nil {
		return
	}
	r.Means = "Few dead rows: scans hardly feel them."
	r.Not = "Whether a statement is slow: no time is in it."
	if dead, live := num(row, "n_dead_tup"), num(row, "n_live_tup"); dead >= 1e4 && dead > live {
		r.Means = "Most rows of the table are dead: each scan reads them too. Vacuum has not taken them away."
		if runs := num(row, "autovacuum_count"); runs >= 1 && valueOf(row, "last_autovacuum") != "" {
			r.figure(fmt.Sprintf("autovacuum ran %s, the last time at %s",
				times(int(min(runs, 1e9))), valueOf(row, "last_autovacuum")))
			r.Means = "Most rows of the table are dead although autovacuum runs: something keeps them, as an old transaction, a replication slot or a prepared transaction does."
		}
		r.next("psql -c 'SELECT pid, state, xact_start, backend_xmin FROM pg_stat_activity ORDER BY xact_start LIMIT 5; SELECT slot_name, xmin, catalog_xmin FROM pg_replication_slots'", "the oldest transaction, and slots that keep dead rows")
	}
}

// readPlainActivity reads a list of connections without what they wait for.
func readPlainActivity(r *result, t *sqlTable) {
	n := map[string]int{}
	for _, row := range t.rows {
		state := valueOf(row, "state")
		if now := row["current_query"]; now != "" { // until PostgreSQL 9.1
			switch state = "active"; {
			case strings.HasPrefix(now, "<IDLE> in transaction"):
				state = "idle in transaction"
			case strings.HasPrefix(now, "<IDLE>"):
				state = "idle"
			}
		}
		n[state]++
	}
	r.Glance = true
	r.figure(fmt.Sprintf("%d of %d connections are active, %d idle in a transaction", n["active"],
		len(t.rows), n["idle in transaction"]))
	r.Means = "It lists what connections do, and not what they wait for."
	waiting := 0
	for _, row := range t.rows { // a column until PostgreSQL 9.5
		if v := valueOf(row, "waiting"); v == "t" || v == "true" {
			waiting++
		}
	}
	if waiting > 0 {
		line := fmt.Sprintf("%d of %d connections wait for a lock (waiting = t)", waiting, len(t.rows))
		r.figure(line)
		r.Means = ""
		r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
		r.next("psql -c 'SELECT * FROM pg_locks WHERE NOT granted'", "which locks, and then who has them")
		return
	}
	if n["idle in transaction"] > 0 {
		r.Not = "A transaction that is open and idle keeps its locks: whether somebody waits for them is not in it."
	}
	r.next("psql -c 'SELECT pid, state, wait_event_type, wait_event, left(query, 60) FROM pg_stat_activity'", "what each waits for")
}

// latencySettings are settings that bear on latency.
var latencySettings = []string{"shared_buffers", "synchronous_commit", "max_connections",
	"work_mem", "fsync", "max_wal_size", "checkpoint_timeout", "effective_io_concurrency", "jit", "huge_pages"}

func readSettings(r *result, t *sqlTable) {
	for _, row := range t.rows {
		if name := valueOf(row, "name"); slices.Contains(latencySettings, name) && len(r.Figures) < 3 {
			r.figure(strings.TrimSpace(fmt.Sprintf("%s = %s %s", name,
				short(valueOf(row, "setting")), valueOf(row, "unit"))))
		}
	}
	if len(r.Figures) == 0 {
		r.figure(fmt.Sprintf("%d settings", len(t.rows)))
	}
	r.Means = "Settings: they cost nobody time by themselves."
}

// statusSays are what of SHOW STATUS says something at one glance. Most others count since the
// start.
var statusSays = []struct{ name, say string }{
	{"threads_running", "connections at work now"},
	{"threads_connected", "connections"},
	{"innodb_row_lock_current_waits", "row locks waited for now"},
	{"innodb_row_lock_time_avg", "ms for a row lock in the mean, since the start"},
	{"innodb_buffer_pool_wait_free", "waits for a free page of the buffer pool, since the start"},
	{"innodb_log_waits", "waits because the log buffer was too small, since the start"},
	{"slow_queries", "slow statements since the start"},
}

// settingWords are ends and starts of names that MySQL gives to settings and to no counter.
var settingWords = pattern.New(`_(?:time|timeout|size|file|dir|log|level|mode|format|enabled|limit|instances|capacity|method|type|version|path|isolation|commit|threads|port|charset|engine|queries_not_using_indexes|connections|ratio)$|^(?:max_|min_|log_|sql_|have_|version|character_set|default_|optimizer_|tmp_|thread_cache)`)

// counterWords are names of counters that end like settings.
var counterWords = pattern.New(`^(?:com_|handler_|select_|sort_|innodb_(?:row_lock|rows|data|pages|buffer_pool_(?:read|write|pages|wait))|threads_|created_|opened?_|qcache_|key_|table_(?:locks|open_cache_)|bytes_|aborted_|ssl_|performance_|max_used_)`)

// settingsOf are the names where all are of settings, sorted; nil where one may be a counter.
func settingsOf(values map[string]string) []string {
	for name := range values {
		if !settingWords.MatchString(name) || counterWords.MatchString(name) {
			return nil
		}
	}
	return slices.Sorted(maps.Keys(values))
}

func readStatus(r *result, t *sqlTable) {
	values := map[string]string{}
	for _, row := range t.rows {
		name := strings.ToLower(row["variable_name"])
		if _, seen := values[name]; !seen {
			values[name] = row["value"]
		}
	}
	for _, s := range statusSays {
		v, ok := number(values[s.name])
		if ok && values[s.name] != "" && (v > 0 || s.name == "threads_running") {
			r.figure(count(v) + " " + s.say)
		}
	}
	if settings := settingsOf(values); len(settings) > 0 {
		r.Title = fmt.Sprintf("SHOW VARIABLES, %s", attach.Plural(len(settings), "setting"))
		for _, name := range settings[:min(3, len(settings))] {
			r.figure(name + " = " + short(values[name]))
		}
		r.Means = "Settings: they cost nobody time by themselves."
		return
	}
	r.Title = fmt.Sprintf("SHOW STATUS or VARIABLES, %s", attach.Plural(len(values), "name"))
	r.Boot = true
	r.Means = "Most of it counts since the server's start: no rate follows from one reading."
	running, _ := number(values["threads_running"])
	if v, _ := number(values["innodb_row_lock_current_waits"]); v >= 2 && v >= running/2 {
		line := count(v) + " statements wait for a row lock at this instant"
		r.Means = ""
		r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	}
	r.next("mysqladmin extended-status -r -i 10 -c 2", "what is added in ten seconds")
}
