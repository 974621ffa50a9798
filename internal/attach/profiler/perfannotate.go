package profiler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfAnnotate = &attach.Kind{Name: "perf annotate", Claim: claimAnnotate, Read: readAnnotate,
	Hints: []string{"Percent", " : ", ":", "│"}}

var (
	annotated = pattern.New(`^(Percent\s*\|\s*Source code|-{20,}$|(\d+\.\d+)?\s*:\s+[0-9a-f]+:|:\s*(\d+\s|[0-9a-f]{8,}|$)|(\d+\.\d+)\s+\S+:\d+$|:\s{2,}\S|:$)`)
	// "  49.25 │     addl   $0x1,-0x4(%rbp)", as perf's screen shows it
	annotatedScreen = pattern.New(`^(?:\d+\.\d+\s*)?│`)
	// the same with its parts: share, address or label, instruction
	instruction = pattern.New(`^(\d+\.\d+)\s*(?::\s+[0-9a-f]+:|│\s*(?:[0-9a-f]+:)?)\s*[↓↑←→]?\s*(\S.*)$`)
)

// claimAnnotate takes instructions with their shares. On perf's screen only the bar is its own, so
// one of them must be sure.
func claimAnnotate(lines []paste.Line) int {
	if n := linesLike(3, annotated)(lines); n > 0 {
		return n
	}
	rows, shares, sure := 0, 0, false
	n := claimed(lines, func(_ int, text string) bool {
		if !annotatedScreen.MatchString(text) {
			return false
		}
		rows++
		if instruction.MatchString(text) {
			shares++
		}
		sure = sure || strings.Contains(text, "Disassembly of section") ||
			strings.Contains(text, "%r") || strings.Contains(text, "%e")
		return strings.Count(text, "│") == 1
	})
	return attach.ClaimIf(sure && rows >= 3 && shares >= 1, n)
}

// atomics are how instructions start by which threads share memory, or wait for it.
var atomics = []string{"lock ", "xchg", "pause", "ldaxr", "ldxr", "stxr", "stlxr", "cas", "ldadd",
	"swp", "yield", "wfe"}

func readAnnotate(p *attach.Part) attach.Reading {
	type row struct {
		share float64
		what  string
	}
	var rows []row
	for _, text := range texts(p) {
		if m := instruction.FindStringSubmatch(text); m != nil && len(rows) < most {
			share, ok := number(m[1])
			if ok && share > 0 {
				rows = append(rows, row{share, strings.Join(strings.Fields(m[2]), " ")})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(b.share, a.share) })
	r := attach.Reading{Title: "perf annotate", State: attach.CannotTell}
	var out []string
	for _, one := range rows[:min(3, len(rows))] {
		out = append(out, fmt.Sprintf("%.1f %% %s", one.share, one.what))
	}
	if len(out) > 0 {
		r.Figures = append(r.Figures, "most samples: "+strings.Join(out, "; "))
	}
	r.Means = "It shows instructions within one function: which share of the whole the function has, and who waits, is not in it."
	if len(rows) > 0 && slices.ContainsFunc(atomics,
		func(a string) bool { return strings.HasPrefix(rows[0].what, a) }) {
		r.Means += " The largest share is at an instruction by which threads share memory, or wait for it."
	}
	r.Not = "A sample often counts for an instruction behind the one that took the time."
	r.Next = append(r.Next, ask("perf report --stdio", 0, "the share of the function, of the same recording"))
	return r
}
