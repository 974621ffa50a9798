package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/finding"
)

// SchemaVersion is the version of the JSON.
const SchemaVersion = 1

// Comparison is two sides, in the shape of the JSON.
type Comparison struct {
	Schema   int       `json:"schema"`
	Before   Side      `json:"before"`
	After    Side      `json:"after"`
	Verdicts []Verdict `json:"verdicts"` // one for each root of before, in its order
	New      []Fresh   `json:"new"`      // roots of after that were not found before
	// SlowBefore and SlowAfter are the mean wall time of slow requests, ns; 0: none seen.
	SlowBefore float64  `json:"slow_before_ns"`
	SlowAfter  float64  `json:"slow_after_ns"`
	Entries    []Entry  `json:"entries"`
	Alone      int      `json:"entries_of_one_side"`
	Figures    []Figure `json:"figures"`
	Slow       []Row    `json:"slow"`
	Usual      []Row    `json:"usual"`
	// Distribution is of both sides' requests by how long they took; empty where one has none.
	Distribution []Bin `json:"distribution"`
}

// Side is the recordings before, or after.
type Side struct {
	Files  []string `json:"files"`
	Starts int      `json:"starts"` // of the process
	// OthersCPUs is what other processes took, CPUs on average; negative: not known.
	OthersCPUs float64  `json:"others_cpus"`
	Programs   []string `json:"programs"` // their names, each once
}

// Fresh is a cause that is found after and was not before.
type Fresh struct {
	Cause string        `json:"cause"`
	Title string        `json:"title" prose:"yes"`
	Scope finding.Scope `json:"scope"`
	Share float64       `json:"share"`
}

// Figure is one number of both sides; medians over a side's recordings.
type Figure struct {
	Name   FigureName `json:"name"`
	Before float64    `json:"before"`
	After  float64    `json:"after"`
}

// FigureName names a figure and its unit.
type FigureName string

// Row is one kind of time of a column, ns per request.
type Row struct {
	Named  account.Named `json:"-"`
	Cause  account.Leaf  `json:"cause"`
	Text   string        `json:"text" prose:"yes"`
	Before float64       `json:"before_ns"`
	After  float64       `json:"after_ns"`
}

// Sides compares two sides. Each has at least one recording.
func Sides(before, after []*Run) *Comparison {
	c := &Comparison{Schema: SchemaVersion, Before: side(before), After: side(after),
		Verdicts: []Verdict{}, New: []Fresh{}}
	c.Entries, c.Alone = entries(before, after)
	if c.Entries == nil {
		c.Entries = []Entry{}
	}
	cond := conditionsOf(before, after)
	old := rootsOf(before)
	fresh := slices.DeleteFunc(rootsOf(after), func(f finding.Finding) bool {
		return slices.ContainsFunc(before, func(r *Run) bool { return r.finding(f.Cause) != nil })
	})
	for i := range old {
		v := judge(before, after, &old[i], c.Entries, &cond, fresh)
		for _, r := range before {
			for _, f := range r.Found.Findings {
				if underRoot(r, f, old[i].Cause) && !slices.Contains(v.Mechanisms, f.Cause) {
					v.Mechanisms = append(v.Mechanisms, f.Cause)
				}
			}
		}
		c.Verdicts = append(c.Verdicts, v)
	}
	for _, f := range fresh {
		c.New = append(c.New, Fresh{f.Cause, f.Title, f.Scope, f.Share})
	}
	c.SlowBefore, c.SlowAfter = slowMean(before), slowMean(after)
	c.Figures = figures(before, after)
	c.Distribution = append([]Bin{}, distribution(before, after)...)
	c.Slow, c.Usual = rows(before, after, finding.Slow), rows(before, after, finding.Usual)
	return c
}

// Status is the exit status: 0 all confirmed, 1 one is not confirmed or worse, 3 cannot tell.
func (c *Comparison) Status() int {
	status := 0
	for _, v := range c.Verdicts {
		switch v.Outcome {
		case NotConfirmed, Worse:
			return 1
		case CannotTell:
			status = 3
		}
	}
	if len(c.Verdicts) == 0 {
		return 3 // nothing was found before, so nothing can be confirmed
	}
	return status
}

// Gone is the part of slow requests' time that is gone, 0..1; negative: there is more. ok is false
// where one side has none.
func (c *Comparison) Gone() (part float64, ok bool) {
	if c.SlowBefore <= 0 || c.SlowAfter <= 0 {
		return 0, false
	}
	return 1 - c.SlowAfter/c.SlowBefore, true
}

func side(runs []*Run) Side {
	s := Side{Files: []string{}, Programs: []string{}, Starts: starts(runs),
		OthersCPUs: medianBy(runs, func(r *Run) float64 { return r.OthersCPUs })}
	for _, r := range runs {
		s.Files = append(s.Files, r.Name)
		if r.Program != "" && !slices.Contains(s.Programs, r.Program) {
			s.Programs = append(s.Programs, r.Program)
		}
		if !r.OthersKnown {
			s.OthersCPUs = -1
		}
	}
	return s
}

// rootsOf lists the roots of all recordings of a side, each once: where it explains most.
func rootsOf(runs []*Run) (all []finding.Finding) {
	for _, r := range runs {
		for _, f := range r.roots() {
			i := slices.IndexFunc(all, func(g finding.Finding) bool { return g.Cause == f.Cause })
			switch {
			case i < 0:
				all = append(all, f)
			case f.Share > all[i].Share:
				all[i] = f
			}
		}
	}
	return all
}

// underRoot reports whether f is a mechanism of the cause, over however many others.
func underRoot(r *Run, f finding.Finding, cause string) bool {
	for range r.Found.Findings {
		if f.BecauseOf == "" {
			return false
		}
		if f.BecauseOf == cause {
			return true
		}
		g := r.finding(f.BecauseOf)
		if g == nil {
			return false
		}
		f = *g
	}
	return false
}

func slowMean(runs []*Run) float64 {
	return medianBy(runs, func(r *Run) float64 {
		if r.Result == nil {
			return 0
		}
		return perRequest(r, finding.Slow, r.Result.Slow.WallNS)
	})
}

// mostRows is how many kinds of time are listed of a column.
const mostRows = 10

// rows lists the accounts of a column on both sides, those with most time first.
func rows(before, after []*Run, scope finding.Scope) []Row {
	at, all := map[account.Named]int{}, []Row{}
	add := func(runs []*Run, to func(*Row) *float64) {
		for _, r := range runs {
			if r.Result == nil {
				continue
			}
			for _, a := range r.column(scope).Accounts {
				key := account.Named{Class: a.Class, Leaf: a.Leaf, Actor: a.Actor, Site: a.Site,
					Detail: a.Detail, Holder: a.Holder}
				i, ok := at[key]
				if !ok {
					i = len(all)
					at[key] = i
					all = append(all,
						Row{Named: key, Cause: a.Leaf, Text: account.Words(key, func(s string) string { return s })})
				}
				*to(&all[i]) += perRequest(r, scope, a.NS) / float64(len(runs))
			}
		}
	}
	add(before, func(r *Row) *float64 { return &r.Before })
	add(after, func(r *Row) *float64 { return &r.After })
	slices.SortStableFunc(all, func(x, y Row) int {
		return cmp.Or(cmp.Compare(max(y.Before, y.After), max(x.Before, x.After)), cmp.Compare(x.Text, y.Text))
	})
	return all[:min(len(all), mostRows)]
}

// Names of figures.
const (
	FigureP50      FigureName = "p50_ns"
	FigureP99      FigureName = "p99_ns"
	FigureMax      FigureName = "max_ns"
	FigureRate     FigureName = "requests_per_second"
	FigureCPU      FigureName = "cpu_ns_per_request"
	FigureThreads  FigureName = "threads"
	FigureSwitches FigureName = "switches_per_second"
	FigureFaults   FigureName = "faults_per_second"
	FigurePauses   FigureName = "paused_ns_per_second"
	FigureNUMA     FigureName = "numa_faults_per_second"
	FigureOthers   FigureName = "others_cpus"
)

func figures(before, after []*Run) []Figure {
	list := []Figure{}
	for _, f := range []struct {
		name FigureName
		get  func(*Run) float64
	}{
		{FigureP50, func(r *Run) float64 { return float64(r.Result.Requests.P50) }},
		{FigureP99, func(r *Run) float64 { return float64(r.Result.Requests.P99) }},
		{FigureMax, func(r *Run) float64 { return float64(r.Result.Requests.Max) }},
		{FigureRate, (*Run).rate},
		{FigureCPU, cpuPerRequest},
		{FigureThreads, ofKernel(func(k *account.Kernel) float64 { return float64(k.ThreadsSeen) }, false)},
		{FigureSwitches, ofKernel(func(k *account.Kernel) float64 { return float64(k.Switches) }, true)},
		{FigureFaults, ofKernel(func(k *account.Kernel) float64 { return float64(k.FaultsN) }, true)},
		{FigurePauses, pauses},
		{FigureNUMA, ofKernel(func(k *account.Kernel) float64 { return float64(k.NUMA.N) }, true)},
		{FigureOthers, others},
	} {
		b, a := knownMedian(before, f.get), knownMedian(after, f.get)
		if math.IsNaN(b) || math.IsNaN(a) || b == 0 && a == 0 {
			continue
		}
		list = append(list, Figure{f.name, b, a})
	}
	return list
}

// knownMedian is the median of what is known; NaN where nothing is.
func knownMedian(runs []*Run, get func(*Run) float64) float64 {
	var xs []float64
	for _, r := range runs {
		if r.Result == nil {
			continue
		}
		if x := get(r); !math.IsNaN(x) {
			xs = append(xs, x)
		}
	}
	if len(xs) == 0 {
		return math.NaN()
	}
	return medianOf(xs)
}

func ofKernel(get func(*account.Kernel) float64, each bool) func(*Run) float64 {
	return func(r *Run) float64 {
		k := r.Result.Kernel
		switch {
		case k == nil || k.End <= k.Begin:
			return math.NaN()
		case each:
			return get(k) / (float64(k.End-k.Begin) / 1e9)
		}
		return get(k)
	}
}

func cpuPerRequest(r *Run) float64 {
	if r.Result.Requests.Count == 0 || processCPUs(r) == 0 {
		return math.NaN()
	}
	return processCPUs(r) * r.seconds() / float64(r.Result.Requests.Count)
}

func pauses(r *Run) float64 {
	if r.Result.Reader.Format == 0 || r.seconds() <= 0 {
		return math.NaN()
	}
	var ns int64
	for _, s := range r.Result.STWs {
		if !s.Ours {
			ns += s.Start - s.Begin
		}
	}
	return float64(ns) / r.seconds()
}

func others(r *Run) float64 {
	if !r.OthersKnown {
		return math.NaN()
	}
	return r.OthersCPUs
}
