// Package thread is the time ledger of native threads. Only the kernel's records are known of them:
// it says where each unit of work spent its time, behind whom, and behind which lock. It does not
// know goroutines. The ledger of goroutines borrows its walk for the threads below them.
//
// In reading order:
//
//	run.go      the pass over all units of work
//	pick.go     which units are explained
//	all.go      the column of all: the units' own states
//	explain.go  how the pieces of a unit's story are booked
//	story.go    slow units in short and in full, for a report that shows them
//	teller.go   threads and CPUs of such a story
//	turn.go     waits for a turn that others have first
//	locks.go    the locks that slow units waited for
//	unused.go   waits for locks outside of any unit
//	futex.go    the list of all futexes and their holders
//	walk.go     the story of a thread, followed through those that it waited for
//	waitend.go  when a wait really ended
//	holder.go   who held a lock during a wait
//	interpreter.go who held an interpreter's lock where no release shows it
//	waker.go    whether a waker released what was waited for: by its stack
//	calls.go    the same by its system call
//	piece.go    a piece of a story, and the hops to it
//	leaf.go     a thread's state as a leaf
//	usual.go    where a thread waits, also where no stack was taken
//	site.go     the places of waits, by number
//	name.go     what a wait, a lock and a futex are called, by their stacks
//
// Each file calls those below it, and none above it. The methods of pass and of Walk stand in the
// file whose question they answer.
package thread
