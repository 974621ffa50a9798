package main

import (
	"fmt"
	"strings"
)

// What the medians of a row's ratios are to be: p99 at most, throughput at least.
const (
	p99Goal        = 1.10
	throughputGoal = 0.97
)

// ratio is the median of paired ratios, recorded over undisturbed.
type ratio struct {
	Median float64   `json:"median"`
	Low    float64   `json:"low"` // the 95 % interval of the median; 0 and 0 with too few pairs
	High   float64   `json:"high"`
	Each   []float64 `json:"each"`
}

func (r *ratio) add(with, without float64) {
	if without > 0 {
		r.Each = append(r.Each, with/without)
	}
}

func (r *ratio) sum() {
	if len(r.Each) == 0 {
		return
	}
	r.Median = middle(r.Each)
	r.Low, r.High = interval(r.Each)
}

func (r ratio) String() string {
	switch {
	case len(r.Each) == 0:
		return "-"
	case r.High == 0:
		return fmt.Sprintf("%.2f (too few)", r.Median)
	}
	return fmt.Sprintf("%.2f (%.2f-%.2f)", r.Median, r.Low, r.High)
}

// harmRow is what one part of the recorder did to one target.
type harmRow struct {
	Part        string   `json:"part"`
	Title       string   `json:"title"`
	Pairs       int      `json:"pairs"`
	P50         ratio    `json:"p50"`
	P99         ratio    `json:"p99"`
	Throughput  ratio    `json:"throughput"`
	CPU         ratio    `json:"cpu_per_answer"` // of the target
	Own         float64  `json:"own_cpus"`       // CPUs that the recorder took; the median
	Misses      []string `json:"misses"`
	NotMeasured string   `json:"not_measured,omitempty"`

	owns []float64
}

// add takes a pair: a window with the part at work, and one without.
func (r *harmRow) add(with, without felt, own float64) {
	r.Pairs++
	r.P50.add(with.P50, without.P50)
	r.P99.add(with.P99, without.P99)
	r.Throughput.add(with.PerS, without.PerS)
	if with.PerS > 0 && with.CPU > 0 {
		r.CPU.add(with.CPU/with.PerS, without.CPU/max(without.PerS, 1e-9))
	}
	r.owns = append(r.owns, own)
}

// sum computes the medians, and what they miss.
func (r *harmRow) sum() {
	for _, x := range []*ratio{&r.P50, &r.P99, &r.Throughput, &r.CPU} {
		x.sum()
	}
	r.Misses = []string{}
	if r.Pairs == 0 {
		return
	}
	r.Own = middle(r.owns)
	if r.P99.Median > p99Goal {
		r.Misses = append(r.Misses, "p99")
	}
	if r.Throughput.Median < throughputGoal {
		r.Misses = append(r.Misses, "throughput")
	}
}

func (r *harmRow) mark() string {
	if len(r.Misses) == 0 {
		return ""
	}
	return "MISSED: " + strings.Join(r.Misses, ", ")
}

// order gives for each pair which window is first: it changes from pair to pair, so that a drift of
// the machine is neither side's.
func recordedFirst(pair int) bool { return pair%2 == 1 }

// harmTarget is a target's table.
type harmTarget struct {
	Target      string    `json:"target"`
	Title       string    `json:"title"`
	Rate        float64   `json:"rate"` // requests due a second
	Undisturbed felt      `json:"undisturbed"`
	Notes       []string  `json:"notes"`
	Rows        []harmRow `json:"rows"`
	NotMeasured string    `json:"not_measured,omitempty"`

	bare []felt // undisturbed windows
	seen map[string]*harmRow
}

// row gives the row of a part, which it makes at its first use.
func (t *harmTarget) row(key, title string) *harmRow {
	if t.seen == nil {
		t.seen = map[string]*harmRow{}
	}
	if t.seen[key] == nil {
		t.seen[key] = &harmRow{Part: key, Title: title}
	}
	return t.seen[key]
}

// sum computes all rows, in the order of the parts.
func (t *harmTarget) sum(keys []string) {
	pick := func(f func(felt) float64) float64 {
		var l []float64
		for _, b := range t.bare {
			l = append(l, f(b))
		}
		if len(l) == 0 {
			return 0
		}
		return middle(l)
	}
	t.Undisturbed = felt{
		P50: pick(func(f felt) float64 { return f.P50 }), P99: pick(func(f felt) float64 { return f.P99 }),
		PerS: pick(func(f felt) float64 { return f.PerS }), CPU: pick(func(f felt) float64 { return f.CPU }),
		Busy: pick(func(f felt) float64 { return f.Busy }), Switches: pick(func(f felt) float64 { return f.Switches }),
		Due:    int(pick(func(f felt) float64 { return float64(f.Due) })),
		Failed: int(pick(func(f felt) float64 { return float64(f.Failed) })),
	}
	for _, k := range keys {
		if r := t.seen[k]; r != nil {
			r.sum()
			t.Rows = append(t.Rows, *r)
		}
	}
}
