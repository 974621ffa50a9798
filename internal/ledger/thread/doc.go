// Package thread is the time ledger of native threads. Only the kernel's records are known of them:
// it says where each unit of work spent its time, behind whom, and behind which lock. It does not
// know goroutines. The ledger of goroutines borrows its walk for the threads below them.
//
// In reading order:
//
//	run.go      the pass over all units, and how a piece is booked
//	pick.go     which units are explained
//	turn.go     waits for a turn that others have first
//	futex.go    the list of futexes and their holders
//	unused.go   waits for locks outside of any unit
//	walk.go     the story of a thread, followed through those that it waited for
//	waitend.go  when a wait really ended
//	holder.go   who held a lock during a wait
//	waker.go    whether a waker released what was waited for: by its stack
//	calls.go    the same by its system call
//	piece.go    a piece of a story, and the hops to it
//	leaf.go     a thread's state as a leaf
//	site.go     what the place of a wait is called
//	usual.go    the usual place of a call, where no stack was taken
package thread
