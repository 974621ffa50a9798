package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// innoInner is a line that only stands within a transaction of a status, or of a deadlock's report.
var innoInner = pattern.New(`^(?:-+ TRX HAS BEEN WAITING |RECORD LOCKS space id \d|TABLE LOCK table |(?:MySQL|MariaDB) thread id \d|mysql tables in use \d|\*\*\* (?:\(\d+\) (?:WAITING FOR|HOLDS)|WE ROLL BACK))`)

// mostStatement is how many lines a statement has that stands in a status between empty ones.
const mostStatement = 8

// innoStatement reports whether these lines are a transaction's statement: what stands below it is
// of the same transaction. Pages put an empty line behind each line of a status.
func innoStatement(lines []paste.Line) bool {
	for _, l := range lines[:min(len(lines), mostStatement)] {
		t := innoText(l.Text)
		if l.Command != "" || len(t) > 1<<12 || strings.HasPrefix(t, "---TRANSACTION") {
			return false
		}
		if innoInner.MatchString(t) {
			return true
		}
	}
	return false
}

// waitLine reads what a line says of a transaction that waits for a lock. What a deadlock's report
// says of that is no wait of now.
func (s *innoState) waitLine(t string) {
	if m := trxWaiting.FindStringSubmatch(t); m != nil {
		v, _ := number(m[1])
		if m[2] == "us" || m[2] == "µs" {
			v /= 1e6
		}
		s.waits = append(s.waits, v)
	}
	switch {
	case strings.HasPrefix(t, "---TRANSACTION"):
		s.current = true
	case strings.HasPrefix(t, "*** ("), strings.HasPrefix(t, "TRANSACTION "):
		s.current = false
	case strings.HasPrefix(t, "LOCK WAIT ") && s.current:
		s.unsaid++
	}
	if m := trxTable.FindStringSubmatch(t); m != nil && strings.Contains(t, "waiting") && s.table == "" {
		s.table = strings.Trim(m[1], "`") + "." + strings.Trim(m[2], "`")
	}
}

// rowLocks says which transactions wait for locks of rows or tables.
func (s *innoState) rowLocks(r *result) {
	line := transactionsWait(s.unsaid) +
		" for locks of rows or tables (LOCK WAIT); for how long is not in these lines"
	switch {
	case len(s.waits) > 0:
		line = fmt.Sprintf("%s for locks of rows or tables, the longest for %s",
			transactionsWait(len(s.waits)), dur(slices.Max(s.waits)))
		if s.table != "" {
			line += ", on table " + s.table
		}
		r.fact(FactLockWait, attach.Median(s.waits)*1e3, s.table)
	case s.unsaid == 0:
		return
	}
	r.figure(line)
	r.outside("a lock in the database's own tables, which another transaction holds", line, 0)
	r.next("mysql -e 'SELECT * FROM sys.innodb_lock_waits\\G'",
		"names the transaction that holds the lock, while it waits")
}

func transactionsWait(n int) string {
	if n == 1 {
		return "1 transaction waits"
	}
	return fmt.Sprintf("%d transactions wait", n)
}
