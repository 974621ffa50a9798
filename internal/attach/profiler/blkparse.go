package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// blkparse knows what blktrace saw of single requests, as blkparse and btrace print it.
var blkparse = &attach.Kind{Name: "blkparse", Claim: claimBlkparse, Read: readBlkparse,
	Hints: []string{"  Q ", "  G ", "  I ", "  D ", "  C ", "  M ", "  P ", "  U ", "  A ", "  X ",
		"  UT ", "  N ", "  S ", "  R ", "  F ", "  B "}}

var (
	// "  8,0    3       11     0.009507758   697  C   W 223490 + 8 [0]"
	blkEvent = pattern.New(`^(\d{1,4},\d{1,4})\s+\d{1,4}\s+\d+\s+(\d+\.\d{9})\s+\d+\s+([A-Z]{1,2})\s+([A-Z]{1,5})(?:\s+(\d+) \+ \d+)?(?:\s+\(\s*\d+\))?(?:\s.*)?$`)
	// the sums at the end of a trace
	blkSums = pattern.New(`^(?:CPU\d+ \(.*\):|Total \(.*\):|Reads Queued:|Read Dispatches:|Reads Requeued:|Reads Completed:|Read Merges:|Read depth:|IO unplugs:|Throughput \(R/W\):|Events \(.*\):|Skips:)`)
)

func claimBlkparse(lines []paste.Line) int {
	if !blkEvent.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	rows := 0
	n := claimed(lines, func(_ int, text string) bool {
		if blkEvent.MatchString(text) {
			rows++
			return true
		}
		return rows > 0 && blkSums.MatchString(text)
	})
	return attach.ClaimIf(rows >= 2, n)
}

// blkSteps name the steps of a request by blkparse's letters.
var blkSteps = map[string]string{"Q": "queued", "G": "made", "I": "put to the scheduler",
	"D": "sent to the device", "C": "completed", "M": "merged", "P": "plugged", "U": "unplugged"}

func readBlkparse(p *attach.Part) attach.Reading {
	steps, sent := map[string]float64{}, map[string]float64{}
	n, first, last := 0, -1.0, 0.0
	var took []float64
	for _, text := range texts(p) {
		m := blkEvent.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		n++
		steps[m[3]]++
		at, _ := number(m[2])
		if first < 0 {
			first = at
		}
		last = max(last, at)
		if m[5] == "" {
			continue
		}
		key := m[1] + " " + m[5]
		switch since, ok := sent[key]; {
		case m[3] == "D" && len(sent) < most:
			sent[key] = at
		case m[3] == "C" && ok:
			delete(sent, key)
			took = append(took, max(at-since, 0))
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("blkparse, %s", attach.Plural(n, "event")), State: attach.CannotTell}
	if last > first {
		r.Title += " in " + lasts(last-first)
	}
	var out []string
	for _, letter := range attach.Largest(steps)[:min(4, len(steps))] {
		line := count(steps[letter]) + " " + letter
		if name := blkSteps[letter]; name != "" {
			line += " (" + name + ")"
		}
		out = append(out, line)
	}
	r.Figures = append(r.Figures, strings.Join(out, ", "))
	r.Means = "It lists the steps of single requests to block devices."
	r.Not = "Whether a request of the service waited for one of these is not in it."
	if len(took) == 0 {
		r.Means += " No request is in it from being sent to the device until it was completed, so how long the device took is not in it."
		return r
	}
	slices.Sort(took)
	r.Figures = append(r.Figures, fmt.Sprintf("from sent to completed: %s, median %s, longest %s",
		attach.Plural(len(took), "request"), lasts(attach.Median(took)), lasts(took[len(took)-1])))
	r.Next = append(r.Next, ask("btt -i FILE", 0, "the same trace added up by its stages"))
	return r
}
