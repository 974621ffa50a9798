package oldclock

import (
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/exectrace"
)

// life is a made-up process: when each of its threads was on a CPU, on the kernel's clock.
type life struct {
	rnd  *rand.Rand
	k    *stays
	on   func() int64 // ns
	off  func() int64
	wall int64
}

func newLife(seed uint64) *life {
	l := &life{rnd: rand.New(rand.NewPCG(seed, 1)), wall: 3e9}
	l.on = func() int64 { return 20e3 + int64(l.rnd.ExpFloat64()*300e3) }
	l.off = func() int64 { return 20e3 + int64(l.rnd.ExpFloat64()*2e6) }
	return l
}

// threads makes n of them, from the kernel's time begin on.
func (l *life) threads(n int, begin int64) *life {
	l.k = &stays{begin: begin, end: begin + l.wall}
	for th := range n {
		var by []stay
		for at := begin + l.off(); at < l.k.end; {
			end := min(at+l.on(), l.k.end)
			by = append(by, stay{at, end, int32(th)})
			at = end + l.off()
		}
		l.k.add(uint32(1000+th), by)
	}
	l.k.sort()
	return l
}

// trace is what the threads wrote down with a clock that was shift behind and gained drift: each
// soon after it came to a CPU, now and then, and soon before it left.
func (l *life) trace(shift int64, drift float64) *marks {
	x := &marks{}
	own := func(t int64) int64 { return int64(float64(t-shift) / (1 + drift)) }
	x.begin, x.end = own(l.k.begin+l.wall/10), own(l.k.end-l.wall/10)
	for th, by := range l.k.by {
		x.machines = append(x.machines, uint64(th))
		last := int64(-1)
		for _, s := range by {
			for at := s.begin + 1e3 + l.rnd.Int64N(4e3); at < s.end-1e3; at += 30e3 + l.rnd.Int64N(60e3) {
				t := own(at)
				if t < x.begin || t > x.end {
					continue
				}
				if last >= 0 {
					x.quiets = append(x.quiets, quiet{last, t, machine(th)})
				}
				last = t
			}
		}
	}
	return x
}

func same(tid uint32) uint32 { return tid }

func TestFind(t *testing.T) {
	const shift = 7_123_456_789_012
	for _, drift := range []float64{0, 3e-6, -40e-6, 100e-6} {
		l := newLife(1).threads(6, 9e12)
		m := find(l.trace(shift, drift), l.k, same)
		if m.Why != "" {
			t.Fatalf("drift %g: refused: %s (%+v)", drift, m.Why, m)
		}
		for _, at := range []int64{0, 1e9, 2e9} {
			// at is a time since the trace's first event.
			at += l.trace(shift, drift).begin
			want := shift + at + int64(drift*float64(at))
			if d := m.Mono(at) - want; max(d, -d) > m.Error {
				t.Errorf("drift %g: time %d is %d off, want at most %d", drift, at, d, m.Error)
			}
		}
		if m.Error > 5e3 {
			t.Errorf("drift %g: error is %d ns, want at most 5 us", drift, m.Error)
		}
		for number, tid := range m.Threads {
			if tid != uint32(1000+number) {
				t.Errorf("drift %g: thread %d is said to be %d", drift, number, tid)
			}
		}
		if len(m.Threads) != 6 {
			t.Errorf("drift %g: %d of 6 threads found", drift, len(m.Threads))
		}
	}
}

// A trace of another moment, or of another process, fits nowhere.
func TestFindOther(t *testing.T) {
	for seed := range uint64(5) {
		other := newLife(100+seed).threads(6, 9e12)
		l := newLife(seed).threads(6, 9e12)
		if m := find(l.trace(5e12, 0), other.k, same); m.Why == "" {
			t.Errorf("seed %d: an offset was found between two processes: %+v", seed, m)
		}
	}
}

// In a rhythm each multiple of the turn fits as well.
func TestFindRhythm(t *testing.T) {
	l := newLife(1)
	l.on = func() int64 { return 2e6 }
	l.off = func() int64 { return 18e6 }
	l.threads(4, 9e12)
	if m := find(l.trace(5e12, 0), l.k, same); m.Why == "" {
		t.Errorf("an offset was found between two rhythms: %+v", m)
	}
}

// Threads that never leave their CPUs fit everywhere.
func TestFindAlwaysOn(t *testing.T) {
	l := newLife(1)
	l.off = func() int64 { return 20e3 + l.rnd.Int64N(5e3) }
	l.on = func() int64 { return 50e6 + l.rnd.Int64N(50e6) }
	l.threads(2, 9e12)
	if m := find(l.trace(5e12, 0), l.k, same); m.Why == "" {
		if d := m.Shift - 5e12; max(d, -d) > m.Error {
			t.Errorf("a wrong offset was found: %d off (%+v)", d, m)
		}
	}
}

func TestFindFew(t *testing.T) {
	l := newLife(1)
	l.wall = 20e6
	l.threads(1, 9e12)
	if m := find(l.trace(5e12, 0), l.k, same); m.Why != RefusedFew {
		t.Errorf("refused for %q (%+v), want few", m.Why, m)
	}
}

func TestHolder(t *testing.T) {
	proc := func(p exectrace.ProcID, to exectrace.State, number uint64) exectrace.Event {
		return exectrace.Event{Kind: exectrace.KindProc, Proc: p, P: exectrace.NoProc, To: to, Arg: [2]uint64{number}}
	}
	goes := func(p exectrace.ProcID, from, to exectrace.State) exectrace.Event {
		return exectrace.Event{Kind: exectrace.KindGoroutine, P: p, From: from, To: to, Reason: exectrace.ReasonStart}
	}
	run, call, idle, ready := exectrace.Running, exectrace.Syscall, exectrace.Idle, exectrace.Runnable
	var h holder
	check := func(what string, ev exectrace.Event, want machine) {
		t.Helper()
		if got := h.event(&ev); got != want {
			t.Errorf("%s: thread %d, want %d", what, got, want)
		}
	}
	check("before the P's first start nobody is known", goes(0, ready, run), noMachine)
	check("a start", proc(0, run, 70), 0)
	check("its goroutine", goes(0, ready, run), 0)
	check("another P", proc(1, run, 71), 1)
	check("a system call", goes(0, run, call), 0)
	check("and back", goes(0, call, run), 0)
	check("a longer one", goes(0, run, call), 0)
	check("whose P somebody takes", proc(0, idle, 0), noMachine)
	check("a P without a thread", goes(0, ready, run), noMachine)
	check("the P goes to the first again", proc(0, run, 70), 0)
	check("it stops by itself", proc(0, idle, 0), 0)
	check("no P", goes(-1, ready, run), noMachine)
	check("a system call on the other", goes(1, run, call), 1)
	check("a goroutine that comes back unseen", goes(1, ready, run), noMachine)
	check("nothing is known until its next start", goes(1, run, ready), noMachine)
}
