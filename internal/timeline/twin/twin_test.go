package twin

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/timeline"
)

const batcher = `
# the caller waits for the batcher
unit 1ms
procs 2
goroutine A main.caller
	0 running
	1 waiting chan receive at runtime.chanrecv1<main.get
	10 runnable by B at runtime.closechan
	12 running
	13 end
goroutine B main.batcher
	0 running
	2 waiting network at internal/poll.(*FD).Read
	4 runnable by P
	9 running
	14 waiting forever
`

func dump(src timeline.Source) string {
	var b strings.Builder
	for block := range src.Blocks() {
		for _, e := range block {
			fmt.Fprintf(&b, "%d k%d g%d on%d p%d proc%d %s>%s r%d range%d %q", e.Time, e.Kind, e.G, e.On, e.P, e.Proc,
				stateWord(e.From), stateWord(e.To), e.Reason, e.Range, src.String(e.Name))
			for _, id := range []exectrace.StackID{e.Stack, e.OnStack} {
				b.WriteString(" [")
				for i, f := range src.Frames(nil, id) {
					if i > 0 {
						b.WriteString("<")
					}
					b.WriteString(f.Func)
				}
				b.WriteString("]")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestTextBatcher(t *testing.T) {
	got := dump(Must(batcher))
	const golden = "testdata/batcher.events"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTextErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"\t0 running", "indented"},
		{"goroutine A f\n\t0 runnable\n\t1 waiting sync", "cannot follow"},
		{"goroutine A f\n\t2 running\n\t1 end", "goes back"},
		{"goroutine A f\n\t0 waiting sync\n\t1 runnable by B", "no goroutine B"},
		{"goroutine A f\n\t0 waiting sync\n\t1 runnable", "who woke"},
		{"goroutine A f\n\t0 waiting sync\n\t1 runnable by B\ngoroutine B f\n\t0 waiting sync", "does not run"},
		{"procs 1\ngoroutine A f\n\t0 running\ngoroutine B f\n\t0 running", "no P is free"},
		{"goroutine A f", "no state"},
		{"goroutine A f\ngoroutine A f", "already"},
		{"8 x", "unknown"},
		{"unit 0", "unit"},
		{"goroutine A f\n\t-1 running", "want a time"},
	} {
		_, err := Parse(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got error %v, want %q", c.in, err, c.want)
		}
	}
}

// consistent checks what every Source promises of its events.
func consistent(src timeline.Source) error {
	state := map[exectrace.GoID]exectrace.State{}
	last := exectrace.Time(0)
	for block := range src.Blocks() {
		for _, e := range block {
			if e.Time < last {
				return fmt.Errorf("time goes back from %d to %d", last, e.Time)
			}
			last = e.Time
			if (e.G == exectrace.NoGoroutine) != (e.Slot == exectrace.NoSlot) {
				return fmt.Errorf("at %d: goroutine %d has slot %d", e.Time, e.G, e.Slot)
			}
			if e.Kind == exectrace.KindGoroutine {
				if s := state[e.G]; s != e.From && e.From != exectrace.Undetermined && e.From != exectrace.NotExist {
					return fmt.Errorf("at %d: goroutine %d was %s, the event says %s", e.Time, e.G,
						stateWord(s), stateWord(e.From))
				}
				state[e.G] = e.To
			}
			_ = src.Frames(nil, e.Stack)
			_ = src.String(e.Name)
		}
	}
	return nil
}

func FuzzText(f *testing.F) {
	f.Add(batcher)
	f.Add("version 26\nwall 5\nend 9\n1..2 gc\n3..4 gap x\n5 sync\n6 heap live 3\n6 procs 9\ngoroutine 7 f\n\t0 created by nobody\n\t1 running on 3\n\t2..3 assist\n\t..4 sweep swept 2 reclaimed 1\n\t3.. stw k\n\t3..4 task a\n\t3..4 region r in a\n\t4 log c m\n\t4 label l\n\t4 sample\n\t5 syscall\n\t5 retaken\n\t6 runnable\n\t6 running\n\t6 end")
	f.Fuzz(func(t *testing.T, s string) {
		src, err := Parse(strings.NewReader(s))
		if err != nil {
			return
		}
		if len(src.Gaps()) > 0 {
			return // what fell into the gap is missing from the states
		}
		if err := consistent(src); err != nil {
			t.Error(err)
		}
	})
}
