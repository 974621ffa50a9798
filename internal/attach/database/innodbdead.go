package database

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	deadRow   = pattern.New(`^\d+: len \d+; hex |^n_fields \d+`)
	deadTrx   = pattern.New(`^TRANSACTION (\w+), ACTIVE (\d+) sec`)
	deadIndex = pattern.New("RECORD LOCKS .* index `?(\\w+)`? of table `?(\\w+)`?\\.`?(\\w+)`?")
	deadTime  = pattern.New(`^((?:\d{4}-\d\d-\d\d|\d{6}) +\d{1,2}:\d\d:\d\d)(?: \S+)?$`)
	deadOver  = pattern.New(`WE ROLL BACK TRANSACTION \((\d+)\)`)
)

// deadLine reads a line of the report of a deadlock.
func (s *innoState) deadLine(t string) {
	if m := deadTrx.FindStringSubmatch(t); m != nil && len(s.dead) < 2 {
		s.dead = append(s.dead, m[1]+" (active for "+m[2]+" s)")
	}
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
	r.Means = "Transactions took locks in opposite orders: InnoDB ended one of them, outside what whystall can look into."
	r.outside("locks in the database's own tables, taken in opposite orders", line, 0)
	r.Not = "That it slowed others down: a deadlock is ended at once, and the one that was rolled back has to start again."
}
