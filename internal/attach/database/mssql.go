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

// rulePiece is the strokes below the name of one column, as sqlcmd prints a table.
var rulePiece = pattern.New(`-+`)

var rowsAffected = pattern.New(`^\(\d+ rows? affected\)$`)

// ruled reports whether a line is such a rule.
func ruled(text string) bool {
	return strings.HasPrefix(text, "--") && strings.Contains(text, "- ") && strings.Trim(text, "- ") == ""
}

// readRuled reads a table whose columns stand below strokes.
func readRuled(lines []paste.Line) *sqlTable {
	at := rulePiece.FindAllStringIndex(lines[1].Text, 257)
	t := &sqlTable{lines: 2}
	t.columns = ruledCells(lines[0].Text, at)
	if len(at) > 256 || len(strings.Fields(lines[0].Text)) != len(at) || slices.Contains(t.columns, "") {
		return nil
	}
	for i, c := range t.columns {
		t.columns[i] = strings.ToLower(c)
	}
	for i, l := range lines[2:] {
		text := strings.TrimSpace(l.Text)
		if text == "" && t.lines == i+2 && l.Command == "" {
			continue // the count of rows may stand below
		}
		if rowsAffected.MatchString(text) {
			t.lines, t.footer = i+3, true
		}
		if l.Command != "" || psqlTook.MatchString(text) || t.footer || t.lines < i+2 {
			break
		}
		t.lines = i + 3
		if len([]rune(l.Text)) <= at[len(at)-1][0] {
			t.cut++
			continue
		}
		t.row(ruledCells(l.Text, at))
	}
	return t
}

// ruledCells takes a row apart where the strokes stand.
func ruledCells(text string, at [][]int) []string {
	row := []rune(text)
	out := make([]string, len(at))
	for i, a := range at {
		out[i] = strings.TrimSpace(string(row[min(a[0], len(row)):min(a[1], len(row))]))
	}
	return out
}

// msWait is one session that waits, over the looks at it that show the same wait.
type msWait struct {
	session, what, on, who string
	blocker                string
	first, last            float64 // how long it waited at the first look and at the last; s
	at, till               time.Time
	looks                  int
	still                  bool // its reads and writes were the same at each look
	work                   string
}

// msIdle are waits of sessions that have nothing to do.
var msIdle = pattern.New(`SLEEP|_QUEUE$|TIMER|DISPATCHER|^BROKER_|^WAITFOR$|^XE_|DEADLOCK_SEARCH|DIRTY_PAGE_POLL|IDLE_WAIT|^CLR_|^QDS_|^SQLTRACE|^HADR_(?:WORK|TIMER|NOTIFICATION|CLUSAPI|LOGCAPTURE)|^FT_|^KSOURCE`)

// msWaits gathers the waits of each session. A look goes on with the wait of the one before it
// where both name the same and the time grew.
func msWaits(t *sqlTable) (out []*msWait) {
	open := map[string]*msWait{}
	for _, row := range t.rows {
		what := valueOf(row, "wait_type")
		if what == "" || msIdle.MatchString(what) {
			delete(open, row["session_id"])
			continue
		}
		took := num(row, "wait_time", "wait_duration_ms") / 1e3
		at := msTime(valueOf(row, "runtime"))
		work := strings.TrimSpace(row["reads"] + " " + row["writes"] + " " + row["logical_reads"])
		on := valueOf(row, "wait_resource", "resource_description")
		if w := open[row["session_id"]]; w != nil && w.what == what && w.on == on &&
			took > w.last && goesOn(w, took, at) {
			w.last, w.till, w.looks = took, at, w.looks+1
			w.still = w.still && work != "" && w.work == work
			continue
		}
		w := &msWait{session: row["session_id"], what: what, on: on, first: took, last: took,
			at: at, till: at, looks: 1, work: work, still: work != "",
			who:     strings.TrimSpace(valueOf(row, "status") + " " + valueOf(row, "command")),
			blocker: valueOf(row, "blocking_session_id")}
		open[row["session_id"]] = w
		out = append(out, w)
	}
	return out
}

// goesOn reports whether a wait grew by as much as the clock went on: it is still the same one.
func goesOn(w *msWait, took float64, at time.Time) bool {
	if at.IsZero() || w.till.IsZero() {
		return false
	}
	clock := at.Sub(w.till).Seconds()
	return took-w.last >= 0.9*clock-1 && took-w.last <= clock+1
}

func msTime(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", strings.Replace(s, "T", " ", 1))
	if err != nil {
		return time.Time{}
	}
	return t
}

// msClass is what a wait of SQL Server is for: where the time is, and what it is not.
func msClass(what string) (where, not, cause string) {
	switch {
	case strings.HasPrefix(what, "PAGEIOLATCH_"):
		return "", "That the disk is slow: the page is read, and how long one read takes is not in it.", "disk-wait"
	case strings.HasPrefix(what, "PAGELATCH_"), strings.HasPrefix(what, "LATCH_"):
		return "a latch of a page or a structure in SQL Server's memory, which another thread has",
			"That a disk is slow, which would be PAGEIOLATCH; or that a transaction holds a lock, which would be LCK. Who has the latch is not in it.", ""
	case strings.HasPrefix(what, "LCK_"):
		return "a lock in the database's own tables, which another transaction holds",
			"That the session that holds it is slow itself: it may be idle with its transaction open.", ""
	case what == "WRITELOG", what == "LOGBUFFER":
		return "", "That the disk is slow: many small commits wait for the log as well.", "disk-wait"
	case what == "ASYNC_NETWORK_IO":
		return "the client, which takes the rows slowly, or the way to it", "", ""
	case what == "THREADPOOL":
		return "", "What the threads do that are all in use.", "pool-exhaustion"
	case strings.HasPrefix(what, "RESOURCE_SEMAPHORE"):
		return "SQL Server's own grants of memory for sorts and hashes", "That the machine has no memory left.", ""
	}
	return "", "", ""
}

// longMSWait is a wait at one look, in s, that is worth a sign.
const longMSWait = 1

func readMSRequests(r *result, t *sqlTable) {
	r.Glance = true
	waits := msWaits(t)
	if len(waits) == 0 {
		r.figure("no session waits in it, but those that have nothing to do")
		r.Means = "No session waits for anything at these looks."
		return
	}
	w := slices.MaxFunc(waits,
		func(a, b *msWait) int { return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(b.session, a.session)) })
	line := fmt.Sprintf("session %s waits for %s", w.session, w.what)
	if w.who != "" {
		line = fmt.Sprintf("session %s (%s) waits for %s", w.session, short(w.who), w.what)
	}
	if w.on != "" {
		line += " on " + short(w.on)
	}
	line += fmt.Sprintf(": for %s so far", dur(w.last))
	if w.looks > 1 {
		line += fmt.Sprintf(", one wait over %d looks, %s apart", w.looks, dur(w.till.Sub(w.at).Seconds()))
	}
	r.figure(line)
	if w.looks > 1 && w.still {
		r.figure("its reads and writes stood still from the first of these looks to the last: it does nothing else")
	}
	if w.blocker != "" && w.blocker != "0" {
		r.figure("blocked by session " + short(w.blocker))
	}
	if n := len(waits); n > 1 {
		r.figure(attach.Plural(n, "wait") + " in it, of all sessions and looks")
	}
	where, not, cause := msClass(w.what)
	r.Not = cmp.Or(not, "A wait at one look is no sum: what a session waited for before is not in it.")
	switch {
	case w.last < longMSWait:
		r.Means = "The longest of these waits is short; what the sessions wait for most of the time needs more looks."
	case where != "":
		r.fact(FactStall, w.last*1e3, w.what)
		r.outside(where, line, 0)
	case cause != "":
		r.candidate(cause, line)
		r.Means = "A session waits for that long, and one look does not say for how many others it is so."
	default:
		r.Means = "A session waits for that long; what the wait is for, its name says in SQL Server's manual."
	}
	r.next("SELECT * FROM sys.dm_os_waiting_tasks", "who blocks whom, at this moment")
}
