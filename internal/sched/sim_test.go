package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// truth is what a simulated machine really did, besides the records that a recorder would have
// written of it.
type truth struct {
	records
	states map[uint32][]Stretch // by thread of the target
	held   [][]Run              // by CPU
	end    int64
}

// machine is a simulated machine: threads of a target and their neighbours on a few CPUs, each of
// which has a queue. Everything random comes from one generator, so that a seed gives the same
// machine again.
type machine struct {
	*truth
	rnd     *rand.Rand
	now     int64
	threads []*simThread
	cpus    []simCPU

	// The target may use 50 us of each period of 100 us, if it has a quota.
	spent  int64
	mayRun bool
	period int64 // end of the present one
}

type simThread struct {
	tid    uint32
	target bool
	state  Doing
	cpu    int
	wakeAt int64
}

type simCPU struct {
	on        *simThread // nil: idle
	left      int64      // of its turn
	queue     []*simThread
	throttled []*simThread
}

// simulate runs n threads of a target and some neighbours for so many turns. In each turn:
//  1. Time passes, and at the end of a period throttled threads are queued again.
//  2. Sleepers wake, by a thread on a CPU or by an interrupt.
//  3. One CPU decides: an idle one takes the next of its queue; a thread without quota is
//     throttled; one whose turn is over is preempted or goes to sleep.
func simulate(cpus, n, neighbours, turns int, quota bool, seed uint64) *truth {
	m := &machine{rnd: rand.New(rand.NewPCG(seed, 1)), now: 1000, mayRun: true, period: 101_000,
		cpus: make([]simCPU, cpus),
		truth: &truth{records: records{header: kernel.Header{Source: "bpf", AllTasks: true,
			PerTask: true}, block: 4096},
			states: map[uint32][]Stretch{}, held: make([][]Run, cpus)}}
	for i := range n + neighbours {
		m.threads = append(m.threads, &simThread{tid: uint32(100 + i), target: i < n,
			state: Blocked, cpu: m.rnd.IntN(cpus), wakeAt: int64(1000 + m.rnd.IntN(50000))})
	}
	for c := range cpus {
		m.header.CPUs = append(m.header.CPUs, c)
		m.held[c] = []Run{{Begin: m.now}}
		m.record(kernel.Record{Kind: kernel.Switch, CPU: uint16(c), TID: 0, Other: 0})
	}
	for range turns {
		step := int64(1 + m.rnd.IntN(700))
		m.pass(step)
		if quota && m.spent > 50_000 {
			m.mayRun = false
		}
		for range 3 {
			m.wakeOne()
		}
		m.decide(m.rnd.IntN(cpus), step)
	}
	m.now++
	for c := range cpus {
		m.next(c, kernel.Record{Flags: kernel.Preempted})
		if h := m.held[c]; len(h) > 0 {
			h[len(h)-1].End = m.now
		}
	}
	m.end = m.now
	return m.truth
}

func (m *machine) record(r kernel.Record) {
	r.Time = m.now
	m.recs = append(m.recs, r)
}

// set changes what t does, and writes down the truth.
func (m *machine) set(t *simThread, d Doing, b Block) {
	if t.target {
		l := m.states[t.tid]
		if n := len(l); n > 0 {
			l[n-1].End = m.now
		}
		m.states[t.tid] = append(l, Stretch{Begin: m.now, Doing: d, Block: b, CPU: int32(t.cpu)})
	}
	t.state = d
}

// pass lets time pass.
func (m *machine) pass(step int64) {
	m.now += step
	for c := range m.cpus {
		if t := m.cpus[c].on; t != nil && t.target {
			m.spent += step
		}
	}
	if m.now < m.period {
		return
	}
	m.period += 100_000
	m.spent, m.mayRun = 0, true
	for i := range m.cpus {
		c := &m.cpus[i]
		if len(c.throttled) == 0 {
			continue
		}
		m.record(kernel.Record{Kind: kernel.Unthrottle, CPU: uint16(i)})
		for _, t := range c.throttled {
			m.set(t, Queued, 0)
			c.queue = append(c.queue, t)
		}
		c.throttled = nil
	}
}

// wakeOne wakes some thread, if it sleeps and its time has come. If the CPU drawn for the waker is
// idle, or a neighbour is on it, that is an interrupt.
func (m *machine) wakeOne() {
	t := m.threads[m.rnd.IntN(len(m.threads))]
	if t.state != Blocked || t.wakeAt > m.now {
		return
	}
	m.now++
	waker := m.cpus[m.rnd.IntN(len(m.cpus))].on
	if t.target {
		r := kernel.Record{Kind: kernel.Waking, TID: t.tid, Other: waker.number(),
			Flags: kernel.Target | kernel.Interrupt}
		if waker != nil && waker.target {
			r.Flags = kernel.Target | kernel.OtherTarget
		}
		m.record(r)
	}
	t.cpu = m.rnd.IntN(len(m.cpus))
	m.set(t, Queued, 0)
	m.cpus[t.cpu].queue = append(m.cpus[t.cpu].queue, t)
	if t.target {
		m.record(kernel.Record{Kind: kernel.Wakeup, TID: t.tid, Flags: kernel.Target, Arg: [3]uint64{uint64(t.cpu)}})
	}
}

// decide lets CPU i decide what is on it next.
func (m *machine) decide(i int, step int64) {
	c := &m.cpus[i]
	m.now++
	t := c.on
	c.left -= step
	switch {
	case t == nil:
		m.next(i, kernel.Record{})
	case t.target && !m.mayRun:
		m.set(t, Throttled, 0)
		c.throttled = append(c.throttled, t)
		m.next(i, kernel.Record{Flags: kernel.Throttled | kernel.Preempted})
	case c.left > 0:
	case m.rnd.IntN(3) == 0 && len(c.queue) > 0:
		m.set(t, Queued, 0)
		m.next(i, kernel.Record{Flags: kernel.Preempted})
		c.queue = append(c.queue, t)
	default:
		t.wakeAt = m.now + int64(m.rnd.IntN(20000))
		m.set(t, Blocked, BlockFutex)
		m.next(i, kernel.Record{Arg: [3]uint64{1, 203, 4096}})
	}
}

// next puts the first of CPU i's queue on it. r says how the one before leaves.
func (m *machine) next(i int, r kernel.Record) {
	c := &m.cpus[i]
	prev := c.on
	var next *simThread
	if len(c.queue) > 0 {
		next, c.queue = c.queue[0], c.queue[1:]
	}
	if prev == nil && next == nil {
		return
	}
	r.Kind, r.CPU, r.TID, r.Other = kernel.Switch, uint16(i), prev.number(), next.number()
	if prev != nil && prev.target {
		r.Flags |= kernel.Target
	}
	if next != nil && next.target {
		r.Flags |= kernel.OtherTarget
	}
	m.record(r)
	h := m.held[i]
	h[len(h)-1].End = m.now
	m.held[i] = append(h, Run{Begin: m.now, TID: next.number()})
	c.on = next
	if next != nil {
		m.set(next, OnCPU, 0)
		c.left = int64(50 + m.rnd.IntN(4000))
	}
}

// number is the TID of a thread; 0 for the idle CPU's.
func (t *simThread) number() uint32 {
	if t == nil {
		return 0
	}
	return t.tid
}

// TestKernelTruth compares what the records say with what happened, from each thread's first record
// on: when it slept, was queued and ran, and behind which thread it was queued.
func TestKernelTruth(t *testing.T) {
	for _, quota := range []bool{false, true} {
		s := simulate(3, 12, 5, 20000, quota, 7)
		k, err := New(&s.records)
		if err != nil {
			t.Fatal(err)
		}
		if tot := k.Totals(); tot.Breaks != 0 || tot.BreakNS != 0 {
			t.Fatalf("%+v", tot)
		}
		compared := [Gone + 1]int64{}
		for tid, want := range s.states {
			want[len(want)-1].End = s.end
			got := k.Stretches(tid, 0, s.end, nil)
			for i := range got {
				g := &got[i]
				if g.Doing == Unknown || g.Begin >= s.recs[len(s.recs)-4].Time {
					continue
				}
				// Compare all that really happened during g.
				at := g.Begin
				for at < g.End {
					j := 0
					for j < len(want) && want[j].End <= at {
						j++
					}
					if j == len(want) {
						t.Fatalf("thread %d at %d: the truth ends", tid, at)
					}
					if want[j].Doing != g.Doing || g.Doing == Blocked && g.Block != want[j].Block ||
						(g.Doing == Queued || g.Doing == OnCPU) && g.CPU != want[j].CPU {
						t.Fatalf("quota %v: thread %d at %d: want %s since %d on %d, got %s", quota,
							tid, at, doingWords[want[j].Doing], want[j].Begin, want[j].CPU, g.text())
					}
					compared[g.Doing] += min(want[j].End, g.End) - at
					at = want[j].End
				}
				if g.Doing != Queued || g.End-g.Begin < 2 {
					continue
				}
				// Who held that CPU in the meantime.
				held := map[uint32]int64{}
				for _, r := range s.held[g.CPU] {
					if d := min(r.End, g.End) - max(r.Begin, g.Begin); d > 0 {
						held[r.TID] += d
					}
				}
				for _, b := range k.Behind(tid, g.Begin, g.End, nil) {
					if held[b.TID] != b.NS {
						t.Fatalf("thread %d queued %d..%d on %d: behind %d for %d ns, want %d", tid,
							g.Begin, g.End, g.CPU, b.TID, b.NS, held[b.TID])
					}
				}
			}
		}
		for _, d := range []Doing{OnCPU, Queued, Blocked} {
			if compared[d] == 0 {
				t.Errorf("quota %v: no thread was %s", quota, doingWords[d])
			}
		}
		if quota != (compared[Throttled] > 0) {
			t.Errorf("quota %v: throttled for %d ns", quota, compared[Throttled])
		}
		// The state of the whole target follows from that of each thread.
		begin, end := k.Span()
		for _, p := range k.Process(begin, end, nil) {
			at := (p.Begin + p.End) / 2
			var n [Gone + 1]int
			for tid := range s.states {
				n[k.At(tid, at).Doing]++
			}
			want := ProcessNone
			switch {
			case n[OnCPU] > 0:
				want = ProcessOn
			case n[Throttled] > 0:
				want = ProcessThrottled
			case n[Queued] > 0:
				want = ProcessQueued
			}
			if p.State != want {
				t.Fatalf("process at %d: state %d, want %d: %v", at, p.State, want, n)
			}
		}
	}
}

// TestKernelMissing takes records away. That makes something unknown or approximate and nothing
// wrong: a thread is never said to be on a CPU on which it was not.
func TestKernelMissing(t *testing.T) {
	s := simulate(2, 8, 3, 3000, true, 11)
	rnd := rand.New(rand.NewPCG(5, 6))
	checked := 0
	for range 600 {
		at := 4 + rnd.IntN(len(s.recs)-8)
		if s.recs[at].Kind != kernel.Switch {
			continue
		}
		gone := 1 + rnd.IntN(8)
		until := min(at+gone, len(s.recs)-4)
		// A thread that left and came back, with no record in between, looks like one that stayed:
		// only the recorder can know that it lost records.
		first, last := map[uint16]uint32{}, map[uint16]uint32{}
		for _, r := range s.recs[at:until] {
			if r.Kind != kernel.Switch {
				continue
			}
			if _, ok := first[r.CPU]; !ok {
				first[r.CPU] = r.TID
			}
			last[r.CPU] = r.Other
		}
		hidden := false
		for c := range first {
			hidden = hidden || first[c] == last[c]
		}
		if hidden {
			continue
		}
		checked++
		less := s.records
		less.recs = append(append([]kernel.Record(nil), s.recs[:at]...), s.recs[until:]...)
		k, err := New(&less)
		if err != nil {
			t.Fatal(err)
		}
		for tid, want := range s.states {
			want[len(want)-1].End = s.end
			for _, g := range k.Stretches(tid, 0, s.recs[len(s.recs)-5].Time, nil) {
				// A thread may have come and gone in what is missing: if that is more than one
				// record, only OnCPU is sure.
				if g.Doing == Unknown || g.Approx || g.Doing != OnCPU && gone > 1 {
					continue
				}
				for _, w := range want {
					if w.End <= g.Begin || w.Begin >= g.End || w.Doing == g.Doing &&
						(w.CPU == g.CPU || w.Doing != OnCPU) {
						continue
					}
					t.Fatalf("without record %d (%+v): thread %d: %s, it was %s on %d from %d to %d", at, s.recs[at], tid, g.text(), doingWords[w.Doing], w.CPU, w.Begin, w.End)
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d gaps were checked", checked)
	}
}

// TestKernelFolded folds switches of other programs. The threads behind which one was queued are
// still right, except for idle, of which then nothing is recorded.
func TestKernelFolded(t *testing.T) {
	s := simulate(2, 8, 6, 10000, true, 17)
	own := func(tid uint32) bool { return tid >= 100 && tid < 108 }
	less := s.records
	less.recs = []kernel.Record{{Time: s.recs[0].Time, Kind: kernel.Detail, Arg: [3]uint64{1}}}
	for _, r := range s.recs {
		if r.Kind != kernel.Switch || own(r.TID) || own(r.Other) {
			less.recs = append(less.recs, r)
		}
	}
	for tid, l := range s.states {
		for _, q := range l {
			if q.Doing != Queued || q.End == 0 {
				continue
			}
			for _, r := range s.held[q.CPU] {
				if b, e := max(r.Begin, q.Begin), min(r.End, q.End); b < e && r.TID != 0 && !own(r.TID) {
					less.recs = append(less.recs, kernel.Record{Time: e, Kind: kernel.Held,
						CPU: uint16(q.CPU), TID: tid, Other: r.TID, Flags: kernel.Target,
						Arg: [3]uint64{uint64(e - b)}})
				}
			}
		}
	}
	slices.SortStableFunc(less.recs, func(a, b kernel.Record) int { return cmp.Compare(a.Time, b.Time) })
	k, err := New(&less)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for tid := range s.states {
		for _, g := range k.Stretches(tid, 0, s.recs[len(s.recs)-4].Time, nil) {
			if g.Doing != Queued {
				continue
			}
			want := map[uint32]int64{}
			for _, r := range s.held[g.CPU] {
				if d := min(r.End, g.End) - max(r.Begin, g.Begin); d > 0 {
					want[r.TID] += d
				}
			}
			if idle := want[0]; idle > 0 {
				delete(want, 0)
				want[NobodyKnown] = idle
			}
			for _, b := range k.Behind(tid, g.Begin, g.End, nil) {
				if want[b.TID] != b.NS {
					t.Fatalf("thread %d queued %d..%d on %d: behind %d for %d ns, want %v", tid,
						g.Begin, g.End, g.CPU, int32(b.TID), b.NS, want)
				}
				checked++
			}
		}
	}
	if tot := k.Totals(); checked < 1000 || tot.Breaks != 0 {
		t.Errorf("%d checked, %+v", checked, tot)
	}
}

func BenchmarkKernel(b *testing.B) {
	s := simulate(2, 80, 20, 900_000, true, 3)
	for _, q := range []string{"read", "process", "each"} {
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			k, err := New(&s.records)
			if err != nil {
				b.Fatal(err)
			}
			bytes := k.bytes
			for b.Loop() {
				switch q {
				case "read":
					if k, err = New(&s.records); err != nil {
						b.Fatal(err)
					}
				case "process":
					k.process.runs, k.process.runnable = nil, runnable{}
					k.sweep()
				case "each":
					n := 0
					k.Each(k.begin, k.end, func(uint32, *Stretch) { n++ })
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(s.recs)), "ns/record")
			b.ReportMetric(float64(bytes)/float64(len(s.recs)), "B/record")
		})
	}
}
