package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// Timeline is what the kernel's records say: which thread was in which state when. Times are
// CLOCK_MONOTONIC as the records have them, while those of package timeline are relative to the
// trace's first event. It is read whole before any question, since a question may be about any
// time.
//
// Its methods may be called by several goroutines: the columns do not change after New, and what is
// made at the first question is behind a lock.
type Timeline struct {
	columns
	src kernel.Source

	// Made at the first question, each behind a sync.Once of its own.
	wakers  wakerIndex
	wakes   futexWakeIndex
	futexes futexIndex
	notes   noteIndex
	process processIndex
}

// Header is the header of the stream.
func (k *Timeline) Header() kernel.Header { return k.header }

// Span is what the records cover. Outside of it every thread is unknown.
func (k *Timeline) Span() (begin, end int64) { return k.begin, k.end }

// Dropped is the time before which records were given up to bound memory; 0 if none were.
func (k *Timeline) Dropped() int64 { return k.dropped }

// Levels are the recorder's levels of detail by time.
func (k *Timeline) Levels() []Level { return k.levels }

// Made reports whether a descriptor was nothing but a connection that the target's side made: what
// comes there are answers. It is false where that is not known.
func (k *Timeline) Made(fd uint64) bool { return k.made[fd] }

// Totals are sums over all threads of the target.
func (k *Timeline) Totals() Totals { return k.totals }

// Stack gives the frames of a StackID, innermost first.
func (k *Timeline) Stack(id uint32) []kernel.Frame {
	if id == 0 {
		return nil
	}
	return k.src.Stack(id)
}

// Ended says how the stream ended: "" if it is whole.
func (k *Timeline) Ended() string { return k.src.Ended() }
