package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gprof shows the CPU time of a program that was built for it: its flat profile, its call graph,
// and what gprof itself says of their columns.
var gprof = &attach.Kind{Name: "gprof", Claim: claimGprof, Read: readGprof, Reports: true,
	Hints: []string{"Flat profile:", "Each sample counts", "Call graph", "granularity: each sample", "index % time",
		"cumulative   self"}}

var (
	// " 33.34      0.02     0.02     7208     0.00     0.00  open", and without calls
	gprofRow   = pattern.New(`^(\d+\.\d\d)\s+(\d+\.\d\d)\s+(\d+\.\d\d)\s+(?:(\d+)\s+(?:\d+\.\d\d\s+\d+\.\d\d\s+)?)?(\S.*)$`)
	gprofHead  = pattern.New(`^(?:Flat profile:|Each sample counts as \d|no time accumulated|%\s+cumulative\s+self|time\s+seconds\s+seconds|Call graph|granularity: each sample|index % time|Index by function name)`)
	gprofEdge  = pattern.New(`^(?:\[\d+\]\s+)?(?:\d+\.\d+\s+)?(?:\d+\.\d\d\s+\d+\.\d\d\s+)?(?:\d+(?:[/+]\d+)*\s+)?\S.* \[\d+\]$|^-{20,}$|^<spontaneous>$|^\[\d+\]\s+\d|^\[\d+\] |^\d+\.\d\d\s+\d+\.\d\d\s+\d+/\d+\s|^\^L$`)
	gprofOwn   = pattern.New(`^(?:%\s|(?:time|cumulative|seconds|self|ms/call|calls|total|name|index|called|parent|children|function)\b)`)
	gprofProse = pattern.New(`^[A-Za-z(][\w ,.'()/"%<>+\-:;]*$`)
)

// claimGprof takes rows below a heading. The tool explains its columns in prose, which is its own
// as far as it starts with the name of one.
func claimGprof(lines []paste.Line) int {
	if !gprofHead.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	heads, rows, explains := 0, 0, false
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case gprofHead.MatchString(text):
			heads, explains = heads+1, false
		case gprofRow.MatchString(text), gprofEdge.MatchString(text):
			rows++
		case rows > 0 && gprofOwn.MatchString(text), strings.HasPrefix(text, "Copyright (C)") && explains:
			explains = true
		case explains && len(text) < 90 && gprofProse.MatchString(text):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(heads > 1 || heads > 0 && rows > 0, n)
}

func readGprof(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "gprof", State: attach.Context}
	rows, seconds, none := 0, 0.0, false
	for _, text := range texts(p) {
		none = none || strings.HasPrefix(text, "no time accumulated")
		m := gprofRow.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		rows++
		if sum, _ := number(m[2]); sum > seconds {
			seconds = sum
		}
		if own, _ := number(m[3]); len(r.Figures) < 3 && own > 0 {
			line := fmt.Sprintf("%s %% %s: %s s", m[1], m[5], m[3])
			if m[4] != "" {
				line += fmt.Sprintf(" in %s calls", m[4])
			}
			r.Figures = append(r.Figures, line)
		}
	}
	if rows > 0 && seconds > 0 {
		r.Title += fmt.Sprintf(", %s, %s of CPU time", attach.Plural(rows, "function"), lasts(seconds))
	}
	if rows == 0 {
		r.Figures = graphFigures(texts(p))
	}
	r.Means = "It is CPU time of a program that was built to be measured so, by the functions that took it themselves."
	if none || rows > 0 && seconds == 0 {
		r.Means = "It has no time in it: the program ran for less than one sample, or waited."
	}
	r.Not = "Waiting is in none of it, and neither is time in libraries that were not built so."
	return r
}

// "[2]     53.7    8.59    0.68     147         resid [2]", of the function that an entry is about
var gprofEntry = pattern.New(`^\[\d+\]\s+(\d+\.\d+)\s+(\d+\.\d\d)\s+(\d+\.\d\d)\s+(?:\d+(?:\+\d+)?\s+)?(\S.*?)\s+\[\d+\]$`)

// graphFigures says what functions took, by entries of the call graph.
func graphFigures(lines []string) (out []string) {
	for _, text := range lines {
		if m := gprofEntry.FindStringSubmatch(text); m != nil && len(out) < 3 {
			out = append(out, fmt.Sprintf("%s %% in or below %s: %s s itself, %s s in what it calls", m[1], m[4], m[2], m[3]))
		}
	}
	return out
}
