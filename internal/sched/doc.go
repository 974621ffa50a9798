// Package sched turns the kernel's records into which thread and which CPU was in which state when,
// with the futexes and the pauses of the Go runtime, on CLOCK_MONOTONIC. It knows nothing of
// goroutines and refuses to say why a thread was slow: that is the ledger's part.
//
// A stream is read whole into columns (New), and then asked. The files in reading order; a file
// calls only files above it.
//
// What there is:
//
//	doing.go     the states of a thread, and what it may be blocked in
//	tids.go      from TID to thread
//	columns.go   what is kept of a stream
//
// From records to columns:
//
//	builder.go   the primitives: add a segment, a time off a CPU, a life, an event
//	births.go    threads are made and end
//	wake.go      threads are woken and queued
//	switch.go    threads leave a CPU and come to one
//	details.go   stacks of waits, kinds of files, losses, who held a CPU
//	trim.go      the oldest is given up, to bound memory
//	block.go     what a kernel stack says that a thread waits in
//	syscall.go   what a system call says of it
//	gaps.go      what is unknown since records were lost
//	overlay.go   faults, reclaims and the like are laid over states
//	sampled.go   the same from samples
//	finish.go    all that is known only at the end
//	read.go      New: from record to record; start here
//
// What may be asked:
//
//	timeline.go  the Timeline, and what is known of the whole stream
//	threads.go   names, numbers and lives of threads
//	stretches.go the states of one thread
//	stays.go     when each thread was on a CPU
//	lives.go     which waits belong to making and ending a thread
//	events.go    faults, signals, samples and the like
//	wakings.go   which thread woke which
//	cpu.go       who had a CPU, and behind whom a thread was queued
//	process.go   the target as a whole
//	library.go   functions of languages' and locks' libraries
//	names.go     what a wait is called
//	interpreter.go the locks of interpreters, of which each has many futexes
//	jvm.go       what a thread of a Java virtual machine waits for
//	futexname.go what a futex is part of, by functions' names
//	futex.go     the same by all waits, with who released it
//	notes.go     the Go runtime's notes, on which a pause sleeps
//	pause.go     the phases of a stop-the-world of the trace
//	bynote.go    pauses without a trace
//	align.go     whether a Go trace has the same clock
//	control.go   what it is worth that a thread was held up
//
// The hot path is builder.record in read.go, with switch.go, wake.go and builder.go: some 100 ns
// for each of millions of records. Next are Timeline.each in stretches.go and the sweep in
// process.go (BenchmarkKernel).
//
// Only New and the builder write to the columns. After that a Timeline may be asked by several
// goroutines: indexes that are made at the first question are behind a sync.Once each, and the one
// hint that questions write (thread.found) is atomic.
package sched
