package compare

import (
	"math"

	"github.com/whystall/whystall/internal/finding"
)

// Outcome is what is said of one cause.
type Outcome string

// Outcomes.
const (
	Confirmed    Outcome = "confirmed"     // what it costs fell by more than the noise, and latency with it
	NotConfirmed Outcome = "not confirmed" // it costs as much as before
	Worse        Outcome = "worse"         // it costs more, and latency rose with it
	CannotTell   Outcome = "cannot tell"   // Gates say why
)

// Verdict is about one cause that was found before.
type Verdict struct {
	Cause   string        `json:"cause"`
	Title   string        `json:"title" prose:"yes"`
	Scope   finding.Scope `json:"scope"`
	Outcome Outcome       `json:"outcome"`
	Gates   []Gate        `json:"gates"`

	// Before and After are what it costs: ns a request of its scope, or, of the process, ns of CPU
	// time a second, or bytes. After is an upper bound where the cause is no longer found. Known is
	// false where nothing bounds it.
	Unit   Unit    `json:"unit"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Known  bool    `json:"after_known"`
	Found  bool    `json:"still_found"`

	// Latency is the ratio of p99 after to before, of p50 where the cause is of usual requests; 0:
	// not compared.
	Latency float64 `json:"latency_ratio"`
	// Low and High, with three starts a side or more, are the 95 % interval of Latency.
	Low  float64 `json:"latency_low,omitempty"`
	High float64 `json:"latency_high,omitempty"`
	// Behind is how long requests of its scope wait behind others; nil where nothing says.
	Behind *Behind `json:"behind_others,omitempty"`
	// Mechanisms are the causes under it before.
	Mechanisms []string `json:"mechanisms"`
}

// Unit is of what a verdict's amounts are.
type Unit string

// Units.
const (
	NSPerRequest Unit = "ns per request"
	NSPerSecond  Unit = "ns of CPU time per second"
	Bytes        Unit = "bytes"
)

// What one recording a side has to show. A fall of p99 by a third and of the account by half, with
// load alike, was seen in 3 of 100 pairs that nothing had changed, and in 88 of 100 cures. Where
// neighbours are not known it is a third of both.
const (
	fellLatency = 2.0 / 3
	fellAmount  = 0.5
	fellBlind   = 1.0 / 3
	roseLatency = 1.5
	roseAmount  = 2.0
	same        = 0.8 // above this of both, nothing has changed that matters
	leastEffect = 0.9 // of several starts
	leastStarts = 3
)

// judge says what became of one cause.
func judge(before, after []*Run, f *finding.Finding, both []Entry, c *conditions, fresh []finding.Finding) Verdict {
	v := Verdict{Cause: f.Cause, Title: f.Title, Scope: f.Scope, Unit: unitOf(f),
		Outcome: CannotTell, Gates: []Gate{}, Mechanisms: []string{}}
	value := func(r *Run) (float64, bool) { a := amountOf(r, f, fresh); return a.value, a.known }
	ab, aa := byStart(before, value), byStart(after, value)
	v.Known = len(aa) > 0 && len(aa) == starts(after)
	v.Before, v.After = mean(ab), mean(aa)
	for _, r := range after {
		v.Found = v.Found || r.finding(f.Cause) != nil
	}
	speed := func(r *Run) (float64, bool) { return latency(r, both, f.Scope) }
	lb, la := byStart(before, speed), byStart(after, speed)
	asked := v.Unit == NSPerRequest
	if asked {
		v.Behind = c.behind[f.Scope]
	}
	if len(lb) > 0 && len(la) > 0 {
		v.Latency = math.Exp(mean(la) - mean(lb))
	} else if asked {
		v.Gates = append(v.Gates, noLatency(both))
	}
	v.Gates = append(v.Gates, c.always(f)...)
	if !v.Known && len(v.Gates) == 0 {
		v.Gates = append(v.Gates, Unbounded)
	}
	if len(v.Gates) > 0 {
		return v
	}
	var change tested
	if min(len(ab), len(aa)) >= leastStarts && (!asked || min(len(lb), len(la)) >= leastStarts) {
		change = v.overStarts(ab, aa, lb, la)
	} else {
		change = v.ofPair(ab, aa, lb, la, c)
	}
	v.settle(change, f, c)
	if v.Outcome == Worse && asked && events(after, f) < leastEvents {
		v.Outcome, v.Gates = CannotTell, []Gate{FewEvents}
	}
	return v
}

func noLatency(both []Entry) Gate {
	if len(both) == 0 {
		return NoRequests
	}
	return FewRequests
}

// tested is what the figures alone say.
type tested uint8

const (
	unclear tested = iota
	fell
	rose
	unchanged
	parted // the account and the latency went different ways
	masked // the account fell, and requests wait longer behind others now
)

// settle turns what the figures say into a verdict, unless something else may have made it.
func (v *Verdict) settle(change tested, f *finding.Finding, c *conditions) {
	switch change {
	case fell:
		v.Outcome, v.Gates = Confirmed, c.forFall(f)
	case rose:
		v.Outcome, v.Gates = Worse, c.forRise(f)
	case unchanged:
		v.Outcome, v.Gates = NotConfirmed, c.forRise(f)
	case parted:
		v.Gates = []Gate{Disagree}
	case masked:
		v.Gates = []Gate{OthersRose}
	default:
		v.Gates = []Gate{TooLittle}
	}
	if v.Gates == nil {
		v.Gates = []Gate{}
	}
	if len(v.Gates) > 0 {
		v.Outcome = CannotTell
	}
}

// ofPair is the rule for fewer than three starts a side. Where there are several, the pair that
// shows least counts: more recordings can only widen what is said.
func (v *Verdict) ofPair(ab, aa, lb, la []float64, c *conditions) tested {
	few, much := ratio(highest(aa), lowest(ab)), ratio(lowest(aa), highest(ab))
	slow, fast := 0.0, 0.0 // where latency is not asked for
	asked := v.Unit == NSPerRequest
	if asked {
		slow, fast = math.Exp(highest(la)-lowest(lb)), math.Exp(lowest(la)-highest(lb))
	}
	needA, needL := fellAmount, fellLatency
	if !c.othersKnown {
		needA, needL = fellBlind, fellBlind
	}
	if !asked {
		needA = fellBlind
		if v.Unit == Bytes {
			needA = fellAmount
		}
	}
	switch {
	case v.Found && few <= needA:
		return unclear // a cause that is still found is not cured, and has its own ups and downs
	case few <= needA && (!asked || slow <= needL):
		return fell
	case few <= needA && v.Behind.came():
		return masked
	case much >= roseAmount && (!asked || fast >= roseLatency):
		return rose
	case much > same && few < roseAmount && (!asked || fast > same && slow < roseLatency):
		return unchanged
	case asked && (few <= needA && fast > same || much > same && slow <= needL):
		return parted
	}
	return unclear
}

// leastEvents is how many separate stretches of time a rise has to be seen in. What a service pays
// once or twice in a recording, it pays by chance more or less of.
const leastEvents = 5

// events is in how many separate stretches the cause is seen after, in the recording with most.
func events(after []*Run, f *finding.Finding) (most int) {
	kinds := map[string]bool{}
	for _, c := range f.Claims {
		kinds[c.Leaf] = true
	}
	for _, r := range after {
		var ns int64
		n := 0
		for i := range r.column(f.Scope).Accounts {
			if a := &r.column(f.Scope).Accounts[i]; kinds[string(a.Leaf)] && a.NS > ns {
				ns, n = a.NS, a.Events
			}
		}
		most = max(most, n)
	}
	return most
}

// overStarts is the rule for three starts a side or more: a t test on the logarithms, and an effect
// of a tenth.
func (v *Verdict) overStarts(ab, aa, lb, la []float64) tested {
	lowA, highA := interval(logs(ab), logs(aa))
	if v.Unit != NSPerRequest {
		switch {
		case highA < math.Log(leastEffect):
			return fell
		case lowA > -math.Log(leastEffect):
			return rose
		case lowA > math.Log(leastEffect):
			return unchanged
		}
		return unclear
	}
	low, high := interval(lb, la)
	v.Low, v.High = math.Exp(low), math.Exp(high)
	d, effect := mean(la)-mean(lb), math.Log(leastEffect)
	switch {
	case high < 0 && d < effect && highA < 0:
		return fell
	case low > 0 && d > -effect && lowA > 0:
		return rose
	case low > effect:
		return unchanged
	case high < 0 && lowA > effect || highA < effect && low > effect:
		return parted
	}
	return unclear
}

// logs are logarithms, of at least a microsecond or a byte: less is nothing.
func logs(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Log(max(x, 1000))
	}
	return out
}

func ratio(a, b float64) float64 {
	if b <= 0 {
		return math.Inf(1)
	}
	return a / b
}

func mean(xs []float64) (m float64) {
	for _, x := range xs {
		m += x / float64(len(xs))
	}
	return m
}

func lowest(xs []float64) float64 {
	m := math.Inf(1)
	for _, x := range xs {
		m = min(m, x)
	}
	return m
}

func highest(xs []float64) float64 {
	m := math.Inf(-1)
	for _, x := range xs {
		m = max(m, x)
	}
	return m
}

func unitOf(f *finding.Finding) Unit {
	switch {
	case f.Explains.Bytes > 0:
		return Bytes
	case f.Explains.NS > 0:
		return NSPerRequest
	}
	return NSPerSecond
}
