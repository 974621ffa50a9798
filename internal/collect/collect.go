package collect

import (
	"sort"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

// Phase is when a fetch happens. A fetch that stops the world lies outside the trace's time where
// that is possible.
type Phase uint8

// Phases of a recording.
const (
	Before Phase = iota + 1
	During       // together with the trace
	After
)

// Collector fetches one kind of evidence from the service's HTTP pages.
type Collector struct {
	Name      string
	Doc       string
	Order     int    // place in its phases, smallest first
	Lead      bool   // it fetches the trace, and the others of its phase run beside it
	Asked     bool   // only when asked for: a CPU profile
	Unread    bool   // no detector reads it, and it stops the target's world: only with Options.Profiles
	Allocates bool   // it allocates in the target, or stops its world: not where memory is short
	AllOrNone bool   // when a fetch brought nothing, the following ones are left out
	Hint      string // what would make it available, when the service does not have it
	Fetches   []Fetch

	// OldHarm is what it does to a target of Go before 1.N, where N is OldBefore: there it is left
	// out.
	OldHarm   string
	OldBefore int64
}

// Fetch is one request.
type Fetch struct {
	Phase  Phase
	Path   string // below /debug/pprof, or below the service's root with Root
	Else   string // path to ask where there is nothing at Path
	Root   bool
	Query  string
	For    bool // the answer takes as long as the recording: "seconds" is added
	Member string
	Want   []format.Kind                     // what the body must be, known by its first bytes
	Max    int64                             // bytes; 0: the recording's --max-size
	Head   bool                              // only the first Max bytes are wanted
	Keep   func(body []byte) ([]byte, error) // returns what may be kept; nil: all
}

var collectors []*Collector

func register(c *Collector) *Collector {
	collectors = append(collectors, c)
	return c
}

// All lists the collectors in the order they run.
func All() []*Collector {
	s := append([]*Collector(nil), collectors...)
	sort.SliceStable(s, func(i, j int) bool { return s[i].Order < s[j].Order })
	return s
}

// lead is the collector of the trace.
func lead() *Collector {
	for _, c := range collectors {
		if c.Lead {
			return c
		}
	}
	return nil
}

// Options of a recording.
type Options struct {
	URL      string   // of the pprof pages; "" with a PID: they are looked for
	PID      int      // of a process on this machine; 0: none, only the URL is asked
	Headers  []string // "Key: value"; sent with every request, never kept or printed
	For      time.Duration
	MaxSize  int64 // bytes of one body; 0: 1 GiB
	Profiles bool  // take the heap and goroutine profiles as well, which no detector reads
	CPU      bool  // take a CPU profile as well, which interrupts each CPU 100 times a second
	Version  string
	Unasked  bool           // the case is kept though nobody asked for it
	Progress func(Progress) // nil: none; called from one goroutine at a time

	// With a process.
	WithArgs bool
	NoProbe  bool // do not look for its pprof pages
	NoKernel bool // leave the kernel's event stream out
	NoStacks bool // leave the stacks out of that stream
	Brief    bool // one segment of many: no readings before and after, which cost the target some

	// Alone is the stage of counters alone of an earlier recording of the target, where that is one
	// of many: this one then starts with the collectors. TellAlone is called with the stage when
	// this recording has counted it; nil: nobody wants it.
	Alone     *evidence.Stage
	TellAlone func(evidence.Stage)

	// Budget is the share of the target's CPU time that recording may cost, or a third of that
	// share of one CPU; 0: 0.06.
	Budget float64

	// For tests; the zero values are right.
	Now    func() evidence.Moment
	Timing Timing
}

// Timing is how long an answer may take. Zero values mean the usual.
type Timing struct {
	Connect time.Duration // 10 s
	Quiet   time.Duration // without a byte, beyond the recording's own time: 20 s
	Whole   time.Duration // until its end, beyond the recording's own time: 2 min
	Page    time.Duration // until the end of a page that comes at once: 30 s; one that drips ends its phase
	Busy    time.Duration // to wait for another client's trace to end: 30 s
	Retry   time.Duration // between tries while that goes on: 2 s
	Last    time.Duration // for what is fetched after Ctrl-C: 5 s
	Stage   time.Duration // of counters alone, and of the kernel's records alone: 2 s, less where For is short
}

func (t Timing) filled() Timing {
	set := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	set(&t.Connect, 10*time.Second)
	set(&t.Quiet, 20*time.Second)
	set(&t.Whole, 2*time.Minute)
	set(&t.Page, 30*time.Second)
	set(&t.Busy, 30*time.Second)
	set(&t.Retry, 2*time.Second)
	set(&t.Last, 5*time.Second)
	return t
}

// Progress is what is going on. A Note is a line worth keeping; without one it is a state, which
// the next Progress replaces.
type Progress struct {
	Note     string
	Doing    string
	Elapsed  time.Duration
	Of       time.Duration
	Received int64 // bytes of the trace
	Load     *Load // of the target; nil: not counted
}

// Release is the running kernel's release, "" where it is not known.
func Release() string { return release() }
