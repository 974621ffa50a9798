package request

import (
	"iter"

	"github.com/whystall/whystall/exectrace"
)

// Finder finds activations. Use: NewFinder, Learn on the stream's beginning, Event for every event of a fresh
// pass in order, Finish. It is for one goroutine.
type Finder struct {
	src Source
	o   Options
	out []Activation
}

// NewFinder makes a Finder for the trace whose stacks src resolves.
func NewFinder(src Source, o Options) *Finder {
	if o.Lookback == 0 {
		o.Lookback = 10e9
	}
	return &Finder{src: src, o: o}
}

// Learn looks at a bounded beginning of the trace for the loops of unknown programs, so that the
// first pass over the whole finds them from their first event. Without it they are found from when they repeat themselves.
func (f *Finder) Learn(blocks iter.Seq[[]exectrace.Event]) {}

// Event takes the next event, before anybody applies it to the states of goroutines, and returns the activations it
// closes: nearly always none. The slice is overwritten by the next call. An activation's End may
// be earlier than the event: what proves an end can come after it.
func (f *Finder) Event(ev *exectrace.Event) []Activation { return nil }

// Finish returns the activations still open when the trace ends at end, as left out.
func (f *Finder) Finish(end exectrace.Time) []Activation { return nil }

// Current tells in which group's activation, as far as known now, the goroutine of slot is.
func (f *Finder) Current(slot uint32) GroupID { return NoGroup }

// Oldest is the time from which on history is needed for activations that are open at now: at most Options.Lookback
// before it. Long polls are given up on, not waited for.
func (f *Finder) Oldest(now exectrace.Time) exectrace.Time { return now }

// Groups lists the groups found so far. Counts and Listed are right after Finish.
func (f *Finder) Groups() []Group { return nil }

// Name is the text of id: from the trace, untrusted.
func (f *Finder) Name(id NameID) string { return "" }
