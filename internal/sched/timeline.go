package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// Kernel is what the kernel's records tell: who was in which state when. Times are CLOCK_MONOTONIC, as the records have them, not relative to a
// Timeline's base. It is read whole before the trace: it looks anywhere. Its methods may be called by several goroutines.
type Timeline struct {
	columns
	src kernel.Source

	// Made at the first question, each behind its own sync.Once.
	wakers  wakerIndex
	wakes   futexWakeIndex
	futexes futexIndex
	notes   noteIndex
	process processIndex
}

// Header is the stream's.
func (k *Timeline) Header() kernel.Header { return k.header }

// Span is what the records cover. Outside of it every thread is unknown.
func (k *Timeline) Span() (begin, end int64) { return k.begin, k.end }

// Dropped is the time before which records were given up to bound memory; 0 none were.
func (k *Timeline) Dropped() int64 { return k.dropped }

// Levels are the recorder's levels of detail by time.
func (k *Timeline) Levels() []Level { return k.levels }

// Totals are sums over all threads of the target.
func (k *Timeline) Totals() Totals { return k.totals }

// Stack gives the frames of a StackID, innermost first.
func (k *Timeline) Stack(id uint32) []kernel.Frame {
	if id == 0 {
		return nil
	}
	return k.src.Stack(id)
}

// Ended tells how the stream ended: "" whole.
func (k *Timeline) Ended() string { return k.src.Ended() }
