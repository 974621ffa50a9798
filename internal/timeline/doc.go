// Package timeline turns a trace's events into who was in which state when, on one clock:
// goroutines and Ps. It refuses to say why: that is the ledger's. Threads and CPUs are room
// sched's.
//
// A [Timeline] is fed the events of a [Source] one by one and keeps a bounded stretch of the past.
// In reading order, each file standing on those before it:
//
//   - source.go: where events come from; room twin has traces written by hand for tests;
//   - names.go, stacks.go: what the name of a function says, and from that what a stack means;
//   - segment.go, ring.go: a segment for each state that a goroutine was in, with who ended it; the
//     ring that keeps the latest of all goroutines (huge_linux.go gives it huge pages);
//   - idents.go: who goroutines are, for the segments that refer to them;
//   - overlap.go, silence.go: stretches of time, and those in which nothing was said;
//   - history.go, procs.go, occupants.go: who held the Ps, what the Ps do, and the answers to both;
//   - stw.go, collector.go: stop-the-worlds; the collector's marks, sweeps, assists and heap;
//   - turns.go: the latest ends of waits, for waits that are queues;
//   - timeline.go: all of these together, the goroutines that are there now, and the clock;
//   - goroutine.go: a goroutine goes from one state to another; wake.go: who made it, or ended its
//     wait;
//   - naps.go: short sleeps between two looks for something;
//   - quick.go: the same for the changes that nearly all events are;
//   - ranges.go: assists, sweeps and stop-the-worlds on goroutines;
//   - apply.go: takes an event, or a record that stands for one;
//   - queries.go: what may be asked.
//
// The hot path is [Timeline.Record], then quick.go: of a 50 MB trace of Go 1.26, nearly all events.
// It allocates nothing. What it cannot take goes through [Timeline.Apply] and goroutine.go.
package timeline
