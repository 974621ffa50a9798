package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbSlow reads TiDB's slow log: whole entries, fragments, or one line of one. The names of its
// fields are those of TiDB's reference, versions 2.1 to 8.5; times are in seconds.
var tidbSlow = &attach.Kind{
	Name:   "TiDB slow log",
	Hints:  []string{": ", "_QUERY] cost_time:"},
	Yields: []string{"MySQL slow log"},
	Claim:  claimTiDBSlow,
	Read:   readTiDBSlow,
}

var (
	slowField = pattern.New(`([A-Z][A-Za-z0-9_]*[a-zA-Z0-9](?:@Host)?): ?`)
	slowLine  = pattern.New(`^\s*(?:# )?([A-Z][A-Za-z_@]*): ?(\S|$)`)
	// bareField are those which may stand without the "# " in front, as in a table's \\G output.
	bareField = pattern.New(`^(Cop_\w+|Preproc_\w+|Rewrite_time|Txn_start_ts|Wait_TS|Query_time|Prewrite_time|Get_commit_ts_time): `)
	// tidbOnly are fields that no other slow log has.
	tidbOnly = pattern.New(`\b(Txn_start_ts|Conn_ID|Cop_(wait|proc|backoff|time|mvcc)\w*|Process_time|Wait_TS|Rewrite_time|Preproc_subqueries\w*|Optimize_time|Parse_time|Compile_time|Prewrite_time|Commit_time|Get_commit_ts_time|Commit_backoff_time|Resolve_lock_time|Local_latch_wait_time|Backoff_(time|total|types|Detail|\w+_total_times?)|KV_total|PD_total|Num_cop_tasks|Exec_retry_(time|count)|Plan_from_cache|Is_internal|Request_count|Mem_max|Write_sql_response_total|Rocksdb_\w+|LockKeys_time|Write_keys|Is(Explicit|Sync|Pessimistic)\w*|Time_queued_by_rc|Request_unit_\w+|Tidb_cpu_time|Tikv_cpu_time|Result_rows|Succ|Plan_digest|Has_more_results|Prewrite_region|Total_keys|Process(?:ed)?_keys)(: )`)
)

func isTiDBLine(text string) bool {
	m := slowLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	if !strings.HasPrefix(text, "# ") && !bareField.MatchString(text) {
		return false
	}
	return tidbOnly.MatchString(text) || m[1] == "Query_time" && !strings.Contains(text, "Lock_time")
}

func claimTiDBSlow(lines []paste.Line) int {
	own, n := 0, 0
	for i, l := range lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case i > 0 && l.Command != "":
			return tidbDone(n, own)
		case strings.Contains(text, "Lock_time:") && strings.Contains(text, "Rows_sent"):
			return tidbDone(n, own)
		case isTiDBLine(text), tidbOld.MatchString(text):
			own++
			n = i + 1
		case own > 0 && n == i && tidbOldRest.MatchString(text):
			n = i + 1
		case strings.HasPrefix(text, "# ") && slowLine.MatchString(text):
			n = i + 1
		case i == 0:
			return 0
		case brokenSlow(lines, i):
			n = i + 1
		case text == "..." || text == "…" || strings.HasPrefix(text, "***") && strings.Contains(text, " row "):
		case text == "" || own == 0:
			if i-n > 3 {
				return tidbDone(n, own)
			}
		case isSQL(text) && n == i:
			n = i + 1
		default:
			return tidbDone(n, own)
		}
	}
	return tidbDone(n, own)
}

func tidbDone(n, own int) int {
	return attach.ClaimIf(own > 0, n)
}

// isSQL reports whether a line is the statement below an entry.
func isSQL(text string) bool {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimRight(text, ";")), " ")
	return slices.Contains([]string{"select", "insert", "update", "delete", "replace", "use", "set",
		"commit", "begin", "with", "analyze", "create", "alter",
		"drop", "load", "execute", "explain", "from", "where", "order", "group", "limit", "and",
		"or", "rollback", "truncate", "on", "left", "join", "values"}, word) &&
		(strings.Contains(text, " ") || strings.HasSuffix(text, ";") || word == "select")
}

// entry is the fields of one statement.
type entry map[string]string

func (e entry) s(names ...string) float64 {
	for _, name := range names {
		if v, ok := seconds(firstWord(e[name])); ok && e[name] != "" {
			return v
		}
	}
	return 0
}

// n is a count among the fields: durations are bounded, counts of keys are not.
func (e entry) n(names ...string) float64 {
	for _, name := range names {
		if v, ok := number(firstWord(e[name])); ok && v >= 0 {
			return v
		}
	}
	return 0
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return w
}

func readTiDBSlow(p *attach.Part) attach.Reading {
	var list []entry
	e := entry{}
	for _, l := range unbrokenSlow(p.Lines) {
		text := strings.TrimSpace(l.Text)
		if m := tidbOld.FindStringSubmatch(text); m != nil { // a line has a whole statement
			if len(e) > 0 {
				list = append(list, e)
			}
			e = oldFields(m[1])
			continue
		}
		if tidbOldRest.MatchString(text) { // of one that a page broke
			for k, v := range oldFields(text) {
				e[k] = cmp.Or(e[k], v)
			}
			continue
		}
		if !strings.HasPrefix(text, "# ") && !slowLine.MatchString(text) {
			if isSQL(text) && !strings.HasPrefix(strings.ToLower(text), "use ") && len(e["statement"]) < 1<<12 {
				e["statement"] += text + " "
			}
			continue
		}
		fields := slowFields(strings.TrimPrefix(text, "# "))
		if _, again := fields["Time"]; again && len(e) > 0 || fields["Query_time"] != "" && e["Query_time"] != "" {
			list = append(list, e)
			e = entry{}
		}
		for k, v := range fields {
			e[k] = v
		}
	}
	list = append(list, e)
	slowest := slices.MaxFunc(list, func(a, b entry) int { return cmp.Compare(a.s("Query_time"), b.s("Query_time")) })
	r := &result{}
	q := slowest.s("Query_time")
	r.Title = "TiDB slow log, " + attach.Plural(len(list), "statement")
	if q > 0 {
		r.Title += ", the slowest took " + dur(q)
		r.fact(FactStatement, q*1e3, "")
	}
	if q > 0 && q < quick {
		slowest.plain(r, q)
		r.Means = "The statement took " + dur(q) + ": it is in the log, and not slow."
		if len(list) > 1 {
			r.Means = fmt.Sprintf("Each of these statements took less than %s: they are in the log, and not slow.", dur(quick))
		}
		r.Next = nil
		return r.done(attach.Healthy)
	}
	slowest.judge(r, q)
	slowest.plan(r, q)
	if len(r.Signs) == 0 && q > 0 {
		slowest.many(r, q)
	} else if len(r.Figures) == 0 {
		if keys := slowest.n("Total_keys"); keys > 0 && q == 0 {
			r.figure(fmt.Sprintf("%s keys scanned for %s processed", count(keys),
				count(slowest.n("Process_keys", "Processed_keys"))))
		}
		slowest.plain(r, q)
	}
	r.second(slowest.readFor())
	r.second(slowest.ended())
	othersSlow(r, list, slowest)
	if r.Not == "" {
		r.Not = "The log has only statements above its threshold: it says nothing of the others."
	}
	return r.done(attach.CannotTell)
}

// slowFields takes a line apart. "Cop_wait: Avg_time: 1ms" has a name before the names.
func slowFields(text string) entry {
	e := entry{}
	at := slowField.FindAllStringSubmatchIndex(text, -1)
	prefix := ""
	for i, m := range at {
		if m[0] > 0 && text[m[0]-1] != ' ' {
			continue
		}
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		name, value := text[m[2]:m[3]], strings.TrimSpace(text[m[1]:end])
		if value == "" && (name == "Cop_wait" || name == "Cop_proc" || name == "Cop_process") {
			prefix = strings.TrimSuffix(name, "ess") + "_"
			continue
		}
		if prefix != "" {
			name = prefix + strings.TrimSuffix(strings.ToLower(name), "_time")
			name = strings.Replace(name, "_max_addr", "_addr", 1)
		}
		if _, again := e[name]; !again {
			e[name] = value
		}
	}
	return e
}

// phase is a part of a statement's time with the words for where it is.
type phase struct {
	s     float64
	name  string
	where string
}

// judge says where the statement's time is: in its own phases first, then in TiKV's.
func (e entry) judge(r *result, q float64) {
	e.backoff(r, q)
	phases := []phase{
		{e.s("Preproc_subqueries_time"), "Preproc_subqueries_time",
			"a subquery that TiDB runs early, while it plans the statement"},
		{e.s("Exec_retry_time"), "Exec_retry_time",
			"retries of the statement after conflicts with locks of other transactions"},
		{e.s("LockKeys_time"), "LockKeys_time", "a lock in the database's own tables, which another transaction holds"},
		{e.s("Resolve_lock_time"), "Resolve_lock_time",
			"a lock in the database's own tables, which another transaction left"},
		{e.s("Local_latch_wait_time"), "Local_latch_wait_time",
			"local latches of transactions that write the same keys"},
		{e.s("Wait_TS"), "Wait_TS", "the wait for a timestamp of PD, with the way there and TiDB's own scheduling"},
		{e.s("Get_commit_ts_time"), "Get_commit_ts_time", "the wait for a commit timestamp of PD"},
		{e.s("Time_queued_by_rc"), "Time_queued_by_rc",
			"resource control, which lets the statement wait for its group's units"},
		{e.s("Prewrite_time"), "Prewrite_time", "prewrite, the first phase of the commit in TiKV"},
		{e.s("Commit_time"), "Commit_time", "the second phase of the commit in TiKV"},
		{e.s("Write_sql_response_total"), "Write_sql_response_total",
			"sending the result: the client reads it slowly, or the way to it is slow"},
		{e.s("Parse_time"), "Parse_time", "parsing the statement"},
		{e.s("Optimize_time"), "Optimize_time", "planning the statement (the optimizer)"},
		{e.s("Compile_time"), "Compile_time", "planning the statement (the optimizer)"},
		{e.s("Rewrite_time"), "Rewrite_time", "rewriting the statement before it is planned"},
	}
	for _, p := range phases {
		if p.name == "Exec_retry_time" && q > 0 && p.s > q {
			continue // of an entry which somebody put together: a part is not longer than the whole
		}
		share := 0.5
		if p.name == "LockKeys_time" {
			share = 0.3 // it is a wait as a whole
		}
		if p.s < 0.01 || q > 0 && p.s < share*q || q == 0 && p.s < 0.1 || len(r.Signs) > 0 {
			continue
		}
		line := fmt.Sprintf("%s %s", p.name, dur(p.s))
		if q > 0 {
			line += fmt.Sprintf(" of the statement's %s (%s)", dur(q), percent(p.s, q))
		}
		if p.name == "Preproc_subqueries_time" && e["Rewrite_time"] != "" {
			line += fmt.Sprintf("; Rewrite_time %s holds it", dur(e.s("Rewrite_time")))
		}
		r.figure(line)
		if p.name == "Prewrite_time" || p.name == "Commit_time" {
			p.where += e.retried(r)
		}
		if q > 0 && p.s < 0.5*q {
			r.Means = fmt.Sprintf("The largest part that is named is %s: %s.", percent(p.s, q), p.where)
		}
		r.outside(p.where, line, ratio(p.s, q))
		switch {
		case p.name == "Prewrite_time" || p.name == "Commit_time":
			e.slowestRPC(r, p.name, p.s)
		case p.name == "LockKeys_time":
			r.next("SELECT * FROM information_schema.data_lock_waits", "names the transaction that holds the lock, while it waits")
		case !e.large():
			nextOfPhase(r, p.name)
		}
	}
	e.written(r)
	e.pool(r, q)
	e.process(r, q)
	e.requests(r, q)
}

// nextOfPhase says what to ask where a phase outside the plan has the time, or else the plan.
func nextOfPhase(r *result, name string) {
	switch name {
	case "Wait_TS", "Get_commit_ts_time":
		r.next("whystall record --pid $(pidof tidb-server); the same with $(pidof pd-server) on the leader's host",
			"while it happens: whether one of them had no CPU; PD's log says whether its leader changed")
	case "Write_sql_response_total":
		r.next("ss -tnoi 'sport = :4000'", "while it runs: what waits in Send-Q is for the client to read")
	case "Optimize_time", "Compile_time", "Parse_time", "Rewrite_time":
		r.next("EXPLAIN the statement", "shows whether planning alone takes so long; statistics that load at first use make one run long")
	default:
		r.next("EXPLAIN ANALYZE the statement, and each subquery by itself", "shows which part of it takes the time")
	}
}

var rpcDetail = pattern.New(`^\{total: ?([\d.]+(?:[µu]s|ms|s)),.*?\bstore: ?([^\s,}]+)`)

// slowestRPC says how long the slowest request of a commit took, so that it is told from waits
// between the requests.
func (e entry) slowestRPC(r *result, phase string, took float64) {
	field := "Slowest_prewrite_rpc_detail"
	if phase == "Commit_time" {
		field = "Commit_primary_rpc_detail"
	}
	m := rpcDetail.FindStringSubmatch(e[field])
	if m == nil {
		if !e.large() {
			r.next("grep -E 'Slowest_prewrite_rpc_detail|Commit_primary_rpc_detail' tidb-slow.log",
				"tells requests that TiKV took long for from waits between them")
		}
		return
	}
	rpc, _ := seconds(m[1])
	slowestRequest(r, strings.ToLower(strings.TrimSuffix(phase, "_time")), took, rpc, m[2], e[field])
	r.next("whystall record --pid $(pidof tikv-server)"+onHost(m[2]),
		"while it happens: what the threads of its scheduler and raft store wait for")
}

// retried says what a commit waited for before it tried again.
func (e entry) retried(r *result) string {
	list := cmp.Or(e["Prewrite_Backoff_types"], e["Commit_Backoff_types"], e["Backoff_types"])
	kinds := strings.Fields(strings.Trim(list, "[]"))
	b := e.s("Commit_backoff_time")
	if len(kinds) == 0 || b < 0.05 {
		return ""
	}
	n, most := map[string]float64{}, ""
	for _, k := range kinds {
		n[k]++
	}
	names := attach.Largest(n)
	most = names[0]
	line := fmt.Sprintf("backoff in it: %s, %s", dur(b), chiefly(n, ""))
	if strings.HasSuffix(list, "]") { // else the list was cut off
		line += fmt.Sprintf(" (%d of %d)", int(n[most]), len(kinds))
	}
	r.figure(line)
	if movedRegion(most) {
		return ", with retries since regions moved or a TiKV was gone"
	}
	return ", with retries after " + most
}

// written says how much a transaction wrote, where its commit took the time.
func (e entry) written(r *result) {
	if len(r.Signs) == 0 || !e.large() {
		return
	}
	line := "the transaction wrote " + count(e.n("Write_keys")) + " keys"
	if size := e.n("Write_size"); size > 0 {
		line += ", " + bytesText(size)
	}
	if n := e.n("Prewrite_region"); n > 0 {
		line += ", in " + attach.Plural(int(min(n, 1e9)), "region")
	}
	r.figure(line)
	r.next("the same rows in several transactions", "says whether the commit's time follows the number of keys")
}

// large reports whether the commit of many keys took most of the time.
func (e entry) large() bool {
	return e.n("Write_keys") >= 1e4 && max(e.s("Prewrite_time"), e.s("Commit_time")) >= 0.5*e.s("Query_time")
}
