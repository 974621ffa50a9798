package toll

import "github.com/whystall/whystall/internal/evidence"

// Unit is the unit of work by which stages are compared.
type Unit string

// Units. Each is a counter that all stages saw.
const (
	UnitNone Unit = ""
	UnitRead Unit = "read" // KB that the target read, of sockets and files
	UnitNet  Unit = "net"  // KB that its network namespace received
)

// Measure is what of a stage is compared.
type Measure string

// Measures. The first four are a unit of work, the last one a second.
const (
	CPU       Measure = "cpu"       // CPU time, ns
	Held      Measure = "held"      // time on a CPU or waiting for one, ns
	Queued    Measure = "queued"    // time waiting for a CPU, ns
	Switches  Measure = "switches"  // context switches
	Throttled Measure = "throttled" // time throttled, ns a second, all CPUs added up
)

// Measures lists them in the order in which they are shown.
var Measures = []Measure{CPU, Queued, Held, Switches, Throttled}

// Bill is what a recording cost the service.
type Bill struct {
	Unit    Unit     `json:"unit"` // "": no counter of work was read in all stages, or there was too little of it
	Stages  []Stage  `json:"stages"`
	Effects []Effect `json:"effects"`
	// LoadChanged says that more or less work was done a second than with counters alone. Whether
	// that is due to the load or to the recording cannot be told.
	LoadChanged bool `json:"load_changed,omitempty"`
}

// Stage is the figures of a stage.
type Stage struct {
	Name    evidence.StageName `json:"name"`
	NS      int64              `json:"ns"`
	Work    Figure             `json:"work"` // units a second
	Amounts []Amount           `json:"amounts"`
}

// Amount is a measure in a stage.
type Amount struct {
	Measure  Measure `json:"measure"`
	ByWork   Figure  `json:"by_work"` // a unit; zero without one
	BySecond Figure  `json:"by_second"`
}

// Amount returns a measure's figures; ok is false if it was not counted.
func (s *Stage) Amount(m Measure) (a Amount, ok bool) {
	for _, a := range s.Amounts {
		if a.Measure == m {
			return a, true
		}
	}
	return Amount{Measure: m}, false
}

// Figure is a quantity and the half of its 95 % interval. Without an interval, as of fewer than
// four slices, Known is false.
type Figure struct {
	Value float64 `json:"value"`
	Error float64 `json:"error"`
	Known bool    `json:"known"`
}

// Said is what can be said of an effect.
type Said string

// What can be said of it.
const (
	NotKnown Said = "not known" // too little work, or no such counter
	Within   Said = "within"    // within the limit, with its whole interval
	Beyond   Said = "beyond"    // beyond the limit, with its whole interval
	Untold   Said = "untold"    // the noise is larger than what should be told
)

// Effect is by how much a measure grew in a stage, beside counters alone.
type Effect struct {
	Stage   evidence.StageName `json:"stage"`
	Measure Measure            `json:"measure"`
	Growth  float64            `json:"growth"` // share of the value with counters alone; of Throttled: of the time
	Error   float64            `json:"error"`  // half of its 95 % interval
	Limit   float64            `json:"limit"`
	Said    Said               `json:"said"`
}

// Of returns the effect on a measure in a stage.
func (b *Bill) Of(stage evidence.StageName, m Measure) (e Effect, ok bool) {
	for _, e := range b.Effects {
		if e.Stage == stage && e.Measure == m {
			return e, true
		}
	}
	return Effect{Stage: stage, Measure: m, Said: NotKnown}, false
}

// Stage returns the figures of a stage.
func (b *Bill) Stage(name evidence.StageName) (s Stage, ok bool) {
	for _, s := range b.Stages {
		if s.Name == name {
			return s, true
		}
	}
	return s, false
}

// Harm returns the measure that grew the furthest beyond its limit in a stage; ok is false if none
// did. Switches do none by themselves: what they cost is in the others.
func (b *Bill) Harm(stage evidence.StageName) (worst Effect, ok bool) {
	for _, e := range b.Effects {
		if e.Stage != stage || e.Said != Beyond || e.Limit <= 0 || e.Measure == Switches {
			continue
		}
		if !ok || e.Growth/e.Limit > worst.Growth/worst.Limit {
			worst, ok = e, true
		}
	}
	return worst, ok
}
