package database

import (
	"fmt"
	"strings"
)

// waitsForLock reports whether a session's state says that it waits for a lock of a table. "System
// lock" does not: statements that write rows, and replication, stay in it while they work.
func (c connection) waitsForLock() bool {
	low := strings.ToLower(c.state)
	return strings.HasPrefix(low, "waiting for") &&
		(strings.Contains(low, "lock") || strings.Contains(low, "table flush")) || low == "locked"
}

// name says which connection it is, and for how long it is in its state.
func (c connection) name() string {
	if c.id == "" {
		return "one for " + dur(c.s)
	}
	return fmt.Sprintf("connection %s for %s", c.id, dur(c.s))
}

// tellWaiter says who waits longest for a lock, and which sessions may have it: those that were at
// work or asleep before that wait started. The list does not say which of them has it.
func tellWaiter(r *result, list []connection) {
	var first connection
	for _, c := range list {
		if c.waitsForLock() && c.s > first.s {
			first = c
		}
	}
	if first.s == 0 {
		return
	}
	line := "the longest of these waits: " + first.name()
	if first.info != "" && first.info != "NULL" {
		line += ", " + short(first.info)
	}
	r.figure(line)
	var asleep, busy []string
	for _, c := range list {
		switch {
		case c.s < first.s || c.waitsForLock():
		case c.command == "Sleep":
			asleep = append(asleep, c.name())
		case c.command == "Query" || c.command == "Execute" || c.command == "":
			busy = append(busy, c.name())
		}
	}
	if len(busy) > 0 {
		r.figure("at work since before that wait: " + firstOf(busy))
	}
	if len(asleep) > 0 {
		r.figure("asleep since before that wait: " + firstOf(asleep) +
			"; one with a transaction open may have the lock")
	}
}

// firstOf lists the first three of some, and says how many they are.
func firstOf(list []string) string {
	text := strings.Join(list[:min(3, len(list))], ", ")
	if len(list) > 3 {
		text += fmt.Sprintf(", %d in all", len(list))
	}
	return text
}
