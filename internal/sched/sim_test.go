package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// truth is what a simulated machine really did: who was in which state, by thread.
type truth struct {
	records
	states map[uint32][]Stretch
	held   [][]Run
	end    int64
}

// simulate runs n threads of a target and some neighbours on a few CPUs for so many switches, with quota, sleeps and
// wakings, and writes down both what it does and what a recorder would.
func simulate(cpus, n, neighbours, switches int, quota bool, seed uint64) *truth {
	rnd := rand.New(rand.NewPCG(seed, 1))
	s := &truth{records: records{header: kernel.Header{Source: "bpf", AllTasks: true, PerTask: true}, block: 4096}, states: map[uint32][]Stretch{}, held: make([][]Run, cpus)}
	type thread struct {
		tid    uint32
		own    bool
		state  Doing
		cpu    int
		wakeAt int64
	}
	var all []*thread
	for i := range n + neighbours {
		all = append(all, &thread{tid: uint32(100 + i), own: i < n, state: Blocked, cpu: rnd.IntN(cpus), wakeAt: int64(1000 + rnd.IntN(50000))})
	}
	now := int64(1000)
	rec := func(r kernel.Record) {
		r.Time = now
		s.recs = append(s.recs, r)
	}
	set := func(t *thread, d Doing, b Block) {
		if t.own {
			l := s.states[t.tid]
			if m := len(l); m > 0 {
				l[m-1].End = now
			}
			s.states[t.tid] = append(l, Stretch{Begin: now, Doing: d, Block: b, CPU: int32(t.cpu)})
		}
		t.state = d
	}
	on := make([]*thread, cpus)
	left := make([]int64, cpus)
	queues := make([][]*thread, cpus)
	throttled := make([][]*thread, cpus)
	spent, mayRun, period := int64(0), true, now+100_000
	for c := range cpus {
		s.header.CPUs = append(s.header.CPUs, c)
		s.held[c] = []Run{{Begin: now}}
		rec(kernel.Record{Kind: kernel.Switch, CPU: uint16(c), TID: 0, Other: 0})
	}
	flags := func(prev, next *thread) (f kernel.Flags) {
		if prev != nil && prev.own {
			f |= kernel.Target
		}
		if next != nil && next.own {
			f |= kernel.OtherTarget
		}
		return f
	}
	tid := func(t *thread) uint32 {
		if t == nil {
			return 0
		}
		return t.tid
	}
	// pick puts the next of the queue on the CPU. prev leaves in the state given.
	pick := func(c int, r kernel.Record) {
		prev := on[c]
		var next *thread
		if len(queues[c]) > 0 {
			next, queues[c] = queues[c][0], queues[c][1:]
		}
		if prev == nil && next == nil {
			return
		}
		r.Kind, r.CPU, r.TID, r.Other = kernel.Switch, uint16(c), tid(prev), tid(next)
		r.Flags |= flags(prev, next)
		rec(r)
		h := s.held[c]
		h[len(h)-1].End = now
		s.held[c] = append(h, Run{Begin: now, TID: tid(next)})
		on[c] = next
		if next != nil {
			set(next, OnCPU, 0)
			left[c] = int64(50 + rnd.IntN(4000))
		}
	}
	for done := 0; done < switches; done++ {
		step := int64(1 + rnd.IntN(700))
		now += step
		for _, t := range on {
			if t != nil && t.own {
				spent += step
			}
		}
		if now >= period {
			period += 100_000
			spent, mayRun = 0, true
			for c := range cpus {
				if len(throttled[c]) == 0 {
					continue
				}
				rec(kernel.Record{Kind: kernel.Unthrottle, CPU: uint16(c)})
				for _, t := range throttled[c] {
					set(t, Queued, 0)
					queues[c] = append(queues[c], t)
				}
				throttled[c] = nil
			}
		}
		if quota && mayRun && spent > 50_000 {
			mayRun = false
		}
		// who sleeps wakes, by somebody who runs or by an interrupt
		for range 3 {
			t := all[rnd.IntN(len(all))]
			if t.state != Blocked || t.wakeAt > now {
				continue
			}
			now++
			w := on[rnd.IntN(cpus)]
			if t.own {
				r := kernel.Record{Kind: kernel.Waking, TID: t.tid, Other: tid(w), Flags: kernel.Target | kernel.Interrupt}
				if w != nil && w.own {
					r.Flags = kernel.Target | kernel.OtherTarget
				}
				rec(r)
			}
			t.cpu = rnd.IntN(cpus)
			set(t, Queued, 0)
			queues[t.cpu] = append(queues[t.cpu], t)
			if t.own {
				rec(kernel.Record{Kind: kernel.Wakeup, TID: t.tid, Flags: kernel.Target, Arg: [3]uint64{uint64(t.cpu)}})
			}
		}
		c := rnd.IntN(cpus)
		now++
		t := on[c]
		left[c] -= step
		switch {
		case t == nil:
			pick(c, kernel.Record{})
		case t.own && !mayRun:
			set(t, Throttled, 0)
			throttled[c] = append(throttled[c], t)
			pick(c, kernel.Record{Flags: kernel.Throttled | kernel.Preempted})
		case left[c] > 0:
		case rnd.IntN(3) == 0 && len(queues[c]) > 0:
			set(t, Queued, 0)

			pick(c, kernel.Record{Flags: kernel.Preempted})
			queues[c] = append(queues[c], t)

		default:
			t.wakeAt = now + int64(rnd.IntN(20000))
			set(t, Blocked, BlockFutex)
			pick(c, kernel.Record{Arg: [3]uint64{1, 203, 4096}})
		}
	}
	now++
	for c := range cpus {
		pick(c, kernel.Record{Flags: kernel.Preempted})
		if h := s.held[c]; len(h) > 0 {
			h[len(h)-1].End = now
		}
	}
	s.end = now
	return s
}

// What the records say is what happened, from each thread's first record on: who slept, queued and ran when, and behind whom.
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
				// the truth at its middle, and that nothing changed within
				at := g.Begin
				for at < g.End {
					j := 0
					for j < len(want) && want[j].End <= at {
						j++
					}
					if j == len(want) {
						t.Fatalf("thread %d at %d: the truth ends", tid, at)
					}
					if want[j].Doing != g.Doing || g.Doing == Blocked && g.Block != want[j].Block || (g.Doing == Queued || g.Doing == OnCPU) && g.CPU != want[j].CPU {
						t.Fatalf("quota %v: thread %d at %d: want %s since %d on %d, got %s", quota, tid, at, doingWords[want[j].Doing], want[j].Begin, want[j].CPU, g.text())
					}
					compared[g.Doing] += min(want[j].End, g.End) - at
					at = want[j].End
				}
				if g.Doing != Queued || g.End-g.Begin < 2 {
					continue
				}
				// who held that CPU meanwhile
				held := map[uint32]int64{}
				for _, r := range s.held[g.CPU] {
					if d := min(r.End, g.End) - max(r.Begin, g.Begin); d > 0 {
						held[r.TID] += d
					}
				}
				for _, b := range k.Behind(tid, g.Begin, g.End, nil) {
					if held[b.TID] != b.NS {
						t.Fatalf("thread %d queued %d..%d on %d: behind %d for %d ns, want %d", tid, g.Begin, g.End, g.CPU, b.TID, b.NS, held[b.TID])
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
		// The whole target, by asking each thread.
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

// Records taken away make something unknown or approximate, and nothing wrong: a thread is never said to be on a CPU
// on which it was not.
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
		// A thread that left and came back with nothing else left of it cannot be told from one that stayed: the recorder must say that it lost records.
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
				// Who was never named in what is missing may have come and gone meanwhile: of others than one record only On is sure.
				if g.Doing == Unknown || g.Approx || g.Doing != OnCPU && gone > 1 {
					continue
				}
				for _, w := range want {
					if w.End <= g.Begin || w.Begin >= g.End || w.Doing == g.Doing && (w.CPU == g.CPU || w.Doing != OnCPU) {
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

// With others' switches folded, who was in the way is still told rightly, but for idle, of which nothing is told.
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
					less.recs = append(less.recs, kernel.Record{Time: e, Kind: kernel.Held, CPU: uint16(q.CPU), TID: tid, Other: r.TID, Flags: kernel.Target, Arg: [3]uint64{uint64(e - b)}})
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
					t.Fatalf("thread %d queued %d..%d on %d: behind %d for %d ns, want %v", tid, g.Begin, g.End, g.CPU, int32(b.TID), b.NS, want)
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
