package compare

import (
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// Gate is what keeps a verdict from being told. Its text is made where it is printed.
type Gate string

// Gates.
const (
	NoRequests    Gate = "no requests"     // none seen after, or no entry point in common
	FewRequests   Gate = "few requests"    // under leastRequests a side
	LoadFell      Gate = "load fell"       // by more than a fifth, so a fall proves nothing
	LoadRose      Gate = "load rose"       // by more than a fifth, so a rise proves nothing
	OthersFell    Gate = "neighbours left" // others took less, of the CPUs or of requests' time
	OthersRose    Gate = "neighbours came" // others took more
	OtherEvidence Gate = "other evidence"  // what was recorded differs
	OtherMachine  Gate = "other machine"   // the number of CPUs differs
	Unbounded     Gate = "unbounded"       // nothing bounds what the cause costs after
	FewEvents     Gate = "few events"      // it costs more now, in fewer than leastEvents stretches
	TooLittle     Gate = "too little"      // it changed by less than one recording a side can tell
	Disagree      Gate = "disagree"        // the account and the latency went different ways
)

// Bounds of what counts as alike. They are measured: see the package's comment.
const (
	loadAlike   = 0.20 // of requests a second
	othersAlike = 0.3  // CPUs
)

// byNeighbours are the causes that neighbours themselves are: where these have left, that is the
// remedy.
var byNeighbours = map[string]bool{"cpu-contention": true, "softirq": true, "cpu-steal": true}

// conditions are what differs between two sides, besides what a remedy is for.
type conditions struct {
	load          float64 // requests a second, after by before; 0: not known
	others        float64 // CPUs that others took, after less before
	othersKnown   bool
	otherEvidence bool
	otherMachine  bool
	behind        map[finding.Scope]*Behind // nil where no kernel record says
	// crowdedBefore and crowdedAfter: requests or the process lost time to neighbours, as a cause
	// of its own.
	crowdedBefore, crowdedAfter bool
}

func conditionsOf(before, after []*Run) (c conditions) {
	rb, ra := medianBy(before, (*Run).rate), medianBy(after, (*Run).rate)
	if rb > 0 && ra > 0 {
		c.load = ra / rb
	}
	c.othersKnown = true
	for _, r := range append(before[:len(before):len(before)], after...) {
		c.othersKnown = c.othersKnown && r.OthersKnown
		c.otherEvidence = c.otherEvidence || r.evidence() != before[0].evidence()
		c.otherMachine = c.otherMachine || differ(r.CPUs, before[0].CPUs)
	}
	others := func(r *Run) float64 { return r.OthersCPUs }
	c.others = medianBy(after, others) - medianBy(before, others)
	c.behind = map[finding.Scope]*Behind{}
	for _, scope := range []finding.Scope{finding.Slow, finding.Usual} {
		c.behind[scope] = behind(before, after, scope)
	}
	c.crowdedBefore, c.crowdedAfter = crowded(before), crowded(after)
	return c
}

// differ reports whether two values are known and not the same.
func differ[T comparable](a, b T) bool {
	var none T
	return a != none && b != none && a != b
}

func medianBy(runs []*Run, get func(*Run) float64) float64 {
	var xs []float64
	for _, r := range runs {
		xs = append(xs, get(r))
	}
	return medianOf(xs)
}

func crowded(runs []*Run) bool {
	return slices.ContainsFunc(runs, func(r *Run) bool {
		return slices.ContainsFunc(r.roots(), func(f finding.Finding) bool { return byNeighbours[f.Cause] })
	})
}

// Behind is how long a request of a scope waits for CPUs that others have, and how long it takes;
// ns, before and after.
type Behind struct {
	Before     float64 `json:"before_ns"`
	After      float64 `json:"after_ns"`
	WallBefore float64 `json:"wall_before_ns"`
	WallAfter  float64 `json:"wall_after_ns"`
}

// mostWaits is the part of a change that waits for CPUs may be for neighbours not to count: less
// does not make a third of what was there before.
const mostWaits = 0.25

// part is the part of a rise that is waits for CPUs which others had.
func (b *Behind) part() float64 { return (b.After - b.Before) / (b.WallAfter - b.WallBefore) }

// without is how long a request takes of what it took before, both without these waits.
func (b *Behind) without() float64 {
	return ratio(max(0, b.WallAfter-b.After), b.WallBefore-b.Before)
}

// came reports whether requests wait so much longer behind others that a fall may not show.
func (b *Behind) came() bool { return b != nil && b.After-b.Before > mostWaits*b.WallBefore }

func behind(before, after []*Run, scope finding.Scope) *Behind {
	for _, r := range slices.Concat(before, after) {
		if e := r.evidence(); !e.Kernel || e.Trace && !e.Joined {
			return nil
		}
	}
	wall := func(r *Run) float64 { return perRequest(r, scope, r.column(scope).WallNS) }
	queue := func(r *Run) (ns float64) {
		for i := range r.column(scope).Accounts {
			a := &r.column(scope).Accounts[i]
			if a.Leaf == account.LeafNoCPU && byOthers(a.Detail) {
				ns += perRequest(r, scope, a.NS)
			}
			for _, in := range a.Instead {
				if in.Lacked() && in.Leaf() == account.LeafNoCPU && byOthers(in.Who) {
					ns += perRequest(r, scope, in.NS)
				}
			}
		}
		return ns
	}
	return &Behind{medianBy(before, queue), medianBy(after, queue), medianBy(before, wall), medianBy(after, wall)}
}

// byOthers reports whether who had the CPU is, or may be, another process.
func byOthers(who string) bool { return who != account.OwnThreads && who != account.Recorder }

// always lists the gates that keep anything from being told.
func (c *conditions) always(f *finding.Finding) (gs []Gate) {
	if c.otherMachine {
		gs = append(gs, OtherMachine)
	}
	if c.otherEvidence && f.Explains.Bytes == 0 { // bytes are read beside traces and records
		gs = append(gs, OtherEvidence)
	}
	return gs
}

// forFall lists the gates that keep a fall from being the remedy's. Load and neighbours that grew
// do not: a client that waits for answers asks more often as they come sooner.
func (c *conditions) forFall(f *finding.Finding) (gs []Gate) {
	if c.load > 0 && c.load < 1-loadAlike {
		gs = append(gs, LoadFell)
	}
	if !byNeighbours[f.Cause] && f.Explains.Bytes == 0 && c.othersLeft(f) {
		gs = append(gs, OthersFell)
	}
	return gs
}

// othersLeft reports whether neighbours that left may have made a fall: they took so much more
// before, or were a cause of their own. Where the ledger says for how long requests waited behind
// them, the fall is the remedy's if it is as large without these waits: a service that wants less
// of the CPUs waits less as well, beside the same neighbours.
func (c *conditions) othersLeft(f *finding.Finding) bool {
	moved := c.othersKnown && -c.others > othersAlike
	if f.Explains.NS == 0 {
		return moved || c.crowdedBefore && !c.othersKnown
	}
	if b := c.behind[f.Scope]; b != nil {
		return (moved || c.crowdedBefore) && b.without() > fellLatency
	}
	return moved
}

// forRise lists the gates that keep a rise, or that nothing changed, from being the remedy's.
func (c *conditions) forRise(f *finding.Finding) (gs []Gate) {
	if c.load > 1+loadAlike {
		gs = append(gs, LoadRose)
	}
	if c.othersKnown && c.others > othersAlike || c.othersCame(f) {
		gs = append(gs, OthersRose)
	}
	return gs
}

// othersCame reports whether neighbours that came may have made a rise. Where the ledger says for
// how long requests wait behind them, that has to be a part of the rise, too.
func (c *conditions) othersCame(f *finding.Finding) bool {
	if b := c.behind[f.Scope]; b != nil && f.Explains.NS > 0 {
		return b.part() > mostWaits && c.crowdedAfter
	}
	return f.Explains.NS == 0 && c.crowdedAfter
}
