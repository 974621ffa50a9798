package twin

import (
	"iter"
	"slices"

	"github.com/whystall/whystall/exectrace"
)

// Trace is a parsed twin, a timeline.Source: the whole stream in memory.
type Trace struct {
	version exectrace.Version
	clock   exectrace.Clock
	events  []exectrace.Event
	strings []string
	stacks  [][]exectrace.Frame
	gaps    []exectrace.Gap
}

func (t *Trace) Version() exectrace.Version { return t.version }

func (t *Trace) Lacks() []string { return nil }

func (t *Trace) Clock() exectrace.Clock { return t.clock }

func (t *Trace) Gaps() []exectrace.Gap { return t.gaps }

func (t *Trace) Err() error { return nil }

func (t *Trace) Stats() exectrace.Stats { return exectrace.Stats{Events: int64(len(t.events))} }

// Blocks hands out copies of a few events at a time, so that a reader which keeps a block is found
// out.
func (t *Trace) Blocks() iter.Seq[[]exectrace.Event] {
	return func(yield func([]exectrace.Event) bool) {
		block := make([]exectrace.Event, 0, 64)
		for c := range slices.Chunk(t.events, 64) {
			block = append(block[:0], c...)
			if !yield(block) {
				return
			}
		}
	}
}

func (t *Trace) String(id exectrace.StringID) string {
	if int(id) >= len(t.strings) {
		return ""
	}
	return t.strings[id]
}

func (t *Trace) Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame {
	if int(id) >= len(t.stacks) {
		return dst
	}
	return append(dst, t.stacks[id]...)
}
