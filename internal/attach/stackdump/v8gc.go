package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// v8GC reads what Node.js prints of its collections: --trace-gc, and the last of them where the
// heap was full.
var v8GC = &attach.Kind{
	Name:      "V8 GC log",
	Hints:     []string{" ms: Mark-", " ms: Scavenge", "Last few GCs", "JavaScript heap out of memory"},
	Marks:     []string{" ms: Mark-", " ms: Scavenge"},
	Scattered: true,
	Claim: func(lines []paste.Line) int {
		own := 0
		n := attach.ClaimWhile(lines, func(_ int, text string) bool {
			if v8Line.MatchString(text) {
				own++
				return true
			}
			return v8More.MatchString(text)
		})
		return attach.ClaimIf(own > 0, n)
	},
	Read: readV8,
}

var (
	// "[398:0x58e8740]   191182 ms: Mark-sweep 949.5 (965.9) -> 948.3 (965.9) MB, 1464.6 / 0.0 ms"
	v8Line    = pattern.New(`(?:^|\s)(\d+) ms: (Scavenge|Mark-sweep|Mark-Compact|Mark-sweep-compact|Mark-compact)(?: \([^)]*\))* ([\d.]+) \(([\d.]+)\) -> ([\d.]+) \(([\d.]+)\) MB, ([\d.]+)(?: / [\d.]+)? ms`)
	v8Process = pattern.New(`\[\d+:0x[0-9a-f]+\]`)
	v8More    = pattern.New(`^<--- (?:Last few GCs|JS stacktrace) --->$|^FATAL ERROR: .*JavaScript heap out of memory|^\s*\d+: 0x[0-9a-f]+ .*\[|^=+ JS stack trace =+$`)
	v8Full    = pattern.New(`^FATAL ERROR: .*JavaScript heap out of memory`)
)

func readV8(p *attach.Part) attach.Reading {
	var took []float64
	var full, vain, first, last, before, after float64
	dead, outer := false, 0
	one, several := "", false // the process of a line; whether there are several
	for _, l := range p.Lines {
		dead = dead || v8Full.MatchString(strings.TrimSpace(l.Text))
		m := v8Line.FindStringSubmatch(l.Text)
		if m == nil {
			continue
		}
		if strings.Contains(l.Text, "external memory pressure") {
			outer++
		}
		if process := v8Process.FindString(l.Text); process != "" {
			several = several || one != "" && process != one
			one = process
		}
		last, _ = decimal(m[1])
		ms, _ := decimal(m[7])
		if len(took) == 0 {
			first = last - ms
		}
		took = append(took, ms/1e3)
		before, _ = decimal(m[3])
		after, _ = decimal(m[5])
		if m[2] != "Scavenge" {
			full++
			if after >= 0.97*before {
				vain++
			}
		}
	}
	r := attach.Reading{Title: "V8's log of its collections, " + attach.Plural(len(took), "line"),
		State: attach.CannotTell}
	if len(took) == 0 {
		r.Means = "No collection can be read in it."
		return r
	}
	r.Figures = append(r.Figures, fmt.Sprintf("%s in all, median %s, longest %s",
		span(attach.Sum(took)), span(attach.Median(took)), span(slices.Max(took))))
	share := 0.0
	if time := (last - first) / 1e3; time > 0 && len(took) > 1 && !several {
		share = min(1, attach.Sum(took)/time)
		r.Figures[0] += fmt.Sprintf("; %.0f %% of the %s that the lines cover", 100*share, span(time))
	}
	r.Figures = append(r.Figures, fmt.Sprintf("the last one left %.1f MB of %.1f MB", after, before))
	r.Not = "That the machine lacks memory: the limit is the heap's own (--max-old-space-size)."
	switch {
	case !dead && 2*outer > len(took):
		r.Figures = append(r.Figures,
			fmt.Sprintf("%d of %d were started by external memory pressure, %.0f of them of the whole heap", outer, len(took), full))
		r.Means = "Memory outside of the heap (buffers) made V8 collect: the heap of JavaScript itself is not the reason, whatever a collection leaves in it."
		if share >= muchStopped || slices.Max(took) >= longStop {
			r.Means += " The one thread stands still in each."
		}
		r.Not = "That the heap is full or too small: --max-old-space-size changes nothing here."
		r.Next = []attach.Next{{Command: "setInterval(() => console.log(process.memoryUsage()), 1000)", Why: "in the program: external and arrayBuffers say how much buffers hold"}}
	case vain > 0 && (dead || vain >= 2):
		r.Figures = append(r.Figures,
			fmt.Sprintf("%.0f of %.0f collections of the whole heap freed next to nothing", vain, full))
		r.Means = "The heap of JavaScript is full: whole collections follow each other and free next to nothing, and the one thread stands still in each."
		r.Next = []attach.Next{{Command: "node --heapsnapshot-near-heap-limit=2 ...", Why: "what fills the heap"}}
	case slices.Max(took) >= longStop:
		r.Means = "The one thread stood still for some of these collections, long enough for requests to feel it."
		r.Next = []attach.Next{{Command: "node --trace-gc --trace-gc-verbose ...",
			Why: "how large the heap is, and how long its collections take"}}
	case share < muchStopped && !several:
		r.State, r.Means, r.Not = attach.Healthy, "No collection is long enough for requests to feel it.", ""
	default:
		r.Means = "Collections are short, and many: much is allocated."
	}
	if dead {
		r.Means += " Then the process ended itself."
	}
	return r
}
