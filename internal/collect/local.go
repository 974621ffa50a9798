package collect

import (
	"context"
	"io"

	"github.com/whystall/whystall/internal/evidence"
)

// Process is the target of local collectors.
type Process struct {
	PID   int    // in our own pid namespace
	NSPID int    // in its own
	Root  string // where its machine's /proc and /sys are: "" or, in tests, a folder
	For   int64  // ns that the recording lasts

	WithArgs bool
	Budget   float64 // share of the target's CPU time that recording it may cost
	Stacks   bool
}

// Local is a collector of a process on this machine. Probe tells beforehand whether it would work, nil, or why not and what would
// permit it; it changes nothing. Record writes the member until ctx ends, and leaves nothing behind, whatever happens.
type Local struct {
	Name    string
	Doc     string
	Order   int
	Streams []evidence.Stream
	Member  string
	Probe   func(Process) error
	Record  func(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error)
}

var locals []*Local

func registerLocal(c *Local) *Local {
	locals = append(locals, c)
	return c
}
