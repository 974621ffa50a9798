package exectrace

import "testing"

// Batches must say what Blocks do, and introduce every goroutine whole.
func TestBatches(t *testing.T) {
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			data := readFixture(t, name)
			tr, err := FromBytes(data, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var want []Event
			for b := range tr.Blocks() {
				want = append(want, b...)
			}
			n, other := 0, 0
			goid := map[uint32]GoID{}
			for b := range tr.Batches() {
				k, born := 0, 0
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
						for s, g := range map[uint32]GoID{e.Slot: e.G, e.OnSlot: e.On} {
							if s != NoSlot {
								goid[s] = g
							}
						}
					} else {
						g, ok := goid[r.Slot]
						if r.Slot == NoSlot {
							g, ok = NoGoroutine, true
						}
						if r.Op == OpCreate {
							g, ok = b.Born[born], true
							goid[r.Slot] = g
							born++
						}
						on := NoGoroutine
						if (r.Op == OpWake || r.Op == OpCreate) && r.Arg != NoSlot {
							var known bool
							on, known = goid[r.Arg]
							ok = ok && known
						}
						if !ok {
							t.Fatalf("record %d is of a slot that nobody was told of", n)
						}
						m := ThreadID(r.M)
						if r.M == ^uint32(0) {
							m = NoThread
						}
						e = r.event(g, on, m)
						if r.Op == OpEnd {
							delete(goid, r.Slot)
						}
					}
					if n >= len(want) || e != want[n] {
						t.Fatalf("event %d is %+v, want %+v", n, e, want[min(n, len(want)-1)])
					}
					n++
				}
				if k != len(b.Other) || born != len(b.Born) {
					t.Fatalf("a batch has %d whole events and %d born, %d and %d are named", len(b.Other), len(b.Born), k, born)
				}
				other += k
			}
			if n != len(want) {
				t.Fatalf("%d events, want %d", n, len(want))
			}
			t.Logf("%d events, %d whole", n, other)
		})
	}
}
