package sched

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/timeline"
)

// recorded reads a stream and a trace that were recorded together.
func recorded(t testing.TB, dir string) (*Timeline, *timeline.Timeline, *Aligner) {
	t.Helper()
	r, err := kernel.NewReader(func() (io.ReadCloser, error) { return os.Open(dir + "/kernel.stream") })
	if err != nil {
		t.Fatal(err)
	}
	k, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := exectrace.Open(dir+"/trace.out", exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	tl, a := timeline.New(tr, timeline.Options{}), k.Aligner()
	for block := range tr.Blocks() {
		for i := range block {
			tl.Apply(&block[i])
			a.Event(&block[i])
		}
	}
	return k, tl, a
}

// TestRecorded reads one second of a real service with 76 Ps and a quota of half a CPU, beside
// builds on both CPUs, on Linux 6.18 with Go 1.26. The names of other programs were taken out.
func TestRecorded(t *testing.T) {
	k, tl, a := recorded(t, "testdata/quota76")
	if err := exact(k, 12); err != nil {
		t.Error(err)
	}
	var b strings.Builder
	recordedClock(t, &b, k, a)
	recordedOnCPU(t, &b, k)
	// Records are missing beside a few switches, for little time.
	fmt.Fprintf(&b, "%+v\n", k.Totals())
	if tot := k.Totals(); tot.BreakNS > 20e6 {
		t.Errorf("%+v", tot)
	}
	long := recordedPauses(t, &b, k, tl)
	recordedControls(t, &b, k, a, long)

	const golden = "testdata/quota76/want.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// recordedClock: the clocks agree, and a thread that changes a goroutine's state is on a CPU. With
// a clock that is off by 0.2 ms it would not be.
func recordedClock(t *testing.T, b *strings.Builder, k *Timeline, a *Aligner) {
	t.Helper()
	sum := a.Result()
	fmt.Fprintf(b, "align %+v\n", sum)
	if sum.Transitions < 10000 || sum.OffCPU*10000 > sum.Transitions*5 || sum.MinNS <= 0 ||
		sum.Unknown*20 > sum.Transitions {
		t.Errorf("%+v", sum)
	}
	shifted := k.Aligner()
	tr, err := exectrace.Open("testdata/quota76/trace.out", exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for block := range tr.Blocks() {
		for i := range block {
			ev := block[i]
			ev.Time += 200_000
			shifted.Event(&ev)
		}
	}
	if s := shifted.Result(); s.OffCPU*100 < s.Transitions*10 {
		t.Errorf("a trace shifted by 0.2 ms fits as well: %+v", s)
	}
}

// recordedOnCPU: a thread that wakes another is on a CPU, and so is one that is sampled there.
// These records say where threads were without the switches.
func recordedOnCPU(t *testing.T, b *strings.Builder, k *Timeline) {
	t.Helper()
	begin, end := k.Span()
	wakers, samples := 0, 0
	var wakings []Waking
	for _, l := range k.Threads() {
		wakings = k.Woken(l.TID, begin, end, wakings[:0])
		for _, w := range wakings {
			if !w.Target || w.Interrupt {
				continue
			}
			switch d := k.At(w.Waker, w.Time).Doing; d {
			case OnCPU:
				wakers++
			case Unknown:
			default:
				t.Errorf("at %d thread %d woke %d, and was %s", w.Time, w.Waker, l.TID, doingWords[d])
			}
		}
	}
	k.Events(begin, end, func(e *Event) bool {
		switch d := k.At(e.TID, e.Begin).Doing; d {
		case OnCPU:
			samples++
		case Unknown:
		default:
			t.Errorf("at %d thread %d was sampled on a CPU, and was %s", e.Begin, e.TID, doingWords[d])
		}
		return true
	}, kernel.Sample)
	fmt.Fprintf(b, "wakers on a CPU %d, samples %d\n", wakers, samples)
	if wakers < 1000 || samples < 100 {
		t.Errorf("only %d wakers and %d samples were checked", wakers, samples)
	}
}

// recordedPauses: the awaited thread is known for all stop-the-worlds, for nearly all by the note.
// Mostly it is that of the last P. It returns the long ones.
func recordedPauses(t *testing.T, b *strings.Builder, k *Timeline, tl *timeline.Timeline) (long []Pause) {
	t.Helper()
	known, same := [5]int{}, [2]int{}
	stws, _ := tl.STWs()
	for i := range stws {
		if stws[i].End == 0 || stws[i].Open {
			continue
		}
		s := &stws[i]
		r := PauseRange{Begin: tl.Abs(s.Begin), End: tl.Abs(s.End), Kind: tl.Word(s.Kind),
			Initiator: k.FromNS(s.Thread), Start: tl.Abs(s.Start)}
		if s.LastStop != 0 {
			r.LastStop, r.LastThread = tl.Abs(s.LastStop), k.FromNS(s.AwaitedThread)
		}
		p := k.Pause(r)
		if err := p.check(); err != nil {
			t.Error(err)
		}
		if p.Begin != r.Begin || p.End != r.End {
			t.Errorf("a pause of %d..%d became %d..%d", r.Begin, r.End, p.Begin, p.End)
		}
		known[p.Known]++
		if p.Known == KnownWake && r.LastThread != 0 {
			if p.Awaited == r.LastThread {
				same[0]++
			} else {
				same[1]++
			}
		}
		if p.End-p.Begin > 2e6 {
			long = append(long, p)
		}
	}
	fmt.Fprintf(b, "stop-the-worlds: not known %d, nobody %d, by the wake %d, by the waking %d, by the last P %d; the last P's thread is who woke %d, is not %d\n",
		known[0], known[1], known[2], known[3], known[4], same[0], same[1])
	if known[KnownNot] != 0 || known[KnownWake] < 10 || same[0] < 3*same[1] {
		t.Errorf("known %v, same %v", known, same)
	}
	bknown := [5]int{}
	for _, p := range k.Barriers() {
		bknown[p.Known]++
	}
	fmt.Fprintf(b, "barriers: not known %d, by the wake %d\n", bknown[KnownNot], bknown[KnownWake])
	if bknown[KnownWake] < 9*bknown[KnownNot] {
		t.Errorf("barriers known %v", bknown)
	}
	return long
}

// recordedControls: under a quota it proves little that a thread was held up. That the initiator
// comes back at the very end of its pauses is not chance.
func recordedControls(t *testing.T, b *strings.Builder, k *Timeline, a *Aligner, long []Pause) {
	t.Helper()
	var real Control
	var lengths []int64
	for _, p := range long {
		lengths = append(lengths, p.End-p.Begin)
		_, covered, edge := k.HeldUp(p.Initiator, p.Begin, p.End)
		real.add(covered, edge)
	}
	fair, random, other := a.Fair(lengths, 50), k.randomWindows(lengths, 50), k.uninvolved(long)
	fmt.Fprintf(b, "covered and edge, of: real %v, fair %v, random %v, uninvolved %v\n", real, fair, random, other)
	share := func(c Control) float64 { return float64(c.Edge) / float64(c.N) }
	if real.N < 5 || share(real) < 0.8 || share(random) > 0.05 || share(other) > 0.05 ||
		share(fair) > share(real)/2 || fair.N < 300 {
		t.Error("the controls look like the pauses")
	}
}
