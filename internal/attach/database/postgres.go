package database

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgLog reads PostgreSQL's log: lock waits, durations, checkpoints, autovacuum.
var pgLog = &attach.Kind{
	Name: "PostgreSQL log",
	Marks: []string{"still waiting for", "acquired ", "deadlock", "blocked by process",
		"duration: ", "checkpoint complete", "canceling"},
	Hints: []string{"LOG:  ", "LOG: duration: ", ",LOG,", ",ERROR,", "ERROR:  ",
		"still waiting for", "acquired ", "DETAIL:  ", "STATEMENT:  ", "FATAL:  ", "WARNING:  ",
		"CONTEXT:  ", "HINT:  ", "holding the lock", "deadlock detected", "canceling statement"},
	Scattered: true,
	Yields:    []string{"log of a connection pooler"},
	Claim:     claimPGLog,
	Read:      readPGLog,
}

var (
	pgLine    = pattern.New(`(?:^|[ \]:>])(LOG|ERROR|FATAL|PANIC|WARNING|DETAIL|HINT|CONTEXT|STATEMENT|QUERY): {1,2}\S|(?:^|[ \]:>])STATEMENT: {3,}\S|(?:^|[ \]:>])STATEMENT: *$|^"?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^"]*"?,.*,(?:LOG|ERROR|FATAL|PANIC|WARNING),[0-9A-Z]{5},"`)
	pgCSV     = pattern.New(`^"?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^"]*"?,(?:.*,){6}`)
	pgTwo     = pattern.New(`(LOG|ERROR|FATAL|PANIC|WARNING|DETAIL|HINT|CONTEXT|STATEMENT|QUERY):  \S|STATEMENT: {3,}\S|STATEMENT: *$`)
	pgWait    = pattern.New(`process (\d+) still waiting for (\w+) on (.+?) after ([\d.]+) ms`)
	pgGot     = pattern.New(`process (\d+) acquired (\w+) on (.+?) after ([\d.]+) ms`)
	pgHolder  = pattern.New(`Process(?:es)? holding the lock: ([\d, ]+)\. Wait queue: ([\d, ]+)`)
	pgTook    = pattern.New(`duration: ([\d.]+) ms(?: +(parse|bind)\b)?`)
	pgText    = pattern.New(`duration: [\d.]+ ms +(?:statement|(?:execute|parse|bind|execute fetch from) [^:]{1,80}): (\S.*)`)
	pgWords   = pattern.New(`still waiting for \w+ on|acquired \w+ on .* after [\d.]+ ms|duration: [\d.]+ ms|checkpoint (complete|starting)|checkpoints are occurring too frequently|automatic (vacuum|analyze) of|deadlock detected|Process \d+ waits for \w+ on .*; blocked by process|Process(es)? holding the lock|canceling statement due to|temporary file: path|database system|could not (fsync|serialize)|connection (authorized|received)`)
	pgPrefix  = pattern.New(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|^\[\d+\]|^<`)
	pgCycle   = pattern.New(`^Process \d+(?: waits for |: )`)
	pgBlocked = pattern.New(`Process (\d+) waits for (\w+) on .*; blocked by process (\d+)\.`)
	pgTemp    = pattern.New(`temporary file: path "[^"]*", size (\d+)`)
)

func claimPGLog(lines []paste.Line) int {
	first := lines[0].Text
	if !pgLine.MatchString(first) || !pgWords.MatchString(first) &&
		!(pgPrefix.MatchString(first) && pgTwo.MatchString(first)) {
		return 0
	}
	n := len(pgRecord(lines))
	for n < len(lines) && lines[n].Command == "" {
		if strings.TrimSpace(lines[n].Text) == "" && n+1 < len(lines) && lines[n+1].Command == "" &&
			pgCSV.MatchString(lines[n+1].Text) && pgLine.MatchString(lines[n+1].Text) {
			n += 1 + len(pgRecord(lines[n+1:])) // somebody put a blank line between records
			continue
		}
		if !pgGoes(lines[n].Text) {
			break
		}
		n++
	}
	return n
}

// pgGoes reports whether a line goes on with a log.
func pgGoes(text string) bool {
	return strings.TrimSpace(text) != "" && (pgLine.MatchString(text) || strings.HasPrefix(text, "\t") ||
		strings.HasPrefix(text, "    ") || pgCycle.MatchString(text))
}

// maxRecord bounds the lines of one CSV record, which a query or a terminal's width breaks.
const maxRecord = 40

// pgRecord is the lines of the record that starts here: one, or as many as a CSV record's quotes
// need.
func pgRecord(lines []paste.Line) []paste.Line {
	if !pgCSV.MatchString(lines[0].Text) {
		return lines[:1]
	}
	quotes := 0
	for n, l := range lines[:min(len(lines), maxRecord)] {
		if quotes += strings.Count(l.Text, `"`); quotes%2 == 0 {
			return lines[:n+1]
		}
		if l.Command != "" {
			break
		}
	}
	return lines[:1]
}

// pgStatementBelow is a line whose statement starts in the next one.
var pgStatementBelow = pattern.New(`STATEMENT:\s*$`)

// pgBelow is the start of a statement that stands in lines of its own.
func pgBelow(lines []paste.Line) (text string) {
	for n, l := range lines {
		if n >= maxRecord || l.Command != "" || pgLine.MatchString(l.Text) || !pgGoes(l.Text) || len(text) > 200 {
			break
		}
		text += strings.TrimSpace(l.Text) + " "
	}
	return strings.TrimSpace(text)
}

// pgEvents are what a log says of time, in seconds.
type pgEvents struct {
	waits     map[string]float64 // process -> its longest wait for a lock
	queue     pgQueue
	got       map[string]bool    // those whose wait ended
	on        map[string]int     // lock -> how many processes waited for it
	asked     map[[2]string]bool // a process, and the lock that it waited for
	durations []float64
	checks    pgCheckpoints
	slowest   string // the statement that took longest, where its line has it
	mostMS    float64
	steps     int // of the durations, those of parsing or binding alone
	asleep    int // slow statements that take their time on purpose
	ended     int // statements that ended at statement_timeout
	refused   int // connections for which no slot was free
	deadlocks int
	cycle     []string // who waits for whom in a deadlock
	records   int      // lines of the log's own, and not parts of them
	errors    int
	failed    string // what the first of them says
	gaveUp    int    // statements that ended at lock_timeout
	often     int
	spilled   []float64 // temporary files, in bytes
	vacuums   []pgVacuum
	inVacuum  bool
}

func readPGLog(p *attach.Part) attach.Reading {
	e := pgEvents{waits: map[string]float64{}, queue: pgQueue{since: map[string]time.Time{},
		wants: map[string]pgWant{}, spoken: map[string]bool{}}, got: map[string]bool{}, on: map[string]int{}, asked: map[[2]string]bool{}}
	for at := 0; at < len(p.Lines); {
		record := pgRecord(p.Lines[at:])
		text := record[0].Text
		for _, l := range record[1:] {
			text += l.Text
		}
		at += len(record)
		if pgStatementBelow.MatchString(text) {
			text += "  " + pgBelow(p.Lines[at:])
		}
		e.line(text)
	}
	r := &result{}
	r.Title = "PostgreSQL's log, " + attach.Plural(len(p.Lines), "line")
	if len(e.waits) > 0 {
		e.locks(r)
	}
	e.checks.tell(r)
	if e.often > 0 {
		r.figure("checkpoints too frequent: " + times(e.often))
	}
	e.statements(r)
	if len(e.cycle) > 0 {
		r.figure("deadlock: " + strings.Join(e.cycle[:min(len(e.cycle), 3)], ", "))
		e.deadlocks = max(e.deadlocks, 1)
	}
	if e.deadlocks > 0 {
		r.figure("deadlock detected: " + times(e.deadlocks))
		r.outside(lockCircle, "deadlock detected: "+times(e.deadlocks), 0)
	}
	kept := e.tellVacuum(r)
	e.planned(r, p)
	e.errorsOf(r)
	return e.judge(r, kept)
}

// statements says how long statements took, and what of them went to disk or was given up.
func (e *pgEvents) statements(r *result) {
	if len(e.durations) > 0 {
		what := attach.Plural(len(e.durations), "statement") + " with a duration"
		if e.steps > 0 {
			what = attach.Plural(len(e.durations), "step") + " of statements (parse, bind, execute)"
		}
		r.figure(what + ": " + spread(e.durations))
		if e.slowest != "" {
			r.figure("the slowest: " + short(e.slowest))
		}
		r.fact(FactStatement, attach.Median(e.durations)*1e3, "")
	}
	if len(e.spilled) > 0 {
		r.figure(fmt.Sprintf("%s, the largest %s: sorts or hashes larger than work_mem go to disk",
			attach.Plural(len(e.spilled), "temporary file"), bytesText(slices.Max(e.spilled))))
	}
	if e.gaveUp > 0 {
		line := "statements that waited for a lock until lock_timeout ended them: " + times(e.gaveUp)
		r.figure(line)
		if len(e.waits) == 0 {
			r.outside("locks in the database's own tables", line, 0)
			r.next("psql -c 'SELECT pid, pg_blocking_pids(pid), state, query FROM pg_stat_activity'", "shows who has the lock, while a statement waits")
		}
	}
}

// errorsOf says what ended statements or refused connections.
func (e *pgEvents) errorsOf(r *result) {
	if e.ended > 0 {
		r.figure("statements that ran until statement_timeout ended them: " + times(e.ended))
	}
	if e.refused > 0 {
		line := "connections that were refused since all slots were taken (max_connections): " + times(e.refused)
		r.figure(line)
		r.candidate("pool-exhaustion", line)
		r.Means = cmp.Or(r.Means, "The server had no slot for further connections: what those who have one do decides.")
		r.next("psql -c 'SELECT state, count(*), max(now() - state_change) FROM pg_stat_activity GROUP BY 1'", "whether the connections work, or are idle in a transaction")
	}
	if e.errors > 0 && e.deadlocks+e.gaveUp+e.ended+e.refused == 0 {
		r.figure("errors: " + times(e.errors) + ", the first: " + short(e.failed))
	}
}

// judge says what the log means; kept: vacuum left much.
func (e *pgEvents) judge(r *result, kept bool) attach.Reading {
	switch {
	case len(r.Signs) > 0:
		return r.done(attach.CannotTell)
	case kept:
		r.Means = "Vacuum runs and may not remove dead rows: an old transaction, a replication slot or a prepared transaction may still see them, and scans read them."
		r.Not = "Whether a statement is slow for that."
		return r.done(attach.CannotTell)
	case e.ended > 0:
		r.Means = "Statements took as long as statement_timeout lets them; what they waited for the log does not say."
		r.Not = "That a lock was the reason: the log has lock waits only with log_lock_waits."
		r.next("psql -c 'SELECT pid, wait_event_type, wait_event, state, query FROM pg_stat_activity'", "shows what they wait for, while it is slow")
		return r.done(attach.CannotTell)
	case len(e.durations) > 0 && slices.Max(e.durations) < 0.1:
		r.Means = "No statement took 100 ms: the log's threshold is low, and these statements were fast."
		r.Not = "As a rule only statements above log_min_duration_statement are in it, and lock waits only with log_lock_waits."
		return r.done(attach.Healthy)
	case e.asleep > 0 && e.asleep == e.over(0.1):
		r.Means = "The slow statements call pg_sleep: they take the time on purpose."
		r.Not = "As a rule only statements above log_min_duration_statement are in it."
		return r.done(attach.Healthy)
	case len(e.durations) > 0:
		r.Means = "Statements took long; the log does not say what they waited for."
		if slow := e.over(0.1); attach.Median(e.durations) < quick && slow*20 <= len(e.durations) {
			r.Means = fmt.Sprintf("Nearly all of these statements were fast; %d of %d took 100 ms or longer, and the log does not say what for.", slow, len(e.durations))
		}
		r.Not = "As a rule only statements above log_min_duration_statement are in it."
		r.next("EXPLAIN (ANALYZE, BUFFERS) the statement", "shows where its time goes")
		r.next("psql -c 'SELECT pid, wait_event_type, wait_event, state, query FROM pg_stat_activity'", "shows what they wait for, while it is slow")
		return r.done(attach.CannotTell)
	}
	r.Means = "The log complains about no lock, no slow statement and no long fsync."
	if e.often > 0 || e.checks.forced() {
		r.Means = "The log of changes fills max_wal_size so fast that checkpoints come one after another: each writes all changed pages."
		r.Not = "That anybody waited for the disk: how long the fsyncs took is in the lines of completed checkpoints."
		if len(e.checks.sync) > 0 {
			r.Not = "That anybody waited for the disk: the longest fsync of these checkpoints is no long one."
		}
		r.next("psql -c 'SHOW max_wal_size'; psql -c 'SELECT * FROM pg_stat_bgwriter'",
			"how many checkpoints the size caused, and how many the time")
		return r.done(attach.CannotTell)
	}
	r.Not = "It has lock waits only with log_lock_waits, and statements only above log_min_duration_statement."
	switch {
	case e.records == 0:
		r.Means = "These lines are parts of records of the log, whose first lines are not here."
		return r.done(attach.CannotTell)
	case e.errors > 0:
		r.Means += " But something failed: its errors say what."
		return r.done(attach.CannotTell)
	}
	return r.done(attach.Healthy)
}

// over is how many statements took so many seconds or longer.
func (e *pgEvents) over(least float64) (n int) {
	for _, d := range e.durations {
		if d >= least {
			n++
		}
	}
	return n
}

func (e *pgEvents) line(text string) {
	if pgAnyLog.MatchString(text) || pgCSV.MatchString(text) || pgTook.MatchString(text) || pgCheck.MatchString(text) {
		e.records++
	}
	m := pgWait.FindStringSubmatch(text)
	if m == nil {
		if m = pgGot.FindStringSubmatch(text); m != nil {
			e.got[m[1]] = true
		}
	}
	wait := m
	if m != nil {
		if pgWait.MatchString(text) {
			delete(e.got, m[1]) // it waits again
		}
		ms, _ := number(m[4])
		if pair := [2]string{m[1], m[3]}; !e.asked[pair] {
			e.asked[pair] = true
			e.on[m[3]]++
		}
		e.waits[m[1]] = max(e.waits[m[1]], ms/1e3)
	}
	e.queue.line(text, wait, e)
	if m := pgTook.FindStringSubmatch(text); m != nil && !strings.Contains(text, " plan:") {
		ms, _ := number(m[1])
		if ms > e.mostMS {
			if e.mostMS, e.slowest = ms, ""; pgText.MatchString(text) {
				e.slowest, _, _ = strings.Cut(pgText.FindStringSubmatch(text)[1], `",,`) // CSV goes on
			}
		}
		e.durations = append(e.durations, ms/1e3)
		if strings.HasPrefix(m[2], "parse") || strings.HasPrefix(m[2], "bind") {
			e.steps++
		}
		if ms >= 100 && sleeps(text, ms/1e3) {
			e.asleep++
		}
	}
	e.checks.line(text)
	switch {
	case strings.Contains(text, "canceling statement due to lock timeout"):
		e.gaveUp++
	case strings.Contains(text, "canceling statement due to statement timeout"):
		e.ended++
	case pgNoSlot.MatchString(text):
		e.refused++
	}
	if strings.Contains(text, "deadlock detected") {
		e.deadlocks++
	}
	if m := pgBlocked.FindStringSubmatch(text); m != nil {
		e.cycle = append(e.cycle, m[1]+" waits for "+m[2]+" of "+m[3])
	}
	if strings.Contains(text, "checkpoints are occurring too frequently") {
		e.often++
	}
	if m := pgTemp.FindStringSubmatch(text); m != nil {
		size, _ := number(m[1])
		e.spilled = append(e.spilled, size)
	}
	if m := pgError.FindStringSubmatch(text); m != nil {
		e.errors++
		e.failed = cmp.Or(e.failed, m[1]+m[2])
	}
	e.vacuum(text)
}

// pgNoSlot is the refusal of a connection.
var pgNoSlot = pattern.New(`(?:FATAL: +|,)"?(?:sorry, too many clients already|remaining connection slots are reserved)`)

// pgError is what an error says, in a line or in a record of CSV.
var pgError = pattern.New(`(?:^|[ \]:>])(?:ERROR|FATAL|PANIC):  (.+)|,(?:ERROR|FATAL|PANIC),[0-9A-Z]{5},"((?:[^"]|"")*)"`)

func processes(n int) string {
	if n == 1 {
		return "1 process"
	}
	return fmt.Sprintf("%d processes", n)
}
