package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// ftraceLatency reads "perf ftrace latency": a histogram of the time that calls of one function of
// the kernel took. Its rows change their unit from one to the next.
var ftraceLatency = &attach.Kind{Name: "perf ftrace latency", Claim: claimFtraceLatency,
	Read: readFtraceLatency, Reports: true, Hints: []string{"DURATION", " us | ", " ms | ", " ns | "}}

var (
	durationHead = pattern.New(`^#\s*DURATION\s*\|\s*COUNT\s*\|\s*GRAPH\s*\|?$`)
	durationRow  = pattern.New(`^(\d+)\s+-\s+(\d+|\.\.\.)\s+(ns|us|ms|s)\s*\|\s*(\d+)\s*\|[ #]*\|?$`)
	durationSum  = pattern.New(`^(?:# statistics +\(in \w+\)|(?:total|avg|max|min) time: +\d+|count: +\d+)$`)
	ofFtrace     = pattern.New(`\bftrace latency\b.*\s(?:-T\s*|--trace-funcs[= ])([\w.]+)`)
)

func claimFtraceLatency(lines []paste.Line) int {
	rows, headed := 0, durationHead.MatchString(strings.TrimSpace(lines[0].Text))
	n := claimed(lines, func(i int, text string) bool {
		if durationRow.MatchString(text) {
			rows++
			return true
		}
		return i == 0 && headed || rows > 0 && (durationSum.MatchString(text) || text == "")
	})
	return attach.ClaimIf(rows > 1 || headed && rows > 0, n)
}

func readFtraceLatency(p *attach.Part) attach.Reading {
	h := &histogram{unit: "nsecs"}
	open := false
	for _, text := range texts(p) {
		m := durationRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		factor := unitSeconds(m[3]) * 1e9
		low, _ := number(m[1])
		high, bounded := number(m[2])
		n, _ := number(m[4])
		if !bounded {
			high, open = 2*low, open || n > 0
		}
		h.add(bucket{low * factor, high * factor, n})
	}
	r := attach.Reading{Title: "perf ftrace latency, time in a function", State: attach.CannotTell}
	if m := ofFtrace.FindStringSubmatch(p.Command); m != nil {
		r.Title = "perf ftrace latency, time in " + m[1]
	}
	r.Title += ", " + attach.Plural(int(h.total()), "call")
	if h.total() == 0 {
		r.Means = "The function was not called."
		return r
	}
	line := h.says()
	if !open {
		line += h.sum()
	}
	r.Figures = []string{line}
	if first := h.buckets[len(h.buckets)-1]; open {
		r.Figures = append(r.Figures, fmt.Sprintf("the last row has no upper border: %s calls took %s or longer",
			count(first.n), h.value(first.low)))
	}
	r.Means = "It is the wall time of a function, with all of its waits."
	r.Not = "Whether a request waited for these calls: the function may run in a thread that nobody waits for."
	return r
}
