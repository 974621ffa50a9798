package goruntime

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
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
		if at < 0 && forcedLine(lines[n].Text) && n+1 < len(lines) && gctraceAt(lines[n+1].Text) >= 0 {
			n++
			continue
		}
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
	late := map[string]bool{} // the line above, of the same source, says that the next cycle is forced
	damaged, held := 0, 0
	for i := 0; i < len(p.Lines); i++ {
		line := p.Lines[i]
		at := gctraceAt(line.Text)
		if at < 0 {
			late[fmt.Sprint(line.Source, line.PID)] = forcedLine(line.Text)
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
		if c.ps == 0 && c.at >= 0 {
			if r := last[fmt.Sprint(line.Source, line.PID)]; r != nil {
				c.ps = r.cycles[0].ps
			} else {
				continue // the only line, without the Ps: no share follows
			}
		}
		if held++; held > maxCycles {
			flaws = append(flaws, fmt.Sprintf("line %d: more than %d cycles: the rest is left out", line.N, maxCycles))
			break
		}
		key := fmt.Sprint(line.Source, line.PID)
		c.late, late[key] = late[key], false
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
	if last := best.cycles[len(best.cycles)-1]; last.ps > 0 && !last.whole {
		g.Facts = append(g.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: float64(last.ps)})
	}
	return g
}

func cyclesText(cs []cycle) string {
	if len(cs) == 1 {
		return fmt.Sprintf("1 cycle (gc %d)", cs[0].n)
	}
	return fmt.Sprintf("%d cycles (gc %d to %d)", len(cs), cs[0].n, cs[len(cs)-1].n)
}
