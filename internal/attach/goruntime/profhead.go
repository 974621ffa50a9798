package goruntime

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// readHead reads the lines that stand above a table, where the table is not in these lines.
func (p *profile) readHead(lines []paste.Line) attach.Reading {
	r := attach.Reading{Title: "the head of pprof's output", State: attach.Context,
		Means: "it says which profile pprof read; which functions have most of it is not in these lines",
		Not:   "anything by itself"}
	if !slices.ContainsFunc(lines, func(l paste.Line) bool { return profileNamed.MatchString(l.Text) }) {
		r.Title = "the head of a table of pprof's"
		r.Means = "it says how much the rows of the table had together; the rows are not in these lines"
	}
	if p.kind == profCPU && p.duration > 0 && p.total > 0 && !p.perSample {
		r.Figures = []string{fmt.Sprintf("%s of CPU in %s: %s on average", finding.Duration(int64(p.total)),
			seconds(p.duration), busy(p.total/1e9/p.duration))}
	}
	return r
}

// profileNamed is a line that says which profile pprof read, or of which program.
var profileNamed = pattern.New(`^\s*(?:\(pprof\) )?(?:Type|File|Build ID|Duration|Doc|Main binary filename|Fetching profile|Saved profile)\b`)

// wallClocks are the types of profiles that count all time of threads, whether they were on a CPU
// or not.
var wallClocks = map[string]bool{"time": true, "wall": true, "wall-time": true, "wall_time": true}

// readTyped reads sums of what the head names, where that is none of what Go's own profiles count.
func (p *profile) readTyped(r *attach.Reading) {
	write := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	switch p.unit {
	case "ns":
		write = func(v float64) string { return finding.Duration(int64(v)) }
	case "B":
		write = func(v float64) string { return finding.Bytes(int64(v)) }
	}
	if p.total > 0 && len(p.flat) > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s in all, of what the head calls %s", write(p.total), p.typed))
	}
	p.figures(r, write)
	r.State, r.Means = attach.CannotTell, "its head says what it counts, "+p.typed+", which is neither CPU time nor memory of Go's own profiles"
	if wallClocks[p.typed] {
		r.Means = "it adds up wall time, on a CPU or waiting: a function that has most of it may have waited for work all the while"
		r.Not = "CPU time, nor what requests waited for"
	}
}
