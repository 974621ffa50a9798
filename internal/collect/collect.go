// Package collect brings evidence from a running service into a case, and keeps it as it came. Each
// collector is an entry of a table, in a file of its own. The room refuses to interpret what it brings, to ask anything of a service that
// stops or burdens it for long, and to talk to any address but the one the user named.
package collect

import (
	"sort"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

// Phase is when a fetch happens. What stops the world is left out of the trace's time where it can be.
type Phase uint8

// Phases of a recording.
const (
	Before Phase = iota + 1
	During       // together with the trace
	After
)

// Collector brings one kind of evidence.
type Collector struct {
	Name    string
	Doc     string
	Order   int    // place in its phases, smallest first
	Asked   bool   // only when asked for
	Hint    string // what would make it available, when the service does not have it
	Fetches []Fetch

	// OldHarm is what it does to a target of Go before 1.N, OldBefore: there it is not asked for.
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
	Head   bool                              // the first Max bytes are all that is wanted
	Keep   func(body []byte) ([]byte, error) // what of the body may be kept; nil: all as it came
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

// Options of a recording.
type Options struct {
	URL      string   // of the pprof pages; "" with a PID: they are looked for
	PID      int      // of a process on this machine; 0: none, only the URL is asked
	Headers  []string // "Key: value"; sent with every request, never kept or printed
	For      time.Duration
	MaxSize  int64 // bytes of one body; 0: 1 GiB
	CPU      bool  // take a CPU profile as well; it interrupts the service 100 times a second and CPU
	Version  string
	Progress func(Progress) // nil: none; called from one goroutine at a time

	// Of a process.
	WithArgs bool
	NoProbe  bool    // do not look for its pprof pages
	NoKernel bool    // leave the kernel's event stream out
	NoStacks bool    // of that, leave the stacks out
	Budget   float64 // share of the target's CPU time that recording may cost, or a third of that of one CPU; 0: 0.06
	Brief    bool    // a segment of many: no readings before and after, which are cumulative and cost the target some

	// For tests; the zero values are right.
	Now    func() evidence.Moment
	Timing Timing
}

// Timing is how long an answer may take. Zero values mean the usual.
type Timing struct {
	Connect time.Duration // 10 s
	Quiet   time.Duration // without a byte, beyond the recording's own time: 20 s
	Whole   time.Duration // until its end, beyond the recording's own time: 2 min
	Page    time.Duration // the same of a page that is not recorded for a time: 30 s; one that drips ends its phase
	Busy    time.Duration // how long to wait for somebody else's trace to end: 30 s
	Retry   time.Duration // between tries while it goes on: 2 s
	Last    time.Duration // for what is fetched after Ctrl-C: 5 s
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

// Progress is what is going on. Note is a line worth keeping; else it is a state that the next one replaces.
type Progress struct {
	Note     string
	Doing    string
	Elapsed  time.Duration
	Of       time.Duration
	Received int64 // bytes of the trace
}

// Release is the running kernel's, "" where it is not told.
func Release() string { return release() }
