package exectrace

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// v1Key is what an event says, without what depends on the rest of the trace: slots, and the state
// that the goroutine was in before.
type v1Key struct {
	time    Time
	g, on   GoID
	arg     [2]uint64
	p, proc ProcID
	kind    Kind
	to      State
	reason  Reason
}

func v1KeyOf(e *Event) v1Key {
	return v1Key{e.Time, e.G, e.On, e.Arg, e.P, e.Proc, e.Kind, e.To, e.Reason}
}

// v1Read reads all of data and checks what holds for any input.
func v1Read(t testing.TB, data []byte, see func(*Trace, *Event)) *Trace {
	t.Helper()
	tr, err := FromBytes(data, Options{})
	if err != nil {
		t.Fatal(err)
	}
	last, n := Time(0), int64(0)
	for e := range tr.Events() {
		if e.Time < last {
			t.Fatalf("event %d: time goes back from %d to %d", n, last, e.Time)
		}
		if e.G != NoGoroutine && e.Slot == NoSlot || e.On != NoGoroutine && e.OnSlot == NoSlot {
			t.Fatalf("event %d: a goroutine without slot: %+v", n, e)
		}
		last = e.Time
		n++
		if see != nil {
			see(tr, e)
		}
	}
	if err := tr.Err(); err != nil {
		t.Fatal(err)
	}
	for _, g := range tr.Gaps() {
		if g.End < g.Begin || g.Reason == "" {
			t.Fatalf("gap %+v", g)
		}
	}
	if s := tr.Stats(); s.Events != n {
		t.Fatalf("%d events counted, %d seen", s.Events, n)
	}
	return tr
}

func v1Whole(t *testing.T, name string) ([]byte, map[v1Key]int, *Trace) {
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[v1Key]int{}
	return data, whole, v1Read(t, data, func(_ *Trace, e *Event) { whole[v1KeyOf(e)]++ })
}

// v1Against reads data. It counts those of its events that the whole trace does not have, all of
// them, and those before a time.
func v1Against(t *testing.T, data []byte, whole map[v1Key]int, begin Time) (invented, n, before int, tr *Trace) {
	seen := map[v1Key]int{}
	tr = v1Read(t, data, func(_ *Trace, e *Event) {
		if e.Kind == KindGap {
			return
		}
		n++
		// A syscall's end stands where its goroutine ran again, which may be in what is lost.
		if e.Time < begin && e.Reason != ReasonSyscallBlocked {
			before++
		}
		k := v1KeyOf(e)
		seen[k]++
		if seen[k] > whole[k] {
			invented++
		}
	})
	return invented, n, before, tr
}

// A truncated trace, or that of a killed process, gives each event that was written, in order, and
// says what is missing.
func TestV1Truncated(t *testing.T) {
	data, _, tr := v1Whole(t, "srv-go1.13.15.trace")
	records := int64(0)
	for _, p := range tr.v1.procs {
		records += int64(p.n)
	}
	cuts := often(40, 3)
	for i := range cuts {
		cut := headerLen + i*(len(data)-headerLen)/cuts + i*7
		short := v1Read(t, data[:cut], nil)
		if len(short.Gaps()) == 0 {
			t.Errorf("cut at %d: no gap", cut)
		}
		n := int64(0)
		for _, p := range short.v1.procs {
			n += int64(p.n)
		}
		s := short.Stats()
		// A record is one event, but a syscall is two and its end none. What only serves the order
		// is none either.
		if s.Events+s.Dropped < n*95/100 || s.Dropped > n/50+100 {
			t.Errorf("cut at %d: %d records gave %d events, %d dropped", cut, n, s.Events, s.Dropped)
		}
		if i == 39 && n < records*9/10 {
			t.Errorf("cut at %d: %d of %d records", cut, n, records)
		}
	}
}

// A missing batch leaves nothing of itself in the file. The order of each goroutine's events shows
// it. What comes before is untouched, and there is a gap. Next to nothing after it is invented:
// events that come too early or too late, because what they should wait for is missing.
func TestV1DroppedBatch(t *testing.T) {
	for _, name := range []string{"srv-go1.13.15.trace", "srv-go1.21.13.trace"}[:often(2, 1)] {
		data, whole, tr := v1Whole(t, name)
		for p := range tr.v1.procs {
			spans := tr.v1.procs[p].spans
			for k := 1; k < len(spans)-1; k += often(11, 1000) {
				sp := spans[k]
				_, ticks, _, _ := v1Header(data, int(sp.off))
				var clock v1Clock
				clock.set(tr.v1.first, tr.v1.freq)
				begin := clock.time(ticks)
				want := 0
				for k, n := range whole {
					if k.time < begin && k.reason != ReasonSyscallBlocked {
						want += n
					}
				}
				cut := slices.Delete(slices.Clone(data), int(sp.off), int(sp.off)+int(sp.n))
				invented, n, before, got := v1Against(t, cut, whole, begin)
				gaps := got.Gaps()
				if before != want {
					t.Errorf("%s: P %d: batch %d dropped: %d events before it, %d in the whole trace", name, tr.v1.procs[p].pid, k, before, want)
				}
				if len(gaps) == 0 || len(gaps) > 50 || gaps[0].End < begin || gaps[0].Begin > clock.time(tr.v1.last) {
					t.Errorf("%s: P %d: batch %d dropped at %d: gaps %v", name, tr.v1.procs[p].pid, k, begin, gaps)
				}
				if invented > n/1000 {
					t.Errorf("%s: P %d: batch %d dropped: %d of %d events are not in the whole trace", name, tr.v1.procs[p].pid, k, invented, n)
				}
			}
		}
	}
}

// Damaged bytes cost the rest of their batch. Where they change a number without breaking a record,
// the times behind it in its batch may be wrong: the format has no checksum.
func TestV1Damaged(t *testing.T) {
	data, whole, tr := v1Whole(t, "srv-go1.20.14.trace")
	total := int(tr.Stats().Events)
	r := rand.New(rand.NewPCG(1, 2))
	for range often(12, 1) {
		bad := slices.Clone(data)
		at := len(data)/10 + r.IntN(len(data)*8/10)
		for i := range 40 {
			bad[at+i] = byte(r.Uint32())
		}
		invented, n, _, got := v1Against(t, bad, whole, 0)
		if len(got.Gaps()) == 0 || n < total-2*64<<10/4 || invented > 64<<10/4 {
			t.Errorf("damage at %d: %d of %d events, %d of them invented, gaps %v", at, n, total, invented, got.Gaps())
		}
	}
}

// Of two traces in one file the first is read, and a gap says where the other one starts: their
// clocks and ids are not the same.
func TestV1Joined(t *testing.T) {
	for _, name := range []string{"srv-go1.13.15.trace", "srv-go1.16.15.trace",
		"srv-go1.20.14.trace", "srv-go1.21.13.trace"}[:often(4, 2)] {
		data, _, alone := v1Whole(t, name)
		for _, second := range [][]byte{data, readFixture(t, v2Fixture)} {
			tr := v1Read(t, append(bytes.Clone(data), second...), nil)
			gaps := tr.Gaps()
			if len(gaps) != 1 ||
				!strings.Contains(gaps[0].Reason, fmt.Sprintf("another trace starts at byte %d",
					len(data))) || gaps[0].Bytes != int64(len(second)) {
				t.Errorf("%s: gaps %v", name, gaps)
			}
			if got, want := tr.Stats().Events, alone.Stats().Events; got != want {
				t.Errorf("%s: %d events, alone %d", name, got, want)
			}
		}
	}
}
