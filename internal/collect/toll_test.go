package collect

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// paced is a counter whose clock goes on by a step at each reading.
type paced struct {
	now, step int64
	seen      []evidence.Counted
	closed    int
}

func (p *paced) read() counts {
	p.now += p.step
	n := counts{sums: evidence.Slice{EndNS: p.now, CPUNS: p.now / 2, Switches: p.now / 1000},
		seen: map[evidence.Counted]bool{}}
	for _, c := range p.seen {
		n.seen[c] = true
	}
	return n
}

func (p *paced) close() { p.closed++ }

func TestTally(t *testing.T) {
	from := &paced{step: 100, seen: []evidence.Counted{evidence.CountedSwitches, evidence.CountedCPU}}
	y := newTally(from, 100)
	y.enter(evidence.StageCounters)
	y.look(y.last.sums.EndNS + 10) // not due yet
	y.look(y.last.sums.EndNS + 100)
	y.look(y.last.sums.EndNS + 100)
	from.seen = from.seen[:1] // what is not seen all the time is not seen
	y.enter(evidence.StageAll)
	from.step = 20 // a rest, which the last slice takes in
	y.look(y.last.sums.EndNS + 100)
	from.step = 100
	y.look(y.last.sums.EndNS + 100)
	y.ease(evidence.Easing{AtNS: 1, Part: "trace", Did: evidence.LeftOut, Why: evidence.WhyBusy})
	from.step = 20
	y.end()
	y.end()
	y.enter(evidence.StageEnd)
	got := y.sum()
	slice := func(end, ns int64) evidence.Slice {
		return evidence.Slice{EndNS: end, NS: ns, CPUNS: ns / 2, Switches: end/1000 - (end-ns)/1000}
	}
	want := &evidence.Toll{
		Counters: []evidence.Counted{evidence.CountedSwitches},
		Stages: []evidence.Stage{
			{Name: evidence.StageCounters, Slices: []evidence.Slice{slice(200, 100), slice(300, 100), slice(400, 100)}},
			{Name: evidence.StageAll, Slices: []evidence.Slice{slice(420, 20), slice(540, 120)}},
		},
		Eased: []evidence.Easing{{AtNS: 1, Part: "trace", Did: evidence.LeftOut, Why: evidence.WhyBusy}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if from.closed != 1 {
		t.Errorf("closed %d times", from.closed)
	}
}

// A long stage has few slices, which hold all that was counted.
func TestTallyIsBounded(t *testing.T) {
	from := &paced{step: 100}
	y := newTally(from, 100)
	y.enter(evidence.StageAll)
	for range 10_000 {
		y.look(y.last.sums.EndNS + y.due())
	}
	s := y.sum().Stages[0].Slices
	var ns int64
	for _, x := range s {
		ns += x.NS
	}
	if len(s) > maxStageSlices || ns != from.now-100 {
		t.Errorf("%d slices of %d ns, want %d ns", len(s), ns, from.now-100)
	}
}

// Segments of one watch share the stage of counters alone, which each of them has as it was.
func TestTallyTakesOver(t *testing.T) {
	y := newTally(&paced{step: 1000}, 1000)
	alone := evidence.Stage{Name: evidence.StageCounters, Slices: []evidence.Slice{{EndNS: 5, NS: 5}}}
	y.take(alone)
	y.last.sums.EndNS = y.last.sums.EndNS + 990 // the next stage starts at once
	y.enter(evidence.StageKernel)
	if got := y.sum().Stages; len(got) != 2 || !reflect.DeepEqual(got[0], alone) {
		t.Errorf("%+v", got)
	}
}

func TestStageOf(t *testing.T) {
	for lasting, want := range map[time.Duration]time.Duration{time.Second: 500 * time.Millisecond,
		4 * time.Second: time.Second, 8 * time.Second: 2 * time.Second, time.Hour: 2 * time.Second} {
		if got := stageOf(lasting); got != want {
			t.Errorf("stageOf(%s) = %s, want %s", lasting, got, want)
		}
	}
}

// A recording without a process counts nothing.
func TestNoTally(t *testing.T) {
	var y *tally
	y.enter(evidence.StageAll)
	y.ease(evidence.Easing{})
	y.end()
	y.run()()
	if y.sum() != nil {
		t.Error("a sum")
	}
	(&run{session: &session{}}).alone(context.Background())
}
