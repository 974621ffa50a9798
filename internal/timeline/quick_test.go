package timeline

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/whystall/whystall/exectrace"
)

// The quick path leaves the same segments, sums and states behind as the full one, event by event.
// So it does where the ring is too small for long waits, and where events are missing.
func TestQuick(t *testing.T) {
	names, err := filepath.Glob("../../exectrace/testdata/*.trace")
	if err != nil || len(names) == 0 {
		t.Fatal("no traces: ", err)
	}
	for _, name := range names {
		for _, c := range []struct{ bytes, gap int }{{0, 0}, {1, 0}, {0, 5000}} {
			tr, err := exectrace.Open(name, exectrace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			a, b := New(tr, Options{Bytes: c.bytes}), New(tr, Options{Bytes: c.bytes})
			b.noQuick = true
			n, compared := 0, 0
			for block := range tr.Blocks() {
				for i := range block {
					ev := &block[i]
					if n++; c.gap > 0 && n%c.gap == 0 {
						lost := exectrace.Event{Kind: exectrace.KindGap, Time: ev.Time,
							Arg: [2]uint64{uint64(ev.Time) + 1000, uint64(ev.Time)}, Slot: exectrace.NoSlot}
						a.Apply(&lost)
						b.Apply(&lost)
					}
					if c.gap > 0 && n%c.gap < 20 {
						continue
					}
					a.Apply(ev)
					b.Apply(ev)
					if ev.Kind == exectrace.KindGoroutine {
						compared++
					}
					if a.head != b.head || a.oldest != b.oldest ||
						*a.at(a.head - 1) != *b.at(b.head - 1) || a.Woken != b.Woken ||
						a.runnable != b.runnable || a.runnableNS != b.runnableNS ||
						a.procs.wakeNS != b.procs.wakeNS || a.procs.cap != b.procs.cap ||
						a.procs.used != b.procs.used || a.procs.spare != b.procs.spare {
						t.Fatalf("%s, %d bytes, a gap every %d: the paths part at event %d: %+v",
							name, c.bytes, c.gap, n, ev)
					}
				}
			}
			if compared == 0 {
				t.Errorf("%s: nothing was compared", name)
			}
			for what, pair := range map[string][2]any{
				"segments": {slices.Equal(a.segs, b.segs), true}, "goroutines": {a.slots, b.slots},
				"identities": {a.idents, b.idents},
				"waiting":    {a.waiting, b.waiting}, "Ps": {a.procs.ps, b.procs.ps},
				"who ran":  {a.procs.heldNS, b.procs.heldNS},
				"capacity": {a.Capacity(), b.Capacity()}, "silences": {a.Silence, b.Silence},
				"wakes":           {a.Wakes(), b.Wakes()},
				"stop-the-worlds": {a.stops.stws, b.stops.stws}, "gaps": {a.gaps, b.gaps},
			} {
				if !reflect.DeepEqual(pair[0], pair[1]) {
					t.Errorf("%s, %d bytes, a gap every %d: %s differ", name, c.bytes, c.gap, what)
				}
			}
		}
	}
}
