package exectrace

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
)

// v1Build writes a trace by hand: events as numbers, in the format's own terms.
type v1Build struct{ b []byte }

func newV1Build(version string) *v1Build {
	return &v1Build{append([]byte("go 1."+version+" trace"), 0, 0, 0)}
}

func (w *v1Build) uvarint(v ...uint64) {
	for _, v := range v {
		w.b = binary.AppendUvarint(w.b, v)
	}
}

func (w *v1Build) batch(pid int64, ticks uint64) {
	w.b = append(w.b, v1BatchByte)
	w.uvarint(uint64(pid), ticks)
}

// event writes an event of typ. args start with the ticks since the event before.
func (w *v1Build) event(typ byte, args ...uint64) {
	if n := len(args) - 1; n < 3 {
		w.b = append(w.b, typ|byte(n)<<6)
		w.uvarint(args...)
		return
	}
	var p v1Build
	p.uvarint(args...)
	w.b = append(w.b, typ|3<<6)
	w.uvarint(uint64(len(p.b)))
	w.b = append(w.b, p.b...)
}

func (w *v1Build) text(s string) {
	w.uvarint(uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *v1Build) string(id uint64, s string) {
	w.b = append(w.b, v1String)
	w.uvarint(id)
	w.text(s)
}

// begin is what the runtime writes first: G1 runs on P0, G2 waits, G3 is in a syscall, G4 is
// runnable.
func (w *v1Build) begin() {
	w.batch(0, 1000)
	for g := uint64(1); g <= 4; g++ {
		w.event(v1GoCreate, 1, g, 1, 0)
	}
	w.event(v1GoWaiting, 1, 2)
	w.event(v1GoInSyscall, 1, 3)
	w.event(v1ProcStart, 1, 0)
	w.event(v1GoStart, 1, 1, 1)
	w.event(v1Gomaxprocs, 1, 2, 0)
}

// end is what it writes last. A tick is a nanosecond.
func (w *v1Build) end() []byte {
	w.event(v1Frequency, 1e9)
	w.string(1, "main.main")
	w.string(2, "main.go")
	w.event(v1Stack, 1, 1, 0x1000, 1, 2, 7)
	return w.b
}

func v1Small() []byte {
	w := newV1Build("19")
	w.begin()
	w.event(v1GoUnblock, 5, 2, 2, 1)
	w.event(v1GoSysCall, 5, 1)
	w.event(v1GoSysBlock, 5)
	w.event(v1GoStartLocal, 5, 2)
	w.string(3, "task")
	w.event(v1TaskCreate, 5, 1, 0, 3, 1)
	w.event(v1Region, 1, 1, 0, 3, 1)
	w.event(v1Log, 1, 1, 3, 1)
	w.text("hello")
	w.event(v1Region, 1, 1, 1, 3, 1)
	w.event(v1TaskEnd, 1, 1, 1)
	w.event(v1STWStart, 1, 1)
	w.event(v1STWDone, 1)
	w.event(v1GCStart, 1, 0, 1)
	w.event(v1AssistStart, 1, 1)
	w.event(v1AssistDone, 1)
	w.event(v1SweepStart, 1, 1)
	w.event(v1SweepDone, 1, 8192, 64)
	w.event(v1GCDone, 1)
	w.event(v1HeapAlloc, 1, 1<<20)
	w.event(v1GoCreate, 1, 9, 1, 1)
	w.event(v1CPUSample, 1, 1020, 0, 2, 1)
	w.event(v1GoBlockRecv, 1, 1)
	w.event(v1GoStartLabel, 1, 9, 1, 3)
	w.event(v1GoEnd, 1)
	w.event(v1ProcStop, 1)
	w.batch(1, 1030)
	w.event(v1ProcStart, 1, 1)
	w.event(v1GoSysExit, 30, 3, 2, 1022)
	w.event(v1GoStartLocal, 1, 3)
	w.event(v1GoSched, 1, 1)
	w.event(v1GoStart, 1, 4, 1)
	w.event(v1GoPreempt, 1, 1)
	return w.end()
}

// v1Nobody is damage: goroutine 0, which is none, is created, runs, and has a region, a log, a heap
// and a block of its own.
func v1Nobody() []byte {
	w := newV1Build("19")
	w.begin()
	w.event(v1GoCreate, 1, 0, 1, 1)
	w.event(v1GoBlockRecv, 1, 1)
	w.event(v1GoStart, 1, 0, 1)
	w.string(3, "region")
	for mode := range uint64(2) {
		w.event(v1Region, 1, 0, mode, 3, 1)
		w.event(v1HeapAlloc, 1, 1<<20)
	}
	w.event(v1Log, 1, 0, 3, 1)
	w.text("hello")
	w.event(v1GoUnblock, 1, 2, 2, 1)
	w.event(v1GoBlockRecv, 1, 1)
	w.event(v1GoStart, 1, 2, 3)
	w.event(v1Region, 1, 0, 0, 3, 1)
	return w.end()
}

func FuzzV1(f *testing.F) {
	f.Add(v1Small())
	f.Add(v1Nobody())
	for _, name := range v1Fixtures[:3] {
		data, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:4000])
		// The end has what the start refers to; the cut between is damage.
		f.Add(append(data[:2000:2000], data[len(data)-4000:]...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < headerLen {
			return
		}
		if v, err := sniff(data); err != nil || v >= 22 {
			data = append([]byte("go 1.19 trace\x00\x00\x00"), data[headerLen:]...)
		}
		var frames []Frame
		n := 0
		tr := v1Read(t, data, func(tr *Trace, e *Event) {
			n++
			tr.String(e.Name)
			frames = tr.Frames(frames[:0], e.Stack)
			frames = tr.Frames(frames, e.OnStack)
			if e.Kind == KindLog {
				tr.String(StringID(e.Arg[1]))
			}
		})
		// A byte cannot start more than a syscall's two events and a gap before them, nor a
		// goroutine more than its statuses.
		if n > 4*len(data)+8 {
			t.Errorf("%d events of %d bytes", n, len(data))
		}
		tr.Lacks()
		tr.Clock()
		first := tr.Stats()
		n2 := 0
		for b := range tr.Blocks() {
			n2 += len(b)
		}
		if second := tr.Stats(); n2 != n || second != first {
			t.Errorf("the second read differs: %+v, then %+v", first, second)
		}
		sameBatches(t, tr)
		tr.Totals(func(g *GoroutineTotal) {
			if g.Ended < g.Created || slices.Min(g.NS[:]) < 0 {
				t.Errorf("totals %+v", g)
			}
		})
		if err := tr.Err(); err != nil {
			t.Error(err)
		}
	})
}
