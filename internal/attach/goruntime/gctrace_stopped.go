package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// forcedLine knows what the runtime prints above a cycle that it starts since none came by itself:
// "GC forced", and until Go 1.3 "scvg7: GC forced".
func forcedLine(s string) bool {
	before, ok := strings.CutSuffix(strings.TrimSpace(s), "GC forced")
	return ok && (before == "" || strings.ContainsRune(" \t:|\"'>]", rune(before[len(before)-1])))
}

// forcedAfter is how long there was no cycle, in s, when the runtime forces one (forcegcperiod).
const forcedAfter = 120.0

// rareShare is the share of the time below which stops reach less than the slowest 1 % of requests.
const rareShare = 0.01

// stops is the stops of cycles before Go 1.5, in ms.
func stops(cs []cycle) (out []float64) {
	for _, c := range cs {
		out = append(out, c.stop1)
	}
	return out
}

// readStopped reads Go 1.1's to 1.4's lines. They have no time, so no rate follows, but of cycles
// that the runtime forced: they follow two minutes without one.
func readStopped(r *run) attach.Reading {
	g := attach.Reading{Title: fmt.Sprintf("gctrace of Go 1.4 or before, %s", cyclesText(r.cycles))}
	all := stops(r.cycles)
	worst, last := slices.MaxFunc(r.cycles, func(a, b cycle) int {
		return int(1e6*a.stop1) - int(1e6*b.stop1)
	}), r.cycles[len(r.cycles)-1]
	own := slices.DeleteFunc(slices.Clone(r.cycles), func(c cycle) bool { return c.late })
	if len(own) == 1 && len(r.cycles) > 1 && own[0].n == r.cycles[0].n {
		own = nil // what the line above the first one says is cut off, and all others are forced
	}
	g.Figures = []string{
		fmt.Sprintf("a cycle stops the world for %s (median); worst %s (gc %d)",
			last.stopped(attach.Median(all)), last.stopped(worst.stop1), worst.n),
		last.sizes(),
		tookPart(r.cycles),
	}
	if worst.stop1 > 0 {
		g.Facts = []attach.Fact{{Name: FactGCPause, Value: worst.stop1 * 1e6}}
	}
	g.Not = "how often the world stops: the lines have no time"
	if n := len(r.cycles) - len(own); n > 0 {
		g.Figures = append(g.Figures,
			fmt.Sprintf("%d of %s forced by the runtime, each after %s without any", n,
				count(len(r.cycles), "cycle", "cycles"), seconds(forcedAfter)))
	}
	share := worst.stop1 / (1e3 * forcedAfter)
	switch {
	case len(own) == 0 && (share < rareShare && worst.stop1 < veryLong || attach.Median(all) < longMark):
		g.State = attach.Healthy
		g.Means = fmt.Sprintf("the program makes so little garbage that the runtime forces each cycle: the world stops at most once in %s, for %s of the time at most", seconds(forcedAfter), percent(share))
		g.Not = fmt.Sprintf("that no request meets one: such a request waits %s at most", ms(worst.stop1))
	case len(own) == 0:
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("the runtime forces each cycle: the world stops at most once in %s, for %s of the time at most; before Go 1.5 a request waits for the whole of a cycle", seconds(forcedAfter), percent(share))
		g.Not = "how many requests meet one"
		g.Signs = []attach.Sign{{Cause: "stw-pause", Grade: attach.Candidate, Share: share, Proof: g.Figures[:1]}}
	case attach.Median(stops(own)) >= longStop && attach.Median(stops(own)) < longMark:
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("each cycle stops the world, half of them for %s or more: before Go 1.5 a request waits for the whole of one", last.stopped(attach.Median(stops(own))))
		g.Signs = []attach.Sign{{Cause: "stw-pause", Grade: attach.Candidate, Proof: g.Figures[:1]}}
	case attach.Median(stops(own)) < longMark:
		g.State = attach.Healthy
		g.Means = fmt.Sprintf("of the collections half or more take no longer than %s",
			ms(max(1, attach.Median(stops(own)))))
		if len(own) == 1 {
			g.Means = fmt.Sprintf("the one collection took %s", last.stopped(own[0].stop1))
		}
	default:
		g.State = attach.Ill
		g.Means = "before Go 1.5 all marking stops the world: requests wait for the whole of each cycle"
		g.Signs = []attach.Sign{{Cause: "stw-pause", Grade: attach.Found, Sure: finding.Possible,
			Remedy: "Go 1.5 or later, which marks beside the program; until then a smaller live heap: its size decides how long a stop is",
			Proof: []string{fmt.Sprintf("%s, each a stop of %s (median)",
				count(len(own), "cycle", "cycles"), ms(attach.Median(stops(own))))}}}
		g.Next = []attach.Next{{Command: "go version PROGRAM",
			Why: "Go 1.5 and later mark beside the program; Go 1.8 and later mostly stop it for less than 1 ms"}}
	}
	return g
}

// sizes says what the last cycle's line prints of the heap.
func (c *cycle) sizes() string {
	if c.lazy {
		return fmt.Sprintf("heap %.0f MB after the cycle before the last, %.0f MB when the last one started", c.live, c.before)
	}
	return fmt.Sprintf("heap %.0f MB before and %.0f MB after the last cycle", c.before, c.live)
}

// stopped writes a stop's length, which may be printed in whole ms only.
func (c *cycle) stopped(v float64) string {
	if c.coarse && v < 1 {
		return "less than 1 ms"
	}
	return ms(v)
}

// tookPart says how many threads marked: the one that started the cycle and those that were idle.
// They are no Ps, of which there may be more.
func tookPart(cs []cycle) string {
	least, most := cs[0].ps, cs[0].ps
	for _, c := range cs {
		least, most = min(least, c.ps), max(most, c.ps)
	}
	if least < most {
		return fmt.Sprintf("%d to %d threads took part in a cycle", least, most)
	}
	return count(most, "thread", "threads") + " took part in a cycle"
}
