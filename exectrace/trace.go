package exectrace

import (
	"errors"
	"iter"
	"runtime"
)

// Version is the format of a trace: the minor version of the Go release that introduced it, one of
// 11, 19, 21, 22, 23, 25, 26.
type Version int

// Options of Open, New and FromBytes. The zero value is right for most.
type Options struct {
	Workers  int    // goroutines that decode; 0: as many as CPUs, 16 at most
	TempDir  string // where a pipe is spooled; "": os.TempDir
	MaxSpool int64  // bytes of a pipe to spool at most; 0: 16 GiB
}

// Trace is one execution trace. Its methods are not safe for concurrent use.
type Trace struct {
	data    []byte // the whole file, header included; often a mapping, which may fault: see guard
	mapping []byte // what Close unmaps; nil where data is the caller's
	closed  bool
	version Version
	opt     Options
	spooled []Gap // of MaxSpool, before any read
	tables  tables
	slots   slots
	read    read

	ownTimes bool     // tests: events keep their times even where those decrease
	v1       *v1Index // formats before 1.22: what the first pass found
}

var errClosed = errors.New("read trace: it is closed")

// FromBytes reads the trace in b, which must not change.
func FromBytes(b []byte, o Options) (*Trace, error) {
	return newTrace(b, o)
}

func newTrace(b []byte, o Options) (*Trace, error) {
	v, err := sniff(b)
	if err != nil {
		return nil, err
	}
	if o.Workers <= 0 {
		o.Workers = min(runtime.NumCPU(), 16)
	}
	t := &Trace{data: b, version: v, opt: o}
	t.tables.init()
	return t, nil
}

// Version is the trace's format.
func (t *Trace) Version() Version { return t.version }

// Blocks gives the events in order, some thousand at a time. A block is overwritten by the next. It
// may be ranged over more than once, but not concurrently; ids of strings and stacks are the same
// each time.
func (t *Trace) Blocks() iter.Seq[[]Event] {
	return func(yield func([]Event) bool) {
		t.reset()
		switch {
		case t.closed:
			t.read.fail(errClosed)
		case t.version < 22:
			t.blocksV1(v1Way{}, yield)
		default:
			t.blocksV2(yield)
		}
		t.end()
	}
}

// reset forgets the last read, except what is interned: ids stay as they are.
func (t *Trace) reset() {
	t.slots.reset()
	t.tables.full = ""
	t.read = read{
		stats: Stats{Bytes: int64(len(t.data))},
		gaps:  append([]Gap(nil), t.spooled...),
		clock: t.read.clock,
	}
}

func (t *Trace) end() {
	if what := t.tables.full; what != "" {
		t.read.gap(Gap{Reason: "more distinct " + what + " than are kept; the rest read as none"})
	}
}

// Events gives the events one by one, in order. The event is overwritten by the next.
func (t *Trace) Events() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		for block := range t.Blocks() {
			for i := range block {
				if !yield(&block[i]) {
					return
				}
			}
		}
	}
}

// Err is why the last read ended before the trace's end: the file shrank, or could not be read.
// Damage inside the trace is no error but a Gap.
func (t *Trace) Err() error { return t.read.err }

// Gaps lists what the last read could not decode.
func (t *Trace) Gaps() []Gap { return t.read.gaps }

// Stats counts what the last read saw.
func (t *Trace) Stats() Stats { return t.read.stats }

// Clock says what Time is. It is complete after a whole read.
func (t *Trace) Clock() Clock { return t.read.clock }

// String is the text of id, as the trace has it: it is not to be trusted.
func (t *Trace) String(id StringID) string { return t.tables.string(id) }

// Frames appends the frames of stack id to dst, innermost first. Names are as the trace has them:
// they are not to be trusted.
func (t *Trace) Frames(dst []Frame, id StackID) []Frame { return t.tables.appendFrames(dst, id) }

// LacksOffCPU is what [Trace.Lacks] says of every trace: whether a running
// goroutine's thread was on a CPU.
const LacksOffCPU = "time off the CPU inside running"

// Lacks lists, in words for reports, what this format does not record.
func (t *Trace) Lacks() []string {
	var l []string
	if t.version < 22 {
		l = append(l, "thread ids", "the cause and stack of stop-the-world pauses", "a clock to join with the kernel's")
	}
	if t.version < 25 {
		l = append(l, "wall-clock time")
	}
	return append(l, LacksOffCPU, "lock addresses and holders")
}
