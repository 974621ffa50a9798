package oldclock

import (
	"iter"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
)

// events is a source of a few events.
type events struct {
	timeline.Source
	list []exectrace.Event
}

func (e events) Blocks() iter.Seq[[]exectrace.Event] {
	return func(yield func([]exectrace.Event) bool) {
		yield(append([]exectrace.Event(nil), e.list...))
	}
}

func (e events) Gaps() []exectrace.Gap { return []exectrace.Gap{{Begin: 30, End: 40}} }

func TestSource(t *testing.T) {
	start := func(at exectrace.Time, p exectrace.ProcID, number uint64) exectrace.Event {
		return exectrace.Event{Kind: exectrace.KindProc, Time: at, Proc: p, P: exectrace.NoProc,
			M: exectrace.NoThread, To: exectrace.Running, Arg: [2]uint64{number}}
	}
	runs := func(at exectrace.Time, p exectrace.ProcID) exectrace.Event {
		return exectrace.Event{Kind: exectrace.KindGoroutine, Time: at, P: p, M: exectrace.NoThread,
			From: exectrace.Runnable, To: exectrace.Running, Reason: exectrace.ReasonStart}
	}
	src := events{list: []exectrace.Event{
		start(0, 0, 5), runs(1, 0), start(2, 1, 9), runs(3, 1),
		{Kind: exectrace.KindGap, Time: 30, M: exectrace.NoThread, Arg: [2]uint64{40, 29}},
		runs(50, 0), start(60, 0, 5), runs(61, 0),
	}}
	m := &Match{Clock: Clock{Shift: 1000}, Threads: map[uint64]uint32{5: 105}}
	on := m.On(src)
	if !on.Clock().Monotonic {
		t.Error("the clock is not the kernel's")
	}
	if g := on.Gaps()[0]; g.Begin != 1030 || g.End != 1040 {
		t.Errorf("gap is %d to %d, want 1030 to 1040", g.Begin, g.End)
	}
	var got []exectrace.Event
	for b := range on.Blocks() {
		got = append(got, b...)
	}
	for i, want := range []exectrace.ThreadID{105, 105, -1, -1, -1, -1, 105, 105} {
		if got[i].M != want {
			t.Errorf("event %d is said to be of thread %d, want %d", i, got[i].M, want)
		}
		if got[i].Time != src.list[i].Time+1000 {
			t.Errorf("event %d is at %d, want %d", i, got[i].Time, src.list[i].Time+1000)
		}
	}
	if got[4].Arg != [2]uint64{1040, 1029} {
		t.Errorf("the gap's times are %v", got[4].Arg)
	}
}
