package ledger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
	"github.com/whystall/whystall/internal/timeline/twin"
)

// bothSides makes a trace without threads and the kernel's records of the same process, whose clock
// is shift ahead. Of each turn the process is on a CPU for on() and then off it for off(), both in
// us. The records begin before the trace and end after it.
func bothSides(t *testing.T, turns int, shift int64, on, off func() int64) (timeline.Source, *sched.Timeline) {
	t.Helper()
	var trace strings.Builder
	trace.WriteString("unit 1us\nversion 13\nprocs 1\ngoroutine A main.loop\n")
	r := &randomKernel{header: kernel.Header{Source: "bpf", CPUs: []int{0}, AllTasks: true, PerTask: true}}
	r.threads = []kernel.Thread{{TID: 1000, PID: 1000, Comm: "app", Target: true}}
	at, traced := int64(0), int64(0)
	for n := range turns {
		end := at + on()
		r.recs = append(r.recs, kernel.Record{Kind: kernel.Switch, Time: shift + at*1e3,
			Other: 1000, Flags: kernel.OtherTarget})
		if n == turns-turns/8 {
			traced = at
		}
		for x := at + 5; x < end && n >= turns/8 && traced == 0; x += 200 {
			if strings.Contains(trace.String(), "waiting") {
				fmt.Fprintf(&trace, "\t%d runnable by P\n", x-1)
			}
			fmt.Fprintf(&trace, "\t%d running on 0\n\t%d waiting sleep at time.Sleep<main.loop\n", x, min(x+100, end-1))
		}
		r.recs = append(r.recs, kernel.Record{Kind: kernel.Switch, Time: shift + end*1e3, TID: 1000,
			Flags: kernel.Target, Arg: [3]uint64{1}})
		at = end + off()
	}
	r.recs = append(r.recs, kernel.Record{Kind: kernel.Switch, Time: shift + at*1e3, Other: 1000,
		Flags: kernel.OtherTarget})
	src, err := twin.Parse(strings.NewReader(trace.String() + fmt.Sprintf("end %d\n", traced)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := sched.New(r)
	if err != nil {
		t.Fatal(err)
	}
	return src, k
}

func TestSharedClock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	between := func(lo, hi int64) func() int64 { return func() int64 { return lo + rnd.Int64N(hi-lo) } }
	const shift = 7_123_456_789
	src, k := bothSides(t, 60, shift, between(300, 9000), between(1500, 40000))
	got, ok := sharedClock(src, k)
	if d := got - shift; !ok || max(d, -d) > 2*offSlack {
		t.Errorf("shift is %d (%v), want %d", got, ok, shift)
	}
	// Any multiple of a rhythm's turn would do as well: nothing is known then.
	src, k = bothSides(t, 60, shift, between(5000, 5001), between(15000, 15001))
	if got, ok := sharedClock(src, k); ok {
		t.Errorf("shift %d was found between two rhythms, want none", got)
	}
	// Another process' records fit nowhere.
	src, _ = bothSides(t, 60, shift, between(300, 9000), between(1500, 40000))
	_, k = bothSides(t, 60, shift, between(300, 9000), between(1500, 40000))
	if got, ok := sharedClock(src, k); ok {
		t.Errorf("shift %d was found to records of another process, want none", got)
	}
}
