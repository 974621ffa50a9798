package collect

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// A recording goes:
//
//  1. Before: profiles and metrics that are cumulative are read a first time. The first answer shows whether anybody is there.
//  2. During: the trace, and what is to run together with it. Where the service has no trace, the time is waited out.
//  3. After: the cumulative ones a second time, those that take the longest away from the trace last.
//
// Each step is in the manifest before it begins, so a killed recording tells how far it came.

// Error is why nothing, or not all, was recorded: one line with what to do next.
type Error struct {
	What string // operation and object
	Why  string
	Full bool // the disk is full: the folder could not be made a file either
}

func (e *Error) Error() string { return e.What + ": " + e.Why }

// Check tells whether the options make sense, before anything is created.
func Check(o Options) error {
	_, err := newSession(o)
	return err
}

// Begin is the manifest to create a case with.
func Begin(o Options) (evidence.Manifest, error) {
	s, err := newSession(o)
	if err != nil {
		return evidence.Manifest{}, err
	}
	return evidence.Manifest{
		Whystall: o.Version,
		Begun:    s.o.Now(),
		Host:     evidence.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()},
		Target:   evidence.Target{URL: s.at.shown()},
		AskedNS:  int64(o.For),
	}, nil
}

// Run records into w. It returns an error when nothing was recorded that explain could use, or the disk is full; what went wrong besides is in
// the manifest and was told as progress. A cancelled ctx ends it early and is no error when something was recorded.
func Run(ctx context.Context, o Options, w *evidence.Writer) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	defer s.client.CloseIdleConnections()
	s.w = w
	run := &run{session: s, outcome: map[string]*evidence.Collector{}}
	fail := run.phases(ctx)
	stopped := ""
	if ctx.Err() != nil {
		stopped = "by the user"
	}
	if err := w.Update(func(m *evidence.Manifest) { m.Ended, m.Stopped = s.o.Now(), stopped }); err != nil && fail == nil {
		fail = failf(full, "%v", err)
	}
	if fail == nil || fail.kind != full {
		run.tell(stopped != "")
	}
	return run.verdict(fail)
}

type run struct {
	*session
	mu      sync.Mutex
	outcome map[string]*evidence.Collector
	kept    int          // members with something in them
	heard   bool         // an answer came
	begun   atomic.Int64 // of the last try at the trace, for progress
	trace   *failure
}

func (r *run) phases(ctx context.Context) *failure {
	r.o.Progress(Progress{Doing: "reading profiles"})
	if fail := r.each(ctx, Before); fail != nil || ctx.Err() != nil {
		return fail
	}
	if fail := r.during(ctx); fail != nil {
		return fail
	}
	// After Ctrl-C the second readings are still worth a moment: without them the first ones say nothing.
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Timing.Last)
		defer cancel()
		ctx = last
	}
	r.o.Progress(Progress{Doing: "reading profiles again"})
	return r.each(ctx, After)
}

// each runs a phase's fetches one after another: two at once would be in each other's figures.
func (r *run) each(ctx context.Context, phase Phase) *failure {
	for _, c := range All() {
		for _, f := range c.Fetches {
			if f.Phase != phase || c.Asked && !r.o.CPU || r.skip(c, phase) {
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			n, fail := r.fetch(ctx, f, c.Hint)
			r.book(c, f, n, fail)
			if fail != nil && (fail.kind == full || fail.kind == noAnswer && (!r.heard || phase == After)) {
				return fail
			}
		}
	}
	return nil
}

// skip leaves out what did not come the first time: a second reading alone is of no use.
func (r *run) skip(c *Collector, phase Phase) bool {
	o := r.outcome[c.Name]
	return o != nil && len(o.Members) == 0 && (phase == After || c.Name == "mutex")
}

// during takes the trace, with the rest of its phase beside it.
func (r *run) during(ctx context.Context) *failure {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.begun.Store(time.Now().UnixNano())
	begun := time.Now()
	var beside sync.WaitGroup
	for _, c := range All() {
		if c.Name == "trace" || c.Asked && !r.o.CPU {
			continue
		}
		for _, f := range c.Fetches {
			if f.Phase == During {
				beside.Go(func() { n, fail := r.fetch(ctx, f, c.Hint); r.book(c, f, n, fail) })
			}
		}
	}
	ticking := r.tick()
	trace := find("trace")
	n, fail := r.takeTrace(ctx, trace)
	if fail != nil && (fail.kind == absent || fail.kind == refused) && r.kept > 0 {
		// The profiles and metrics of that time are still worth having.
		r.o.Progress(Progress{Note: "trace: " + fail.text})
		select {
		case <-time.After(time.Until(begun.Add(r.o.For))):
		case <-ctx.Done():
		}
	}
	ticking()
	r.trace = fail
	r.book(trace, trace.Fetches[0], n, fail)
	if fail != nil && n == 0 {
		cancel()
	}
	beside.Wait()
	if fail != nil && (fail.kind == full || fail.kind == busy || fail.kind == noAnswer && n == 0) {
		return fail
	}
	return nil
}

// takeTrace waits for a while where somebody else is taking one.
func (r *run) takeTrace(ctx context.Context, c *Collector) (int64, *failure) {
	until := time.Now().Add(r.o.Timing.Busy)
	for told := false; ; told = true {
		r.begun.Store(time.Now().UnixNano())
		n, fail := r.fetch(ctx, c.Fetches[0], c.Hint)
		if fail == nil || fail.kind != busy || time.Now().Add(r.o.Timing.Retry).After(until) {
			return n, fail
		}
		if !told {
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: somebody else is taking a trace there: waiting up to %s for it to end", r.o.Timing.Busy)})
		}
		select {
		case <-time.After(r.o.Timing.Retry):
		case <-ctx.Done():
			return 0, failf(stopped, "stopped while waiting for somebody else's trace to end")
		}
	}
}

// tick tells how the trace goes, until the function it returns is called.
func (r *run) tick() func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(250 * time.Millisecond)
		defer t.Stop()
		for {
			r.o.Progress(Progress{Doing: "recording", Elapsed: time.Since(time.Unix(0, r.begun.Load())), Of: r.o.For, Received: r.received.Load()})
			select {
			case <-t.C:
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// book puts a fetch's end into its collector's outcome, and that into the manifest.
func (r *run) book(c *Collector, f Fetch, n int64, fail *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.outcome[c.Name]
	if o == nil {
		o = &evidence.Collector{Name: c.Name, State: evidence.Ready}
		r.outcome[c.Name] = o
	}
	if fail == nil || fail.kind != noAnswer {
		r.heard = true
	}
	if n > 0 {
		r.kept++
		o.Members = append(o.Members, f.Member)
	}
	if fail != nil {
		// The worse word stays: a whole second reading does not mend the first.
		o.Why = fail.text
		if o.State = evidence.Broken; (fail.kind == absent || fail.kind == refused) && len(o.Members) == 0 {
			o.State = evidence.Unavailable
		}
	}
	r.w.Update(func(m *evidence.Manifest) {
		m.Collectors = m.Collectors[:0:0]
		for _, c := range All() {
			if o := r.outcome[c.Name]; o != nil {
				kept := *o
				kept.Members = slices.Clone(o.Members)
				m.Collectors = append(m.Collectors, kept)
			}
		}
	})
}

// tell says in a line each what is not as it should be. What a service merely does not offer is left to the report,
// which has it under what could not be checked.
func (r *run) tell(stopped bool) {
	for _, c := range All() {
		o := r.outcome[c.Name]
		if o == nil || o.State != evidence.Broken || stopped && strings.HasPrefix(o.Why, "stopped") {
			continue
		}
		if c.Name == "trace" && slices.Contains(o.Members, evidence.TraceMember) {
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: %s; the %s that came are kept", o.Why, size(r.received.Load()))})
		}
	}
}

// verdict turns what happened into the one error a person sees.
func (r *run) verdict(fail *failure) error {
	what := "record " + r.at.shown()
	switch {
	case fail != nil && fail.kind == full:
		return &Error{What: "record", Why: fail.text, Full: true}
	case fail != nil && fail.kind == busy:
		return &Error{What: what, Why: fail.text}
	case r.outcome["trace"] != nil && len(r.outcome["trace"].Members) > 0, r.kept > 0 && fail == nil:
		return nil
	case fail != nil:
		return &Error{What: what, Why: fail.text}
	case r.trace != nil:
		return &Error{What: what, Why: r.trace.text}
	}
	return &Error{What: what, Why: errNothing.Error()}
}

var errNothing = errors.New("stopped before anything was recorded")

func find(name string) *Collector {
	for _, c := range collectors {
		if c.Name == name {
			return c
		}
	}
	return nil
}
