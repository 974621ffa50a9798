package compare

import (
	"math"

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
	// The part of the fall of slow, and of usual, requests' time that had been waits for CPUs which
	// others had: neighbours that left can have made no more. 1 where no kernel record says.
	waitedSlow, waitedUsual float64
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
	c.waitedSlow, c.waitedUsual = waited(before, after, finding.Slow), waited(before, after, finding.Usual)
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

// mostWaited is the part of a fall that waits for CPUs may be for neighbours not to be asked about:
// less does not make a third of what was there before.
const mostWaited = 0.25

// waited is the part of a fall of a column's time that waits for CPUs can be which others had.
func waited(before, after []*Run, scope finding.Scope) float64 {
	wall := func(r *Run) float64 {
		if r.Result == nil {
			return 0
		}
		return perRequest(r, scope, r.column(scope).WallNS)
	}
	queue := func(r *Run) (ns float64) {
		if e := r.evidence(); !e.Kernel || e.Trace && !e.Joined {
			return math.Inf(1)
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
	fall := medianBy(before, wall) - medianBy(after, wall)
	if fall <= 0 {
		return 1
	}
	return min(1, medianBy(before, queue)/fall)
}

// byOthers reports whether who had the CPU is, or may be, another process.
func byOthers(who string) bool { return who != account.OwnThreads && who != account.Recorder }

// always lists the gates that keep anything from being told.
func (c *conditions) always() (gs []Gate) {
	if c.otherMachine {
		gs = append(gs, OtherMachine)
	}
	if c.otherEvidence {
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
	waited := c.waitedSlow
	if f.Scope == finding.Usual {
		waited = c.waitedUsual
	}
	switch {
	case !c.othersKnown || c.others >= -othersAlike:
	case byNeighbours[f.Cause], f.Explains.Bytes > 0:
	case f.Explains.NS > 0 && waited <= mostWaited:
	default:
		gs = append(gs, OthersFell)
	}
	return gs
}

// forRise lists the gates that keep a rise, or that nothing changed, from being the remedy's.
func (c *conditions) forRise() (gs []Gate) {
	if c.load > 1+loadAlike {
		gs = append(gs, LoadRose)
	}
	if c.othersKnown && c.others > othersAlike {
		gs = append(gs, OthersRose)
	}
	return gs
}
