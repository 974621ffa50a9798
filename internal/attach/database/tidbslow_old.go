package database

import (
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
	"write_size": "Write_size", "prewrite_region": "Prewrite_region", "txn_retry": "Txn_retry"}

func oldFields(text string) entry {
	e := entry{}
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
