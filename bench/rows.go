package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"
)

// row is one line of the comparison: files which both sides read.
type row struct {
	name  string
	child string // the child mode that reads them; "": explain
	files []string
}

// sampleCPU is the CPU time that one sample is to take at least. Shorter work is repeated within
// the sample, so that the clock's grain and one late timer do not decide.
const sampleCPU = 500 * time.Millisecond

// caseRows are recordings that stand for a road through the program, the longest of their kind.
var caseRows = []struct{ name, pattern string }{
	{"explain, Go with kernel records, a logger", "logger-lock.ill.case"},
	{"explain, Go with kernel records, a queue", "sched-latency.ill.case"},
	{"explain, Go with kernel records, 3 700 requests", "sched-latency.like-slow-store.case"},
	{"explain, Go without a trace, kernel records", "numa-balancing.ill.case"},
	{"explain, native threads, many made", "thread-churn.ill.case"},
	{"explain, native threads, many requests", "runqueue-saturation.ill-polling.case"},
	{"explain, all recorded cases in turn", "*.case"},
}

func allRows(root string, traces []traceFile) ([]row, error) {
	var rows []row
	for _, t := range traces {
		files := []string{t.name}
		rows = append(rows,
			row{"reader, every event, " + t.title, "events", files},
			row{"reader, every record, " + t.title, "records", files},
			row{"reader, all states, " + t.title, "totals", files},
			row{"explain, " + t.title, "", files})
	}
	for _, c := range caseRows {
		files, err := listFiles(root, []string{labCases + "/" + c.pattern})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{c.name, "", files})
	}
	return rows, nil
}

// result is what a row came to.
type result struct {
	Name        string    `json:"name"`
	Runs        int       `json:"runs"`       // of each program in one sample
	BaseCPU     float64   `json:"base_cpu_s"` // median of the samples, of one run
	TreeCPU     float64   `json:"presentcpu_s"`
	Ratios      []float64 `json:"ratios"` // of each pair, tree over base
	Ratio       float64   `json:"ratio"`  // their median
	Low         float64   `json:"low"`    // the 95 % interval of the median; 0 and 0 with too few pairs
	High        float64   `json:"high"`
	RSS         float64   `json:"rss"`     // peak memory, tree over base, with what is mapped of files
	Private     float64   `json:"private"` // without that, sampled; 0 not known
	Fails       string    `json:"fails"`   // why; "": it does not
	NotMeasured string    `json:"not_measured,omitempty"`
}

// measureRow measures pairs of samples, in the order base tree, tree base, base tree: whatever
// drifts on the machine is then neither side's. The first run of each is not counted: it warms the
// page cache, and says how many runs make a sample.
func measureRow(ctx context.Context, r row, base, tree side, pairs int, progress io.Writer) (result, error) {
	m := result{Name: r.name, Ratios: []float64{}}
	if r.child != "" && base.noReader+tree.noReader != "" {
		m.NotMeasured = base.noReader + tree.noReader
		return m, nil
	}
	first, err := r.sample(ctx, base, 1)
	if err != nil {
		return m, err
	}
	if _, err := r.sample(ctx, tree, 1); err != nil {
		return m, err
	}
	m.Runs = max(1, int(math.Ceil(sampleCPU.Seconds()/max(first.cpu, time.Millisecond).Seconds())))
	samples, err := takePairs(pairs, func(present bool) (cost, error) {
		s := base
		if present {
			fmt.Fprint(progress, ".")
			s = tree
		}
		return r.sample(ctx, s, m.Runs)
	})
	if err != nil {
		return m, err
	}
	m.sum(samples)
	return m, nil
}

// pair is a sample of each side.
type pair struct{ base, tree cost }

// takePairs calls sample twice a pair; the side that is first changes from pair to pair.
func takePairs(pairs int, sample func(tree bool) (cost, error)) ([]pair, error) {
	var l []pair
	for i := range pairs {
		var p pair
		for _, tree := range []bool{i%2 == 1, i%2 == 0} {
			c, err := sample(tree)
			if err != nil {
				return nil, err
			}
			if tree {
				p.tree = c
			} else {
				p.base = c
			}
		}
		l = append(l, p)
	}
	return l, nil
}

// sample reads the row's files with one side, runs times each, and adds up. Memory is the most that
// one of the runs took.
func (r row) sample(ctx context.Context, s side, runs int) (sum cost, err error) {
	for range runs {
		for _, file := range r.files {
			p := program{name: r.name, args: []string{s.whystall, "explain", file}, found: true}
			if r.child != "" {
				p = program{name: r.name, args: []string{s.reader, "child", r.child, file}}
			}
			c, _, err := runProgram(ctx, p)
			if err != nil {
				return sum, fmt.Errorf("%s: %w", s.Commit, err)
			}
			sum.cpu += c.cpu
			sum.rss, sum.private = max(sum.rss, c.rss), max(sum.private, c.private)
		}
	}
	return sum, nil
}

// sum fills m from its samples.
func (m *result) sum(samples []pair) {
	var base, tree, baseRSS, treeRSS, basePrivate, treePrivate []float64
	for _, p := range samples {
		base, tree = append(base, p.base.cpu.Seconds()), append(tree, p.tree.cpu.Seconds())
		baseRSS, treeRSS = append(baseRSS, float64(p.base.rss)), append(treeRSS, float64(p.tree.rss))
		basePrivate, treePrivate = append(basePrivate, float64(p.base.private)),
			append(treePrivate, float64(p.tree.private))
		m.Ratios = append(m.Ratios, p.tree.cpu.Seconds()/p.base.cpu.Seconds())
	}
	m.BaseCPU, m.TreeCPU = middle(base)/float64(m.Runs), middle(tree)/float64(m.Runs)
	m.Ratio = middle(m.Ratios)
	m.Low, m.High = interval(m.Ratios)
	m.RSS = middle(treeRSS) / middle(baseRSS)
	if of := middle(basePrivate); of > 0 {
		m.Private = middle(treePrivate) / of
	}
	m.Fails = m.judge()
}
