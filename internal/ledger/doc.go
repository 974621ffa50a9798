// Package ledger is the time ledger of goroutines: it accounts for every nanosecond that requests
// took, by the runtime's trace and, where there are any, by the kernel's records on the same clock.
// Its sums are exact, and what it cannot explain it says. It refuses to name causes: that is the
// detectors'. docs/ledger.md and docs/join.md have the rules.
//
// In reading order:
//
//	run.go, batches.go      one pass over a trace: from events, or from records where these say all
//	classify.go             what a segment of a goroutine is booked to by the runtime's word
//	explain.go, piece.go    the walk: a request's story, told backwards through those it waited for
//	locks.go                who had a lock
//	book.go                 how a piece of a story is booked
//	story.go, storylanes.go the slowest requests in full, for a report that shows them
//	sketch.go               every slow request in short, likewise
//	storyps.go              who held the Ps meanwhile
//	curves.go               how many goroutines were runnable when, and where requests waited, likewise
//	own.go                  the column of all: each request by its own states, without chains
//	join.go, joinexplain.go the walk's pieces, cut by what the kernel knows of the same time
//	paths.go, pathwords.go  stop-the-worlds and barriers, by who was awaited and what kept that thread
//	holders.go, enough.go   who held the Ps, and what their threads lacked; whether every thread had a CPU
//	ready.go                since when a socket had data, or a timer was due
//	align.go, oldclock.go   whether the two clocks fit; a trace before Go 1.22 is put on the kernel's
//	sharedclock.go          the same where that is not possible, by when the whole process stood still
//	joinresult.go, goran.go what is added up of the join; a Go program without a trace
//	series.go               what stopped or held up the process, over time
//	names.go, allocsite.go  names for what the books number
//	tables.go               what is listed beside the columns: stop-the-worlds, collections, sweeps, locks, Ps
package ledger
