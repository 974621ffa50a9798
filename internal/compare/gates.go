package compare

import (
	"math"
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
	OthersFell    Gate = "neighbours left" // others took 0.3 CPUs less
	OthersRose    Gate = "neighbours came" // others took 0.3 CPUs more
	OtherEvidence Gate = "other evidence"  // what was recorded differs
	OtherMachine  Gate = "other machine"   // the number of CPUs differs
	Unbounded     Gate = "unbounded"       // nothing bounds what the cause costs after
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
	// waits is, by scope, the part of the change of requests' time that is waits for CPUs which
	// others had. NaN where no kernel record says.
	waits map[finding.Scope]float64
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
	c.waits = map[finding.Scope]float64{}
	for _, scope := range []finding.Scope{finding.Slow, finding.Usual} {
		c.waits[scope] = waits(before, after, scope)
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

// mostWaits is the part of a change that waits for CPUs may be for neighbours not to count: less
// does not make a third of what was there before.
const mostWaits = 0.25

// waits is the part of the change of a column's time that is waits for CPUs which others had; NaN
// where no kernel record says, or nothing changed.
func waits(before, after []*Run, scope finding.Scope) float64 {
	wall := func(r *Run) float64 {
		if r.Result == nil {
			return 0
		}
		return perRequest(r, scope, r.column(scope).WallNS)
	}
	queue := func(r *Run) (ns float64) {
		if e := r.evidence(); !e.Kernel || e.Trace && !e.Joined {
			return math.NaN()
		}
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
	return (medianBy(before, queue) - medianBy(after, queue)) / (medianBy(before, wall) - medianBy(after, wall))
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
	if !byNeighbours[f.Cause] && f.Explains.Bytes == 0 && c.byOthers(f, -c.others, c.crowdedBefore) {
		gs = append(gs, OthersFell)
	}
	return gs
}

// forRise lists the gates that keep a rise, or that nothing changed, from being the remedy's.
func (c *conditions) forRise(f *finding.Finding) (gs []Gate) {
	if c.load > 1+loadAlike {
		gs = append(gs, LoadRose)
	}
	if c.othersKnown && c.others > othersAlike || c.byOthers(f, c.others, c.crowdedAfter) {
		gs = append(gs, OthersRose)
	}
	return gs
}

// byOthers reports whether neighbours may have made a change: where they took so much more, or
// were a cause of their own. Where the ledger says for how long requests waited behind them, that
// has to be a part of the change, too: a service that wants less of the CPUs waits less as well.
func (c *conditions) byOthers(f *finding.Finding, more float64, crowded bool) bool {
	moved := c.othersKnown && more > othersAlike
	if w, ok := c.waits[f.Scope]; ok && f.Explains.NS > 0 && !math.IsNaN(w) {
		return w > mostWaits && (moved || crowded)
	}
	return moved || f.Explains.NS == 0 && crowded
}
