package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

// A recording goes:
//
//  1. Of a process: it is looked at once, and its pprof pages are looked for (pprof_probe.go).
//  2. Before: profiles and metrics that are cumulative are read a first time. The first answer shows whether anybody is there.
//  3. Local collectors start (local_run.go), and are waited for until they record.
//  4. During: the trace, and what is to run together with it. Where the service has no trace, the time is waited out. A
//     process that ends, ends it.
//  5. Local collectors are stopped: what they saw reaches from before the trace to after it.
//  6. After: the cumulative ones a second time, those that take the longest away from the trace last.
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

// Begin is the manifest to create a case with. An [Error] tells that the process cannot be recorded.
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
	}
	if o.PID != 0 {
		if m.Target, _, err = identify(o.PID, o.WithArgs); err != nil {
			return m, err
		}
	}
	if s.asks {
		m.Target.URL = s.at.shown()
	}
	return m, nil
}

// Run records into w. It returns an error when nothing was recorded that explain could use, or the disk is full; what went wrong besides is in
// the manifest and was told as progress. A cancelled ctx ends it early and is no error when something was recorded.
func Run(ctx context.Context, o Options, w *evidence.Writer) error {
	s, err := newSession(o)
	if err != nil {
		return err
	}
	s.w = w
	run := &run{session: s, outcome: map[string]*evidence.Collector{}}
	fail := run.phases(ctx)
	s.client.CloseIdleConnections()
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
	target  *watch     // nil without a process
	shared  proc.Quota // that binds it and us together; zero: none does
	mu      sync.Mutex
	outcome map[string]*evidence.Collector
	order   []string     // of outcome, as they came
	kept    int          // members with something in them
	heard   bool         // an answer came
	begun   atomic.Int64 // of the last try at the trace, for progress
	awaits  atomic.Bool  // somebody else's trace to end
	trace   *failure
	told    string // why the pprof pages were given up, which was said at once
}

func (r *run) phases(ctx context.Context) *failure {
	if r.o.PID != 0 {
		r.find(ctx)
	}
	if r.asks && !r.o.Brief {
		r.o.Progress(Progress{Doing: "reading profiles"})
		if fail := r.each(ctx, Before); r.alone(fail) || ctx.Err() != nil {
			return fail
		}
	}
	stop := r.startLocals(ctx)
	fail := r.during(ctx)
	if f := stop(); f != nil {
		fail = f
	}
	if fail != nil {
		if r.alone(fail) {
			return fail
		}
		fail = nil
	}
	// After Ctrl-C the second readings are still worth a moment: without them the first ones say nothing.
	if ctx.Err() != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Timing.Last)
		defer cancel()
		ctx = last
	}
	if r.asks && !r.o.Brief && !r.target.gone() {
		r.o.Progress(Progress{Doing: "reading profiles again"})
		if fail = r.each(ctx, After); !r.alone(fail) {
			fail = nil
		}
	}
	return fail
}

// alone tells whether a failure of the pprof pages ends the recording: beside a process' own collectors it does not.
func (r *run) alone(fail *failure) bool {
	if fail != nil && fail.kind == drips {
		return false // the trace may come all the same
	}
	if fail == nil || r.target == nil || fail.kind == full {
		return fail != nil
	}
	if r.asks {
		r.asks, r.told = false, fail.text
		r.o.Progress(Progress{Note: fmt.Sprintf("%s: %s; going on with what the kernel tells", r.at.shown(), fail.text)})
	}
	return false
}

// find looks for the process' pprof pages where the user named none.
func (r *run) find(ctx context.Context) {
	var t evidence.Target
	r.w.Update(func(m *evidence.Manifest) { t = m.Target })
	r.target = newWatch(r.o.PID, t.Exe)
	r.target.look()
	if s := r.target.halt.note(r.o.PID); s != "" && !r.o.Brief {
		r.o.Progress(Progress{Note: s})
	}
	r.shared, _ = proc.FS{}.SharedQuota(r.o.PID, os.Getpid())
	sharesQuota.Store(r.shared.Group != "")
	if s := sharing(r.shared); s != "" && !r.o.Brief {
		r.o.Progress(Progress{Note: s})
	}
	if s := familyOf(r.o.PID).note(r.o.PID); s != "" && !r.o.Brief {
		r.o.Progress(Progress{Note: s})
	}
	if r.asks || t.Runtime != "go" {
		return
	}
	p := profiles{why: "--no-probe was given: name the address with --pprof for the runtime's side"}
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
	r.at, r.asks = at, true
	if p.dial != nil {
		r.connect(p.dial, nil)
	}
	r.w.Update(func(m *evidence.Manifest) { m.Target.URL = at.shown() })
	if !r.o.Brief {
		r.o.Progress(Progress{Note: "pprof pages found at " + at.shown()})
	}
}

// each runs a phase's fetches one after another: two at once would be in each other's figures.
func (r *run) each(ctx context.Context, phase Phase) *failure {
	for _, c := range All() {
		for _, f := range c.Fetches {
			if f.Phase != phase || c.Asked && !r.o.CPU || r.skip(c, phase) {
				continue
			}
			if why := r.harm(c); why != "" {
				r.settle(evidence.Collector{Name: c.Name, State: evidence.Unavailable, Why: why})
				continue
			}
			if ctx.Err() != nil {
				return nil
			}
			n, fail := r.fetch(ctx, f, c.Hint)
			r.book(c, f, n, fail)
			if fail != nil && (fail.kind == full || fail.kind == noAnswer && (!r.heard || phase == After) || fail.kind == drips) {
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

// harm tells why a collector would hurt this target, "" if it would not.
func (r *run) harm(c *Collector) string {
	if c.OldHarm == "" {
		return ""
	}
	minor := r.goMinor.Load()
	if minor == 0 {
		var v string
		r.w.Update(func(m *evidence.Manifest) { v = m.Target.GoVersion })
		minor = evidence.GoMinor(v)
	}
	if minor == 0 || minor >= c.OldBefore {
		return ""
	}
	return "not asked for: " + c.OldHarm
}

// leadingNumber reads what digits s begins with, and what follows them.
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
	r.begun.Store(time.Now().UnixNano())
	begun := time.Now()
	ticking := r.tick()
	defer ticking()
	if r.target != nil {
		defer r.target.until(cancel)()
	}
	if !r.asks {
		r.wait(ctx, begun)
		return nil
	}
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
	trace := find("trace")
	n, fail := r.takeTrace(ctx, trace)
	r.awaits.Store(false)
	switch {
	case fail != nil && (fail.kind == absent || fail.kind == refused) && r.kept > 0:
		// The profiles and metrics of that time are still worth having.
		r.o.Progress(Progress{Note: "trace: " + fail.text})
		r.wait(ctx, begun)
	case fail != nil && fail.kind != full && r.target != nil:
		// So is what the kernel tells. Where it ended because the process did, there is no more to wait for.
		r.wait(ctx, begun)
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

// wait waits the recording's time out.
func (r *run) wait(ctx context.Context, begun time.Time) {
	select {
	case <-time.After(time.Until(begun.Add(r.o.For))):
	case <-ctx.Done():
	}
}

// takeTrace waits for a while where somebody else is taking one: where the kernel is recorded meanwhile, no longer than was asked for.
func (r *run) takeTrace(ctx context.Context, c *Collector) (int64, *failure) {
	patience, retry := r.o.Timing.Busy, r.o.Timing.Retry
	if r.target != nil {
		patience = min(patience, r.o.For)
		retry = min(retry, patience/4)
	}
	until := time.Now().Add(patience)
	for told := false; ; told = true {
		r.begun.Store(time.Now().UnixNano())
		r.awaits.Store(false)
		n, fail := r.fetch(ctx, c.Fetches[0], c.Hint)
		if fail == nil || fail.kind != busy || time.Now().Add(retry).After(until) {
			return n, fail
		}
		if !told {
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: somebody else is taking a trace there: waiting up to %s for it to end", patience)})
		}
		r.awaits.Store(true)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return 0, failf(stopped, "stopped while waiting for somebody else's trace to end")
		}
	}
}

const progressEvery = 200 * time.Millisecond

// tick tells how the recording goes, until the function it returns is called.
func (r *run) tick() func() {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTimer(untilBeat(progressEvery))
		defer t.Stop()
		for {
			p := Progress{Doing: "recording", Elapsed: time.Since(time.Unix(0, r.begun.Load())), Of: r.o.For, Received: r.received.Load() + r.wrote.Load()}
			if r.awaits.Load() {
				p = Progress{Doing: "waiting for somebody else's trace to end"}
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

// book puts a fetch's end into its collector's outcome, and that into the manifest.
func (r *run) book(c *Collector, f Fetch, n int64, fail *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.outcome[c.Name]
	if o == nil {
		o = &evidence.Collector{Name: c.Name, State: evidence.Ready}
		r.outcome[c.Name] = o
		r.order = append(r.order, c.Name)
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
	r.write()
}

// settle puts a collector's outcome into the manifest, in place of what was said of it before.
func (r *run) settle(c evidence.Collector) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.outcome[c.Name] == nil {
		r.order = append(r.order, c.Name)
	}
	r.outcome[c.Name] = &c
	r.write()
}

// write writes the outcomes: those of the pprof table in its order, then the others as they came.
func (r *run) write() {
	names := make([]string, 0, len(r.order))
	for _, c := range All() {
		if r.outcome[c.Name] != nil {
			names = append(names, c.Name)
		}
	}
	for _, n := range r.order {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	r.w.Update(func(m *evidence.Manifest) {
		m.Collectors = m.Collectors[:0:0]
		for _, n := range names {
			kept := *r.outcome[n]
			kept.Members = slices.Clone(kept.Members)
			m.Collectors = append(m.Collectors, kept)
		}
	})
}

// tell says in a line each what is not as it should be. What a service merely does not offer is left to the report,
// which has it under what could not be checked.
func (r *run) tell(stopped bool) {
	for _, name := range r.order {
		o := r.outcome[name]
		if o.State != evidence.Broken || o.Why == r.told || stopped && strings.HasPrefix(o.Why, "stopped") {
			continue
		}
		switch {
		case name == "trace" && slices.Contains(o.Members, evidence.TraceMember):
			r.o.Progress(Progress{Note: fmt.Sprintf("trace: %s; the %s that came are kept", o.Why, size(r.received.Load()))})
		case find(name) == nil || name == "trace" && r.target != nil:
			r.o.Progress(Progress{Note: name + ": " + o.Why})
		}
	}
}

// verdict turns what happened into the one error a person sees.
func (r *run) verdict(fail *failure) error {
	what := "record " + r.at.shown()
	if r.target != nil {
		what = fmt.Sprintf("record pid %d", r.o.PID)
	}
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
	return &Error{What: what, Why: r.nothing()}
}

// nothing tells why nothing at all came.
func (r *run) nothing() string {
	for _, name := range r.order {
		if o := r.outcome[name]; o.Why != "" {
			return name + ": " + o.Why
		}
	}
	return errNothing.Error()
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
