package goruntime

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

var gctrace = &attach.Kind{
	Name:      "gctrace",
	Hints:     []string{"gc", "GC ", "Gc "},
	Single:    true,
	Marks:     []string{" ms clock, ", " MB, "},
	Claim:     claimGCTrace,
	Scattered: true,
	Read:      readGCTrace,
}

func claimGCTrace(lines []paste.Line) int {
	n := 0
	for n < len(lines) && lines[n].Command == "" {
		at := gctraceAt(lines[n].Text)
		if at < 0 {
			break
		}
		n += 1 + wrapped(lines[n:], at)
	}
	return n
}

// wrapped reports with 1 that a line was broken in two where somebody pasted it.
func wrapped(lines []paste.Line, at int) int {
	if _, ok := parseCycle(lines[0].Text[at:]); ok || len(lines) < 2 || gctraceAt(lines[1].Text) >= 0 {
		return 0
	}
	for _, glue := range []string{" ", ""} {
		if _, ok := parseCycle(lines[0].Text[at:] + glue + lines[1].Text); ok {
			return 1
		}
	}
	return 0
}

// maxCycles bounds what is held of a long log: days of an ordinary program.
const maxCycles = 200_000

// run is the cycles of one process, from its start or later on.
type run struct {
	cycles []cycle
	source string
}

// runs divides a part by process: a logger's prefix tells them apart, and a number that falls is
// another start.
func runs(p *attach.Part) (out []*run, flaws []string) {
	last := map[string]*run{}
	damaged, held := 0, 0
	for i := 0; i < len(p.Lines); i++ {
		line := p.Lines[i]
		at := gctraceAt(line.Text)
		if at < 0 {
			continue
		}
		c, ok := parseCycle(line.Text[at:])
		if !ok && i+1 < len(p.Lines) && wrapped(p.Lines[i:], at) == 1 {
			c, ok = parseCycle(line.Text[at:] + " " + p.Lines[i+1].Text)
			if !ok {
				c, ok = parseCycle(line.Text[at:] + p.Lines[i+1].Text)
			}
		}
		if !ok {
			if damaged++; damaged <= 3 {
				flaws = append(flaws, fmt.Sprintf("line %d: a gctrace line that is cut or damaged", line.N))
			}
			continue
		}
		if held++; held > maxCycles {
			flaws = append(flaws, fmt.Sprintf("line %d: more than %d cycles: the rest is left out", line.N, maxCycles))
			break
		}
		key := fmt.Sprint(line.Source, line.PID)
		r := last[key]
		if r == nil || c.n <= r.cycles[len(r.cycles)-1].n || c.at < r.cycles[len(r.cycles)-1].at {
			r = &run{source: line.Source}
			if len(out) == 0 { // mostly there is one, and it is long
				r.cycles = make([]cycle, 0, min(len(p.Lines)-i, maxCycles))
			}
			last[key] = r
			out = append(out, r)
		}
		r.cycles = append(r.cycles, c)
	}
	if damaged > 3 {
		flaws = append(flaws, fmt.Sprintf("%d more lines like that", damaged-3))
	}
	return out, flaws
}

func readGCTrace(p *attach.Part) attach.Reading {
	all, flaws := runs(p)
	if len(all) == 0 {
		return attach.Reading{Title: "gctrace, no line of it whole", State: attach.CannotTell, Flaws: flaws,
			Means: "the lines are cut or damaged: nothing follows from them"}
	}
	best := all[0]
	for _, r := range all[1:] {
		if len(r.cycles) > len(best.cycles) {
			best = r
		}
	}
	var g attach.Reading
	if best.cycles[0].whole {
		g = readStopped(best)
	} else {
		g = readConcurrent(best)
	}
	if len(all) > 1 {
		g.Flaws = append(g.Flaws, fmt.Sprintf("the lines are of %d starts or processes; the one with most cycles is read", len(all)))
	}
	g.Flaws = append(g.Flaws, flaws...)
	g.Who.PID = p.Lines[0].PID
	if last := best.cycles[len(best.cycles)-1]; last.ps > 0 {
		g.Facts = append(g.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: float64(last.ps)})
	}
	return g
}

// readStopped reads Go 1.1's to 1.4's lines. They have no time, so no rate follows.
func readStopped(r *run) attach.Reading {
	g := attach.Reading{Title: fmt.Sprintf("gctrace of Go 1.4 or before, %s", cyclesText(r.cycles))}
	var stops []float64
	worst := r.cycles[0]
	for _, c := range r.cycles {
		stops = append(stops, c.stop1)
		if c.stop1 > worst.stop1 {
			worst = c
		}
	}
	last := r.cycles[len(r.cycles)-1]
	g.Figures = []string{
		fmt.Sprintf("a cycle stops the world for %s (median); worst %s (gc %d)", ms(attach.Median(stops)), ms(worst.stop1), worst.n),
		fmt.Sprintf("heap %.0f MB before and %.0f MB after the last cycle", last.before, last.live),
		fmt.Sprintf("%d Ps", last.ps),
	}
	g.Facts = []attach.Fact{{Name: FactGCPause, Value: worst.stop1 * 1e6}}
	g.Not = "how often the world stops: the lines have no time"
	if attach.Median(stops) < longStop {
		g.State, g.Means = attach.Healthy, "collections are short"
		return g
	}
	g.State = attach.Ill
	g.Means = "before Go 1.5 all marking stops the world: requests wait for the whole of each cycle"
	g.Signs = []attach.Sign{{Cause: "stw-pause", Grade: attach.Found, Sure: finding.Possible,
		Proof: []string{fmt.Sprintf("%s, each a stop of %s (median)", count(len(stops), "cycle", "cycles"), ms(attach.Median(stops)))}}}
	g.Next = []attach.Next{{Command: "go version PROGRAM", Why: "Go 1.5 and later mark beside the program; Go 1.8 and later stop it for less than 1 ms"}}
	return g
}

func cyclesText(cs []cycle) string {
	if len(cs) == 1 {
		return fmt.Sprintf("1 cycle (gc %d)", cs[0].n)
	}
	return fmt.Sprintf("%d cycles (gc %d to %d)", len(cs), cs[0].n, cs[len(cs)-1].n)
}
