package exectrace

import (
	"errors"
	"io"
	"iter"
)

// Version is the format of a trace: the minor version of the Go release that introduced it,
// one of 11, 19, 21, 22, 23, 25, 26.
type Version int

// Options of Open, New. The zero value is right for most.
type Options struct {
	Workers  int    // goroutines that decode; 0: as many as CPUs
	TempDir  string // where a pipe is spooled; "": os.TempDir
	MaxSpool int64  // bytes of a pipe to spool at most; 0: 16 GiB
}

// Trace is one execution trace.
type Trace struct{}

var errTODO = errors.New("exectrace: not written yet")

// Open maps the trace in the named file.
func Open(name string, o Options) (*Trace, error) { return nil, errTODO }

// New reads the trace from r, which is spooled to a temporary file.
func New(r io.Reader, o Options) (*Trace, error) { return nil, errTODO }

// FromBytes reads the trace in b, which must not change.
func FromBytes(b []byte, o Options) (*Trace, error) { return nil, errTODO }

// Close unmaps the file and removes what was spooled.
func (t *Trace) Close() error { return nil }

// Version tells the format.
func (t *Trace) Version() Version { return 0 }

// Lacks lists what this format does not record, in words: for reports.
func (t *Trace) Lacks() []string { return nil }

// Clock tells what Time is. It is complete after a whole read.
func (t *Trace) Clock() Clock { return Clock{} }

// Blocks gives the events in order, some thousand at a time. A block is overwritten by the next.
// It may be ranged over more than once, not concurrently.
func (t *Trace) Blocks() iter.Seq[[]Event] { return nil }

// Events gives the events one by one, in order. The event is overwritten by the next.
func (t *Trace) Events() iter.Seq[*Event] { return nil }

// Err tells why the last read ended before the trace's end: the file shrank or could not be read. Damage
// inside the trace is no error but a Gap.
func (t *Trace) Err() error { return nil }

// Gaps lists what the last read could not decode.
func (t *Trace) Gaps() []Gap { return nil }

// Stats counts what the last read saw.
func (t *Trace) Stats() Stats { return Stats{} }

// String is the text of id, as the trace has it: untrusted.
func (t *Trace) String(id StringID) string { return "" }

// Frames appends the frames of stack id to dst, innermost first. Names are as the trace has them: untrusted.
func (t *Trace) Frames(dst []Frame, id StackID) []Frame { return dst }
