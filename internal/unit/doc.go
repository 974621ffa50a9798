// Package unit finds the units of work of native threads, of which nothing is known but what the
// kernel recorded: a C++ server, Java, Python. It refuses to say where their time went, which is
// the ledger's part, and to divide work that a thread does without ever waiting in between.
//
// The idea: a thread that serves requests comes back to one wait again and again, its wait for
// work, and something from outside ends that wait. A unit of work is what lies between two such
// waits. All else in the room is about telling the wait for work from locks, answers, pauses and
// sleeps.
//
// The files in reading order. A file calls only files above it.
//
//	unit.go    what the room gives: Unit and Set
//	life.go    a thread from its creation to its end
//	site.go    a place where a thread waits, and who ended its waits there
//	stack.go   what a stack says of a wait
//	finder.go  the state of one search
//	wait.go    what one wait is in, and what ended it
//	hand.go    connections that go from thread to thread
//	lead.go    pools in which threads take turns at waiting for events
//	count.go   all waits of all threads, counted by site
//	choose.go  which site of one life is its wait for work
//	role.go    threads that wait for work in the same way have one role
//	pool.go    lives that are too short to be judged by themselves, all of one name together
//	queue.go   a second wait for work, besides the network
//	judge.go   from lives to roles, with all of these
//	make.go    what it takes to make a thread and to give its stack back
//	cut.go     lives are cut into units
//	unread.go  since when a unit's data lay in its socket
//	herd.go    threads that were woken for nothing have no unit
//	list.go    which groups are requests
//	find.go    the steps, in order: start here
//
// The hot path is count.go and cut.go, which both walk every stretch of every thread once; the rest
// works on lives and sites. A Set may be read by several goroutines: nothing in it changes after
// Find.
package unit
