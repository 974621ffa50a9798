package collect

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/toll"
)

// What is left out, thinned or shortened to spare the service: by rule where it is known to do
// harm, and otherwise where this recording shows that it does.

const (
	// oldTracer is N of the first Go 1.N whose tracer is cheap: before, taking a stack for each
	// event costs some 30 % of the CPU time of a busy program.
	oldTracer = 21
	// busyFrom is the share of the CPUs that a target may use from which on its users feel that:
	// with Go 1.19 at 80 % of 2 CPUs p99 went from 27 to 41 ms.
	busyFrom = 0.6
	// tracedShare is the part of the recording's time that such a trace may last, at least
	// shortestTrace: what a hundredth of all requests feels is then hardly changed.
	tracedShare   = 0.1
	shortestTrace = 2 * time.Second
	// guardEvery is how often the cost is looked at while the trace runs.
	guardEvery = time.Second
)

// What recording may take of the machine's idle time: what waits for a CPU waits 1/(1-b) times as
// long if a share b of the CPUs is busy, so a tenth of the idle time makes waits a ninth longer. At
// least it may take the share floorOfAll of all CPUs: where nothing is idle, that is what the
// target does less.
const (
	ofIdle     = 0.10
	floorOfAll = 0.03
)

const (
	// switchCost is what the kernel's recorder takes of a CPU for each switch of the target, in
	// full detail with the wake-up and the stacks, ns.
	switchCost = 6000
	// tooDear is how many times what it may take that must be before it starts with less detail.
	tooDear = 2
)

// beforeKernel lets the kernel's recorder start with less detail where counters alone show that all
// of it would take too much of what little idle time there is. Its own budget would come to that as
// well, but seconds later.
func (r *run) beforeKernel() {
	if r.tally == nil || r.o.NoKernel {
		return
	}
	t := r.tally.sum()
	busy, _, known := busyShare(t)
	sum, _ := countersAlone(t)
	if !known || busy < busyFrom {
		return
	}
	r.beforeThrashing(sum)
	if !slices.Contains(t.Counters, evidence.CountedSwitches) {
		return
	}
	whole := float64(sum.NS) * t.LimitCPUs
	may := max(ofIdle*(1-busy), floorOfAll) * whole
	if cost := float64(sum.Switches) * switchCost; cost > tooDear*may {
		r.ease.Store(2)
		gone := "from the start on stacks are taken of waits from 3 ms on"
		if r.thrashes { // no stacks are taken at all
			gone = "from the start on others' switches are not recorded one by one"
		}
		r.tally.ease(evidence.Easing{
			Part: "kernel", Did: evidence.Thinned, Why: evidence.WhyBusy, Measured: busy, Limit: busyFrom,
			Lost: fmt.Sprintf("%s: the threads switch %.0f times a second", gone, float64(sum.Switches)/(float64(sum.NS)/1e9)),
		})
	}
}

// ofIdleAtStart is the part of the idle time that the kernel's programs may take while they are
// loaded.
const ofIdleAtStart = 0.25

// startCPUs is how many CPUs the start of the kernel's recorder may take: a part of those that were
// idle with counters alone, where few are. 0: as many as it needs. A segment of many does not wait,
// as nothing would be seen meanwhile.
func (r *run) startCPUs() float64 {
	if r.tally == nil || r.o.Alone != nil {
		return 0
	}
	t := r.tally.sum()
	alone, known := countersAlone(t)
	if !known || !slices.Contains(t.Counters, evidence.CountedIdle) {
		return 0
	}
	cpus, idle := float64(runtime.NumCPU()), float64(alone.IdleNS)/float64(alone.NS)
	if idle > (1-busyFrom)*cpus {
		return 0
	}
	if r.thrashes {
		return max(ofIdle*idle, floorOfAll*cpus/2)
	}
	return max(ofIdleAtStart*idle, floorOfAll*cpus)
}

// countersAlone is the sum of what was counted with counters alone.
func countersAlone(t *evidence.Toll) (sum evidence.Slice, known bool) {
	for _, s := range t.Stages {
		if s.Name == evidence.StageCounters {
			for _, x := range s.Slices {
				sum.Add(x)
			}
		}
	}
	return sum, sum.NS > 0
}

// beforeTrace decides how long the trace is to last, and whether the kernel's recorder should give
// up detail, by what was counted so far.
func (r *run) beforeTrace() {
	if r.tally == nil {
		return
	}
	r.sparedKernel()
	if r.asks && r.noRoomForTrace() {
		return
	}
	busy, own, known := busyShare(r.tally.sum())
	if !r.asks || !known || busy < busyFrom || own < busyFrom/2 || r.withoutTrace() {
		return
	}
	minor := r.minor()
	if minor == 0 || minor >= oldTracer {
		return
	}
	short := max(shortestTrace, time.Duration(tracedShare*float64(r.o.For)).Round(time.Second))
	if short >= r.o.For {
		return
	}
	r.traceFor = short
	r.tally.ease(evidence.Easing{
		Part: lead().Name, Did: evidence.Shortened, Why: evidence.WhyBusy, Measured: busy, Limit: busyFrom,
		Lost: fmt.Sprintf("goroutines and requests are seen for %s of %s: the tracer of Go 1.%d is dear", short, r.o.For, minor),
	})
}

// busyShare is the share of the CPUs which the target may use that was in use with counters alone:
// by the target itself under a quota, by whomever without one. own is the target's part.
func busyShare(t *evidence.Toll) (share, own float64, known bool) {
	if t == nil || t.LimitCPUs <= 0 {
		return 0, 0, false
	}
	sum, known := countersAlone(t)
	if !known {
		return 0, 0, false
	}
	whole := float64(sum.NS) * t.LimitCPUs
	own = float64(sum.CPUNS) / whole
	switch {
	case t.Quota:
		return own, own, true
	case slices.Contains(t.Counters, evidence.CountedIdle):
		return max(0, 1-float64(sum.IdleNS)/whole), own, true
	}
	return 0, 0, false
}

// sparedKernel lets the kernel's recorder give up a step of detail if its records alone did harm.
func (r *run) sparedKernel() bool {
	b := toll.Weigh(r.tally.sum())
	if b == nil {
		return false
	}
	e, harm := b.Harm(evidence.StageKernel)
	if !harm {
		return false
	}
	r.thin(e)
	return true
}

// thin asks the kernel's recorder to give up a step, and notes why.
func (r *run) thin(e toll.Effect) {
	r.ease.Add(1)
	r.tally.ease(evidence.Easing{
		Part: "kernel", Did: evidence.Thinned, Why: easingWhy(e.Measure), Measured: e.Growth, Limit: e.Limit,
		Lost: "stacks of short waits, and who else ran, are not all recorded from then on",
	})
}

// easingWhy is the reason that a measure is; what grew besides shows in them.
func easingWhy(m toll.Measure) evidence.EasingWhy {
	switch m {
	case toll.Held, toll.Queued:
		return evidence.WhyHeld
	case toll.Throttled:
		return evidence.WhyThrottled
	}
	return evidence.WhyCPU
}

// guard looks at the cost while all parts run. Where they do harm, it first lets the kernel's
// recorder give up detail, as long as its records are the only part or did harm alone; then it ends
// the trace. endTrace is nil without one. The function that guard returns ends it.
func (r *run) guard(endTrace func()) (end func()) {
	if r.tally == nil {
		return func() {}
	}
	g := guard{r: r, stage: evidence.StageAll, endTrace: endTrace, mayThin: r.ease.Load() > 0,
		enough: max(shortestTrace, time.Duration(tracedEnough*float64(r.o.For)))}
	if endTrace == nil || r.o.For < worthEnding {
		g.endTrace = nil
	}
	if endTrace == nil {
		g.stage, g.mayThin = evidence.StageKernel, true
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(guardEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if !g.look(r.tally.sum()) {
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

type guard struct {
	r        *run
	stage    evidence.StageName
	endTrace func()
	mayThin  bool
	enough   time.Duration // for which the trace goes on, whatever it costs within reason
	since    int64         // CLOCK_MONOTONIC: what was counted since then is judged
}

// look judges what was counted since the last change. It reports whether there is something left
// that could be given up.
func (g *guard) look(t *evidence.Toll) bool {
	b := toll.Weigh(recent(t, g.stage, g.since))
	if b == nil {
		return true
	}
	e, harm := b.Harm(g.stage)
	trace := g.endTrace != nil && g.byTrace(b, e)
	switch {
	case !harm:
		return true
	case !trace && g.mayThin && g.r.ease.Load() < maxEase:
		g.r.thin(e)
		g.since = lastSlice(t).EndNS
		return true
	case g.endTrace == nil:
		return false
	case lasted(t, g.stage) < g.enough && e.Growth < farBeyond*e.Limit:
		return true
	case !felt(t, b, e):
		return true
	}
	g.r.tally.ease(evidence.Easing{
		Part: lead().Name, Did: evidence.Shortened, Why: easingWhy(e.Measure), Measured: e.Growth, Limit: e.Limit,
		Lost: "goroutines and requests are not seen from then on",
	})
	g.endTrace()
	return false
}

// felt reports whether a cost may lengthen requests: whether it takes more than ofIdle of the time
// in which CPUs are idle. A nearly idle service may pay half as much CPU time again without that,
// and without a trace there is no verdict on it. Throttled time is always felt.
func felt(t *evidence.Toll, b *toll.Bill, e toll.Effect) bool {
	busy, _, known := busyShare(t)
	alone, ok := b.Stage(evidence.StageCounters)
	if !known || !ok || e.Measure == toll.Throttled {
		return true
	}
	before, _ := alone.Amount(e.Measure)
	return e.Growth*before.BySecond.Value/1e9 > ofIdle*(1-busy)*t.LimitCPUs
}

// byTrace reports whether most of an effect came with the trace.
func (g *guard) byTrace(b *toll.Bill, e toll.Effect) bool {
	before, known := b.Of(evidence.StageKernel, e.Measure)
	return known && before.Said != toll.NotKnown && before.Growth < e.Growth/2
}

// lasted is for how long a stage has lasted.
func lasted(t *evidence.Toll, stage evidence.StageName) (d time.Duration) {
	for _, s := range t.Stages {
		for _, x := range s.Slices {
			if s.Name == stage {
				d += time.Duration(x.NS)
			}
		}
	}
	return d
}

// A trace that harms goes on for tracedEnough of the recording's time, as a verdict needs some of
// it, unless it is farBeyond its limit, so many times.
const (
	tracedEnough = 0.25
	farBeyond    = 4
	// worthEnding is from which length of a recording on a trace is ended: a shorter one is over
	// before it is known what it costs.
	worthEnding = 8 * time.Second
)

// maxEase is how many steps of detail the kernel's recorder has.
const maxEase = 3

// recent is t with only those slices of a stage that started since then. Together they must last
// longestNoise at least.
func recent(t *evidence.Toll, stage evidence.StageName, since int64) *evidence.Toll {
	out := *t
	out.Stages = nil
	for _, s := range t.Stages {
		if s.Name == stage {
			s.Slices = slices.DeleteFunc(slices.Clone(s.Slices),
				func(x evidence.Slice) bool { return x.EndNS-x.NS < since })
			var ns int64
			for _, x := range s.Slices {
				ns += x.NS
			}
			if ns < int64(longestNoise) {
				return nil
			}
		}
		out.Stages = append(out.Stages, s)
	}
	return &out
}

// longestNoise is the time over which a cost is judged at least: over less, a burst would decide.
const longestNoise = 1500 * time.Millisecond

func lastSlice(t *evidence.Toll) (last evidence.Slice) {
	for _, s := range t.Stages {
		if n := len(s.Slices); n > 0 {
			last = s.Slices[n-1]
		}
	}
	return last
}
