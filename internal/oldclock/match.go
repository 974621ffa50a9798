package oldclock

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// Clock is how a trace's time runs against CLOCK_MONOTONIC.
type Clock struct {
	Shift int64   // ns, at the trace's time 0
	Drift float64 // ns more for each ns of the trace
	Error int64   // ns: how far off a time may be
}

// Mono is CLOCK_MONOTONIC at a time of the trace.
func (c Clock) Mono(t int64) int64 { return t + c.Shift + int64(c.Drift*float64(t)) }

// Match is what was found.
type Match struct {
	Clock
	// Threads has by the runtime's number of a thread its id as the traced process sees it.
	Threads map[uint64]uint32
	Marks   int64 // moments at which a thread had to be on a CPU
	Missed  int64 // of them those at which it was not
	// Random is the least part of the marks missed at a random offset, and Rival at any other
	// offset that stood out, 1 without one.
	Random, Rival float64
	// Why is why there is no match; "" there is one.
	Why Refusal
}

// Refusal is why there is no match.
type Refusal string

// Refusals.
const (
	RefusedFew     Refusal = "few"     // too few silences or stays to know anything by
	RefusedNone    Refusal = "none"    // no offset stood out
	RefusedMissed  Refusal = "missed"  // too many marks fall where their thread was not on a CPU
	RefusedRandom  Refusal = "random"  // random offsets do nearly as well
	RefusedRival   Refusal = "rival"   // another offset does nearly as well
	RefusedUnclear Refusal = "unclear" // the offset is not bounded on both sides
)

const (
	quietsFew   = 50
	triedMarks  = 1 << 16
	randoms     = 20
	missedMost  = 0.02
	randomTimes = 10 // so many times as much is missed at each other offset
	randomLeast = 30
	errorMost   = 50e3 // ns
)

// Find matches a trace with the kernel's records of the same process. It reads src once.
func Find(src timeline.Source, k *sched.Timeline) *Match {
	return find(read(src), readStays(k), k.ToNS)
}

func find(x *marks, k *stays, ns func(uint32) uint32) *Match {
	r := &Match{Random: 1, Rival: 1}
	if len(x.quiets) < quietsFew || len(k.list) < quietsFew || len(x.machines)*len(k.tids) > tableMost {
		r.Why = RefusedFew
		return r
	}
	t := newTable(x, k)
	some := x.ends(2*len(x.quiets)/triedMarks + 1)
	c, of, why := choose(x, k, t, some, r)
	if r.Why = why; why != "" {
		return r
	}
	all := x.ends(1)
	// Twice: a drift bends what the first look sees.
	for _, step := range []struct{ tol, step int64 }{{600e3, 500}, {60e3, 100}, {20e3, 50}} {
		var ok bool
		if c, ok = refine(all, k, of, c, step.tol, step.step); !ok || c.Error > errorMost {
			r.Clock, r.Why = c, RefusedUnclear
			return r
		}
		t.count(all, k, c, c.Error+tolerance)
		of, r.Marks, r.Missed = t.match(k, pairAhead)
	}
	r.Clock = c
	r.check(x, k, t, some)
	r.Threads = map[uint64]uint32{}
	for m, th := range of {
		if th >= 0 {
			if tid := ns(k.tids[th]); tid != 0 {
				r.Threads[x.machines[m]] = tid
			}
		}
	}
	return r
}

// tolerance is what a thread's records may be off by.
const tolerance = 1e3

// choose takes the offset at which the fewest marks miss.
func choose(x *marks, k *stays, t *table, some []mark, r *Match) (c Clock, of []int32, why Refusal) {
	type tried struct {
		offset
		of     []int32
		missed float64
	}
	var all []tried
	for _, o := range offsets(x, k) {
		t.count(some, k, Clock{Shift: o.at}, o.tol)
		of, judged, missed := t.match(k, 0)
		if judged >= quietsFew {
			all = append(all, tried{o, of, float64(missed) / float64(judged)})
		}
	}
	if len(all) == 0 {
		return c, nil, RefusedNone
	}
	best := slices.MinFunc(all, func(a, b tried) int {
		return cmp.Or(cmp.Compare(a.missed, b.missed), cmp.Compare(a.tol, b.tol), cmp.Compare(a.at, b.at))
	})
	for _, o := range all {
		if max(o.at-best.at, best.at-o.at) >= apart {
			r.Rival = min(r.Rival, o.missed)
		}
	}
	return Clock{Shift: best.at}, best.of, ""
}

// check compares with random offsets. Each gets its own best threads, as the right one did.
func (r *Match) check(x *marks, k *stays, t *table, some []mark) {
	share := float64(r.Missed) / float64(max(r.Marks, 1))
	lo, hi := bounds(x, k)
	rnd := rand.New(rand.NewPCG(1, uint64(len(some)))) // a fixed seed: the same answer each time
	for range randoms {
		at := lo + rnd.Int64N(max(hi-lo, 1))
		if d := at - r.Shift; max(d, -d) < apart {
			at = r.Shift + 5*apart
		}
		c := r.Clock
		c.Shift = at
		t.count(some, k, c, c.Error+tolerance)
		if _, judged, missed := t.match(k, 0); judged > 0 {
			r.Random = min(r.Random, float64(missed)/float64(judged))
		}
	}
	switch {
	case share > missedMost:
		r.Why = RefusedMissed
	case r.Random < randomTimes*share || r.Random*float64(r.Marks) < randomLeast:
		r.Why = RefusedRandom
	case r.Rival < min(1, randomTimes*math.Max(share, 0.001)):
		r.Why = RefusedRival
	}
}
