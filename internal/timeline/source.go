package timeline

import (
	"iter"

	"github.com/whystall/whystall/exectrace"
)

// Source is a stream of events with the tables they refer to: an [exectrace.Trace], or a trace
// written by hand (room twin). Everything in it that came from a file is untrusted.
type Source interface {
	Version() exectrace.Version
	Lacks() []string
	// Clock, Gaps, Stats and Err are complete after Blocks was ranged over to its end.
	Clock() exectrace.Clock
	Gaps() []exectrace.Gap
	Stats() exectrace.Stats
	Err() error
	// Blocks gives the events in order. A block is overwritten by the next.
	Blocks() iter.Seq[[]exectrace.Event]
	String(exectrace.StringID) string
	Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame
}

var _ Source = (*exectrace.Trace)(nil)
