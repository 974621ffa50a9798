package sched

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// records is a source of records in memory.
type records struct {
	header  kernel.Header
	recs    []kernel.Record
	threads []kernel.Thread
	stacks  map[uint32][]kernel.Frame
	block   int
}

func (r *records) Header() kernel.Header { return r.header }

func (r *records) Each(f func([]kernel.Record) error) error {
	for l := r.recs; len(l) > 0; {
		n := min(len(l), max(r.block, 1))
		if err := f(l[:n]); err != nil {
			return err
		}
		l = l[n:]
	}
	return nil
}

func (r *records) Threads() []kernel.Thread { return r.threads }

func (r *records) Stack(id uint32) []kernel.Frame { return r.stacks[id] }

func (r *records) Ended() string { return "" }

// unpack makes records of any bytes, 12 bytes a record. Threads and CPUs are few, so that they
// meet. Times mostly go forward.
func unpack(b []byte) *records {
	src := &records{block: 7, header: kernel.Header{Source: "bpf", CPUs: []int{0, 1}, AllTasks: true, PerTask: true}}
	if len(b) > 0 {
		src.header.AllTasks, src.header.PerTask = b[0]&1 == 0, b[0]&2 == 0
		if b[0]&4 != 0 {
			src.header.Source = "perf"
		}
		b = b[1:]
	}
	t := int64(1000)
	for len(b) >= 12 {
		r := kernel.Record{Kind: kernel.Kind(b[0] % 32), TID: uint32(b[1] % 8),
			Other: uint32(b[2] % 8), CPU: uint16(b[3] % 4),
			Flags: kernel.Flags(binary.LittleEndian.Uint16(b[4:])), Kernel: uint32(b[6] % 8), User: uint32(b[7] % 8)}
		if b[0] < 128 {
			r.Kind = kernel.Kind(1 + b[0]%5) // mostly switches and wakings
		}
		switch b[8] {
		case 255:
			t = math.MaxInt64
		case 254:
			t = math.MinInt64
		case 253:
			r.TID, r.Other = math.MaxUint32, math.MaxUint32
		case 252:
			r.Arg = [3]uint64{math.MaxUint64, math.MaxUint64, math.MaxUint64}
		default:
			t += int64(b[8])
		}
		if r.Arg[0] == 0 {
			r.Arg = [3]uint64{uint64(b[9] % 4), uint64(b[10]), uint64(b[11])}
			if r.Kind >= kernel.Fault {
				r.Arg[0] = uint64(b[9])
			}
		}
		r.Time = t
		if b[8] == 254 {
			t = 1000
		}
		src.recs = append(src.recs, r)
		b = b[12:]
	}
	src.stacks = map[uint32][]kernel.Frame{1: {{Func: "schedule"}, {Func: "futex_wait.cold"}},
		2: {{Func: "rwsem_down_read_slowpath"}, {Func: "do_madvise"}},
		3: {{Func: "runtime.futex"}, {Func: "runtime.notetsleep"}, {Func: "runtime.stopTheWorldWithSema"}}, 4: {{}}}
	src.threads = []kernel.Thread{{TID: 1, NSTID: 2, Target: true}, {TID: 1, Since: math.MinInt64}}
	return src
}

// FuzzKernel asks everything of any records: the answers must tile what was asked for, and nothing
// may panic.
func FuzzKernel(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 8 {
		b := make([]byte, 1+12*40)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		b[0] = byte(n)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		src := unpack(b[:min(len(b), 1+12*300)])
		for _, o := range []Options{{}, {Bytes: 4000}} {
			k, err := NewWith(src, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := exact(k, 12); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestKernelRandom is FuzzKernel with more random streams than its seeds.
func TestKernelRandom(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 30
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		b := make([]byte, 1+12*(1+rnd.IntN(200)))
		for j := range b {
			b[j] = byte(rnd.Uint32())
		}
		if i%2 == 0 {
			for j := 9; j < len(b); j += 12 {
				b[j] %= 250 // times that are possible
			}
		}
		for _, o := range []Options{{}, {Bytes: 4000}} {
			k, err := NewWith(unpack(b), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := exact(k, 10); err != nil {
				t.Fatalf("stream %d, %+v: %v", i, o, err)
			}
		}
	}
}
