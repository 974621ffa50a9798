package perfevent

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"
)

// words puts a record together: its kind, its misc bits, and 8-byte words.
func words(kind Kind, misc uint16, w ...uint64) []byte {
	b := make([]byte, headSize, headSize+8*len(w))
	binary.LittleEndian.PutUint32(b, uint32(kind))
	binary.LittleEndian.PutUint16(b[4:], misc)
	for _, x := range w {
		b = binary.LittleEndian.AppendUint64(b, x)
	}
	binary.LittleEndian.PutUint16(b[6:], uint16(len(b)))
	return b
}

func pair(low, high uint32) uint64 { return uint64(high)<<32 | uint64(low) }

func TestDecode(t *testing.T) {
	trail := []uint64{pair(70, 71), 1000, pair(3, 0), 9} // pid and tid, time, CPU, id
	with := func(body ...uint64) []uint64 { return append(body, trail...) }
	for _, c := range []struct {
		name   string
		in     []byte
		format format
		want   Record
	}{
		{"switch out, preempted", words(Switch, miscOut|miscPreempt, with()...), format{},
			Record{Kind: Switch, Out: true, Preempt: true, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"switch in", words(Switch, 0, with()...), format{},
			Record{Kind: Switch, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"whole machine", words(SwitchCPUWide, miscOut, with(pair(80, 81))...), format{},
			Record{Kind: SwitchCPUWide, Out: true, PID: 70, TID: 71, OtherPID: 80, OtherTID: 81,
				Time: 1000, CPU: 3, ID: 9}},
		{"lost", words(Lost, 0, with(9, 12)...), format{},
			Record{Kind: Lost, Count: 12, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"lost samples", words(LostSamples, 0, with(13)...), format{},
			Record{Kind: LostSamples, Count: 13, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"comm by exec", words(Comm, miscExec, with(pair(70, 71), 0x68736162)...), format{},
			Record{Kind: Comm, Exec: true, Name: "bash", PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"fork", words(Fork, 0, with(pair(90, 70), pair(91, 71), 999)...), format{},
			Record{Kind: Fork, PID: 90, OtherPID: 70, TID: 91, OtherTID: 71, Time: 1000, CPU: 3, ID: 9}},
		{"sample", words(Sample, 0, 9, pair(70, 71), 1000, 0x1234, pair(3, 0), 77), format{},
			Record{Kind: Sample, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9, Addr: 0x1234, Period: 77}},
		{"sample with stacks", words(Sample, 0, 9, pair(70, 71), 1000, 0, pair(3, 0), 1, 6,
			contextKernel, 0xffffffff81000010, 0xffffffff81000020, contextUser, 0x401000, 0x402000),
			format{chains: true},
			Record{Kind: Sample, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9, Period: 1,
				Kernel: []uint64{0xffffffff81000010, 0xffffffff81000020}, User: []uint64{0x401000, 0x402000}}},
		{"sample with registers and bytes", words(Sample, 0, 9, pair(70, 71), 1000, 0, pair(3, 0),
			1, 0, 2, 0xb0, 0x50, 0x10, 16, 0x4242, 0x4343, 8), format{chains: true, stacks: true},
			Record{Kind: Sample, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9, Period: 1, BP: 0xb0,
				SP: 0x50, IP: 0x10, Stack: []byte{0x42, 0x42, 0, 0, 0, 0, 0, 0}}},
		{"sample of no user", words(Sample, 0, 9, pair(70, 71), 1000, 0, pair(3, 0), 1, 0, 0, 0),
			format{chains: true, stacks: true},
			Record{Kind: Sample, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9, Period: 1}},
		{"a guest's addresses are nobody's", words(Sample, 0, 9, pair(70, 71), 1000, 0, pair(3, 0),
			1, 3, ^uint64(2048)+1, 0x401000, 0x402000), format{chains: true},
			Record{Kind: Sample, PID: 70, TID: 71, Time: 1000, CPU: 3, ID: 9, Period: 1}},
	} {
		var got Record
		if err := decode(c.in, c.format, &got); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(got.Kernel) == 0 {
			got.Kernel = nil
		}
		if len(got.User) == 0 {
			got.User = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}

func TestDecodeDamaged(t *testing.T) {
	var r Record
	short := words(Switch, 0, 1, 2, 3)
	if err := decode(short, format{}, &r); !errors.Is(err, errShort) {
		t.Errorf("a switch without its trailer: %v, want %v", err, errShort)
	}
	long := words(Sample, 0, 9, 1, 2, 3, 4, 5, 1<<40, 6)
	if err := decode(long, format{chains: true}, &r); err == nil {
		t.Error("a call chain of 2^40 addresses in 8 bytes is no error")
	}
	if err := decode(words(99, 0, 1, 2, 3, 4), format{}, &r); !errors.Is(err, errSkip) {
		t.Errorf("an unknown kind: %v, want %v", err, errSkip)
	}
}

// The ring's bytes are the kernel's, but a reader that would loop or panic on a damaged one would
// take the recording with it.
func FuzzRing(f *testing.F) {
	f.Add(append(words(Switch, miscOut, 1, 2, 3, 4), words(Lost, 0, 9, 12, 1, 2, 3, 4)...),
		uint16(0), uint16(88), true, false)
	f.Add(words(Sample, 0, 9, 1, 1000, 0, 3, 1, 2, contextUser, 0x401000), uint16(4072), uint16(80), true, true)
	f.Fuzz(func(t *testing.T, b []byte, tail, n uint16, stacks, dumps bool) {
		data := make([]byte, 4096)
		for i, c := range b {
			data[(int(tail)+i)%len(data)] = c
		}
		from := uint64(tail)
		head := from + uint64(n)
		r := ring{head: &head, tail: &from, data: data}
		var rec Record
		_ = r.read(func(b []byte) {
			if decode(b, format{chains: stacks, stacks: dumps}, &rec) == nil && len(rec.Kernel)+
				len(rec.User) > maxCallchain {
				t.Error("a call chain over the limit")
			}
		})
		if from != head {
			t.Errorf("tail is %d, head %d: the kernel would have no room", from, head)
		}
	})
}

func TestRingWraps(t *testing.T) {
	data := make([]byte, 64)
	tail, head := uint64(16), uint64(16)
	r := ring{head: &head, tail: &tail, data: data}
	for i := range uint64(50) {
		for _, c := range words(Lost, 0, 1, i, 2, 3)[:] {
			data[head%64] = c
			head++
		}
		n := 0
		if err := r.read(func(b []byte) {
			n++
			if got := binary.LittleEndian.Uint64(b[16:]); got != i {
				t.Errorf("record %d reads as %d", i, got)
			}
		}); err != nil || n != 1 {
			t.Fatalf("record %d: %d records, %v", i, n, err)
		}
	}
}

func TestCPUs(t *testing.T) {
	got, err := parseCPUs("0-3,8,10-11")
	if err != nil || !reflect.DeepEqual(got, []int{0, 1, 2, 3, 8, 10, 11}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "3-1", "0-99999999", "x", "-1"} {
		if got, err := parseCPUs(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func FuzzCPUs(f *testing.F) {
	f.Add("0-3,8")
	f.Fuzz(func(t *testing.T, s string) {
		if cpus, err := parseCPUs(s); err == nil && len(cpus) > maxCPUs {
			t.Errorf("%d CPUs", len(cpus))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	in := words(SwitchCPUWide, miscOut, pair(80, 81), pair(70, 71), 1000, 3, 9)
	var r Record
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(in, format{chains: true}, &r); err != nil {
			b.Fatal(err)
		}
	}
}
