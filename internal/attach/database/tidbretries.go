package database

import (
	"cmp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// tidbRetries is what TiDB logs of transactions that met each other, and of requests which it tried
// again until it gave up.
var tidbRetries = (&spoken{
	name: "TiDB log of retries",
	marks: []string{"[kv:9007]", "rite conflict", "deadlock", "Deadlock found",
		"Lock wait timeout exceeded", ".maxSleep "},
	rules: []late{
		{re: pattern.New(tidbSource + `.*\bbackoffer\.maxSleep (\d+)ms is exceeded`), unit: 1e-3},
		{re: pattern.New(tidbSource + `.*(?:\[kv:9007\]|\b[Ww]rite conflict\b)`)},
		{re: pattern.New(tidbSource + `.*(?:\[kv:1213\]|\bdeadlock, retry statement|\bDeadlock found when)`)},
		{re: pattern.New(tidbSource + `.*(?:\[kv:1205\]|\bLock wait timeout exceeded)`)},
	},
	also: pattern.New(tidbSource + `.*(?:\[retrying\]|retrying txnStartTS|2PC clean up|2PC failed)`),
	tell: tellRetries,
}).kind()

// tidbSource is the place in TiDB's source that each line of its log names.
const tidbSource = `\[(?:session|adapter|2pc|conn|backoff|backoffer|prewrite|pessimistic|txn|retry|lock_resolver|region_request|region_cache|ddl\w*|terror|util|compiler|pipelined_flush)\.go:\d+\]`

var backoffName = pattern.New(`"?(\w+) backoffer\.maxSleep`)

func tellRetries(r *result, s *saidLate) {
	kinds := map[string]float64{}
	n := map[string]int{}
	for _, text := range s.text {
		if m := backoffName.FindStringSubmatch(text); m != nil {
			kinds[m[1]]++
			continue
		}
		switch {
		case strings.Contains(text, "kv:9007"), strings.Contains(text, "rite conflict"):
			n["conflict"]++
		case strings.Contains(text, "eadlock"):
			n["deadlock"]++
		case strings.Contains(text, "Lock wait timeout"):
			n["timeout"]++
		case strings.Contains(text, "[retrying]"):
			n["again"]++
		}
	}
	for _, f := range []struct{ key, text string }{
		{"conflict", "a transaction met what another one had written (write conflict)"},
		{"again", "TiDB ran a transaction again"},
		{"deadlock", "deadlock of transactions"},
		{"timeout", "a transaction gave up waiting for a lock"},
	} {
		if n[f.key] > 0 {
			r.figure(f.text + ": " + times(n[f.key]))
		}
	}
	r.Not = "That the machine is slow: no CPU and no disk is in these lines."
	if names := attach.Largest(kinds); len(names) > 0 {
		line := "TiDB gave up after waits before retries (" + names[0] + ")"
		if len(s.took[0]) > 0 {
			line += ", whose bound of " + dur(s.worst(0)) + " was used up"
		}
		r.figure(line)
		r.outside(cmp.Or(backoffWhere(names[0]), "retries"), line, 0)
		r.next("grep -c '"+names[0]+"' tidb.log", "says when it started, and whether it goes on")
		return
	}
	r.Means = "Transactions wrote or locked the same keys: one waits, or is done again. What that cost is not in these lines."
	if n["timeout"] > 0 {
		r.Means = ""
		r.outside(backoffWhere("lock"), "a transaction gave up waiting for a lock: "+times(n["timeout"]), 0)
	}
	r.next("SELECT * FROM information_schema.data_lock_waits; SELECT * FROM information_schema.deadlocks", "which transactions, and which keys")
}

// backoffWhere says what TiDB waits for before it tries again.
func backoffWhere(kind string) string {
	if movedRegion(kind) {
		return "a stale region cache: TiDB asks for regions where they no longer are, and waits before it asks again"
	}
	switch k := strings.ToLower(kind); {
	case strings.Contains(k, "lock"):
		return "locks in the database's own tables, which other transactions hold"
	case strings.Contains(k, "busy"), strings.Contains(k, "diskfull"):
		return "a TiKV that says that it is busy"
	case strings.Contains(k, "pd"):
		return "requests to PD that failed"
	case strings.Contains(k, "rpc"):
		return "requests to TiKV that failed: the network, or a TiKV that does not answer"
	}
	return "retries after errors"
}

// movedRegion reports whether TiDB asked for a region where it was no longer.
func movedRegion(kind string) bool {
	k := strings.ToLower(kind)
	return strings.Contains(k, "regionmiss") || strings.Contains(k, "updateleader") ||
		strings.Contains(k, "stalecommand") || strings.Contains(k, "regionscheduling")
}
