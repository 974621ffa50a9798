package database

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// pgQueue is what a log says of queues for locks. It says "still waiting" once, after
// deadlock_timeout; that a process still waits much later, only the queue of another one's tells.
type pgQueue struct {
	since   map[string]time.Time // process -> when its wait started, while it goes on
	longest []string             // the longest queue, its first process first
	lock    string               // of which lock that queue is
	last    []string             // the one that the log says last
	wants   map[string]pgWant    // process -> what it waits for
	spoken  map[string]bool      // processes whose last line, by the log's prefix, is of a wait
	now     string               // the process that the lines are about; "": of no wait
	holders []pgHolds
	end     time.Time // of the last line with a time
}

// pgWant is the mode in which a process wants a lock, of what, and the statement that wants it.
type pgWant struct {
	mode, on, statement string
	more                bool // it waited for another lock before
}

// pgHolds is a process that holds a lock for which others wait.
type pgHolds struct{ pid, on string }

var (
	pgRuns   = pattern.New(`(?:CONTEXT:  SQL statement "|STATEMENT: +)(.+)`)
	pgFrom   = pattern.New(`^[^"\[]{0,120}(?:\[[^\]\d][^\]]*\][^"\[]{0,60})?\[(\d{1,10})(?:-\d+)?\][^"]{0,80}?(?:LOG|ERROR|FATAL|PANIC|WARNING|STATEMENT|CONTEXT):  `)
	pgAnyLog = pattern.New(`(?:^|[ \]:>])(?:LOG|ERROR|FATAL|PANIC|WARNING):  `)
)

// about follows which process the lines are about, and keeps what it wants and runs.
func (q *pgQueue) about(text string, wait []string) {
	of := ""
	if m := pgFrom.FindStringSubmatch(text); m != nil {
		of = m[1]
	}
	if pgAnyLog.MatchString(text) {
		q.now = ""
		delete(q.spoken, of)
	}
	_, known := q.wants[wait1(wait)]
	if wait != nil && (known || len(q.wants) < maxQueued) {
		q.now = wait[1]
		if !known || pgWait.MatchString(text) {
			before := q.wants[q.now]
			q.wants[q.now] = pgWant{mode: wait[2], on: wait[3],
				more: before.more || known && before.on != wait[3]}
		}
		if of == q.now {
			q.spoken[of] = true
		}
	}
	m := pgRuns.FindStringSubmatch(text)
	pid := q.now
	if q.spoken[of] { // lines of others may stand between
		pid = of
	}
	if w := q.wants[pid]; m != nil && pid != "" && w.statement == "" {
		if w.statement = m[1]; strings.Contains(text, "CONTEXT:  ") { // which sets it in quotes
			w.statement = strings.TrimSuffix(m[1], `"`)
		}
		q.wants[pid] = w
	}
}

// wait1 is the process of a wait; "": of none.
func wait1(wait []string) string {
	if wait == nil {
		return ""
	}
	return wait[1]
}

var pgStamp = pattern.New(`^(?:\S{1,40} )?["\[]?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)`)

// maxQueued bounds the processes whose waits are followed.
const maxQueued = 1 << 14

// line takes in a line, of which wait is what it says of a wait's mark or end, if it does.
func (q *pgQueue) line(text string, wait []string, e *pgEvents) {
	now := pgTimeOf(text)
	q.about(text, wait)
	if now.After(q.end) {
		q.end = now
	}
	if wait != nil {
		ms, _ := number(wait[4])
		if delete(q.since, wait[1]); pgWait.MatchString(text) && !now.IsZero() && len(q.since) < maxQueued {
			q.since[wait[1]] = now.Add(-time.Duration(min(ms, 1e12) * 1e6))
		}
	}
	m := pgHolder.FindStringSubmatch(text)
	if m == nil {
		return
	}
	on := q.wants[q.now].on
	for _, pid := range strings.Split(m[1], ", ") {
		if len(q.holders) < maxQueued {
			q.holders = append(q.holders, pgHolds{pid, on})
		}
	}
	q.last = strings.Split(strings.TrimRight(m[2], ", "), ", ")
	if len(q.last) > len(q.longest) {
		q.longest, q.lock = q.last, on
	}
	for _, pid := range q.last {
		if at, ok := q.since[pid]; ok && now.After(at) {
			e.waits[pid] = max(e.waits[pid], now.Sub(at).Seconds())
		}
	}
}

// figure says how long the queue is, and what the first process in it wants, or the only one.
func (q *pgQueue) figure(r *result, waits map[string]float64, got map[string]bool) {
	if len(q.longest) < 2 {
		for only := range waits {
			if w := q.wants[only]; len(waits) == 1 && w.mode != "" {
				r.figure("process " + only + w.text(got[only]))
			}
		}
		q.each(r, waits, got)
		return
	}
	first := q.longest[0]
	text := fmt.Sprintf("%s stand in the queue for %s, process %s first", processes(len(q.longest)),
		cmp.Or(q.lock, "it"), first)
	if len(q.longest) > len(q.last) {
		text = "at most " + text
	}
	if w := q.wants[first]; w.mode != "" && w.on == q.lock {
		text += ", which" + w.text(got[first])
	}
	if q.wants[first].mode == "AccessExclusiveLock" { // which nobody shares
		text += "; those behind it wait for it as well"
	}
	r.figure(text)
}

// mostNamed is up to how many processes are each told with what they wait for.
const mostNamed = 3

// each says of a few processes what each waits for, those that wait longest first.
func (q *pgQueue) each(r *result, waits map[string]float64, got map[string]bool) {
	if len(waits) < 2 || len(waits) > mostNamed {
		return
	}
	for _, pid := range attach.Largest(waits) {
		w := q.wants[pid]
		if w.mode == "" || w.more {
			continue
		}
		line := fmt.Sprintf("process %s: %s on %s, %s", pid, w.mode, w.on, dur(waits[pid]))
		if !got[pid] {
			line += " so far"
		}
		if w.statement != "" {
			line += ": " + short(w.statement)
		}
		r.figure(line)
	}
}

// lockedThing is a lock as it is counted: tuples are rows of their relation.
func lockedThing(on string) string {
	if rest, ok := strings.CutPrefix(on, "tuple ("); ok {
		if _, of, ok := strings.Cut(rest, ") of relation "); ok {
			of, _, _ = strings.Cut(of, " ")
			return "rows of relation " + of
		}
	}
	return on
}

// mostThings is how many locks are named with their processes.
const mostThings = 3

// things says what the processes waited for, and how many of them for each, and what most did.
func (e *pgEvents) things() (text, most string) {
	if len(e.on) == 1 {
		for on := range e.on {
			return "on " + on, on
		}
	}
	n := map[string]float64{}
	for on, k := range e.on {
		n[lockedThing(on)] += float64(k)
	}
	names := attach.Largest(n)
	if len(names) == 1 {
		return "on " + names[0], names[0]
	}
	var list []string
	rest := 0.0
	for i, name := range names {
		if i >= mostThings {
			rest += n[name]
			continue
		}
		list = append(list, fmt.Sprintf("%.0f on %s", n[name], name))
	}
	if rest > 0 {
		list = append(list, fmt.Sprintf("%.0f on others", rest))
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1], names[0]
}

// text says what a process wants, behind its name.
func (w pgWant) text(got bool) string {
	text := " wants " + w.mode
	if got {
		text = " wanted " + w.mode
	}
	if w.statement != "" {
		text += ": " + short(w.statement)
	}
	return text
}

// after is how long the log goes on, in s, behind what it says of the only wait.
func (q *pgQueue) after(waits map[string]float64) float64 {
	for pid, took := range waits {
		if at, ok := q.since[pid]; ok && len(waits) == 1 {
			return q.end.Sub(at).Seconds() - took
		}
	}
	return 0
}

// longestGoing is the longest wait of those that go on where the log ends.
func (e *pgEvents) longestGoing() (most float64) {
	for pid, took := range e.waits {
		if !e.got[pid] {
			most = max(most, took)
		}
	}
	return most
}

// gotIt ends what is said of processes that waited.
func gotIt(n int) string {
	if n == 1 {
		return ", and then it got it"
	}
	return ", and all of them got theirs"
}

// locks says who waits for locks, and who has them.
func (e *pgEvents) locks(r *result) {
	var took []float64
	for _, v := range e.waits {
		took = append(took, v)
	}
	on, what := e.things()
	line := fmt.Sprintf("%s waited for a lock, %s: %s", processes(len(took)), on, spread(took))
	going := max(0, len(e.waits)-len(e.got))
	ended := min(going, e.gaveUp) // by lock_timeout: they never got it
	if ended > 0 {
		line += fmt.Sprintf(", at least: lock_timeout ended %d of %d", ended, len(took))
	}
	if ended > 0 && len(took) == 1 {
		line = fmt.Sprintf("1 process waited for a lock, on %s, for %s or more, until lock_timeout ended its statement", what, dur(took[0]))
	}
	if going -= ended; going > 0 && len(took) == 1 {
		line = fmt.Sprintf("1 process waits for a lock, on %s: %s so far, and the log does not say when it got it", what, dur(took[0]))
		if more := e.queue.after(e.waits); more >= 1 {
			line = fmt.Sprintf("1 process waits for a lock, on %s: %s when the log said so, and %s of log follow without a word of its end", what, dur(took[0]), dur(more))
		}
	}
	if going > 0 && len(took) > 1 {
		line = fmt.Sprintf("%s waited for a lock, %s; where the log ends %d still wait, the longest for %s so far", processes(len(took)), on, going, dur(e.longestGoing()))
	}
	if len(e.got) >= len(e.waits) {
		line += gotIt(len(took))
	}
	r.figure(line)
	e.queue.figure(r, e.waits, e.got)
	// The process at the head of the chain holds a lock and waits for none.
	for _, h := range e.queue.holders {
		if _, waits := e.waits[h.pid]; !waits {
			holds := "holds"
			if len(e.got) >= len(e.waits) { // all waits ended
				holds = "held"
			}
			r.figure(fmt.Sprintf("process %s %s %s, and these lines show no wait of its own", h.pid,
				holds, cmp.Or(h.on, "it")))
			r.next("psql -c \"SELECT pid, state, xact_start, query FROM pg_stat_activity WHERE pid = "+h.pid+"\"", "says what the holder does: often it is idle in its transaction")
			break
		}
	}
	r.fact(FactLockWait, attach.Median(took)*1e3, what)
	where := "a lock in the database's own tables, which another transaction holds"
	if len(e.got) >= len(e.waits) {
		where = "a lock in the database's own tables, which another transaction held"
	}
	r.outside(where, line, 0)
	r.Not = "It is a lock of tables or rows, not one of the process: CPU and disk are not shown to be short."
}
