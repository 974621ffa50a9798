package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var trxTables = pattern.New(`^mysql tables in use \d+, locked (\d+)$`)

// place reads what says which parts of a status are there, and of tables that a session has locked
// without a transaction.
func (s *innoState) place(t string) {
	switch {
	case strings.HasPrefix(t, "END OF INNODB MONITOR OUTPUT"):
		s.whole = true
	case strings.HasPrefix(t, "---TRANSACTION"):
		s.listed = true
		s.rested = strings.Contains(t, "not started")
	}
	if m := trxTables.FindStringSubmatch(t); m != nil && s.rested {
		v, _ := number(m[1])
		s.tables += v
	}
}

var innoThread = pattern.New(`\bOS thread (?:id|handle) (\w+)`)

// threadLine notes how long the transaction of a thread is active.
func (s *innoState) threadLine(t string) {
	if m := trxLine.FindStringSubmatch(t); m != nil {
		s.ofThread = 0
		if m[3] != "" {
			s.ofThread, _ = number(m[3])
		}
	}
	if m := innoThread.FindStringSubmatch(t); m != nil && s.ofThread > 0 && len(s.threads) < mostOwners {
		s.threads[m[1]] = s.ofThread
	}
}

// quiet says what a status shows in which nobody waits.
func (s *innoState) quiet(r *result) {
	if len(r.Figures) == 0 || s.active == 0 && s.rates.said() {
		line := "no wait for a semaphore, no transaction that waits for a lock"
		if !s.whole {
			line += " in the lines that are here"
		}
		r.figure(line)
	}
	if s.historied {
		r.figure("history list length " + count(s.history) + ": what purge has not removed yet")
	}
	if line := s.rates.osWaits(); line != "" && !s.rates.said() {
		r.figure(line)
	}
	if s.tables > 0 {
		r.figure(fmt.Sprintf("sessions without a transaction have %s locked: by the server, and no row of it (LOCK TABLES, or a statement that ran just then)", attach.Plural(int(min(s.tables, 1e9)), "table")))
	}
	r.Means = "Nothing in InnoDB waits for another at this instant."
	if s.rates.idle() {
		r.Means = "Nothing in InnoDB waits for another, and it had nothing to do in the seconds before."
	}
	if !s.whole {
		r.Means = "As far as the status goes here, nothing in InnoDB waits for another: it is cut off."
	}
}

// status reports whether the part is the whole status. InnoDB shows its last deadlock there until
// the next one, however old it is.
func (s *innoState) status(p *attach.Part) bool {
	for _, l := range p.Lines {
		t := innoText(l.Text)
		if strings.Contains(t, "INNODB MONITOR OUTPUT") || innoSect.MatchString(t) && t != "LATEST DETECTED DEADLOCK" {
			return true
		}
	}
	return false
}

// waitsToo says that a thread which has one lock waits for another; "": the lines do not show it.
func (s *innoState) waitsToo(thread string) string {
	for _, w := range s.semas {
		if w.thread == thread {
			return ", and waits itself at " + w.site
		}
	}
	return ""
}

// mutexRow is a row of SHOW ENGINE INNODB MUTEX: a lock of the engine, and how often it was waited
// for.
var mutexRow = pattern.New(`^\|? *InnoDB *\| *(.*?) *\| *(?:spins=\d+,)?(?:os_)?waits=(\d+)`)

var mutexHead = pattern.New(`^\|? *Type *\| *Name *\| *Status\b`)

// claimMutexes takes such rows, with the table's strokes and names where they are there.
func claimMutexes(lines []paste.Line) int {
	rows := 0
	n := attach.ClaimWhile(lines, func(i int, text string) bool {
		t := strings.TrimSpace(text)
		if mutexRow.MatchString(t) {
			rows++
			return true
		}
		return tableRule(t) || mutexHead.MatchString(t) || rows > 0 && rowsInSet.MatchString(t)
	})
	return attach.ClaimIf(rows > 1, n)
}

// mutexWaits sums up such rows by lock.
func mutexWaits(lines []paste.Line) map[string]float64 {
	n := map[string]float64{}
	for _, l := range lines {
		if m := mutexRow.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil && len(n) < mostOwners {
			v, _ := number(m[2])
			n[m[1]] += v
		}
	}
	return n
}

func tellMutexes(n map[string]float64) attach.Reading {
	r := &result{}
	r.Boot = true
	r.Title = "SHOW ENGINE INNODB MUTEX, " + attach.Plural(len(n), "lock") + " of the engine"
	for _, name := range attach.Largest(n)[:min(len(n), 3)] {
		r.figure(fmt.Sprintf("%s: waited for %s times since the start", name, count(n[name])))
	}
	r.Means = "It counts waits since the start, and has neither a time nor a rate."
	r.Not = "That anything waits for these locks now."
	r.next("the same twice, a minute apart", "how many waits were added")
	return r.done(attach.CannotTell)
}
