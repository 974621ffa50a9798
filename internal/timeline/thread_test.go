package timeline

import (
	"path/filepath"
	"testing"

	"github.com/whystall/whystall/exectrace"
)

// Whenever a goroutine of a real trace runs or is in a syscall, its segment names the thread that
// its last event named.
func TestThread(t *testing.T) {
	names, err := filepath.Glob("../../exectrace/testdata/*.trace")
	if err != nil || len(names) == 0 {
		t.Fatal("no traces", err)
	}
	checked := 0
	for _, name := range names {
		tr, err := exectrace.Open(name, exectrace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		tl := New(tr, Options{})
		for block := range tr.Blocks() {
			for i := range block {
				ev := &block[i]
				tl.Apply(ev)
				if ev.Kind != exectrace.KindGoroutine || ev.To != exectrace.Running &&
					ev.To != exectrace.Syscall || tl.now < tl.inGapUntil {
					continue
				}
				want := uint32(0)
				if tr.Version() >= 22 {
					want = threadID(ev.M)
				}
				g := tl.Slot(ev.Slot)
				if s := tl.Seg(uint32(g.Cur)); s != nil && s.Thread() != want {
					t.Fatalf("%s: at %d: goroutine %d is on thread %d, its segment says %d", name,
						ev.Time, ev.G, want, s.Thread())
				}
				if want != 0 {
					checked++
				}
			}
		}
		for _, s := range tl.stops.stws {
			if tr.Version() >= 22 && (s.Thread == 0 || s.LastStop != 0 && s.AwaitedThread == 0) {
				t.Errorf("%s: a stop-the-world without its threads: %+v", name, s)
			}
		}
		tr.Close()
	}
	if checked < 1000 {
		t.Errorf("only %d events of a thread that is known", checked)
	}
}
