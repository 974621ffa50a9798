package bpf

import (
	"encoding/binary"
	"reflect"
	"testing"
)

func small(kind Kind, flags Flags, tid, other, arg uint32) []byte {
	b := binary.LittleEndian.AppendUint64(nil, 7)
	b = binary.LittleEndian.AppendUint32(b, tid)
	b = binary.LittleEndian.AppendUint32(b, other)
	b = binary.LittleEndian.AppendUint32(b, arg)
	b = binary.LittleEndian.AppendUint16(b, uint16(flags))
	return append(b, byte(kind), 0)
}

func longs(b []byte, l ...uint64) []byte {
	for _, n := range l {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want Event
	}{
		{small(Switch, Target|Preempted, 3, 4, 1), Event{Time: 7, TID: 3, Other: 4, Kind: Switch,
			Flags: Target | Preempted, Arg: [3]uint64{1}}},
		{longs(small(Switch, Target, 3, 4, 1), 1, 203, 0xc000123),
			Event{Time: 7, TID: 3, Other: 4, Kind: Switch, Flags: Target, Arg: [3]uint64{1, 203, 0xc000123}}},
		{longs(small(Waking, 0, 3, 4, 0), 0, 1, 2, 50, 60),
			Event{Time: 7, TID: 3, Other: 4, Kind: Waking, Arg: [3]uint64{0, 1, 2}, Kernel: 50, User: 60}},
		{longs(small(Defined, 0, 0, 0, 1), 99, 0x10, 0x20),
			Event{Time: 7, Kind: Defined, Arg: [3]uint64{1}, IsUser: true, ID: 99, Stack: []uint64{0x10, 0x20}}},
		{append(longs(small(Named, Target|KernelThread, 5, 6, 2), 9, 1234),
			"a comm\x00garbage.."...), Event{Time: 7, TID: 5, Other: 6, Kind: Named,
			Flags: Target | KernelThread, Arg: [3]uint64{2},
			Thread: Thread{TID: 5, PID: 6, NSTID: 2, SelfTID: 9, Cgroup: 1234, Comm: "a comm",
				Kernel: true, FromTarget: true}}},
		{append(longs(small(Copied, 0, 0, 0, 1), 98, 1, 2, 3), 7, 8, 9),
			Event{Time: 7, Kind: Copied, Arg: [3]uint64{1}, ID: 98, IP: 1, SP: 2, BP: 3, Bytes: []byte{7, 8, 9}}},
	} {
		var e Event
		if err := decode(c.b, &e); err != nil {
			t.Errorf("decode %v: %v", c.want.Kind, err)
		} else if !reflect.DeepEqual(e, c.want) {
			t.Errorf("decode: got %+v, want %+v", e, c.want)
		}
	}
	for _, b := range [][]byte{nil, small(Switch, 0, 1, 2, 3)[:23], small(0, 0, 1, 2, 3),
		small(kinds, 0, 1, 2, 3), small(Copied, 0, 1, 2, 3), small(Named, 0, 1, 2, 3),
		small(Defined, 0, 1, 2, 3), append(longs(small(Defined, 0, 1, 2, 3), 1), 1)} {
		if decode(b, new(Event)) == nil {
			t.Errorf("decode %d bytes %v: no error", len(b), b)
		}
	}
}

// TestDecodeReuse: what an event before had must not show in the next.
func TestDecodeReuse(t *testing.T) {
	var e Event
	decode(longs(small(Waking, 0, 3, 4, 0), 1, 2, 3, 50, 60), &e)
	decode(small(Switch, 0, 1, 2, 8), &e)
	if e.Kernel != 0 || e.User != 0 || e.Arg != [3]uint64{8} {
		t.Errorf("left over from the event before: %+v", e)
	}
}

func BenchmarkDecode(b *testing.B) {
	rec := longs(small(Switch, Target, 3, 4, 1), 1, 203, 0xc000123)
	var e Event
	b.ReportAllocs()
	for b.Loop() {
		decode(rec, &e)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(small(Switch, Target, 1, 2, 3))
	f.Add(longs(small(Waking, 0, 3, 4, 0), 1, 2, 3, 50, 60))
	f.Add(longs(small(Defined, 0, 0, 0, 1), 99, 0x10, 0x20))
	f.Add(append(longs(small(Named, 0, 5, 6, 2), 9, 1234), "0123456789abcdef"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var e Event
		if decode(b, &e) == nil && (e.Kind == 0 || e.Kind >= kinds || len(e.Stack) > maxDepth ||
			len(e.Thread.Comm) > 16) {
			t.Errorf("decoded to %+v", e)
		}
	})
}
