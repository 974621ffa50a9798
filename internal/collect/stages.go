package collect

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// count starts to count what the target does. The function that it returns ends that, and puts the
// counts into the manifest.
func (r *run) count() (end func()) {
	if r.target == nil {
		return func() {}
	}
	from := newKernelCounter(r.o.PID, r.received.Load)
	r.tally = newTally(from, r.o.Timing.Stage/stageSlices)
	t := &r.tally.toll
	t.Budget = r.o.Budget
	t.LimitCPUs, t.Quota = limitOf(r.o.PID, runtime.NumCPU())
	if from.stats == nil && from.threads > len(from.tids) {
		t.Threads, t.AllThreads = len(from.tids), from.threads
	}
	stop := r.tally.run()
	ended := false
	return func() {
		if ended {
			return
		}
		ended = true
		stop()
		r.tally.end()
		r.keepToll()
	}
}

// keepToll writes what was counted so far.
func (r *run) keepToll() {
	if toll := r.tally.sum(); toll != nil {
		r.w.Update(func(m *evidence.Manifest) { m.Toll = toll })
	}
}

// alone counts for a while before anything of ours runs. A segment of many takes over what the
// first one counted.
func (r *run) alone(ctx context.Context) {
	switch {
	case r.tally == nil:
		return
	case r.o.Alone != nil:
		r.tally.take(*r.o.Alone)
		return
	}
	r.note(fmt.Sprintf("for %s counters alone are read, then the kernel's records are taken alone, to know what recording costs the service; then all parts run", r.o.Timing.Stage))
	r.refaults = groupRefaults(r.o.PID)
	r.tally.enter(evidence.StageCounters)
	r.linger(ctx, "reading counters alone, to know what recording costs")
	r.keepToll()
	if r.o.TellAlone != nil && ctx.Err() == nil {
		r.o.TellAlone(r.tally.sum().Stages[0])
	}
}

// kernelAlone lets the kernel's records run before the trace. Where no trace is to come, they are
// all there is, and the recording's time starts at once.
func (r *run) kernelAlone(ctx context.Context) {
	if r.tally == nil {
		return
	}
	if !r.recordsKernel() || r.asks && r.o.Alone != nil {
		r.tally.enter(evidence.StageAll)
		return
	}
	r.tally.enter(evidence.StageKernel)
	if !r.asks {
		return
	}
	r.linger(ctx, "recording the kernel's events alone")
	r.keepToll()
}

// linger waits for the length of a stage, or until ctx or the target ends.
func (r *run) linger(ctx context.Context, doing string) {
	until := time.Now().Add(r.o.Timing.Stage)
	doing = fmt.Sprintf("%s (%s)", doing, r.o.Timing.Stage)
	for ctx.Err() == nil && r.target.look() {
		r.o.Progress(Progress{Doing: doing, Load: r.tally.now()})
		left := time.Until(until)
		if left <= 0 {
			return
		}
		select {
		case <-time.After(min(left, watchEvery)):
		case <-ctx.Done():
		}
	}
}

// recordsKernel reports whether a collector records the kernel's events.
func (r *run) recordsKernel() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.outcomes {
		if slices.Contains(o.Members, kernel.Member) {
			return true
		}
	}
	return false
}

// counterWords says what each counter is for.
var counterWords = map[evidence.Counted]string{
	evidence.CountedCPU: "CPU time", evidence.CountedQueued: "waits for a CPU",
	evidence.CountedThrottled: "throttling", evidence.CountedSwitches: "context switches",
	evidence.CountedRead: "bytes that it reads",
	evidence.CountedNet:  "bytes that its network namespace receives", evidence.CountedIdle: "idle time of the CPUs",
}

// countable says by which counters a recording of pid would tell what it costs the service.
func countable(pid int) Ability {
	a := Ability{Tier: TierSystem, Name: "cost", Ready: true}
	c := newKernelCounter(pid, func() int64 { return 0 })
	defer c.close()
	seen := c.read().seen
	var has, lacks []string
	for _, name := range counterNames {
		if seen[name] {
			has = append(has, counterWords[name])
		} else {
			lacks = append(lacks, counterWords[name])
		}
	}
	a.Ready, a.Part = len(has) > 0, len(lacks) > 0 && len(has) > 0
	a.Say = fmt.Sprintf("Counts in three stages what recording costs the service (%s of counters alone, then with the kernel's records, then with all parts): %s", stageLength, strings.Join(has, ", "))
	if len(lacks) > 0 {
		a.Say += "; not to be read: " + strings.Join(lacks, ", ")
	}
	return a
}
