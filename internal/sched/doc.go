// Package sched turns the kernel's records into who was in which state when: threads, CPUs, futexes and the pauses of
// the Go runtime, on CLOCK_MONOTONIC. It knows nothing of goroutines and refuses to say why: that is the ledger's.
//
// In reading order: doing.go (what a thread may do), state.go (what is kept), read.go and switch.go (from records to
// stretches), block.go (what a blocked thread waits in), sampled.go, finish.go (what is known only at the end), query.go,
// events.go and cpu.go (what may be asked), process.go (the threads of the target together), futex.go (locks), notes.go
// and pause.go (stop-the-worlds), align.go and control.go (whether a trace has the same clock).
package sched
