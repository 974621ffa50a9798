// Package goruntime knows what the Go runtime prints of itself: GC and scheduler traces, goroutine
// dumps, profiles as text. It refuses to call counters since the start a rate, an idle pool a
// convoy, or a profile of CPU time a picture of waiting.
//
// Files in reading order:
//
//	kinds.go        Kinds: the table of this room
//	facts.go        names of the facts that rules over several parts read
//	words.go        medians, rates and amounts
//	gctrace.go      gctrace of all versions of Go: which lines, of which process
//	gctrace_line.go one line of it
//	gctrace_pace.go how fast cycles follow each other
//	gctrace_read.go what the cycles amount to
//	gctrace_heap.go how the heap comes and goes
//	gctrace_judge.go what follows from it
//	gctrace_stopped.go the same before Go 1.5, where all marking is a stop
//	scvg.go         lines of the scavenger and of the pacer
//	schedtrace.go   schedtrace and scheddetail
//	schedjudge.go   what follows from their samples
//	stack.go        stacks of goroutines: headers, calls, places
//	dump.go         dumps with a header for each goroutine: debug=2, panics, SIGQUIT
//	dump_claim.go   of them: which lines are a dump's
//	dump_words.go   of them: leaks and panics that are reported, lines in reversed order
//	counts.go       dumps with counts: debug=1, threadcreate
//	states.go       a count of goroutines by state, as uniq -c makes it
//	headless.go     one stack of them, without its count
//	delve.go        the debugger's list of goroutines
//	goland.go       that of GoLand, with stacks
//	deadlock.go     go-deadlock's reports
//	waits.go        what a stack waits for: a lock, a turn, another server
//	locks.go        who waits for which lock, and who likely holds it
//	dump_read.go    what a dump says
//	dump_rest.go    of it: where nothing stands out, and what it does not say
//	dump_locks.go   of it: who waits for locks
//	crash.go        of a process that ended by itself
//	errstack.go     the stack of an error, which is no goroutine's
//	race.go         reports of the race detector
//	pools.go        who waits for minutes for a turn of one object
//	stuck.go        who waits where nobody should for long: a fork, a sleep, GC
//	group.go        the largest group that waits in one place
//	crowds.go       what many goroutines at one place mean
//	profile.go      what profiles say, as files (ReadProfile) and as text
//	profcpu.go      of CPU profiles: what the runtime takes, and what follows
//	profsoft.go     of CPU profiles: floating point that is computed in software
//	profdelay.go    of mutexes and blocking: where others waited
//	profgoroutine.go of goroutines: a dump, or its sums
//	proftext.go     what go tool pprof prints
//	proftables.go   of it: what its tables, traces and heads say
//	collapsed.go    of it: tables that a page joined into one line
//	proflist.go     of it: -list
//	profstandard.go of Go's standard library: who calls it
//	profunwind.go   of CPU profiles: who walks stacks
//	profdiff.go     differences of two profiles
//	profraw.go      what it prints with -raw
//	legacy.go       profiles as text: heap, contention
//	threadz.go      gperftools' list of threads
//	memstats.go     runtime.MemStats: expvar, and programs' own lines
//	memfields.go    its fields by their names, however they are written
//	memjudge.go     what follows from them
//	gops.go         gops stats
//	metrics.go      Prometheus pages of Go programs, runtime/metrics
//	bars.go         histograms that programs draw with marks
//	proftags.go     go tool pprof -tags
//	profhead.go     of pprof's output: its head alone, and heads that name something else
//	profindex.go    the page /debug/pprof/
//	refused.go      benchmarks and inittrace, which are of no use here
package goruntime
