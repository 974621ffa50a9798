package sched

import (
	"testing"

	"github.com/whystall/whystall/exectrace"
)

// TestAligner feeds a few transitions at a time. Thread 11 is on CPU 0 from 1 to 100 us and again
// from 9 ms on, thread 12 in between.
func TestAligner(t *testing.T) {
	k := timelineOf(t, `
header source=bpf pid=10 cpus=0 pertask alltasks
thread tid=11 pid=10 ns=1 target
thread tid=12 pid=10 ns=2 target
switch t=1000 cpu=0 tid=0 other=11 flags=othertarget
switch t=100000 cpu=0 tid=11 other=12 flags=target,othertarget args=1
waking t=5000000 cpu=0 tid=11 other=12 flags=target,othertarget
switch t=9000000 cpu=0 tid=12 other=11 flags=target,othertarget args=1
switch t=10000000 cpu=0 tid=11 other=0 flags=target args=1
`)
	ev := func(at int64, m exectrace.ThreadID) exectrace.Event {
		return exectrace.Event{Time: exectrace.Time(at), Kind: exectrace.KindGoroutine, M: m,
			From: exectrace.Running, To: exectrace.Waiting}
	}
	same := ev(3000, 1)
	same.From = same.To
	sync := func(at int64) exectrace.Event {
		return exectrace.Event{Time: exectrace.Time(at), Kind: exectrace.KindSync}
	}
	for _, c := range []struct {
		name   string
		events []exectrace.Event
		want   Alignment
	}{
		{"on, after a switch", []exectrace.Event{ev(2000, 1), ev(2000, 1), ev(100400, 1),
			ev(101000, 2)}, Alignment{Transitions: 4, MinNS: 1000}},
		{"off, and before a first record", []exectrace.Event{ev(200000, 1), ev(99400, 2)},
			Alignment{Transitions: 1, OffCPU: 1, Unknown: 1}},
		{"the same state, and threads and times that are not known",
			[]exectrace.Event{same, ev(3000, 7), ev(500, 1), ev(20000000, 1),
				ev(3000, exectrace.NoThread)}, Alignment{Dropped: 1, Unknown: 2}},
		{"a pile after a generation's begin", []exectrace.Event{sync(4000000), ev(4500000, 1),
			ev(4500000, 1), ev(4500000, 2)}, Alignment{Dropped: 3, MinNS: 4400000}},
		{"a pile before one", []exectrace.Event{ev(3000000, 1), ev(3000000, 1), ev(3000000, 1),
			sync(4000000)}, Alignment{Dropped: 3}},
		{"a pile away from one", []exectrace.Event{sync(1000), ev(4500000, 1), ev(4500000, 1),
			ev(4500000, 1), ev(8000000, 2), sync(8000001)}, Alignment{Transitions: 4, OffCPU: 3, MinNS: 7900000}},
		{"two are no pile", []exectrace.Event{sync(4000000), ev(4500000, 1), ev(4500000, 1)},
			Alignment{Transitions: 2, OffCPU: 2}},
	} {
		a := k.Aligner()
		for i := range c.events {
			a.Event(&c.events[i])
		}
		if got := a.Result(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestControls counts the controls of a simulated machine with a quota, one of them again by hand.
func TestControls(t *testing.T) {
	s := simulate(2, 12, 3, 40000, true, 21)
	k, err := New(&s.records)
	if err != nil {
		t.Fatal(err)
	}
	a := k.Aligner()
	// Transitions while threads run, as a trace would have them.
	for i := range s.recs {
		r := &s.recs[i]
		if th := k.find(r.Other); th != nil && r.Kind == 1 {
			ev := exectrace.Event{Time: exectrace.Time(r.Time + 10), Kind: exectrace.KindGoroutine,
				M: exectrace.ThreadID(r.Other), From: exectrace.Runnable, To: exectrace.Running}
			a.Event(&ev)
		}
	}
	sum := a.Result()
	if sum.Transitions < 1000 || sum.OffCPU != 0 || sum.Unknown > 2 {
		t.Fatalf("%+v", sum)
	}
	lengths := []int64{50_000, 200_000}
	for name, c := range map[string]Control{"fair": a.Fair(lengths, 200), "random": k.randomWindows(lengths, 200)} {
		if c.N < 100 || c.Covered > c.N || c.Edge > c.Covered || c.Covered == 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if got, again := a.Fair(lengths, 200), a.Fair(lengths, 200); got != again {
		t.Errorf("the fair control gave %+v, then %+v", got, again)
	}
	// By hand: the states of all threads in one window.
	p := Pause{Begin: 5_000_000, End: 5_300_000, Initiator: 100, Awaited: 101}
	var want Control
	for tid := uint32(102); tid < 112; tid++ {
		held, came := int64(0), int64(0)
		for _, g := range k.Stretches(tid, p.Begin, p.End, nil) {
			if g.Doing == Queued || g.Doing == Throttled {
				held += g.End - g.Begin
			}
			if g.Doing == OnCPU && g.Whole.Begin > p.Begin {
				came = g.Begin
			}
		}
		want.N++
		if float64(held) >= 0.8*float64(p.End-p.Begin) {
			want.Covered++
			if came != 0 && p.End-came <= 500_000 {
				want.Edge++
			}
		}
	}
	if got := k.uninvolved([]Pause{p}); got != want {
		t.Errorf("uninvolved: got %+v, want %+v", got, want)
	}
}
