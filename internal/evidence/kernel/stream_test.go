package kernel

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func opener(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

func all(t *testing.T, s Source) (out []Record) {
	t.Helper()
	if err := s.Each(func(l []Record) error { out = append(out, l...); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// made is a stream of n records in 100 flushes: one in twenty is a stretch that began long before
// it was written.
func made(t testing.TB, n int) (stream []byte, want []Record) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var buf bytes.Buffer
	w, err := NewWriter(&buf, Header{Source: "bpf", PID: 7, CPUs: []int{0, 1}, PerTask: true})
	if err != nil {
		t.Fatal(err)
	}
	last := [2]uint32{}
	now := int64(1e15)
	for i := range n {
		now += r.Int64N(10000)
		rec := Record{Time: now, Kind: Switch, CPU: uint16(r.IntN(2)), TID: uint32(r.IntN(50)),
			Other: uint32(r.IntN(50)), Flags: Flags(r.IntN(1 << 14)), Arg: [3]uint64{0, r.Uint64N(3), r.Uint64()}}
		if r.IntN(2) == 0 {
			rec.TID = last[rec.CPU]
		}
		last[rec.CPU] = rec.Other
		if r.IntN(20) == 0 {
			rec = Record{Time: now - r.Int64N(5e6), Kind: Reclaim, TID: 3, Arg: [3]uint64{5, 9}, Kernel: 1, User: 2}
		}
		want = append(want, rec)
		if err := w.Records([]Record{rec}); err != nil {
			t.Fatal(err)
		}
		if i%(n/100+1) == 0 {
			w.Flush(now - 100)
		}
	}
	w.Thread(Thread{TID: 3, PID: 7, NSTID: 1, Comm: "a b\n", Target: true, Since: 5})
	w.Stack(1, []Frame{{Addr: 1, Func: "f", Module: "m", Offset: 3}, {Addr: 2, Func: "g", Inferred: true}})
	w.Stack(2, []Frame{{Addr: 2, Func: "g", Inferred: true}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(want, func(a, b Record) int { return int(a.Time - b.Time) })
	return buf.Bytes(), want
}

func TestRoundTrip(t *testing.T) {
	stream, want := made(t, 20000)
	r, err := NewReader(opener(stream))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it can be read again
		got := all(t, r)
		// Late records of one time may stand before others of that time.
		key := func(a, b Record) int {
			return int(a.Time-b.Time)*1000 + int(a.Kind) - int(b.Kind)
		}
		if !slices.IsSortedFunc(got, func(a, b Record) int { return int(a.Time - b.Time) }) {
			t.Fatal("not in the order of time")
		}
		slices.SortStableFunc(got, key)
		slices.SortStableFunc(want, key)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%d records came back of %d, or others", len(got), len(want))
		}
	}
	if r.Ended() != "" {
		t.Errorf("ended %q", r.Ended())
	}
	if th := r.Threads(); len(th) != 1 ||
		th[0] != (Thread{TID: 3, PID: 7, NSTID: 1, Comm: "a b\n", Target: true, Since: 5}) {
		t.Errorf("threads %+v", th)
	}
	if s := r.Stack(1); len(s) != 2 || s[0].Func != "f" || !s[1].Inferred || s[0].Offset != 3 {
		t.Errorf("stack %+v", s)
	}
}

// A stream that is cut or damaged anywhere gives what is left, in order, and says that something is
// missing.
func TestDamage(t *testing.T) {
	stream, want := made(t, 30000)
	for n := len(magic) + 200; n < len(stream); n += len(stream) / 97 {
		r, err := NewReader(opener(stream[:n]))
		if err != nil {
			t.Fatal(err)
		}
		if got := all(t, r); len(got) >= len(want) || r.Ended() == "" {
			t.Errorf("cut at %d of %d: %d records of %d, ended %q", n, len(stream), len(got), len(want), r.Ended())
		}
		bad := slices.Clone(stream)
		bad[n] ^= 0x55
		if r, err = NewReader(opener(bad)); err != nil {
			t.Fatal(err)
		}
		got := all(t, r)
		if r.Ended() == "" || len(got) < len(want)*9/10 {
			t.Errorf("byte %d changed: %d records of %d, ended %q", n, len(got), len(want), r.Ended())
		}
	}
	if _, err := NewReader(opener([]byte("PK\x03\x04"))); err == nil {
		t.Error("a zip is read as a stream")
	}
}

func TestText(t *testing.T) {
	const text = `header source=bpf kernel=6.18.44 pid=10 cpus=0,1 pertask alltasks stopnote=0x1000 recorded=run-queues,samples missing="mmap-lock,tlb-flushes: a: b; reclaim: c"
switch t=100 cpu=1 tid=11 other=12 flags=preempted,target kernel=1 args=1,203,4096
thread tid=11 pid=10 comm="app x" ns=5 cgroup="/a" target since=7
stack id=1 futex_wait@kernel+0x10;?main.f
`
	s, err := ParseText(text)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteText(&b, s); err != nil {
		t.Fatal(err)
	}
	if b.String() != text {
		t.Errorf("got\n%s\nwant\n%s", b.String(), text)
	}
	for _, bad := range []string{"swich t=1", "switch t=x", "switch t=1 flags=none",
		"switch t=1 colour=red", "switch t=1 args=1,2,3,4", "stack 1 f",
		`header missing="the moon: c"`, "header recorded=moon"} {
		if _, err := ParseText(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestEachStops(t *testing.T) {
	stream, _ := made(t, 1000)
	r, err := NewReader(opener(stream))
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("enough")
	if err := r.Each(func([]Record) error { return stop }); err != stop {
		t.Errorf("error %v", err)
	}
}

func FuzzReader(f *testing.F) {
	stream, _ := made(f, 12)
	f.Add(stream)
	f.Add(stream[:len(stream)/2])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(opener(b))
		if err != nil {
			return
		}
		last := int64(-1 << 63)
		r.Each(func(l []Record) error {
			for _, x := range l {
				if x.Time < last {
					t.Fatal("out of order")
				}
				last = x.Time
				r.Stack(x.Kernel)
			}
			return nil
		})
		r.Threads()
		WriteText(io.Discard, r)
	})
}

func FuzzItems(f *testing.F) {
	f.Add(appendRecord(nil, &Record{Kind: Switch, Time: 9, TID: 4, Arg: [3]uint64{1, 2, 3}}, 0, &chain{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := items{b: b, r: &Reader{stacks: map[uint32][]uint32{}, frames: map[uint32]Frame{}}}
		var c chain
		for d.more() {
			d.record(&c)
		}
	})
}

func FuzzParseText(f *testing.F) {
	f.Add("switch t=1 tid=3 args=1\nheader missing=\"x")
	f.Fuzz(func(t *testing.T, s string) {
		if x, err := ParseText(s); err == nil {
			WriteText(io.Discard, x)
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	_, recs := made(b, 20000)
	b.ReportAllocs()
	for b.Loop() {
		w, _ := NewWriter(io.Discard, Header{})
		for i := 0; i < len(recs); i += 500 {
			w.Records(recs[i:min(i+500, len(recs))])
			w.Flush(recs[i].Time)
		}
		w.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
}

func BenchmarkReader(b *testing.B) {
	stream, recs := made(b, 20000)
	b.ReportAllocs()
	for b.Loop() {
		r, _ := NewReader(opener(stream))
		r.Each(func([]Record) error { return nil })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(recs)), "ns/record")
	b.ReportMetric(float64(len(stream))/float64(len(recs)), "B/record")
}
