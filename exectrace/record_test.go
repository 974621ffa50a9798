package exectrace

import "testing"

// TestBatches holds batches to blocks: they have the same events, and introduce each goroutine.
func TestBatches(t *testing.T) {
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			tr, err := FromBytes(readFixture(t, name), Options{})
			if err != nil {
				t.Fatal(err)
			}
			events, whole := sameBatches(t, tr)
			t.Logf("%d events, %d whole", events, whole)
		})
	}
}

// sameBatches holds the batches of a trace to its blocks. It counts their events and those that are
// whole.
func sameBatches(t testing.TB, tr *Trace) (n, other int) {
	t.Helper()
	var want []Event
	for b := range tr.Blocks() {
		want = append(want, b...)
	}
	stats, gaps := tr.Stats(), len(tr.Gaps())
	var roster Roster
	for b := range tr.Batches() {
		k := 0
		roster.Begin(b)
		for i := range b.Records {
			r := &b.Records[i]
			var e Event
			if r.Op == OpOther {
				if int(r.Arg) != k {
					t.Fatalf("record %d names event %d of its batch, want %d", n, r.Arg, k)
				}
				e = b.Other[k]
				if r.Time != e.Time {
					t.Fatalf("record %d has time %d, its event %d", n, r.Time, e.Time)
				}
				k++
				roster.Other(&e)
			} else {
				e = r.Event(roster.Of(r))
			}
			if n >= len(want) || e != want[n] {
				t.Fatalf("event %d is %+v, want %+v", n, e, want[min(n, len(want)-1)])
			}
			n++
		}
		if k != len(b.Other) || len(roster.born) != 0 {
			t.Fatalf("a batch has %d whole events, %d are named, and %d born are not", len(b.Other),
				k, len(roster.born))
		}
		other += k
	}
	if n != len(want) {
		t.Fatalf("%d events, want %d", n, len(want))
	}
	if tr.Stats() != stats || len(tr.Gaps()) != gaps {
		t.Fatalf("batches count %+v and %d gaps, blocks %+v and %d", tr.Stats(), len(tr.Gaps()), stats, gaps)
	}
	return n, other
}
