package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

func claimMySQLSlow(lines []paste.Line) int {
	if !slowMeta.MatchString(lines[0].Text) {
		return 0
	}
	n, own := 0, 0
	for i, l := range lines {
		t := strings.TrimSpace(l.Text)
		switch {
		case i > 0 && l.Command != "":
			return attach.ClaimIf(own > 0, n)
		case slowTimes.MatchString(t):
			own++
			n = i + 1
		case slowMeta.MatchString(t):
			n = i + 1
		case t == "" || own == 0:
			if i-n > 2 {
				return attach.ClaimIf(own > 0, n)
			}
		case n == i && (strings.HasSuffix(t, ";") || isSQL(t) || strings.HasPrefix(l.Text, " ") ||
			inStatement(lines, i)):
			n = i + 1
		default:
			return attach.ClaimIf(own > 0, n)
		}
	}
	return attach.ClaimIf(own > 0, n)
}

// inStatement reports whether a statement goes on: its end is near.
func inStatement(lines []paste.Line, at int) bool {
	for _, l := range lines[at:min(len(lines), at+30)] {
		if strings.HasSuffix(strings.TrimSpace(l.Text), ";") {
			return true
		}
		if strings.TrimSpace(l.Text) == "" {
			return false
		}
	}
	return false
}

// sleepers are the lines with the times of those statements which take their time on purpose.
func sleepers(lines []paste.Line) map[int]bool {
	on, entry, took := map[int]bool{}, -1, 0.0
	for at, l := range lines {
		switch m := slowTimes.FindStringSubmatch(l.Text); {
		case m != nil:
			entry = -1
			if took, _ = number(m[1]); took >= quick {
				entry = at
			}
		case strings.HasPrefix(l.Text, "# Time:"), strings.HasPrefix(l.Text, "# User@Host:"):
			entry = -1
		case entry >= 0 && sleeps(l.Text, took):
			on[entry] = true
		}
	}
	return on
}

var (
	sleepCall = pattern.New(`(?i)\b(?:pg_sleep|pg_sleep_for|pg_sleep_until|sleep|benchmark)\s*\((?:\s*([\d.]+)\s*\))?`)
	fromTable = pattern.New(`(?i)\bfrom\b`)
	notCalled = pattern.New(`'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|` + "`[^`]*`" +
		`|/\*.*?\*/|--\s.*|^#.*|(?i:\b(?:into|table|function|procedure)\s+[\w.]+\s*\()`)
)

// sleeps reports whether a statement takes its seconds on purpose: it calls a function for that.
// A name in a string or in a comment is no call, and a short sleep is the reason only where many
// rows may each have one.
func sleeps(statement string, took float64) bool {
	text := notCalled.ReplaceAllString(statement, "''")
	m := sleepCall.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	told, known := number(m[1])
	return !known || told >= took/2 || fromTable.MatchString(text)
}

// slowSums is what a slow log's entries are together. Times are in seconds.
type slowSums struct {
	took, locks, io       []float64      // locks: the longer of the two fields that have them
	worst, examined, sent float64        // the slowest statement's
	worstAt               int            // the line of its times
	moments               map[string]int // the seconds of those that took long and examined few rows
	small, slow           int            // those that took long, and those of them that examined few rows
	vain                  int            // those that examined many rows for few that they sent
	vainMost, vainSent    float64        // the rows of the one of them that examined most
}

func sumSlow(lines []paste.Line, asleep map[int]bool) (t slowSums) {
	for at, l := range lines {
		if m := slowIO.FindStringSubmatch(l.Text); m != nil {
			a, _ := number(m[1])
			b, _ := number(m[2])
			t.io = append(t.io, a)
			if n := len(t.locks); n > 0 { // newer versions have these waits in Lock_time as well
				t.locks[n-1] = max(t.locks[n-1], b)
			}
		}
		m := slowTimes.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		q, _ := number(m[1])
		lock, _ := number(m[2])
		s, _ := number(m[3])
		e, _ := number(m[4])
		t.took, t.locks = append(t.took, q), append(t.locks, lock)
		if q > t.worst {
			t.worst, t.worstAt, t.examined, t.sent = q, at, e, s
		}
		if q >= quick {
			t.slow++
		}
		if e <= 1000 && lock < q/2 && q >= quick && !asleep[at] {
			t.small++
			if t.moments == nil {
				t.moments = map[string]int{}
			}
			t.moments[momentOf(lines[at+1:])]++
		}
		if e >= manyExamined && s < e/10 && q >= quick {
			if _, changes := slowChange(lines[at:], e); changes {
				continue
			}
			if t.vain++; e > t.vainMost {
				t.vainMost, t.vainSent = e, s
			}
		}
	}
	return t
}

// momentOf is the second of a statement, whose lines follow; "": they do not say it.
func momentOf(lines []paste.Line) string {
	for _, l := range lines {
		if slowTimes.MatchString(l.Text) {
			break
		}
		if m := slowMoment.FindStringSubmatch(l.Text); m != nil {
			return m[1]
		}
	}
	return ""
}

// manyExamined is from how many rows on it is told how few of them were sent.
const manyExamined = 1e5

func readMySQLSlow(p *attach.Part) attach.Reading {
	r := &result{}
	asleep := sleepers(p.Lines)
	t := sumSlow(p.Lines, asleep)
	total, locked := attach.Sum(t.took), attach.Sum(t.locks)
	r.Title = "MySQL slow log, " + attach.Plural(len(t.took), "statement")
	r.figure("Query_time: " + spread(t.took))
	slowest := fmt.Sprintf("the slowest: %s rows examined, %s sent", count(t.examined), count(t.sent))
	if text := statementBelow(p.Lines[t.worstAt:]); text != "" {
		slowest += ": " + short(text)
	}
	r.figure(slowest)
	if t.vain > 0 && t.vainMost != t.examined {
		r.figure(fmt.Sprintf("%s examined %s rows or more and sent less than a tenth of them: at most %s for %s",
			attach.Plural(t.vain, "statement"), count(manyExamined), count(t.vainMost), count(t.vainSent)))
	}
	r.fact(FactStatement, attach.Median(t.took)*1e3, "")
	r.Not = "Only statements above long_query_time are in it, and not whether rows came from memory or from the disk."
	if n := len(asleep); n > 0 {
		r.figure(attach.Plural(n, "statement") + " with SLEEP or BENCHMARK: the time is wanted")
	}
	switch {
	case len(asleep) > 0 && len(asleep) >= t.slow:
		r.Means = "The slow statements call SLEEP or BENCHMARK: they take the time on purpose."
		return r.done(attach.Healthy)
	case t.worst < quick:
		r.Means = fmt.Sprintf("Each of these statements took less than %s: they are in the log, and not slow.", dur(quick))
		return r.done(attach.Healthy)
	case locked >= 0.5*total && total > 0:
		line := fmt.Sprintf("Lock_time %s of %s", dur(locked), dur(total))
		r.figure(line)
		r.outside("a lock in the database's own tables", line, ratio(locked, total))
	case attach.Sum(t.io) >= 0.5*total && total > 0:
		line := fmt.Sprintf("InnoDB_IO_r_wait %s of %s", dur(attach.Sum(t.io)), dur(total))
		r.figure(line)
		r.candidate("disk-wait", line)
	case t.examined >= manyExamined:
		tellExamined(r, p.Lines[t.worstAt:], t.worst, t.examined, t.sent)
	case t.small > 0 && 2*t.small >= t.slow: // quick ones beside them explain nothing
		r.Means = fmt.Sprintf("%s examined few rows and still took long, and no field says why. A row's lock, a slow disk, a lack of CPU and views of the server's own tables look alike. Lock_time holds no row locks in all versions.", attach.Plural(t.small, "statement"))
		if at := attach.Largest(t.moments); len(at) > 0 && at[0] != "" && t.small > 2 && len(at) == 1 {
			r.figure(fmt.Sprintf("all %d that examined few rows and took long are of one second (timestamp %s): the server may have stood still for a moment", t.small, at[0]))
		}
		r.next("mysql -e 'SHOW ENGINE INNODB STATUS\\G'; iostat -x 1 10",
			"tell locks of rows from a slow disk, while it is slow")
	default:
		r.Means = "What the slowest statement waited for, no field says; the rows that it examined are no large number."
		r.next("EXPLAIN ANALYZE the statement (MariaDB: ANALYZE)", "runs it and has actual rows and times")
	}
	return r.done(attach.CannotTell)
}

// slowScan is how many rows a second a scan goes through even where it reads them from a disk that
// turns. A statement that examined fewer in its time waited for something else.
const slowScan = 1e4

var (
	slowMoment   = pattern.New(`(?i)\bSET timestamp=(\d{9,})`)
	slowAffected = pattern.New(`\bRows_affected: (\d+)`)
	slowWrites   = pattern.New(`(?i)^\s*(?:insert|update|delete|replace|load)\b`)
	slowSetup    = pattern.New(`(?i)^\s*(?:set timestamp|use |#|$)`)
)

// statementBelow is the statement whose times stand in the first line; "": it is not here.
func statementBelow(lines []paste.Line) string {
	for i, l := range lines {
		switch {
		case i > 0 && (slowTimes.MatchString(l.Text) || strings.HasPrefix(l.Text, "# Time:")):
			return ""
		case i > 0 && !slowSetup.MatchString(l.Text):
			return strings.TrimSpace(l.Text)
		}
	}
	return ""
}

// slowChange says of a statement that changes rows, whose times stand in the first line, what the
// rows that it examined mean. It sends none, so that says nothing of its plan.
func slowChange(lines []paste.Line, examined float64) (string, bool) {
	affected := -1.0
	for i, l := range lines {
		if i > 0 && slowTimes.MatchString(l.Text) {
			break
		}
		if m := slowAffected.FindStringSubmatch(l.Text); m != nil {
			affected, _ = number(m[1])
		}
		if slowSetup.MatchString(l.Text) {
			continue
		}
		if !slowWrites.MatchString(l.Text) {
			break
		}
		switch {
		case affected < 0:
			return "The slowest statement changes rows; how many of those that it examined, the log does not say.", true
		case 2*affected >= examined:
			return fmt.Sprintf("The slowest statement changed %s rows, most of those that it examined: what it took is the changing, and no index makes it read fewer.", count(affected)), true
		}
		return "", false
	}
	return "", false
}

// tellExamined says what it means that the slowest statement examined many rows. Its times stand in
// the first line.
func tellExamined(r *result, lines []paste.Line, took, examined, sent float64) {
	line := fmt.Sprintf("%s rows examined for %s sent in %s", count(examined), count(sent), dur(took))
	text, changes := slowChange(lines, examined)
	switch {
	case changes:
		r.outside("the statement, which changes rows", line, 1)
		r.Means = text
	case sent >= 0.5*examined: // an index does not make fewer rows of those that are wanted
		r.outside("the statement: it gives many rows", line, 1)
		r.Means = "The slowest statement gives most of the rows that it examines: it is a dump or a report, and no index makes it read fewer."
	case examined < slowScan*took:
		r.Means = fmt.Sprintf("The slowest statement examined %s rows in %s, which a scan does far faster: it waited for something that no field names, as a row's lock, the disk or a CPU.", count(examined), dur(took))
		r.next("mysql -e 'SHOW ENGINE INNODB STATUS\\G'; iostat -x 1 10", "tell locks of rows from a slow disk, while it is slow")
	default:
		r.outside("the plan: it examines many rows", line, 1)
		r.next("EXPLAIN the statement", "shows what it reads, and by which index")
	}
}
