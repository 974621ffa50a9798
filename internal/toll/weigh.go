package toll

import (
	"slices"

	"github.com/whystall/whystall/internal/evidence"
)

// What a stage may cost, as shares of what was counted with counters alone. CPU time may grow by
// the budget, which is about CPU time. What users feel is how long threads are held up: they may
// be on a CPU, or wait for one, for a tenth longer at the usual budget of 6 %, and be throttled for
// 2 % more of the time.
const (
	usualBudget = 0.06
	// ofOneCPU is what a target counts as using at the least, ns a second: of one that does nearly
	// nothing any cost is a large share, and none is much.
	ofOneCPU       = 1e9 / 3
	heldLimit      = 0.10
	throttledLimit = 0.02
	switchesLimit  = 0.25
	// loadLimit is by how much the work a second may differ before the load is said to have
	// changed: waits for a CPU grow faster than the load.
	loadLimit = 0.15
)

// A stage in which less was done than this says nothing by unit of work.
const (
	fewestUnits = 100  // reads, or packets
	fewestBytes = 4096 // a unit is a KB
	kilobyte    = 1024
)

// compared are the stages that are shown. Starting and ending are not set beside the others: they
// are a moment.
var compared = []evidence.StageName{evidence.StageCounters, evidence.StageKernel, evidence.StageAll}

// Weigh makes the bill of what was counted. It needs a stage of counters alone and another one; nil
// without them.
func Weigh(t *evidence.Toll) *Bill {
	if t == nil {
		return nil
	}
	var stages []evidence.Stage
	for _, s := range t.Stages {
		if slices.Contains(compared, s.Name) && len(s.Slices) > 0 {
			stages = append(stages, s)
		}
	}
	if len(stages) < 2 || stages[0].Name != evidence.StageCounters {
		return nil
	}
	b := &Bill{Unit: unitOf(t, stages), Effects: []Effect{}}
	for _, s := range stages {
		b.Stages = append(b.Stages, b.figures(t, s))
	}
	for _, s := range b.Stages[1:] {
		b.compare(t, &b.Stages[0], &s)
	}
	return b
}

// unitOf chooses the unit of work: what the target itself read, otherwise what its network
// namespace received.
func unitOf(t *evidence.Toll, stages []evidence.Stage) Unit {
	for _, u := range []struct {
		unit    Unit
		counter evidence.Counted
		bytes   func(evidence.Slice) int64
		n       func(evidence.Slice) int64
	}{
		{UnitRead, evidence.CountedRead, func(s evidence.Slice) int64 { return s.ReadBytes },
			func(s evidence.Slice) int64 { return s.Reads }},
		{UnitNet, evidence.CountedNet, func(s evidence.Slice) int64 { return s.NetBytes },
			func(s evidence.Slice) int64 { return s.NetPackets }},
	} {
		if !slices.Contains(t.Counters, u.counter) {
			continue
		}
		enough := true
		for _, st := range stages {
			enough = enough && sum(st, u.n) >= fewestUnits && sum(st, u.bytes) >= fewestBytes
		}
		if enough {
			return u.unit
		}
	}
	return UnitNone
}

func sum(s evidence.Stage, of func(evidence.Slice) int64) (n int64) {
	for _, sl := range s.Slices {
		n += of(sl)
	}
	return n
}

func (u Unit) of(s evidence.Slice) float64 {
	switch u {
	case UnitRead:
		return float64(s.ReadBytes) / kilobyte
	case UnitNet:
		return float64(s.NetBytes) / kilobyte
	}
	return 0
}

// amount is a measure in a slice; ok is false if its counters were not read.
func amount(t *evidence.Toll, m Measure, s evidence.Slice) (n float64, ok bool) {
	has := func(c evidence.Counted) bool { return slices.Contains(t.Counters, c) }
	switch m {
	case CPU:
		return float64(s.CPUNS), has(evidence.CountedCPU)
	case Queued:
		return float64(s.QueuedNS), has(evidence.CountedQueued)
	case Held:
		return float64(s.CPUNS + s.QueuedNS), has(evidence.CountedCPU) &&
			has(evidence.CountedQueued) && t.Threads == t.AllThreads
	case Switches:
		return float64(s.Switches), has(evidence.CountedSwitches)
	case Throttled:
		return float64(s.ThrottledNS), has(evidence.CountedThrottled)
	}
	return 0, false
}

func (b *Bill) figures(t *evidence.Toll, st evidence.Stage) Stage {
	out := Stage{Name: st.Name, Amounts: []Amount{}}
	var work []pair
	for _, s := range st.Slices {
		out.NS += s.NS
		work = append(work, pair{b.Unit.of(s), float64(s.NS) / 1e9})
	}
	if b.Unit != UnitNone {
		out.Work = ratio(work)
	}
	for _, m := range Measures {
		var byWork, bySecond []pair
		for _, s := range st.Slices {
			n, ok := amount(t, m, s)
			if !ok {
				break
			}
			byWork = append(byWork, pair{n, b.Unit.of(s)})
			bySecond = append(bySecond, pair{n, float64(s.NS) / 1e9})
		}
		if len(bySecond) == 0 {
			continue
		}
		a := Amount{Measure: m, BySecond: ratio(bySecond)}
		if b.Unit != UnitNone {
			a.ByWork = ratio(byWork)
		}
		out.Amounts = append(out.Amounts, a)
	}
	return out
}

// compare sets a stage beside the one with counters alone.
func (b *Bill) compare(t *evidence.Toll, alone, s *Stage) {
	scale := 1.0
	if t.Budget > 0 {
		scale = t.Budget / usualBudget
	}
	changed := false
	if share, half, known := growth(alone.Work, s.Work, 0); known {
		changed = share-half > loadLimit || share+half < -loadLimit
	}
	b.LoadChanged = b.LoadChanged || changed
	for _, m := range Measures {
		e := Effect{Stage: s.Name, Measure: m, Said: NotKnown}
		before, _ := alone.Amount(m)
		now, _ := s.Amount(m)
		var known bool
		if m == Throttled {
			e.Limit = throttledLimit * scale
			e.Growth, e.Error, known = growth(before.BySecond, now.BySecond, 1e9) // shares of a second
		} else {
			e.Limit = map[Measure]float64{CPU: usualBudget, Held: heldLimit, Switches: switchesLimit}[m] * scale
			e.Growth, e.Error, known = growth(before.ByWork, now.ByWork, 0)
		}
		judged := e
		if m == CPU || m == Held {
			used := before.BySecond.Value
			judged.Growth, judged.Error = e.Growth*used/max(used, ofOneCPU), e.Error*used/max(used, ofOneCPU)
		}
		e.Said = said(judged, known, changed, b.Unit)
		b.Effects = append(b.Effects, e)
	}
}

// said decides what can be said of an effect. CPU time a unit of work hardly depends on the load;
// waits and throttling do, so with another load nothing is said of them. What a namespace received
// is of others as well: where that changed, it was perhaps no work of the target's. Of Queued
// nothing is judged: its part that counts is in Held.
func said(e Effect, known, changed bool, unit Unit) Said {
	switch {
	case !known:
		return NotKnown
	case changed && (e.Measure != CPU || unit == UnitNet):
		return Untold
	case e.Limit == 0:
		return Untold
	case e.Growth-e.Error > e.Limit:
		return Beyond
	case e.Growth+e.Error <= e.Limit:
		return Within
	}
	return Untold
}
