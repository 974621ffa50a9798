package database

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	deadRow   = pattern.New(`^\d+: len \d+; hex |^n_fields \d+`)
	deadTrx   = pattern.New(`^TRANSACTION (\w+), ACTIVE (\d+) sec`)
	deadIndex = pattern.New("RECORD LOCKS .* index `?(\\w+)`? of table `?(\\w+)`?\\.`?(\\w+)`?")
	deadTime  = pattern.New(`^((?:\d{4}-\d\d-\d\d|\d{6}) +\d{1,2}:\d\d:\d\d)(?: \S+)?$`)
	deadRole  = pattern.New(`^\*\*\* \((\d+)\) (HOLDS THE LOCK|WAITING FOR THIS LOCK)`)
	deadLock  = pattern.New(`^RECORD LOCKS space id (\d+) page no (\d+) .*\block[ _]mode (S|X)\b`)
	deadHeap  = pattern.New(`^Record lock, heap no (\d+) `)
	deadOver  = pattern.New(`WE ROLL BACK TRANSACTION \((\d+)\)`)
)

// mostDeadLocks bounds the locks of a deadlock's report.
const mostDeadLocks = 64

// deadLocks are the locks that a deadlock's report names.
type deadLocks struct {
	of    string // the transaction whose lock comes next; "": none
	holds bool
	all   []recordLock
}

// recordLock is a lock that a transaction of a deadlock has, or waits for.
type recordLock struct {
	of, page, mode string
	holds          bool
	heaps          []string // the records, where they are listed
}

// line reads a line of the report.
func (d *deadLocks) line(t string) {
	if m := deadRole.FindStringSubmatch(t); m != nil {
		d.of, d.holds = m[1], m[2] == "HOLDS THE LOCK"
	} else if strings.HasPrefix(t, "*** ") {
		d.of = ""
	}
	if m := deadLock.FindStringSubmatch(t); m != nil && d.of != "" && len(d.all) < mostDeadLocks {
		d.all = append(d.all, recordLock{of: d.of, page: m[1] + "/" + m[2], mode: m[3], holds: d.holds})
	}
	if m := deadHeap.FindStringSubmatch(t); m != nil && d.of != "" && len(d.all) > 0 {
		if l := &d.all[len(d.all)-1]; len(l.heaps) < mostDeadLocks {
			l.heaps = append(l.heaps, m[1])
		}
	}
}

// upgrade is a transaction that holds a shared lock where it waits for an exclusive one; "": the
// report shows none.
func (d *deadLocks) upgrade() string {
	for _, has := range d.all {
		for _, wants := range d.all {
			if has.of == wants.of && has.holds && !wants.holds && has.mode == "S" && wants.mode == "X" &&
				has.page == wants.page && (len(has.heaps) == 0 || len(wants.heaps) == 0 ||
				slices.ContainsFunc(wants.heaps, func(h string) bool { return slices.Contains(has.heaps, h) })) {
				return has.of
			}
		}
	}
	return ""
}

// deadLine reads a line of the report of a deadlock.
func (s *innoState) deadLine(t string) {
	if m := deadTrx.FindStringSubmatch(t); m != nil && len(s.dead) < 2 {
		s.dead = append(s.dead, m[1]+" (active for "+m[2]+" s)")
	}
	s.locks.line(t)
	if m := deadIndex.FindStringSubmatch(t); m != nil && s.deadOn == "" {
		s.deadOn = fmt.Sprintf("index %s of %s.%s", m[1], m[2], m[3])
	}
	if m := deadOver.FindStringSubmatch(t); m != nil {
		s.victim = m[1]
	}
}

// deadEnd says what a report of a deadlock in the log means.
func (s *innoState) deadEnd(r *result) {
	line := "deadlock of transactions " + strings.Join(s.dead, " and ")
	if s.deadOn != "" {
		line += ", on " + s.deadOn
	}
	if s.victim != "" {
		line += "; (" + s.victim + ") was rolled back"
	}
	if s.deadAt != "" {
		line += ", " + s.deadAt
	}
	r.figure(line)
	if of := s.locks.upgrade(); of != "" {
		r.figure("(" + of + ") holds a shared lock (S) on a page of that index, and waits there for an exclusive one (X)")
	}
	r.Means = "Each waited for a lock that the other had: InnoDB ended one of them, outside what whystall can look into."
	r.outside(lockCircle, line, 0)
	r.Not = "That it slowed others down: a deadlock is ended at once, and the one that was rolled back has to start again."
}

// lockCircle is where the time of a deadlock is. Transactions need not have taken locks in opposite
// orders for it: two that share a lock, and both want it alone, wait for each other as well.
const lockCircle = "locks in the database's own tables, for which transactions waited in a circle"
