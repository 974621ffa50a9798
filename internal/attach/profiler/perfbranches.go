package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// branchRow is a row of perf report -b: from one symbol to another, or to the same.
var branchRow = pattern.New(`^(\d+\.\d\d)%\s+.*?\[[.kugHh]\]\s+(\S.*?)\s+\[[.kugHh]\]\s+(\S+)`)

// readBranches reads perf report -b, if that is what p is: its shares are of branches taken.
func readBranches(p *attach.Part) (r attach.Reading, ok bool) {
	rows, others := 0, 0
	for _, text := range texts(p) {
		m := branchRow.FindStringSubmatch(text)
		if m == nil || strings.Count(text, "% ") > 1 { // more: glued rows
			if row, ok := perfRowOf(text); ok && row.mark != "" {
				others++
			}
			continue
		}
		if rows++; rows <= 3 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s %% from %s to %s", strings.TrimLeft(m[1], " "), m[2], m[3]))
		}
	}
	if rows == 0 || others > 0 {
		return r, false
	}
	r.Title = fmt.Sprintf("perf report of branches, %s", attach.Plural(rows, "row"))
	r.State = attach.CannotTell
	r.Means = "The shares are of branches that were recorded, from one function to another: they are no shares of time."
	r.Not = "A CPU profile has no waiting in it: a thread that sleeps, queues or is throttled is in no sample."
	return r, true
}
