package profiler

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var asyncProfiler = &attach.Kind{Name: "async-profiler", Claim: claimAsync, Read: readAsync, Hints: []string{"--- ", "Total samples", "percent", "samples  top"}}

var (
	// "--- 3100000000 ns (12.34%), 310 samples"
	asyncTrace = regexp.MustCompile(`^--- (\d+) (ns|bytes|counts?|total|units?) \((\d+(?:\.\d+)?)%\), (\d+) samples?$`)
	asyncFrame = regexp.MustCompile(`^\[ ?(\d+)\] (\S.*)$`)
	// "  820000000   12.34%   82  org.shop.Cart.total"
	asyncRow = regexp.MustCompile(`^(\d+)\s+(\d+\.\d+)%\s+(\d+)\s+(\S.*)$`)
)

func claimAsync(lines []paste.Line) int {
	sure := false
	n := claimed(lines, func(_ int, text string) bool {
		switch {
		case asyncTrace.MatchString(text), strings.HasPrefix(text, "--- Execution profile ---"), header(text, "ns", "percent", "samples"), header(text, "bytes", "percent", "samples"):
			sure = true
		case sure && (asyncFrame.MatchString(text) || asyncRow.MatchString(text)), strings.HasPrefix(text, "Total samples"), sure && strings.Trim(text, "- ") == "",
			sure && asyncNote.MatchString(text):
		default:
			return false
		}
		return true
	})
	return attach.ClaimIf(sure, n)
}

// asyncNote are the counts of samples without a stack: "skipped", "unknown_java : 12 (0.3%)".
var asyncNote = regexp.MustCompile(`^[a-zA-Z_]+\s*:\s*\d+(\s*\(.*\))?$`)

func readAsync(p *attach.Part) attach.Reading {
	flat, traces := profile{}, profile{stacks: true}
	unit := "ns"
	var now *sample
	for _, text := range texts(p) {
		if m := asyncTrace.FindStringSubmatch(text); m != nil && len(traces.samples) < most {
			unit = m[2]
			share, _ := number(m[3])
			n, _ := whole(m[4])
			traces.samples = append(traces.samples, sample{weight: share / 100})
			traces.number += n
			now = &traces.samples[len(traces.samples)-1]
			continue
		}
		if m := asyncFrame.FindStringSubmatch(text); m != nil && now != nil && len(now.program) < 256 {
			name := strings.TrimSuffix(m[2], "_[k]")
			now.program = append(now.program, frames([]string{name}, "")...)
			if name != m[2] {
				now.kernel, now.program = append(now.kernel, now.program[len(now.program)-1]), now.program[:len(now.program)-1]
			}
			continue
		}
		if header(text, "bytes", "percent") {
			unit = "bytes"
		}
		if m := asyncRow.FindStringSubmatch(text); m != nil && len(flat.samples) < most {
			share, _ := number(m[2])
			n, _ := whole(m[3])
			flat.samples = append(flat.samples, sample{weight: share / 100, program: frames([]string{m[4]}, "")})
			flat.number += n
		}
	}
	best := &flat
	if len(flat.samples) == 0 {
		best = &traces
	}
	best.whole = 1
	r := best.reading()
	r.Title = fmt.Sprintf("async-profiler, %s", attach.Plural(best.number, "sample"))
	if unit == "bytes" {
		r.State, r.Signs = attach.CannotTell, nil
		r.Means = "It is memory that was allocated, and no time."
		return r
	}
	r.Not = "Whether it sampled CPU time, wall time or locks is not in it: with wall time most samples are threads without work."
	if len(r.Signs) == 0 {
		r.State = attach.CannotTell
	}
	return r
}
