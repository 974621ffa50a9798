// Package timeline turns evidence into who was in which state when, on one clock. It refuses to say why: that is the ledger's.
//
// A [Timeline] is fed the events of a [Source] one by one and keeps a bounded stretch of the past: a segment for
// each state a goroutine was in, with who ended it (ring.go); who held the Ps (procs.go); the
// stop-the-worlds and other ranges (ranges.go); what the stacks mean (stacks.go).
package timeline
