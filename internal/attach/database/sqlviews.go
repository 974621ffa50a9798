package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
)

// sqlViews are tables of which it is known what they say. One that has more columns in its list
// stands before one that has less.
var sqlViews = []sqlView{
	{"lock waits of a database", []string{"waiting_pid blocking_pid", "blocked_pid blocking_pid",
		"pid pg_blocking_pids", "waiting_trx_id blocking_trx_id",
		"requesting_trx_id blocking_trx_id", "requesting_engine_transaction_id blocking_engine_transaction_id",
		"blocked_pid blocking_statement", "key trx_id current_holding_trx_id"}, readBlocked},
	{"TiDB deadlocks", []string{"deadlock_id try_lock_trx_id", "deadlock_id trx_holding_lock"}, readTiDBDeadlocks},
	{"TiDB TRACE", []string{"operation startts duration"}, readTiDBTrace},
	{"TiDB transactions", []string{"start_time current_sql_digest state",
		"start_time current_sql_digest_text state", "id start_time waiting_start_time"}, readTiDBTrx},
	{"innodb_trx", []string{"trx_id trx_state trx_started"}, readTrx},
	{"locks of performance_schema", []string{"object_type lock_type lock_status",
		"engine lock_mode lock_status", "engine_transaction_id lock_status",
		"lock_mode lock_status lock_data"}, readPSLocks},
	{"state of a replica", []string{"slave_io_running slave_sql_running", "replica_io_running replica_sql_running",
		"slave_sql_running seconds_behind_master"}, readReplica},
	{"pg_stat_replication", []string{"application_name state replay_lag", "pid state sent_lsn",
		"application_name state replay_lsn", "client_addr state replay_lag"}, readReplicas},
	{"ProxySQL's digests", []string{"digest_text count_star sum_time"},
		readStatements(1e-6, "since ProxySQL's counters were reset", "digest_text", "count_star", "sum_time", "max_time")},
	{"performance_schema statements", []string{"digest_text count_star sum_timer_wait",
		"digest_text count_star avg_timer_wait", "digest_text sum_timer_wait"},
		readStatements(1e-12, sinceReset, "digest_text", "count_star", "sum_timer_wait", "max_timer_wait")},
	{"TiDB statements summary", []string{"digest_text exec_count avg_latency",
		"digest_text avg_latency", "digest_text sum_latency"},
		readStatements(1e-9, inWindow, "digest_text", "exec_count", "sum_latency", "max_latency")},
	{"sys.statement_analysis", []string{"query exec_count total_latency",
		"query exec_count avg_latency"}, readStatements(0, sinceReset, "query", "exec_count", "total_latency", "max_latency")},
	{"pg_stat_statements", []string{"query calls total_exec_time", "query calls mean_exec_time",
		"query calls total_time", "query calls mean_time"},
		readStatements(1e-3, sinceReset, "query", "calls", "total_exec_time total_time", "max_exec_time max_time")},
	{"TiDB slow queries", []string{"query_time process_time", "query_time wait_time",
		"query_time txn_start_ts", "query_time conn_id", "query_time plan_digest",
		"query_time parse_time", "time query_time query", "query_time cop_time",
		"query_time request_count"}, readSlowRows},
	{"MySQL's slow log as a table", []string{"query_time lock_time rows_examined",
		"start_time query_time rows_examined"}, readSlowTable},
	{"performance_schema waits", []string{"event_name sum_timer_wait", "event_name timer_wait",
		"event_name avg_timer_wait"}, readPSWaits(1e-12, "event_name", "count_star", "sum_timer_wait timer_wait")},
	{"sys waits", []string{"events total_latency", "event total_latency"},
		readPSWaits(0, "events event", "total", "total_latency")},
	{"sys I/O by file", []string{"file total_latency", "event_name io_latency",
		"thread total_latency io_misc_latency"}, readPSWaits(0, "file event_name thread",
		"total ios", "total_latency io_latency")},
	{"sys summary", []string{"statements statement_latency", "user statement_latency"}, readSummary},
	{"ClickHouse query_log", []string{"query_duration_ms read_rows", "query_duration_ms query"}, readHouseQueries},
	{"PgHero's queries", []string{"total_time average_time calls"}, readPgHero},
	{"PgBouncer pools", []string{"cl_active cl_waiting sv_active"}, readBouncer},
	{"pg_stat_database", []string{"datname xact_commit blks_read", "datname numbackends xact_commit"}, readPGDatabase},
	{"pg_stat_bgwriter", []string{"checkpoints_timed buffers_clean", "buffers_clean buffers_alloc",
		"num_timed num_requested write_time"}, readBgwriter},
	{"pg_stat_user_tables", []string{"relname n_live_tup n_dead_tup",
		"relname seq_scan seq_tup_read", "relname n_dead_tup", "n_live_tup n_dead_tup"}, readPGTables},
	{"pg_stat_activity without waits", []string{"pid state query", "pid usename query",
		"procpid current_query"}, readPlainActivity},
	{"database settings", []string{"name setting unit", "name setting description", "name setting"}, readSettings},
	{"SQL Server's sums of waits", []string{"wait_type waiting_tasks_count wait_time_ms"}, readMSStats},
	{"requests of SQL Server", []string{"session_id wait_type wait_time",
		"session_id wait_type wait_duration_ms"}, readMSRequests},
	{"SHOW STATUS", []string{"variable_name value"}, readStatus},
}

// amount reads a time: a number in units of unit seconds, or as the sys schema writes it.
func amount(s string, unit float64) float64 {
	if unit > 0 {
		v, _ := number(s)
		return v * unit
	}
	f := strings.Fields(s)
	if len(f) == 2 {
		v, ok := number(f[0])
		scale, known := sysUnits[f[1]]
		if ok && known {
			return v * scale
		}
	}
	if d, err := time.Parse(time.TimeOnly, s); err == nil { // more than an hour
		return float64(d.Hour()*3600 + d.Minute()*60 + d.Second())
	}
	v, _ := number(s)
	return v * 1e-12 // sys.x$ views
}

var sysUnits = map[string]float64{"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3,
	"s": 1, "m": 60, "h": 3600, "d": 86400}

// short cuts a statement for a figure.
func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

func readBlocked(r *result, t *sqlTable) {
	oldest := 0.0
	waiters, holders := map[string]bool{}, map[string]int{}
	for i, row := range t.rows {
		holder := valueOf(row, "blocking_pid", "pg_blocking_pids", "blocking_trx_id",
			"blocking_engine_transaction_id", "current_holding_trx_id")
		if holder == "" || holder == "{}" {
			continue
		}
		// One that waits for several holders has several rows.
		waiters[cmp.Or(valueOf(row, "waiting_pid", "blocked_pid", "waiting_trx_id", "requesting_trx_id",
			"requesting_engine_transaction_id", "trx_id", "pid"), fmt.Sprint("row ", i))] = true
		holders[holder]++
		oldest = max(oldest, num(row, "wait_age_secs"))
	}
	who, n := "", len(waiters)
	for _, h := range attach.Largest(holders) {
		if who == "" || waiters[who] && !waiters[h] { // one that waits itself is no end of the chain
			who = h
		}
	}
	if n == 0 {
		r.figure("nobody is blocked in it")
		r.Means = "No transaction waits for another one at this instant."
		return
	}
	line := fmt.Sprintf("%d wait for a lock that another transaction holds; holder: %s", n, short(who))
	if oldest > 0 {
		line += fmt.Sprintf(", the longest wait %s so far", dur(oldest))
	}
	r.figure(line)
	r.Glance = true
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.Not = "The holder need not be slow itself: a client that does nothing with a transaction open looks the same."
	r.next("look up the holder in the list of connections", "what it does, and how long its transaction is open")
}

func readTrx(r *result, t *sqlTable) {
	waits, long, query := 0, "", ""
	for _, row := range t.rows {
		if strings.HasPrefix(valueOf(row, "trx_state"), "LOCK WAIT") {
			waits++
			query = valueOf(row, "trx_query")
		}
		if s := valueOf(row, "trx_started"); long == "" || s < long && s != "" {
			long = s
		}
	}
	r.Title = fmt.Sprintf("innodb_trx, %d transactions", len(t.rows))
	r.Glance = true
	if long != "" {
		r.figure("the oldest transaction started at " + short(long))
	}
	if waits == 0 {
		r.Means = "No transaction waits for a lock at this instant."
		return
	}
	line := fmt.Sprintf("%d of %d transactions wait for a row lock", waits, len(t.rows))
	if query != "" {
		line += ": " + short(query)
	}
	r.figure(line)
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.next("SELECT * FROM sys.innodb_lock_waits", "names who blocks whom")
}

// lockHolder says who waits for a record that another transaction was granted; "": the table does
// not show that.
func lockHolder(t *sqlTable) string {
	place := func(row map[string]string) string {
		return row["object_name"] + " " + row["index_name"] + " " + row["lock_data"]
	}
	trx := func(row map[string]string) string { return valueOf(row, "engine_transaction_id", "thread_id") }
	for _, w := range t.rows {
		if w["lock_status"] != "WAITING" || w["lock_data"] == "" || trx(w) == "" {
			continue
		}
		for _, h := range t.rows {
			if h["lock_status"] == "GRANTED" && place(h) == place(w) && trx(h) != trx(w) && trx(h) != "" {
				return fmt.Sprintf("transaction %s waits for a record of %s (index %s) that transaction %s has", trx(w), w["object_name"], w["index_name"], trx(h))
			}
		}
	}
	return ""
}

func readPSLocks(r *result, t *sqlTable) {
	waits := 0
	for _, row := range t.rows {
		if s := valueOf(row, "lock_status"); s == "PENDING" || s == "WAITING" {
			waits++
		}
	}
	r.Glance = true
	line := fmt.Sprintf("%d of %d locks are waited for", waits, len(t.rows))
	r.figure(line)
	if held := lockHolder(t); held != "" {
		r.figure(held)
	}
	r.Means = "No lock is waited for at this instant."
	if waits > 0 {
		r.Means = ""
		r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
		r.next("SELECT * FROM sys.schema_table_lock_waits; SELECT * FROM sys.innodb_lock_waits",
			"names who blocks whom")
	}
}

// sinceReset is for how long most counters of statements count, and inWindow is TiDB's.
const (
	sinceReset = "since its counters were reset"
	inWindow   = "in the time that the summary is of, which is 30 min by default"
)

// readStatements reads sums by statement; unit is of the times, in seconds. Names are lists of
// columns of which the first that is there counts.
func readStatements(unit float64, since, text, calls, total, longest string) func(*result, *sqlTable) {
	return func(r *result, t *sqlTable) {
		type use struct {
			text       string
			calls, sum float64
			most       float64
		}
		var all []use
		sum := 0.0
		for _, row := range t.rows {
			u := use{text: valueOf(row, strings.Fields(text)...), calls: num(row, calls),
				sum:  amount(valueOf(row, strings.Fields(total)...), unit),
				most: amount(valueOf(row, strings.Fields(longest)...), unit)}
			if mean := amount(valueOf(row, "mean_exec_time", "mean_time", "avg_latency",
				"avg_timer_wait"), unit); u.sum == 0 {
				u.sum = mean * max(1, u.calls)
			}
			sum += u.sum
			all = append(all, u)
		}
		slices.SortStableFunc(all, func(a, b use) int { return cmp.Compare(b.sum, a.sum) })
		for _, u := range all[:min(2, len(all))] {
			s := fmt.Sprintf("%s in all (%s of what is listed)", dur(u.sum), percent(u.sum, sum))
			if u.calls > 0 {
				s += fmt.Sprintf(", %s calls of %s in the mean", count(u.calls), dur(u.sum/u.calls))
			}
			if u.most > 0 {
				s += ", longest " + dur(u.most)
			}
			r.figure(s + ": " + short(u.text))
		}
		r.Boot = true
		r.Means = "It names the statements that took most of the server's time " + since + "; the time may be waits for locks or disks."
		r.Not = "These are sums " + since + ": a mean hides the slow calls, and nothing says that it is so now."
		r.next("the same query twice, some minutes apart", "what was added: calls and time of now")
	}
}

// readSlowRows reads TiDB's slow queries as rows: the parts of the slowest one's time.
func readSlowRows(r *result, t *sqlTable) {
	var worst map[string]string
	for _, row := range t.rows {
		if worst == nil || num(row, "query_time") > num(worst, "query_time") {
			worst = row
		}
	}
	if worst == nil {
		return
	}
	total := num(worst, "query_time")
	r.Title = fmt.Sprintf("TiDB slow queries, %d, the slowest %s", len(t.rows), dur(total))
	r.fact(FactStatement, total*1e3, "")
	r.figure(fmt.Sprintf("%s: %s", dur(total), short(valueOf(worst, "query", "digest_text"))))
	type part struct {
		name string
		s    float64
		sum  bool // over tasks that ran beside each other: it may exceed the statement's own time
	}
	parts := []part{{"parsing", num(worst, "parse_time"), false},
		{"making the plan (Compile_time)", num(worst, "compile_time"), false},
		{"waits for other transactions' locks (LockKeys_time)", num(worst, "lockkeys_time"), false},
		{"the commit", num(worst, "prewrite_time") + num(worst, "commit_time"), false},
		{"tasks in TiKV (Process_time, a sum over tasks)", num(worst, "process_time"), true},
		{"waits of tasks in TiKV's queue (Wait_time, a sum over tasks)", num(worst, "wait_time"), true},
		{"retries (Backoff_time, a sum over tasks)", num(worst, "backoff_time"), true}}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.s, a.s) })
	if parts[0].s > 0 {
		r.figure(fmt.Sprintf("most of what is counted: %s, %s", dur(parts[0].s), parts[0].name))
	}
	if n := num(worst, "total_keys"); n > 0 {
		r.figure(fmt.Sprintf("%s keys read in %s requests", count(n), count(num(worst, "request_count"))))
	}
	r.Not = "Times of tasks add up over tasks which run at the same time: they may be more than the statement took."
	tasks := max(num(worst, "num_cop_tasks"), num(worst, "request_count"))
	most := parts[0]
	switch {
	case total > 0 && (!most.sum && most.s >= total/2 || most.sum && muchOf(most.s, tasks, total)):
		r.outside(parts[0].name, fmt.Sprintf("%s of %s", dur(parts[0].s), dur(total)), 0)
	default:
		r.Means = "Most of the statement's time is in no column here: between the server's parts, or in columns that were left out."
		r.next("the line of the slow log of this statement, with its plan",
			"which operator took the time, and what was lost between client and TiKV")
	}
}

// idleWait reports whether a wait is a thread that has nothing to do.
func idleWait(name string) bool {
	if name == "idle" {
		return true
	}
	for _, s := range []string{"/socket/sql/server_", "COND_timer", "timer", "SERVICE_THREAD",
		"COND_thread_cache", "COND_manager", "COND_queue", "event_scheduler", "io_handler",
		"COND_control", "COND_checkpoint"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

func readPSWaits(unit float64, name, calls, total string) func(*result, *sqlTable) {
	return func(r *result, t *sqlTable) {
		if len(t.rows) > 0 && valueOf(t.rows[0], "event_id", "thread_id") != "" &&
			valueOf(t.rows[0], "sum_timer_wait", "count_star") == "" {
			readSingleWaits(r, t)
			return
		}
		by, times := map[string]float64{}, map[string]float64{}
		idle := 0.0
		for _, row := range t.rows {
			n, s := valueOf(row, strings.Fields(name)...), amount(valueOf(row, strings.Fields(total)...), unit)
			if idleWait(n) {
				idle += s
				continue
			}
			by[n] += s
			times[n] += num(row, strings.Fields(calls)...)
		}
		var names []string
		for n := range by {
			names = append(names, n)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b)) })
		for _, n := range names[:min(2, len(names))] {
			s := fmt.Sprintf("%s: %s in all", short(n), dur(by[n]))
			if c := times[n]; c > 0 {
				s += fmt.Sprintf(", %s waits of %s in the mean", count(c), dur(by[n]/c))
			}
			r.figure(s)
		}
		if idle > 0 {
			r.figure(dur(idle) + " of waits by idle threads, which are no loss")
		}
		r.Boot = true
		r.Means = "It sums up what threads of the server waited for since its counters were reset, idle threads and background threads included."
		r.Not = "A long sum is no wait of a statement: background threads wait as well, and nothing says that it is so now."
		r.next("the same query twice, some minutes apart", "what was added")
	}
}

// readSingleWaits reads the tables of waits one by one: a row is one wait of one thread.
func readSingleWaits(r *result, t *sqlTable) {
	n, longest, name := 0, 0.0, ""
	for _, row := range t.rows {
		s := amount(valueOf(row, "timer_wait"), 1e-12)
		if event := valueOf(row, "event_name"); !idleWait(event) {
			n++
			if s > longest {
				longest, name = s, event
			}
		}
	}
	if n > 0 {
		r.figure(fmt.Sprintf("%s, the longest %s: %s", attach.Plural(n, "wait"), dur(longest), short(name)))
	}
	r.Means = "Each row is one wait of one thread, of background threads as well: no sum of all that it waited."
	r.Not = "Only the last few waits of each thread are kept."
	r.next("the same query while a statement is slow, with its THREAD_ID", "what that statement waits for")
}

func readSummary(r *result, t *sqlTable) {
	for _, row := range t.rows[:min(2, len(t.rows))] {
		r.figure(fmt.Sprintf("%s: %s statements, %s in all", short(valueOf(row, "host", "user")),
			valueOf(row, "statements"), valueOf(row, "statement_latency")))
	}
	r.Boot = true
	r.Means = "Sums since the counters were reset, by user or host: who keeps the server busy, and not why it is slow."
	r.next("SELECT * FROM sys.statement_analysis LIMIT 5", "which statements took the time")
}
