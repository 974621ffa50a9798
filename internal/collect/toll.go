package collect

import (
	"sync"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// A recording counts what its target does from before its first collector to after its last one,
// in stages (evidence.Toll), so that a reader of the case can say what the recording cost the
// service. The counters are those of the kernel, which are there anyway: reading them costs the
// recorder some 100 us five times a second, and the target nothing that could be seen.

const (
	// stageLength is how long counters alone are read, and the kernel's records alone are taken. A
	// short recording has shorter stages: a quarter of its time each.
	stageLength   = 2 * time.Second
	shortestStage = 500 * time.Millisecond
	// stageSlices is how many slices a stage of that length has: enough to tell what recording did
	// from what the load does by itself.
	stageSlices = 10
	// maxStageSlices bounds those of a long stage: when they are as many, each two become one.
	maxStageSlices = 32
)

// stageOf is how long the first stages of a recording last.
func stageOf(lasting time.Duration) time.Duration {
	return min(stageLength, max(shortestStage, lasting/4))
}

// counts is what a counter has counted since it exists.
type counts struct {
	sums evidence.Slice // EndNS and NS are the time of reading
	seen map[evidence.Counted]bool
}

// counter reads the counters of a target.
type counter interface {
	read() counts
	close()
}

// tally turns what is counted into stages and slices. The nil tally counts nothing.
type tally struct {
	mu     sync.Mutex
	from   counter
	last   counts
	toll   evidence.Toll
	seen   map[evidence.Counted]bool // in all readings so far
	length int64                     // of a slice, ns
	ended  bool
	load   Load
}

// newTally starts to count. Slices last about length.
func newTally(from counter, length time.Duration) *tally {
	return &tally{from: from, length: int64(length)}
}

// enter ends the stage and starts the next one.
func (t *tally) enter(name evidence.StageName) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	t.cut()
	if n := len(t.toll.Stages); n == 0 || t.toll.Stages[n-1].Name != name {
		t.toll.Stages = append(t.toll.Stages, evidence.Stage{Name: name, Slices: []evidence.Slice{}})
	}
}

// take takes over a stage of an earlier tally of the same target.
func (t *tally) take(s evidence.Stage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut()
	t.toll.Stages = append(t.toll.Stages, s)
}

// look ends a slice if it is due.
func (t *tally) look(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.toll.Stages); !t.ended && n > 0 && now-t.last.sums.EndNS >= t.due()*3/4 {
		t.cut()
	}
}

// due is the length of a slice in this stage, which merging doubles.
func (t *tally) due() int64 {
	s := t.toll.Stages[len(t.toll.Stages)-1].Slices
	if len(s) == 0 {
		return t.length
	}
	return max(t.length, s[0].NS)
}

// cut reads the counters and books what was counted since the last time.
func (t *tally) cut() {
	now := t.from.read()
	last := t.last
	t.last = now
	if t.seen == nil {
		t.seen = now.seen
	}
	for c := range t.seen {
		if !now.seen[c] {
			delete(t.seen, c)
		}
	}
	if len(t.toll.Stages) == 0 {
		return
	}
	d := difference(last.sums, now.sums)
	t.load.add(&d, t.seen)
	st := &t.toll.Stages[len(t.toll.Stages)-1]
	if d.NS < t.length/20 {
		return
	}
	// What is left of a stage is part of its last slice: a short slice says little.
	if n := len(st.Slices); n > 0 && d.NS < t.length/2 {
		st.Slices[n-1].Add(d)
		return
	}
	st.Slices = append(st.Slices, d)
	if len(st.Slices) >= maxStageSlices {
		st.Slices = halved(st.Slices)
	}
}

// halved makes one of each two slices.
func halved(s []evidence.Slice) []evidence.Slice {
	out := s[:0]
	for i := 0; i < len(s); i += 2 {
		one := s[i]
		if i+1 < len(s) {
			one.Add(s[i+1])
		}
		out = append(out, one)
	}
	return out
}

// difference is b-a. A sum that fell, as that of threads which have ended, counts nothing.
func difference(a, b evidence.Slice) evidence.Slice {
	grown := func(a, b int64) int64 { return max(0, b-a) }
	return evidence.Slice{
		EndNS: b.EndNS, NS: b.EndNS - a.EndNS,
		CPUNS: grown(a.CPUNS, b.CPUNS), QueuedNS: grown(a.QueuedNS, b.QueuedNS),
		ThrottledNS: grown(a.ThrottledNS, b.ThrottledNS),
		Switches:    grown(a.Switches, b.Switches), ReadBytes: grown(a.ReadBytes, b.ReadBytes),
		Reads:    grown(a.Reads, b.Reads),
		NetBytes: grown(a.NetBytes, b.NetBytes), NetPackets: grown(a.NetPackets, b.NetPackets),
		IdleNS: grown(a.IdleNS, b.IdleNS), OwnNS: grown(a.OwnNS, b.OwnNS),
	}
}

// sum is the toll so far.
func (t *tally) sum() *evidence.Toll {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.toll
	out.Stages = make([]evidence.Stage, 0, len(t.toll.Stages))
	for _, s := range t.toll.Stages {
		s.Slices = append([]evidence.Slice(nil), s.Slices...)
		out.Stages = append(out.Stages, s)
	}
	out.Eased = append([]evidence.Easing(nil), t.toll.Eased...)
	out.Counters = []evidence.Counted{}
	for _, c := range counterNames {
		if t.seen[c] {
			out.Counters = append(out.Counters, c)
		}
	}
	return &out
}

var counterNames = []evidence.Counted{
	evidence.CountedCPU, evidence.CountedQueued, evidence.CountedThrottled,
	evidence.CountedSwitches, evidence.CountedRead, evidence.CountedNet, evidence.CountedIdle,
}

// ease notes that a part was left out, thinned or shortened.
func (t *tally) ease(e evidence.Easing) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.AtNS == 0 {
		e.AtNS = monotonic()
	}
	if len(t.toll.Eased) < maxEased {
		t.toll.Eased = append(t.toll.Eased, e)
	}
}

const maxEased = 12

// end reads the counters a last time.
func (t *tally) end() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ended {
		t.cut()
		t.ended = true
		t.from.close()
	}
}

// run looks until the function it returns is called.
func (t *tally) run() (stop func()) {
	if t == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.Duration(t.length)
		timer := time.NewTimer(untilBeat(every))
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				t.look(monotonic())
				timer.Reset(untilBeat(every))
			case <-done:
				return
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}
