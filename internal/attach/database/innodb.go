package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// innodb reads SHOW ENGINE INNODB STATUS, and the semaphore waits that InnoDB writes into the error
// log. MySQL 5.5 to 8.4 and MariaDB 5.5 to 11.
var innodb = &attach.Kind{
	Name: "InnoDB status",
	Hints: []string{"INNODB MONITOR OUTPUT", "Type: InnoDB", "has waited at", "SEMAPHORES", "=====",
		"---TRANSACTION", "*****", "BACKGROUND THREAD", "OS WAIT ARRAY", "LATEST DETECTED", "-----",
		"long semaphore wait", "InnoDB", "+--", "(1) TRANSACTION", "Log sequence number",
		"Log flushed up to", "Last checkpoint at", "pending log "},
	Claim: claimInnoDB,
	Read:  readInnoDB,

	Reports: true, // a status, and waits that the log names
}

var (
	semaEnd    = pattern.New(`[sS]emaphore wait has lasted > (\d+) seconds`)
	semaWait   = pattern.New(`--Thread (\d+) has waited at (\S+) line (\d+) for ([\d.]+) seconds the semaphore`)
	semaLock   = pattern.New(`^\s*(X-lock|S-lock|SX-lock|Mutex|X-lock \(wait_ex\)|.*[Ll]ock)\b.* (?:on RW-latch at|at|on) (0x[0-9a-f]+|'[^']+')(?: '&?([^']+)'|,? Mutex (\w+) created (\S+?:\d+))?(?:,? created (?:in )?(?:file )?(\S+) line (\d+))?`)
	semaWriter = pattern.New(`a writer \(thread id (\d+)\) has reserved it in mode\s+(wait exclusive|\w+)`)
	semaMutex  = pattern.New(`Mutex (?:at )?(0x[0-9a-f]+|\S+)(?:,? Mutex (\S+))? created (\S+)|Mutex at (0x[0-9a-f]+)`)
	trxWaiting = pattern.New(`TRX HAS BEEN WAITING (\d+) (SEC|us|µs|seconds)`)
	rowLocks   = pattern.New(`\block struct\(s\).*, (\d+) row lock\(s\)`)
	trxLine    = pattern.New(`^---TRANSACTION (\w+(?: \d+)?), (not started|ACTIVE(?: \([^)]*\))? ?(\d+)?)`)
	trxTable   = pattern.New("of table [`\"]?(\\S+?)[`\"]?[.][`\"]?([^`\" ]+)")
	pendFlush  = pattern.New(`Pending flushes \(fsync\)(?: log: (\d+); buffer pool: (\d+)|: (\d+))`)
	pendLog    = pattern.New(`^(\d+) pending log (?:flushes|writes)`)
	pendPages  = pattern.New(`^Pending writes: LRU (\d+), flush list:? (\d+)(?:, single page (\d+))?`)
	longSema   = pattern.New(`InnoDB: (?:Warning: )?[aA] long semaphore wait`)
	noWrites   = pattern.New(`^[\d.]+ reads/s, [\d.]+ creates/s, 0\.00 writes/s`)
	histLen    = pattern.New(`^History list length (\d+)`)
	innoSect   = pattern.New(`^(BACKGROUND THREAD|SEMAPHORES|TRANSACTIONS|FILE I/O|INSERT BUFFER AND ADAPTIVE HASH INDEX|LOG|BUFFER POOL AND MEMORY|ROW OPERATIONS|LATEST DETECTED DEADLOCK|LATEST FOREIGN KEY ERROR|INDIVIDUAL BUFFER POOL INFO|END OF INNODB MONITOR OUTPUT)$`)
	innoStart  = pattern.New(`InnoDB: (?:Error: |\[FATAL\] )?[sS]emaphore wait has lasted|INNODB MONITOR OUTPUT|^\s*Type: InnoDB|--Thread \d+ has waited at|^---TRANSACTION \w+, |OS WAIT ARRAY INFO|InnoDB: (Warning: )?[aA] long semaphore wait|^\s*InnoDB\s+\||^(?:Log sequence number|Log flushed up to|Last checkpoint at) +\d+$|^\d+ pending log (?:flushes|writes), \d+ pending chkp writes$|^(?:.*\[Note\] (?:\[MY-\d+\] )?(?:\[InnoDB\] |InnoDB: ?))?\*\*\* \(1\) TRANSACTION:$`)
	innoRow    = pattern.New(`^\*+ \d+\. row \*+$`)
)

// claimInnoDB takes everything up to the end of the output: its lines have no common form. A start
// that was cut off is known by the sections.
func claimInnoDB(lines []paste.Line) int {
	if n := claimMutexes(lines); n > 0 {
		return n
	}
	start := -1
	for i := range lines[:min(len(lines), 8)] {
		t := innoText(lines[i].Text)
		if innoStart.MatchString(lines[i].Text) || i < 2 && innoSect.MatchString(t) &&
			(t != "LOG" && t != "TRANSACTIONS" || i == 1 && strings.HasPrefix(lines[0].Text, "---")) {
			start = i
			break
		}
		if i == 0 && innoFrame(lines) {
			continue
		}
		if i == 0 && !strings.HasPrefix(t, "===") && !strings.HasPrefix(t, "---") && !innoRow.MatchString(t) {
			return 0
		}
		if i < 4 && innoFrame(lines) {
			continue
		}
		if i > 0 && (lines[i].Command != "" || t != "" && !strings.Contains(t, "Name:") &&
			!strings.Contains(t, "Status:") && !strings.HasPrefix(t, "=") && !strings.HasPrefix(t, "-")) {
			return 0
		}
	}
	if start < 0 {
		return 0
	}
	n := start + 1
	if strings.HasPrefix(innoText(lines[start].Text), "END OF INNODB") { // nothing of it is left
		for n < len(lines) && (strings.HasPrefix(lines[n].Text, "====") ||
			strings.HasPrefix(lines[n].Text, "InnoDB: ###")) {
			n++
		}
		return n
	}
	for i := start + 1; i < len(lines); i++ {
		t := strings.TrimSpace(lines[i].Text)
		if lines[i].Command != "" || strings.HasPrefix(t, "```") {
			break
		}
		if strings.HasPrefix(t, "END OF INNODB MONITOR OUTPUT") {
			n = i + 1
			if n < len(lines) && strings.HasPrefix(lines[n].Text, "====") {
				n++
			}
			break
		}
		if t == "" && i+1 < len(lines) && !innoGoes(lines[i+1].Text) && !innoStatement(lines[i+1:]) {
			break
		}
		if t != "" {
			n = i + 1
		}
	}
	return n
}

// innoFrame reports whether a status stands in the frame that clients draw around a result.
func innoFrame(lines []paste.Line) bool {
	return len(lines) > 4 && planRule.MatchString(lines[0].Text) && planRule.MatchString(lines[2].Text) &&
		innoHead.MatchString(lines[1].Text) && strings.HasPrefix(lines[3].Text, "| InnoDB") &&
		strings.HasPrefix(lines[4].Text, "====")
}

var innoHead = pattern.New(`^\| Type +\| Name +\| Status\b`)

// innoText is a line of a status. Pages turn a heading above a stroke into one behind "##".
func innoText(text string) string { return strings.TrimSpace(strings.TrimLeft(text, "# ")) }

// innoGoes reports whether a line after a blank one can still be InnoDB's.
func innoGoes(text string) bool {
	t := innoText(text)
	return t == "" || strings.HasPrefix(t, "srv_master_thread ") ||
		strings.HasPrefix(t, "Trx id counter ") || strings.HasPrefix(t, "I/O thread ") ||
		strings.Contains(t, "InnoDB: ***") || deadRow.MatchString(t) || strings.HasPrefix(t, "-") ||
		strings.HasPrefix(t, "=") || strings.HasPrefix(t, "*** ") || innoStart.MatchString(text) ||
		innoSect.MatchString(t) ||
		strings.Contains(t, "RECORD LOCKS") || strings.HasPrefix(t, "Record lock") ||
		strings.HasPrefix(t, "0 lock struct") || strings.Contains(t, "lock struct(s)") ||
		innoInner.MatchString(t) || deadTime.MatchString(t) ||
		strings.HasPrefix(t, "TABLE LOCK") || strings.HasPrefix(t, "TRANSACTION ") ||
		strings.HasPrefix(t, "Hash table") || strings.HasPrefix(t, "Mutex spin") ||
		strings.HasPrefix(t, "RW-") || strings.HasPrefix(t, "Spin rounds")
}

// semaphore is one lock of the engine and its waiters.
type semaphore struct {
	lock, site, writer string
	thread             string // that waits
	name               string // of the lock, where it is said beside its address
	made               string // where the lock is created, which names it
	waits              bool   // the writer waits for the readers to go
	waiters            int
	longest            float64
	below              string // what a wait of 0 is below: whole seconds are cut
}

// innoState is what a status says.
type innoState struct {
	semas             map[string]*semaphore
	waits             []float64 // of transactions for locks, s
	table             string
	pendLog, pendPool float64
	history           float64
	unsaid            int      // and of those of which it does not say for how long
	current           bool     // the lines are of the list of transactions, and not of a deadlock
	dead              []string // transactions of a deadlock
	locks             deadLocks
	deadOn            string // the index and table of its first lock
	victim            string
	deadAt            string // when the latest deadlock was
	active            int
	longestActive     float64
	longestRows       float64 // row locks of that transaction; 0: none, or not said
	inLongest         bool    // the lines are of that transaction
	deadlock          bool
	pendPages         float64 // writes of pages that have not come back
	flushing          bool    // the main thread waits for the log's flush
	watchdog          bool    // it reports a wait that lasts, whose lines may be cut off
	rest              bool    // no write ends in the seconds that it averages over
	whole             bool    // its last line is there
	historied         bool    // the length of the history list
	listed            bool    // transactions
	rested            bool    // the last transaction was not started
	tables            float64 // tables that sessions without a transaction have locked
	ended             string  // the seconds of a wait after which InnoDB ends the server
	rates             innoRates
	threads           map[string]float64 // how long the transactions of threads are active, s
	ofThread          float64            // that of the lines' transaction
}

func readInnoDB(p *attach.Part) attach.Reading {
	s := innoState{semas: map[string]*semaphore{}, threads: map[string]float64{}}
	if strings.HasPrefix(innoText(p.Lines[0].Text), "END OF INNODB") {
		r := &result{}
		r.Title = "InnoDB status, its last lines"
		r.Means = "The status itself was cut off."
		return r.done(attach.CannotTell)
	}
	if list := mutexWaits(p.Lines); len(list) > 0 {
		return tellMutexes(list)
	}
	var at *semaphore
	for _, l := range p.Lines {
		at = s.line(l.Text, at)
	}
	r := &result{}
	r.Glance = true
	r.Title = "InnoDB status"
	s.semaphores(r)
	if s.ended != "" {
		line := "a wait for one of InnoDB's locks lasted more than " + s.ended +
			" s: it took the server for hung, and ended it"
		r.figure(line)
		r.candidate("lock-contention", line)
		r.Means = "The server was ended on purpose: the log above it names the lock, who has it, and where it was taken."
		r.next("grep -B5 -A40 'has waited at' the error log", "the lock and its holder, before the end")
	}
	s.rowLocks(r)
	s.pending(r)
	if s.watchdog && len(s.semas) == 0 {
		line := "InnoDB's watchdog reports a long wait for one of its own locks; the lines that name it are not here"
		r.figure(line)
		r.Means = cmp.Or(r.Means,
			"A thread waits for one of InnoDB's own locks, for minutes as a rule: its holder may compute, or wait for the disk.")
		r.next("grep -A20 'has waited at' the error log", "which lock it is, and who has it")
	}
	if s.history > 1e6 {
		r.figure(fmt.Sprintf("history list length %s: purge lags, reads go through old versions", count(s.history)))
		r.outside("old row versions that are not purged: a transaction that stays open keeps them, or purge is slower than the writes", r.Figures[len(r.Figures)-1], 0)
	}
	if s.active > 0 {
		line := fmt.Sprintf("%s active, the longest for %.0f s",
			attach.Plural(s.active, "transaction"), s.longestActive)
		if s.longestRows >= 1000 {
			line += fmt.Sprintf(" with %s locks of rows", count(s.longestRows))
		}
		r.figure(line)
	}
	s.rates.tell(r)
	if len(s.dead) > 0 && !s.status(p) {
		s.deadEnd(r)
	} else if s.deadlock {
		r.figure("it keeps the latest deadlock of transactions, " +
			cmp.Or(s.deadAt, "whenever that was") + ": InnoDB ended one of them")
	}
	r.Not = cmp.Or(r.Not, "One glance; counters in it are since the start, its averages of the last seconds.")
	if s.watchdog && len(r.Signs) == 0 {
		return r.done(attach.CannotTell)
	}
	if len(r.Signs) == 0 {
		s.quiet(r)
		if !s.status(p) || !s.listed && !s.whole {
			r.Means = "These lines of a status show no wait; the others are not here."
			return r.done(attach.CannotTell)
		}
	}
	return r.done(attach.Healthy)
}

// pending says what writes and fsyncs have not come back yet.
func (s *innoState) pending(r *result) {
	if s.pendLog+s.pendPool+s.pendPages == 0 {
		return
	}
	line := fmt.Sprintf("pending: %.0f flushes or writes of the log, %.0f fsyncs of the buffer pool, %.0f writes of pages", s.pendLog, s.pendPool, s.pendPages)
	if s.flushing {
		line += "; the main thread is flushing the log"
	}
	stuck := s.rest && s.pendPages > 0
	if stuck {
		line += "; none of the pages came back in the seconds before (0.00 writes/s)"
		r.Means = cmp.Or(r.Means,
			"Writes are under way and none ends: what InnoDB waits for is the file system and the disk below it.")
	}
	behind := s.rates.behind(s.pendPages)
	if behind > 0 {
		line += fmt.Sprintf("; at the rate of the seconds before, these alone take %s", dur(behind))
	}
	r.figure(line)
	if s.pendLog+s.pendPool == 0 && !stuck && behind == 0 {
		return // pages are written all the time
	}
	r.candidate("disk-wait", line)
	why := "says whether the disk is slow: one pending fsync is normal"
	if stuck {
		why = "says whether the disk below the data does anything; where it is a network's file system, ask that"
	}
	r.next("iostat -x 1 10", why)
}

// line reads one line; at is the semaphore that the lines before spoke of.
func (s *innoState) line(text string, at *semaphore) *semaphore {
	t := strings.TrimSpace(text)
	if m := semaEnd.FindStringSubmatch(t); m != nil {
		s.ended = m[1]
	}
	if m := semaWait.FindStringSubmatch(t); m != nil {
		sec, _ := number(m[4])
		at = &semaphore{thread: m[1], site: m[2] + ":" + m[3], waiters: 1, longest: sec}
		if !strings.Contains(m[4], ".") {
			at.below = "1 s"
		}
		s.semas[fmt.Sprint("?", len(s.semas))] = at
		return at
	}
	if at != nil {
		if m := semaLock.FindStringSubmatch(t); m != nil && at.lock == "" {
			at.lock = m[2]
			at.name, at.made = cmp.Or(m[3], m[4]), m[5]
			if m[6] != "" {
				at.made = m[6] + ":" + m[7]
			}
		} else if m := semaMutex.FindStringSubmatch(t); m != nil && at.lock == "" {
			at.lock = cmp.Or(m[2], m[1], m[4])
		} else if m := semaWriter.FindStringSubmatch(t); m != nil {
			at.writer, at.waits = m[1], m[2] == "wait exclusive"
		}
	}
	s.waitLine(t)
	if m := trxLine.FindStringSubmatch(t); m != nil && m[3] != "" {
		v, _ := number(m[3])
		s.active++
		if s.inLongest = s.active == 1 || v > s.longestActive; s.inLongest {
			s.longestActive, s.longestRows = v, 0
		}
	} else if strings.HasPrefix(t, "---TRANSACTION") {
		s.inLongest = false
	}
	if m := rowLocks.FindStringSubmatch(t); m != nil && s.inLongest {
		s.longestRows, _ = number(m[1])
		s.inLongest = false
	}
	if m := pendFlush.FindStringSubmatch(t); m != nil {
		s.pendLog, _ = number(m[1] + m[3])
		s.pendPool, _ = number(m[2])
	}
	if m := pendLog.FindStringSubmatch(t); m != nil {
		v, _ := number(m[1])
		s.pendLog = max(s.pendLog, v)
	}
	if m := pendPages.FindStringSubmatch(t); m != nil {
		for _, f := range m[1:] {
			v, _ := number(f)
			s.pendPages += v
		}
	}
	s.threadLine(t)
	s.flushing = s.flushing || strings.HasSuffix(t, "state: flushing log")
	s.watchdog = s.watchdog || longSema.MatchString(t)
	s.rest = s.rest || noWrites.MatchString(t)
	if m := histLen.FindStringSubmatch(t); m != nil {
		s.history, _ = number(m[1])
		s.historied = true
	}
	s.deadLine(t)
	s.place(t)
	s.rates.line(t)
	if m := deadTime.FindStringSubmatch(t); m != nil && s.deadlock && s.deadAt == "" && len(s.dead) == 0 {
		s.deadAt = "at " + m[1]
	}
	s.deadlock = s.deadlock || strings.HasPrefix(t, "LATEST DETECTED DEADLOCK")
	return at
}
