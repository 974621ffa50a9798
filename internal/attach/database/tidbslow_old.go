package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbOld is a line of TiDB 2.1's log and of earlier ones, with a whole statement in it.
var tidbOld = pattern.New(`\[(?:SLOW|TIME_\w+)_QUERY\] (cost_time:\S.*)$`)

// tidbOldRest is a part of such a line.
var tidbOldRest = pattern.New(`^(?:process_time|wait_time|backoff_time|request_count|total_keys|processed_keys|prewrite_time|commit_time|write_keys|succ|con|user|txn_start_ts|database|table_ids|index_ids|sql):\S`)

// oldNames are names of TiDB 2.1's fields, as the slow log has them since.
var oldNames = map[string]string{"cost_time": "Query_time", "process_time": "Process_time",
	"wait_time": "Wait_time", "backoff_time": "Backoff_time",
	"request_count": "Request_count", "total_keys": "Total_keys", "processed_keys": "Process_keys",
	"prewrite_time": "Prewrite_time", "commit_time": "Commit_time",
	"get_commit_ts_time": "Get_commit_ts_time", "local_latch_wait_time": "Local_latch_wait_time",
	"resolve_lock_time":   "Resolve_lock_time",
	"commit_backoff_time": "Commit_backoff_time", "write_keys": "Write_keys",
	"succ": "Succ", "write_size": "Write_size", "prewrite_region": "Prewrite_region", "txn_retry": "Txn_retry"}

// oldLine marks a statement of such a line, which has all that the log says of it.
const oldLine = "in a line of TiDB 2.1"

func oldFields(text string) entry {
	e := entry{oldLine: "true"}
	if text, _, _ = strings.Cut(text, " sql:"); strings.HasPrefix(text, "sql:") {
		return e
	}
	for _, f := range strings.Fields(text) {
		name, value, _ := strings.Cut(f, ":")
		if known := oldNames[name]; known != "" {
			e[known] = value
		}
	}
	return e
}

// ended says that a statement failed, or that TiDB itself sent it; "": neither.
func (e entry) ended() string {
	switch {
	case e["Succ"] == "false":
		return "it ended with an error, or was ended (Succ: false)"
	case e["Is_internal"] == "true":
		return "it is a statement of TiDB's own (Is_internal: true)"
	}
	return ""
}

// mostOthers is up to how many statements are told beside the slowest.
const mostOthers = 2

// othersSlow tells the statements beside the slowest, where they are few: each is one of its own.
func othersSlow(r *result, list []entry, slowest entry) {
	var lines []string
	told := false
	for _, e := range list {
		q := e.s("Query_time")
		if !told && q == slowest.s("Query_time") {
			told = true
			continue
		}
		if q == 0 {
			continue
		}
		var parts []string
		for _, name := range []string{"Process_time", "Wait_time", "Backoff_time", "Prewrite_time", "Commit_time"} {
			if v := e.s(name); v >= q/10 {
				parts = append(parts, name+" "+dur(v))
			}
		}
		if keys := e.n("Total_keys"); keys > 0 {
			parts = append(parts, count(keys)+" keys scanned")
		}
		line := "another statement: " + dur(q)
		if len(parts) > 0 {
			line += fmt.Sprintf(" (%s)", strings.Join(parts, ", "))
		}
		lines = append(lines, line)
	}
	if len(lines) <= mostOthers {
		r.Figures = append(r.Figures, lines...)
	}
}
