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
	triedMarks  = 1 << 15
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
	best, why := choose(x, k, t, some, r)
	if r.Clock, r.Why = best.Clock, why; why != "" {
		return r
	}
	all := x.ends(1)
	c, ok := refine(all, k, best.of, best.Clock, lastLook.tol, lastLook.step)
	if !ok {
		r.Why = RefusedUnclear
		return r
	}
	r.Clock = c
	t.count(all, k, c, c.Error+tolerance)
	var of []int32
	of, r.Marks, r.Missed = t.match(k, pairAhead)
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

// look is how far around an offset a refinement looks, and how finely.
type look struct{ tol, step int64 }

// Several looks, since a drift bends what the first one sees.
var (
	looks    = [...]look{{600e3, 500}, {60e3, 100}}
	lastLook = look{20e3, 50}
)

// tried is an offset that was looked into.
type tried struct {
	Clock
	of     []int32
	missed float64 // share of the marks
}

// finalists are the offsets that are refined, before one is chosen.
const finalists = 6

// choose takes the offset at which the fewest marks miss. How many do is compared when each offset
// is as exact as it can be: with a wide tolerance hardly any mark of a busy thread misses anywhere.
func choose(x *marks, k *stays, t *table, some []mark, r *Match) (best tried, why Refusal) {
	var all []tried
	for _, o := range offsets(x, k) {
		t.count(some, k, Clock{Shift: o.at}, o.tol)
		of, judged, missed := t.match(k, 0)
		if judged < quietsFew ||
			slices.ContainsFunc(all, func(p tried) bool { return max(p.Shift-o.at, o.at-p.Shift) < apart }) {
			continue
		}
		all = append(all, tried{Clock{Shift: o.at}, of, float64(missed) / float64(judged)})
	}
	if len(all) == 0 {
		return best, RefusedNone
	}
	slices.SortStableFunc(all, func(a, b tried) int { return cmp.Compare(a.missed, b.missed) })
	best.missed, why = math.Inf(1), RefusedUnclear
	for _, o := range all[:min(len(all), finalists)] {
		if !o.refine(k, t, some) {
			continue
		}
		if o.missed < best.missed {
			o, best = best, o
			why = ""
		}
		r.Rival = min(r.Rival, o.missed)
	}
	return best, why
}

// refine makes it as exact as it can be. False: it is not bounded on both sides.
func (o *tried) refine(k *stays, t *table, some []mark) bool {
	for _, l := range looks {
		var ok bool
		if o.Clock, ok = refine(some, k, o.of, o.Clock, l.tol, l.step); !ok || o.Error > errorMost {
			return false
		}
		t.count(some, k, o.Clock, o.Error+tolerance)
		of, judged, missed := t.match(k, 0)
		o.of, o.missed = of, float64(missed)/float64(max(judged, 1))
	}
	return true
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
