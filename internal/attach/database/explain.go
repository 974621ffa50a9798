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
	Hints:   []string{"select_type", "+--"},
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

func readExplain(p *attach.Part) attach.Reading {
	r := &result{}
	var head []string
	rows, most, full, table := 0, 0.0, 0, ""
	join := 1.0
	for _, l := range p.Lines {
		c := cells(l.Text)
		if explainHead.MatchString(l.Text) {
			head = c
			continue
		}
		at := slices.Index(head, "rows")
		if head == nil || at < 0 || at >= len(c) {
			continue
		}
		v, ok := number(c[at])
		if !ok {
			continue
		}
		rows++
		join = min(join*max(1, v), 1e15) // a paste that repeats itself
		if i := slices.Index(head, "type"); i >= 0 && c[i] == "ALL" {
			full++
		}
		if i := slices.Index(head, "table"); v > most && i >= 0 {
			most, table = v, c[i]
		}
	}
	r.Title = "MySQL EXPLAIN, " + attach.Plural(rows, "table") + ", not run: no times in it"
	r.figure(fmt.Sprintf("most rows estimated: %s of %s; %d read whole (type ALL)", count(most), table, full))
	if full > 1 && join >= 1e7 {
		line := fmt.Sprintf("%s rows to be compared, by the estimates", count(join))
		r.figure(line)
		r.outside("the plan: it joins whole tables", line, 0)
	} else {
		r.Means = "Estimates only: whether the statement is slow it does not say."
	}
	r.Not = "It has no time in it, and rows are estimates."
	r.next("EXPLAIN ANALYZE the statement (MariaDB: ANALYZE)", "runs it and has actual rows and times")
	return r.done(attach.CannotTell)
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
		rows++
		if c[at] == "f" && mode >= 0 && mode < len(c) {
			waits[c[mode]]++
		}
	}
	n := 0
	for _, v := range waits {
		n += v
	}
	r.Title = "pg_locks, " + attach.Plural(rows, "lock")
	r.Not = "One glance: how long they wait, it does not say."
	if n == 0 {
		r.figure(fmt.Sprintf("%d locks, all granted", rows))
		r.Means = "No backend waits for a lock of a table or row at this instant."
		return r.done(attach.Healthy)
	}
	line := fmt.Sprintf("%d of %d not granted: %s most", n, rows, commonest(waits))
	r.figure(line)
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.next("psql -c 'SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0'", "names who blocks whom")
	return r.done(attach.CannotTell)
}
