package collect

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// A recording has these steps:
//
//  1. With a process: look at it once, and look for its pprof pages (pprof_probe.go).
//  2. With a process: for 2 s read its counters and nothing else. What follows is compared with them
//     (stages.go, toll.go).
//  3. Before: read the profiles and metrics that are cumulative a first time. The first answer
//     shows whether anybody is there.
//  4. Start the local collectors (local_run.go), and wait until they record.
//  5. If a trace is to come, let the kernel's records run for 2 s without it.
//  6. During: take the trace, and whatever runs together with it. If the service has no trace, wait
//     until the time is over, which counts from here. If the process ends, so does this step.
//  7. Stop the local collectors: what they saw reaches from before the trace to after it.
//  8. After: read the cumulative ones a second time. Those that take the longest come last, as they
//     are then furthest from the trace.
//
// The manifest has each step before it starts, so the manifest of a killed recording says how far
// the recording came.

// Error is why nothing, or not all, was recorded: one line with what to do next.
type Error struct {
	What string // operation and object
	Why  string
	Full bool // the disk is full: the folder could not be made a file either
}

func (e *Error) Error() string { return e.What + ": " + e.Why }

// Check returns an error if the options make no sense, before anything is created.
func Check(o Options) error {
	_, err := newSession(o)
	return err
}

// Begin returns the manifest to create a case with. An [Error] means that the process cannot be
// recorded.
func Begin(o Options) (evidence.Manifest, error) {
	s, err := newSession(o)
	if err != nil {
		return evidence.Manifest{}, err
	}
	m := evidence.Manifest{
		Whystall: o.Version,
		Begun:    s.o.Now(),
		Host:     evidence.Host{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Kernel: release()},
		AskedNS:  int64(o.For),
		Unasked:  o.Unasked,
	}
	if o.PID != 0 {
		if m.Target, _, err = identify(o.PID, o.WithArgs); err != nil {
			return m, err
		}
	}
	if s.asks {
		m.Target.URL = s.addr.shown()
	}
	return m, nil
}

// Run records into w. It returns an error if it recorded nothing that explain could use, or if the
// disk is full. What else went wrong is in the manifest and was reported as progress. A cancelled
// ctx ends the recording early; that is no error if something was recorded.
func Run(ctx context.Context, o Options, w *evidence.Writer) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	s.w = w
	run := &run{session: s, outcomes: map[string]*outcome{}}
	fail := run.phases(ctx)
	run.keepToll() // with what was left out last
	s.client.CloseIdleConnections()
	stopped := ""
	if ctx.Err() != nil {
		stopped = "by the user"
	}
	if err := w.Update(func(m *evidence.Manifest) { m.Ended, m.Stopped = s.o.Now(), stopped }); err != nil && fail == nil {
		fail = failf(full, "%v", err)
	}
	if fail == nil || fail.kind != full {
		run.report(stopped != "")
	}
	return run.verdict(fail)
}

type run struct {
	*session
	target   *watch       // nil without a process
	shared   proc.Quota   // the quota that the target and whystall share; zero: none
	tally    *tally       // nil without a process
	ease     atomic.Int32 // how many steps of detail the kernel's recorder should give up
	mu       sync.Mutex   // guards outcomes, order, kept, answered
	outcomes map[string]*outcome
	order    []string     // of outcomes, as they came
	kept     int          // members with something in them
	answered bool         // an answer came
	untraced bool         // the trace is left out to spare the service
	refaults int64        // of its cgroup, as the recording started
	thrashes bool         // it is busy, and short of memory by its cgroup's limit
	begun    atomic.Int64 // when the last try at the trace started, ns of UTC: for progress
	waiting  atomic.Bool  // for another client's trace to end
	trace    *failure
	gaveUp   *failure // why the pprof pages were given up, which was reported at once
}

func (r *run) phases(ctx context.Context) *failure {
	if r.o.PID != 0 {
		r.find(ctx)
	}
	counted := r.count()
	defer counted()
	r.alone(ctx)
	r.tally.enter(evidence.StageStart)
	if r.asks && !r.o.Brief {
		r.o.Progress(Progress{Doing: "reading profiles"})
		if fail := r.each(ctx, Before); r.ends(fail) || ctx.Err() != nil {
			return fail
		}
	}
	r.beforeKernel()
	stop := r.startLocals(ctx)
	r.kernelAlone(ctx)
	r.beforeTrace()
	fail := r.during(ctx)
	r.tally.enter(evidence.StageEnd)
	if f := stop(); f != nil {
		fail = f
	}
	counted()
	if r.ends(fail) {
		return fail
	}
	// After Ctrl-C the second readings are still worth a moment: without them the first ones say
	// nothing.
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Timing.Last)
		defer cancel()
		ctx = last
	}
	if !r.asks || r.o.Brief || r.target.gone() {
		return nil
	}
	r.o.Progress(Progress{Doing: "reading profiles again"})
	if fail = r.each(ctx, After); r.ends(fail) {
		return fail
	}
	return nil
}

// ends reports whether a failure ends the recording. A full disk does. So does a failure of the
// pprof pages, unless there is a process, whose local collectors go on.
func (r *run) ends(fail *failure) bool {
	switch {
	case fail == nil, fail.kind == drips: // after slow pages the trace may come all the same
		return false
	case r.target == nil, fail.kind == full:
		return true
	}
	if r.asks {
		r.asks, r.gaveUp = false, fail
		r.o.Progress(Progress{Note: fmt.Sprintf("%s: %s; going on with the kernel's data alone", r.addr.shown(), fail.text)})
	}
	return false
}

// find looks at the process, and looks for its pprof pages where the user named none.
func (r *run) find(ctx context.Context) {
	var t evidence.Target
	r.w.Update(func(m *evidence.Manifest) { t = m.Target })
	r.target = newWatch(r.o.PID, t.Exe)
	r.target.look()
	r.shared, _ = proc.FS{}.SharedQuota(r.o.PID, os.Getpid())
	sharesQuota.Store(r.shared.Group != "")
	r.note(r.target.halt.note(r.o.PID))
	r.note(sharing(r.shared))
	r.note(familyOf(r.o.PID).note(r.o.PID))
	if r.asks || t.Runtime != "go" {
		return
	}
	p := profiles{why: "--no-probe was given: to see the runtime's side, give the address with --pprof"}
	if !r.o.NoProbe {
		r.o.Progress(Progress{Doing: "looking for its pprof pages"})
		p = probeProfiles(ctx, &t)
	}
	if p.url == "" {
		r.settle(evidence.Collector{Name: "pprof", State: evidence.Unavailable, Why: p.why})
		return
	}
	at, err := parseAddress(p.url)
	if err != nil {
		return
	}
	r.addr, r.asks = at, true
	if p.dial != nil {
		r.connect(p.dial, nil)
	}
	r.w.Update(func(m *evidence.Manifest) { m.Target.URL = at.shown() })
	r.note("pprof pages found at " + at.shown())
}

// note reports a line that is worth keeping, unless it is empty or this is one segment of many: the
// first segment said it.
func (r *run) note(line string) {
	if line != "" && !r.o.Brief {
		r.o.Progress(Progress{Note: line})
	}
}

// each runs a phase's fetches one after another: each of two at once would show in the other's
// figures.
func (r *run) each(ctx context.Context, phase Phase) *failure {
	for _, c := range All() {
		for _, f := range c.Fetches {
			if f.Phase != phase || c.Asked && !r.o.CPU || c.Unread && !r.o.Profiles || r.skip(c, phase) {
				continue
			}
			why := r.harm(c)
			if why == "" {
				why = r.scarce(c)
			}
			if why != "" {
				r.settle(evidence.Collector{Name: c.Name, State: evidence.Unavailable, Why: why})
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			n, fail := r.fetch(ctx, f, c.Hint)
			r.book(c, f, n, fail)
			if fail != nil && (fail.kind == full || fail.kind == noAnswer && (!r.answered || phase == After) || fail.kind == drips) {
				return fail
			}
		}
	}
	return nil
}

// skip reports whether a fetch is of no use because an earlier one of the collector brought
// nothing: a second reading alone says nothing, nor does the rest of a collector that needs all its
// parts.
func (r *run) skip(c *Collector, phase Phase) bool {
	o := r.outcomes[c.Name]
	return o != nil && len(o.Members) == 0 && (phase == After || c.AllOrNone)
}

// harm says why a collector would hurt this target, "" if it would not.
func (r *run) harm(c *Collector) string {
	if c.OldHarm == "" {
		return ""
	}
	if minor := r.minor(); minor == 0 || minor >= c.OldBefore {
		return ""
	}
	return "not asked for: " + c.OldHarm
}

// minor is N if the target is known to be of Go 1.N, 0 otherwise.
func (r *run) minor() int64 {
	if minor := r.goMinor.Load(); minor != 0 {
		return minor
	}
	var v string
	r.w.Update(func(m *evidence.Manifest) { v = m.Target.GoVersion })
	return evidence.GoMinor(v)
}

// leadingNumber reads the digits that s starts with, and returns what follows them.
func leadingNumber(s []byte) (n int64, rest []byte) {
	for len(s) > 0 && s[0] >= '0' && s[0] <= '9' && n < 1000 {
		n, s = 10*n+int64(s[0]-'0'), s[1:]
	}
	return n, s
}

// during takes the trace, with the rest of its phase beside it.
func (r *run) during(ctx context.Context) *failure {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.asks && !r.untraced && r.target != nil {
		r.tally.enter(evidence.StageAll)
	}
	r.begun.Store(time.Now().UnixNano())
	begun := time.Now()
	ticking := r.tick()
	defer ticking()
	if r.target != nil {
		defer r.target.until(cancel)()
	}
	if !r.asks {
		guarded := r.guard(nil)
		r.wait(ctx, begun)
		guarded()
		return nil
	}
	var beside sync.WaitGroup
	for _, c := range All() {
		if c.Lead || c.Asked && !r.o.CPU {
			continue
		}
		for _, f := range c.Fetches {
			if f.Phase == During {
				beside.Go(func() { n, fail := r.fetch(ctx, f, c.Hint); r.book(c, f, n, fail) })
			}
		}
	}
	if r.untraced {
		guarded := r.guard(nil)
		r.wait(ctx, begun)
		guarded()
		beside.Wait()
		return nil
	}
	traced, endTrace := context.WithCancelCause(ctx)
	guarded := r.guard(func() { endTrace(errSpared) })
	n, fail := r.takeTrace(traced)
	endTrace(nil)
	r.waiting.Store(false)
	switch {
	case fail == nil && r.traceFor > 0, fail != nil && fail.kind == spared:
		r.wait(ctx, begun) // the kernel's records go on
	case fail != nil && (fail.kind == absent || fail.kind == refused) && r.kept > 0:
		// The profiles and metrics of that time are still worth having.
		r.o.Progress(Progress{Note: "trace: " + fail.text})
		r.wait(ctx, begun)
	case fail != nil && fail.kind != full && r.target != nil:
		// So is the kernel's data. If the trace ended because the process did, ctx is done by now.
		r.wait(ctx, begun)
	}
	guarded()
	ticking()
	if fail != nil && fail.kind == spared && n > 0 {
		fail = nil // the manifest says that it was shortened
	}
	r.trace = fail
	r.book(lead(), lead().Fetches[0], n, fail)
	if fail != nil && n == 0 {
		cancel()
	}
	beside.Wait()
	if fail != nil && (fail.kind == full || fail.kind == busy || fail.kind == noAnswer && n == 0) {
		return fail
	}
	return nil
}

// wait waits until the recording's time is over.
func (r *run) wait(ctx context.Context, begun time.Time) {
	select {
	case <-time.After(time.Until(begun.Add(r.o.For))):
	case <-ctx.Done():
	}
}

// takeTrace fetches the trace. While another client is taking one it waits and tries again: if the
// kernel is recorded meanwhile, no longer than the recording was to last.
func (r *run) takeTrace(ctx context.Context) (int64, *failure) {
	patience, retry := r.o.Timing.Busy, r.o.Timing.Retry
	if r.target != nil {
		patience = min(patience, r.o.For)
		retry = min(retry, patience/4)
	}
	until := time.Now().Add(patience)
	for first := true; ; first = false {
		r.begun.Store(time.Now().UnixNano())
		r.waiting.Store(false)
		n, fail := r.fetch(ctx, lead().Fetches[0], lead().Hint)
		if fail == nil || fail.kind != busy || time.Now().Add(retry).After(until) {
			return n, fail
		}
		if first {
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: another client is taking one: waiting up to %s for it to end", patience)})
		}
		r.waiting.Store(true)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return 0, failf(stopped, "stopped while waiting for another client's trace to end")
		}
	}
}

const progressEvery = 200 * time.Millisecond

// tick reports how the recording goes, until the function it returns is called.
func (r *run) tick() func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTimer(untilBeat(progressEvery))
		defer t.Stop()
		for {
			p := Progress{Doing: "recording", Elapsed: time.Since(time.Unix(0, r.begun.Load())), Of: r.o.For, Received: r.received.Load() + r.wrote.Load(), Load: r.tally.now()}
			if r.waiting.Load() {
				p = Progress{Doing: "waiting for another client's trace to end"}
			}
			r.o.Progress(p)
			select {
			case <-t.C:
				t.Reset(untilBeat(progressEvery))
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}
