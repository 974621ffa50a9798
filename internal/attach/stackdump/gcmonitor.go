package stackdump

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gcMonitor is what Elasticsearch and OpenSearch log of their own JVM where much of a second went
// into collections.
var gcMonitor = &attach.Kind{
	Name:      "GC monitor of Elasticsearch",
	Hints:     []string{"collecting in the last [", "], collections ["},
	Marks:     []string{"collecting in the last [", "], collections ["},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		if !monitored(lines[0].Text) {
			return 0
		}
		n := 1
		for n < len(lines) && lines[n].Command == "" &&
			(monitored(lines[n].Text) || heapFull.MatchString(strings.TrimSpace(lines[n].Text))) {
			n++
		}
		return n
	},
	Read: readMonitor,
}

var (
	// "[gc][1398] overhead, spent [411ms] collecting in the last [1s]"
	monitorSpent = pattern.New(`\[gc\]\[(\d+)\] overhead, spent \[([\d.]+(?:ms|s|m|h))\] collecting in the last \[([\d.]+(?:ms|s|m|h))\]`)
	// "[gc][old][18][2] duration [5.3s], collections [1]/[6.1s], total [5.3s]/[6s], memory [..."
	monitorTook = pattern.New(`\[gc\]\[(young|old|\w+)\]\[(\d+)\]\[\d+\] duration \[([\d.]+(?:ms|s|m|h))\], collections \[(\d+)\]/\[([\d.]+(?:ms|s|m|h))\]`)
	monitorOld  = pattern.New(`memory \[([\d.]+)([kmgt]?b)\]->\[([\d.]+)([kmgt]?b)\]/\[([\d.]+)([kmgt]?b)\]`)
	monitorNode = pattern.New(`\[[^\[\]]*\] *\[gc\]`)
	heapFull    = pattern.New(`^(?:java\.lang\.OutOfMemoryError: |Dumping heap to \S|Heap dump file created \[)`)
)

const (
	outOfHeap    = "OutOfMemoryError"
	mostMonitors = 100_000
)

func monitored(text string) bool {
	return monitorSpent.MatchString(text) || monitorTook.MatchString(text)
}

func monitorTime(s string) float64 {
	d, _ := time.ParseDuration(s)
	return d.Seconds()
}

// heapShare is how much of the heap was in use after a collection.
func heapShare(m []string) float64 {
	var v [2]float64
	for i, at := range []int{3, 5} {
		x, _ := strconv.ParseFloat(m[at], 64)
		v[i] = x * map[string]float64{"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}[m[at+1]]
	}
	if v[1] <= 0 {
		return 1
	}
	return v[0] / v[1]
}

func readMonitor(p *attach.Part) attach.Reading {
	n, much, spent, over := 0, 0, 0.0, 0.0
	worst, worstOf := 0.0, 0.0
	heap, full, small := "", false, false
	told := map[string]bool{}
	for _, l := range p.Lines {
		full = full || strings.Contains(l.Text, outOfHeap)
		var took, of float64
		var second string
		if m := monitorSpent.FindStringSubmatch(l.Text); m != nil {
			second, took, of = m[1], monitorTime(m[2]), monitorTime(m[3])
		} else if m := monitorTook.FindStringSubmatch(l.Text); m != nil {
			second, took, of = m[2], monitorTime(m[3]), monitorTime(m[5])
		}
		if of <= 0 || n >= mostMonitors {
			continue
		}
		if m := monitorOld.FindStringSubmatch(l.Text); m != nil {
			small = heapShare(m) < 0.5
			heap = fmt.Sprintf("heap: %s %s before the last one, %s %s after it, of %s %s", m[1],
				m[2], m[3], m[4], m[5], m[6])
		}
		// Its lines count seconds: two lines of one second of a node tell of the same collections.
		if key := monitorNode.FindString(l.Text) + second; told[key] {
			continue
		} else {
			told[key] = true
		}
		n, spent, over = n+1, spent+took, over+of
		if took >= of/2 {
			much++
		}
		if took > worst {
			worst, worstOf = took, of
		}
	}
	r := attach.Reading{Title: "Elasticsearch's log of its collections, " +
		attach.Plural(n, "line"), State: attach.CannotTell}
	if over <= 0 {
		r.Means = "No duration of it can be read."
		return r
	}
	line := fmt.Sprintf("collections took %s of %s at the worst (%.0f %%)", span(worst),
		span(worstOf), 100*min(1, worst/worstOf))
	r.Figures = []string{line}
	if n > 1 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of the %s that the %s cover", span(spent),
			span(over), attach.Plural(n, "line")))
	}
	if heap != "" {
		r.Figures = append(r.Figures, heap)
	}
	if full {
		r.Figures = append(r.Figures, "the heap was full: OutOfMemoryError")
	}
	r.Not = "What share of all time that is: only seconds with much collection are logged. Not all of a collection stops the threads."
	r.Means = "Much of these seconds went into collections: the heap is small for what is kept in it, or much is allocated."
	if small && !full {
		r.Means = "Much of these seconds went into collections, and most of the heap was free after the last one: the heap is not too small for what is kept in it."
	}
	sign := attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Proof: []string{line}}
	if much >= 3 {
		sign.Grade, sign.Sure, r.State = attach.Found, finding.Possible, attach.Ill
	}
	if worst >= 0.1 {
		r.Signs = append(r.Signs, sign)
	}
	r.Next = []attach.Next{{Command: "curl -s localhost:9200/_nodes/stats/jvm?pretty",
		Why: "heap in use, and the collectors' time, twice a minute apart"}}
	return r
}
