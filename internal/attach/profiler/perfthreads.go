package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perfThreads is the table of perf report -T: how much of each event every thread had.
var perfThreads = &attach.Kind{Name: "perf report -T", Claim: claimThreads, Read: readThreads,
	Hints: []string{"PID", "TID"}}

var threadRow = pattern.New(`^(\d+)\s+(\d+)((?:\s+\d+)+)$`)

func claimThreads(lines []paste.Line) int {
	if !header(strings.TrimSpace(lines[0].Text), "#", "PID", "TID") {
		return 0
	}
	rows := 0
	n := claimed(lines, func(i int, text string) bool {
		if threadRow.MatchString(text) {
			rows++
			return true
		}
		return i == 0
	})
	return attach.ClaimIf(rows > 0, n)
}

func readThreads(p *attach.Part) attach.Reading {
	events := strings.Fields(p.Lines[0].Text)[3:]
	by, total := map[string]float64{}, 0.0
	for _, text := range texts(p) {
		m := threadRow.FindStringSubmatch(text)
		if m == nil || len(by) >= most {
			continue
		}
		n, _ := number(strings.Fields(m[3])[0])
		by[m[2]] += n
		total += n
	}
	event := "the event"
	if len(events) > 0 {
		event = events[0]
	}
	r := attach.Reading{Title: fmt.Sprintf("perf report -T, %s", attach.Plural(len(by), "thread")),
		State: attach.CannotTell}
	var out []string
	for _, tid := range attach.Largest(by)[:min(3, len(by))] {
		out = append(out, fmt.Sprintf("%s thread %s", pct(by[tid]/max(total, 1)), tid))
	}
	r.Figures = []string{fmt.Sprintf("of %s in these threads: %s", event, strings.Join(out, ", "))}
	r.Means = "It says how much of an event each thread had."
	r.Not = "Whether a thread waited is not in it."
	return r
}
