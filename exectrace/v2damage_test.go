package exectrace

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"
)

// checked is what checkEvents saw.
type checked struct {
	events int
	gaps   int // KindGap events
	hash   uint64
}

// checkEvents reads all events and checks what must hold whatever the input. It calls every getter.
func checkEvents(tb testing.TB, tr *Trace) checked {
	tb.Helper()
	var c checked
	var h maphash.Hash
	h.SetSeed(seed)
	last := Time(-1 << 63)
	var frames []Frame
	var b [88]byte
	for ev := range tr.Events() {
		c.events++
		if ev.Time < last {
			tb.Fatalf("event %d: time goes back from %d to %d", c.events, last, ev.Time)
		}
		last = ev.Time
		if ev.Kind == KindNone || ev.Kind >= kindCount || ev.From >= stateCount || ev.To >= stateCount ||
			ev.Reason >= reasonCount || ev.Range >= rangeCount || ev.Metric >= metricCount {
			tb.Fatalf("event %d is of no kind: %+v", c.events, *ev)
		}
		if (ev.Slot == NoSlot) != (ev.G == NoGoroutine) && ev.Kind != KindSample {
			tb.Fatalf("event %d: slot %d of goroutine %d", c.events, ev.Slot, ev.G)
		}
		if tr.version >= 22 && (ev.Slot != NoSlot && int(ev.Slot) >= len(tr.slots.goid) ||
			ev.OnSlot != NoSlot && int(ev.OnSlot) >= len(tr.slots.goid)) {
			tb.Fatalf("event %d: slots %d and %d of %d", c.events, ev.Slot, ev.OnSlot, len(tr.slots.goid))
		}
		switch ev.Kind {
		case KindGap:
			c.gaps++
			if Time(ev.Arg[0]) < ev.Time {
				tb.Fatalf("event %d: a gap from %d to %d", c.events, ev.Time, ev.Arg[0])
			}
		case KindGoroutine:
			if ev.To == Undetermined || ev.To == Idle {
				tb.Fatalf("event %d: goroutine goes to %d", c.events, ev.To)
			}
		case KindProc:
			if ev.Proc < 0 || ev.To != Running && ev.To != Idle && ev.To != Syscall {
				tb.Fatalf("event %d: P %d goes to %d", c.events, ev.Proc, ev.To)
			}
		}
		if c.events%64 == 0 {
			frames = tr.Frames(frames[:0], ev.Stack)
			frames = tr.Frames(frames, ev.OnStack)
			h.WriteString(tr.String(ev.Name))
		}
		n, err := binary.Encode(b[:], binary.LittleEndian, ev)
		if err != nil {
			tb.Fatal(err)
		}
		h.Write(b[:n])
	}
	for _, g := range tr.Gaps() {
		if g.End < g.Begin || g.Reason == "" {
			tb.Fatalf("gap %+v", g)
		}
	}
	if tr.Stats().Events != int64(c.events) {
		tb.Fatalf("%d events, Stats says %+v", c.events, tr.Stats())
	}
	tr.Clock()
	tr.Lacks()
	c.hash = h.Sum64()
	return c
}

// checkAll reads data in every way.
func checkAll(tb testing.TB, data []byte, workers int) (checked, *Trace) {
	tb.Helper()
	tr, err := FromBytes(data, Options{Workers: workers})
	if err != nil {
		tb.Fatal(err)
	}
	c := checkEvents(tb, tr)
	if err := tr.Err(); err != nil {
		tb.Fatalf("damage is no error: %v", err)
	}
	sum := tr.Totals(func(g *GoroutineTotal) {
		for s, ns := range g.NS {
			if ns < 0 {
				tb.Fatalf("goroutine %d: %d ns in state %d", g.G, ns, s)
			}
		}
	})
	if sum.End < sum.Begin {
		tb.Fatalf("totals from %d to %d", sum.Begin, sum.End)
	}
	if tr.version >= 22 && workers != 1 {
		sameBatches(tb, tr)
	}
	return c, tr
}

func TestWorkers(t *testing.T) {
	for _, name := range fixtures(t) {
		data := readFixture(t, name)
		var first checked
		for w := 1; w <= often(4, 2); w++ {
			tr, err := FromBytes(data, Options{Workers: w})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second read finds everything interned
				c := checkEvents(t, tr)
				if w == 1 && first.events == 0 {
					first = c
				}
				if c != first {
					t.Fatalf("%s with %d workers: %+v, with one %+v", name, w, c, first)
				}
			}
		}
	}
}

// v2Fixture is the smallest trace of the format family.
const v2Fixture = "srv-go1.22.12"

func TestTruncated(t *testing.T) {
	data := readFixture(t, v2Fixture)
	whole, _ := checkAll(t, data, 2)
	last := 0
	cuts := often(60, 6)
	for k := range cuts {
		n := headerLen + (len(data)-headerLen)*k/cuts + k*k%97
		c, tr := checkAll(t, data[:n], 2)
		if n > headerLen+100 && len(tr.Gaps()) == 0 {
			t.Errorf("cut at %d: no gap", n)
		}
		// Each whole batch before the cut is there. Stacks and strings are some percent of the
		// bytes.
		if want := whole.events * n / len(data) * 85 / 100; c.events < want-20_000 {
			t.Errorf("cut at %d of %d: %d events of %d", n, len(data), c.events, whole.events)
		}
		if c.events < last-1 {
			t.Errorf("cut at %d: %d events, %d with less", n, c.events, last)
		}
		last = c.events
	}
	// Right behind the header, and in it.
	if c, _ := checkAll(t, data[:headerLen], 1); c.events != 0 {
		t.Errorf("an empty trace has %d events", c.events)
	}
	for n := range headerLen {
		if _, err := FromBytes(data[:n], Options{}); err == nil {
			t.Errorf("a header of %d bytes is taken", n)
		}
	}
}

func TestFlipped(t *testing.T) {
	data := readFixture(t, v2Fixture)
	whole, _ := checkAll(t, data, 2)
	rng := rand.New(rand.NewPCG(1, 2))
	buf := make([]byte, len(data))
	for _, flips := range []int{1, 10, 1000, 1, 1, 1, 1, 1, 3, 3, 10, 100}[:often(12, 3)] {
		copy(buf, data)
		var at []int
		for range flips {
			k := headerLen + rng.IntN(len(buf)-headerLen)
			buf[k] ^= 1 << rng.IntN(8)
			at = append(at, k)
		}
		c, tr := checkAll(t, buf, 2)
		// One flip costs a batch at most: 64 KB.
		if lost := whole.events - c.events; lost > flips*16_000 {
			t.Errorf("%d flips, the first at %d: %d events are lost; %d gaps", flips, at[0], lost, len(tr.Gaps()))
		}
	}
}

// TestDropped takes one batch of events out, as a full disk or a lossy pipe might.
func TestDropped(t *testing.T) {
	data := readFixture(t, v2Fixture)
	whole, _ := checkAll(t, data, 2)
	x := &indexer{data: data, off: headerLen, version: 22}
	n := 0
	for g := x.next(); g != nil; g = x.next() {
		for k := 0; k < len(g.batches); k += often(7, 4000) {
			b := g.batches[k]
			events := 0
			for i, d := 0, data[b.off:b.end]; i < len(d); events++ {
				_, j := uvarint(d, i+1)
				i = skipArgs(d, d[i], j)
			}
			// The header is the bytes before that end with the size.
			head := b.off - 1
			for ; ; head-- {
				if h, ok := parseHeader(data[head:]); ok && h.kind == evEventBatch &&
					h.ts == b.ts && head+h.n == b.off {
					break
				}
			}
			cut := append(bytes.Clone(data[:head]), data[b.end:]...)
			c, tr := checkAll(t, cut, 2)
			n++
			if lost := whole.events - c.events; lost > 2*events+2000 {
				t.Errorf("a batch of %d events is missing, %d are lost", events, lost)
			}
			if events > 1000 && len(tr.Gaps()) == 0 {
				t.Errorf("a batch of %d events is missing, but no gap says so", events)
			}
		}
	}
	if n < 3 {
		t.Fatalf("only %d batches were tried", n)
	}
}

func TestGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("20 s under the race detector; without -short")
	}
	data := readFixture(t, v2Fixture)
	whole, _ := checkAll(t, data, 2)
	rng := rand.New(rand.NewPCG(3, 4))
	junk := make([]byte, 100_000)
	for i := range junk {
		junk[i] = byte(rng.Uint32())
	}
	mid := len(data) / 2
	for name, in := range map[string][]byte{
		"behind": append(bytes.Clone(data), junk...),
		"twice":  append(bytes.Clone(data), data...),
		"amid":   append(append(bytes.Clone(data[:mid]), junk...), data[mid:]...),
		"zeros":  append(append(bytes.Clone(data[:mid]), make([]byte, 100_000)...), data[mid:]...),
		"before": append(append(bytes.Clone(data[:headerLen]), junk...), data[headerLen:]...),
		"only":   append(bytes.Clone(data[:headerLen]), junk...),
		"header": append(bytes.Clone(data[:headerLen]), data...),
	} {
		c, tr := checkAll(t, in, 2)
		want := whole.events - 16_000
		switch name {
		case "twice":
			want = whole.events
			if n := c.events - whole.events; n != 0 ||
				!strings.Contains(tr.Gaps()[0].Reason, fmt.Sprintf("another trace starts at byte %d", len(data))) {
				t.Errorf("%s: %d events more than in one, gaps %v", name, n, tr.Gaps())
			}
		case "only":
			want = 0
		}
		if c.events < want || len(tr.Gaps()) == 0 && name != "header" {
			t.Errorf("%s: %d events of %d, %d gaps", name, c.events, whole.events, len(tr.Gaps()))
		}
	}
}

// TestGapSays checks that a truncation is said with its range.
func TestGapSays(t *testing.T) {
	data := readFixture(t, v2Fixture)
	_, tr := checkAll(t, data[:len(data)*2/3], 2)
	gaps := tr.Gaps()
	if len(gaps) == 0 {
		t.Fatal("no gap")
	}
	if r := gaps[0].Reason; !strings.Contains(r, "truncated") && !strings.Contains(r, "missing") {
		t.Errorf("reason %q", r)
	}
	if gaps[0].Begin == 0 || gaps[0].End <= gaps[0].Begin {
		t.Errorf("gap %+v", gaps[0])
	}
}
