package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mysqlExplain reads MySQL's EXPLAIN as a table: estimates, and no time.
var mysqlExplain = &attach.Kind{
	Name:    "MySQL EXPLAIN",
	Hints:   []string{"select_type", "+--", ". row *"},
	Claim:   claimExplain,
	Reports: true, // each is of one statement
	Apart:   func(paste.Line) bool { return true },
	Read:    readExplain,
}

// pgLocks reads pg_locks: who has which lock of tables, and who waits.
var pgLocks = &attach.Kind{
	Name:  "pg_locks",
	Hints: []string{"granted"},
	Claim: func(lines []paste.Line) int {
		if !pgLocksHead.MatchString(lines[0].Text) {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" && inTable(lines, n) {
			n++
		}
		if n < len(lines) && pgRows.MatchString(strings.TrimSpace(lines[n].Text)) {
			n++
		}
		if n < 3 {
			return 0
		}
		return n
	},
	Read: readPGLocks,
}

var (
	explainHead = pattern.New(`^\|?\s*id\s*[|\t]\s*select_type\s*[|\t]\s*table\s*[|\t]`)
	pgLocksHead = pattern.New(`\|.*\bmode\b.*\|.*\bgranted\b|\|.*\bgranted\b.*\|.*\bmode\b|^\s*mode\s+\|\s*granted`)
)

func claimExplain(lines []paste.Line) int {
	if innoRow.MatchString(strings.TrimSpace(lines[0].Text)) {
		if t := readTable(lines); t != nil && t.has("id select_type table") {
			return t.lines
		}
		return 0
	}
	i := 0
	if planRule.MatchString(lines[0].Text) && len(lines) > 1 {
		i = 1
	}
	if !explainHead.MatchString(lines[i].Text) {
		return 0
	}
	n := i + 1
	for ; n < len(lines) && lines[n].Command == ""; n++ {
		t := strings.TrimSpace(lines[n].Text)
		if rowsInSet.MatchString(t) {
			return n + 1
		}
		if !inTable(lines, n) && !strings.Contains(t, "\t") {
			break
		}
	}
	return n
}

// cells takes a table's row apart.
func cells(text string) []string {
	sep := "|"
	if !strings.Contains(text, "|") {
		sep = "\t"
	}
	out := strings.Split(strings.Trim(strings.TrimSpace(text), "|"), sep)
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

// explainRows are the rows of a plan, with names of columns in lower case.
func explainRows(lines []paste.Line) (rows []map[string]string) {
	if innoRow.MatchString(strings.TrimSpace(lines[0].Text)) {
		if t := readTable(lines); t != nil {
			return t.rows
		}
		return nil
	}
	var head []string
	for _, l := range lines {
		c := cells(l.Text)
		if explainHead.MatchString(l.Text) {
			head = c
			continue
		}
		row := map[string]string{}
		for i, name := range head[:min(len(head), len(c))] {
			row[strings.ToLower(name)] = c[i]
		}
		if _, ok := number(row["rows"]); ok || row["select_type"] != "" && !noRow(l.Text) {
			rows = append(rows, row)
		}
	}
	return rows
}

// explainSelect is what a plan says of one SELECT of a statement.
type explainSelect struct {
	whole int
	join  float64 // rows to be compared, by the estimates
}

func readExplain(p *attach.Part) attach.Reading {
	r := &result{}
	rows := explainRows(p.Lines)
	selects := map[string]*explainSelect{} // only tables of one SELECT are joined
	most, full, table, ran := 0.0, 0, "", false
	var off map[string]string // the row whose estimate is most wrong
	for _, row := range rows {
		id := row["id"]
		if selects[id] == nil {
			selects[id] = &explainSelect{join: 1}
		}
		s := selects[id]
		v, _ := number(row["rows"])
		s.join = min(s.join*max(1, v), 1e15) // a paste that repeats itself
		if row["type"] == "ALL" {
			full++
			s.whole++
		}
		if v > most {
			most, table = v, row["table"]
		}
		if _, ok := number(row["r_rows"]); ok {
			ran = true
			if off == nil || missed(row) > missed(off) {
				off = row
			}
		}
	}
	r.Title = "MySQL EXPLAIN, " + attach.Plural(len(rows), "table") + ", not run: no times in it"
	r.Not = "It has no time in it, and rows are estimates."
	r.Means = "Estimates only: whether the statement is slow it does not say."
	r.figure(fmt.Sprintf("most rows estimated: %s of %s; %d read whole (type ALL)", count(most), table, full))
	if ran {
		r.Title = "MariaDB ANALYZE of a statement, " + attach.Plural(len(rows), "table") + ", which was run"
		r.Not = "It has no time in it."
		r.Means = "It has the rows that were read beside those that were estimated, and no time."
		if missed(off) >= 10 {
			r.figure(fmt.Sprintf("%s: estimated %s rows, found %s each time", off["table"], off["rows"], off["r_rows"]))
		}
	}
	worst := 0.0
	for _, s := range selects {
		if s.whole > 1 {
			worst = max(worst, s.join)
		}
	}
	if worst >= 1e7 {
		line := fmt.Sprintf("%s rows to be compared, by the estimates", count(worst))
		r.figure(line)
		r.Means = ""
		r.outside("the plan: it joins whole tables", line, 0)
	}
	r.next("EXPLAIN ANALYZE the statement (MariaDB: ANALYZE FORMAT=JSON)", "runs it and has actual rows and times")
	return r.done(attach.CannotTell)
}

// missed is how many times more rows of a table were found than estimated, or fewer.
func missed(row map[string]string) float64 {
	est, ok := number(row["rows"])
	act, said := number(row["r_rows"])
	if !ok || !said {
		return 0
	}
	return max(est, act, 1) / max(1, min(est, act))
}

func readPGLocks(p *attach.Part) attach.Reading {
	r := &result{}
	r.Glance = true
	var head []string
	rows, waits := 0, map[string]int{}
	for _, l := range p.Lines {
		c := cells(l.Text)
		if pgLocksHead.MatchString(l.Text) {
			head = c
			continue
		}
		at, mode := slices.Index(head, "granted"), slices.Index(head, "mode")
		if head == nil || at < 0 || at >= len(c) || c[at] != "t" && c[at] != "f" {
			continue
		}
		many := 1 // a row may count several
		for _, name := range counts {
			if i := slices.Index(head, name); i >= 0 && i < len(c) && allDigits(c[i]) {
				v, _ := number(c[i])
				many = int(min(v, 1e6))
			}
		}
		rows += many
		if c[at] == "f" && mode >= 0 && mode < len(c) {
			waits[c[mode]] += many
		}
	}
	n := 0
	for _, v := range waits {
		n += v
	}
	r.Title = "pg_locks, " + attach.Plural(rows, "lock")
	r.leftRows(p.Lines, rows)
	r.Not = "One glance: how long they wait, it does not say."
	if n == 0 {
		r.figure(fmt.Sprintf("%d locks, all granted", rows))
		r.Means = "No backend waits for a lock of a table or row at this instant" + r.shown() + "."
		return r.done(attach.Healthy)
	}
	line := fmt.Sprintf("%d of %d not granted: %s", n, rows, chiefly(waits, ""))
	r.figure(line)
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.next("psql -c 'SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0'", "names who blocks whom")
	return r.done(attach.CannotTell)
}
