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

var clockTime = pattern.New(`^(\d{1,3}):(\d\d):(\d\d(?:\.\d+)?)$`)

// clock reads a duration as MySQL's type TIME has it, in s; without colons it is a number of them.
func clock(s string) float64 {
	m := clockTime.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		v, _ := number(s)
		return v
	}
	h, _ := number(m[1])
	minutes, _ := number(m[2])
	s60, _ := number(m[3])
	return 3600*h + 60*minutes + s60
}

// readSlowTable reads rows of mysql.slow_log.
func readSlowTable(r *result, t *sqlTable) {
	var worst map[string]string
	for _, row := range t.rows {
		if worst == nil || clock(row["query_time"]) > clock(worst["query_time"]) {
			worst = row
		}
	}
	if worst == nil {
		return
	}
	took, lock := clock(worst["query_time"]), clock(worst["lock_time"])
	examined, sent := num(worst, "rows_examined"), num(worst, "rows_sent")
	text := valueOf(worst, "sql_text", "info", "query")
	line := fmt.Sprintf("the slowest: %s, %s rows examined, %s sent", dur(took), count(examined), count(sent))
	if text != "" {
		line += ": " + short(text)
	}
	r.figure(line)
	r.fact(FactStatement, took*1e3, "")
	r.Not = "Only statements above long_query_time are in it, and not whether rows came from memory or from the disk."
	switch {
	case sleeps(text, took):
		r.Means = "The statement calls SLEEP or BENCHMARK: it takes the time on purpose."
	case lock >= 0.5*took && took >= quick:
		line := fmt.Sprintf("Lock_time %s of %s", dur(lock), dur(took))
		r.figure(line)
		r.outside("a lock in the database's own tables", line, ratio(lock, took))
	case examined >= manyExamined && sent < examined/10 && !slowWrites.MatchString(text) && examined >= slowScan*took:
		r.outside("the plan: it examines many rows", line, 1)
		r.next("EXPLAIN the statement", "shows what it reads, and by which index")
	default:
		r.Means = "What the slowest statement waited for, no column says."
		r.next("EXPLAIN ANALYZE the statement (MariaDB: ANALYZE)", "runs it and has actual rows and times")
	}
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
