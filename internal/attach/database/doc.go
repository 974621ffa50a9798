// Package database knows what databases say of themselves: slow logs, plans, status pages. It
// refuses to take their counters since the start for rates, and a lock in their tables or a bad
// plan for a cause that whystall could look into.
//
// Files in reading order:
//
//	kinds.go          Kinds: the table of this room
//	facts.go          facts for rules over several parts; how a reading is gathered
//	numbers.go        durations and numbers, read and printed
//	tidbslow.go       TiDB's slow log
//	tidbplan.go       TiDB's plans: their rows and times
//	tidbplan_read.go  what a plan says: client's clock against server's first
package database
