package profiler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perfDiff compares the shares of two recordings.
var perfDiff = &attach.Kind{Name: "perf diff", Claim: claimDiff, Read: readDiff, Reports: true,
	Hints: []string{"Baseline", "# Event '", "%"}}

var (
	// "# Baseline  Delta Abs  Shared Object  Symbol"
	diffHead = pattern.New(`^#?\s*Baseline\s+(?:Delta|Ratio|Weighted)`)
	// "    29.32%     +8.86%  [kernel.kallsyms]  [k] native_write_msr", the first only where it was
	// in the older recording as well
	diffRow = pattern.New(`^(?:(\d+\.\d+)%\s+)?([+-]\d+\.\d+)%\s+(?:.*\[[.kugHh]\]\s+)?(\S.*?)\s*$`)
	// a function that only the older recording has
	diffGone = pattern.New(`^(\d+\.\d+)%\s+\S.*\[[.kugHh]\]\s+\S`)
)

func claimDiff(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	if !diffHead.MatchString(first) && !strings.HasPrefix(first, "# Event '") && !sureDiff(first) {
		return 0
	}
	headed, rows := false, 0
	n := claimed(lines, func(i int, text string) bool {
		switch {
		case diffHead.MatchString(text):
			headed = true
		case sureDiff(text), headed && diffRow.MatchString(text):
			rows++
		case headed && diffGone.MatchString(text):
			rows++
		case rows > 0 && (diffGone.MatchString(text) || len(text) > 4 && marks[text[:min(3, len(text))]]):
		case strings.HasPrefix(text, "# Event '"), strings.Trim(text, "#. ") == "":
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(rows > 0 && (headed || rows > 1), n)
}

// sureDiff reports whether a row can be nothing else: its change has a sign, and it has a symbol.
func sureDiff(text string) bool {
	return diffRow.MatchString(text) && strings.Contains(text, "] ")
}

func readDiff(p *attach.Part) attach.Reading {
	type change struct {
		by     float64 // points
		before string
		what   string
	}
	var rows []change
	for _, text := range texts(p) {
		if m := diffRow.FindStringSubmatch(text); m != nil && len(rows) < most {
			by, _ := number(m[2])
			rows = append(rows, change{by, m[1], m[3]})
		}
	}
	slices.SortStableFunc(rows, func(a, b change) int { return cmp.Compare(math.Abs(b.by), math.Abs(a.by)) })
	r := attach.Reading{Title: fmt.Sprintf("perf diff, %s", attach.Plural(len(rows), "row")), State: attach.Context}
	for _, c := range rows[:min(3, len(rows))] {
		line := fmt.Sprintf("%+.4g points: %s", c.by, c.what)
		if c.before != "" {
			line += fmt.Sprintf(", from %s %%", c.before)
		}
		r.Figures = append(r.Figures, line)
	}
	if len(rows) == 0 {
		r.Figures = []string{"the functions that are here are in the older recording alone"}
	}
	r.Means = "It compares shares of two recordings: how much of an event each function had in the older one, and how that changed."
	r.Not = "A share that grows is no time that grows: all shares of a recording make 100 %, and what one loses others gain."
	return r
}
