// Package thread is the time ledger of native threads, of which nothing is known but what the kernel recorded: where each unit
// of work spent its time, behind whom, and behind which lock. It does not know goroutines; the ledger of goroutines borrows its
// walk for the threads below them.
//
// In reading order: run.go (the pass, and how a piece is booked), leaf.go (a thread's state as a leaf), walk.go (a unit's story,
// told backwards through those it waited for), pick.go (which units are explained), turn.go (waits for others' turns), unused.go
// (waits outside of any unit), site.go, usual.go and calls.go (what a place and a call are named), futex.go (the list of locks).
package thread
