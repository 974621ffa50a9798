package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readHouseQueries reads rows of ClickHouse's query_log: how long, and how much was moved.
func readHouseQueries(r *result, t *sqlTable) {
	longest, worst := -1.0, map[string]string(nil)
	for _, row := range t.rows {
		if ms, ok := number(row["query_duration_ms"]); ok && ms > longest {
			longest, worst = ms, row
		}
	}
	if worst == nil {
		r.Means = "How long a query took is not in these rows."
		return
	}
	line := "the longest took " + dur(longest/1e3)
	for _, c := range []struct{ rows, bytes, what string }{{"read_rows", "read_bytes", "read"},
		{"written_rows", "written_bytes", "written"}} {
		if n := num(worst, c.rows); n > 0 {
			line += fmt.Sprintf("; %s rows, %s %s", count(n), bytesText(num(worst, c.bytes)), c.what)
		}
	}
	r.figure(line)
	if m := num(worst, "memory_usage"); m > 0 {
		r.figure("memory of it at most: " + bytesText(m))
	}
	r.Means = "A row says how long the query took, and not for what: the client's data, CPU, the disk and merges are not told apart."
	r.Not = "That the disk is slow: bytes over time are no speed of a disk. The memory is what it used, and no lack."
	r.next("SELECT ProfileEvents FROM system.query_log WHERE query_id = 'ID'",
		"what it waited for: OSIOWaitMicroseconds, OSCPUWaitMicroseconds, NetworkReceiveElapsedMicroseconds")
}

// heroFelt is a mean in s that a request feels.
const heroFelt = 0.1

var heroTime = pattern.New(`^(\d[\d,]*) min(?: ([\d.]+)%)?$`)

// readPgHero reads PgHero's list of statements, as people copy it from its page.
func readPgHero(r *result, t *sqlTable) {
	shown, slow := false, false
	for _, row := range t.rows {
		m := heroTime.FindStringSubmatch(row["total time"])
		mean, ok := seconds(strings.ReplaceAll(row["average time"], ",", ""))
		slow = slow || ok && mean >= heroFelt
		if m == nil || !ok || shown {
			continue
		}
		shown = true
		calls := strings.TrimRightFunc(row["calls"],
			func(c rune) bool { return (c < '0' || c > '9') && c != ',' }) // the user stands behind it
		line := fmt.Sprintf("the first: %s in the mean, %s calls", dur(mean), leadingNumber(calls))
		if m[2] != "" {
			line += ", " + m[2] + " % of the time of all statements"
		}
		r.figure(line)
	}
	r.Means = "PgHero lists what it calls slow by a limit of its own; none of these takes long in the mean."
	if slow {
		r.Means = "These statements take long in the mean; what they wait for is not in it."
		r.next("EXPLAIN (ANALYZE, BUFFERS) of the first statement", "where its time goes")
	}
	r.Not = "Which calls were slow: a mean over all since the statistics were reset."
	if !shown {
		r.Means = "Its rows cannot be read."
	}
}

// leadingNumber is the digits at the start: a page's cells may run into each other.
func leadingNumber(s string) string {
	end := strings.IndexFunc(s, func(c rune) bool { return (c < '0' || c > '9') && c != ',' })
	if end < 0 {
		return s
	}
	return s[:end]
}
