package stackdump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// gcPhases is what a log says of parts of its pauses, and of spaces of its heap; times in seconds.
type gcPhases struct {
	noRoom, parallel float64 // of the longest pause: for objects without room, and by all workers
	rescan, young    float64 // of the longest remark, and how full the young generation was; 0..1
	used, old        float64 // of the old generation, as the last line with it says; bytes
	promotion, mode  int     // pauses in which objects found no room in the old generation; in which CMS gave up
	full             int     // lines that say so of G1 since JDK 9
	table            []tablePause
}

// tablePause is a pause in Shenandoah's table of a cycle: gross has the way to the safepoint.
type tablePause struct {
	name       string
	gross, net float64
}

var (
	gcPart   = pattern.New(`^\[(Evacuation Failure|Parallel Time): ([\d.,]+) ms`)
	gcRescan = pattern.New(`\[Rescan \(\w+[^)]*\) ?, ([\d.,]+) secs\]`)
	gcYoung  = pattern.New(`\[YG occupancy: (\d+) K \((\d+) K\)\]`)
	gcCMSOld = pattern.New(`\[1 CMS-(?:initial-mark|remark): (\d+)K\((\d+)K\)\]`)
	// JDK 9 to 16 have a line of their own for it; since 17 the line of the pause says so.
	gcExhausted = pattern.New(`\bGC\(\d+\) (?:To-space exhausted$|Pause .*\(Evacuation Failure\).* [\d.,]+ms$)`)
	gcName      = pattern.New(`\[((?:Full )?GC(?: pause)?(?: \([^()]*(?:\(\))?[^()]*\))+)`)
	shenPause   = pattern.New(`^Pause ([A-Z][\w ]*?) \((G|N)\) +(\d+) us(?:,|$)`)
	// shenClock is the time and the uptime that stand before the table's rows.
	shenClock = pattern.New(`^(?:\[[\w.:+-]{3,40}\]){1,2} +`)
	// shenTag is the same with the tags of a unified log; a copy may lack its first bracket.
	shenTag = pattern.New(`^\[?[\w.:+-]{3,40}\](?:\[[\w.:+-]{3,40} *\]){0,4}\[gc,stats *\] +`)
	// shenCut is a row of a pause that the paste cuts off before its time.
	shenCut = pattern.New(`^Pause [A-Z][A-Za-z ()]*$`)
)

// shenText is a row of Shenandoah's table without what stands before it.
func shenText(text string) string {
	if strings.Contains(text, "[gc,stats") {
		text = text[len(shenTag.FindString(text)):]
	} else if strings.HasPrefix(text, "[") {
		text = text[len(shenClock.FindString(text)):]
	}
	return strings.TrimSpace(text)
}

// line reads one line; longest: the pause that was logged last is the longest so far.
func (g *gcPhases) line(text string, longest bool) {
	if m := gcPart.FindStringSubmatch(text); m != nil && longest {
		v, _ := decimal(m[2])
		if m[1] == "Parallel Time" {
			g.parallel = v / 1e3
		} else {
			g.noRoom = v / 1e3
		}
	}
	if m := gcRescan.FindStringSubmatch(text); m != nil && longest {
		g.rescan, _ = decimal(m[1])
		if y := gcYoung.FindStringSubmatch(text); y != nil {
			used, _ := decimal(y[1])
			size, _ := decimal(y[2])
			g.young = used / max(size, 1)
		}
	}
	if m := gcCMSOld.FindStringSubmatch(text); m != nil {
		g.used, g.old = kmg(m[1], "K"), kmg(m[2], "K")
	}
	if strings.Contains(text, "(promotion failed)") {
		g.promotion++
	}
	if strings.Contains(text, "(concurrent mode failure)") {
		g.mode++
	}
	if gcExhausted.MatchString(text) {
		g.full++
	}
	m := shenPause.FindStringSubmatch(shenText(text))
	if m == nil {
		return
	}
	us, ok := decimal(m[3])
	n := len(g.table)
	switch {
	case !ok:
	case m[2] == "G":
		g.table = append(g.table, tablePause{m[1], us / 1e6, -1})
	case n > 0 && g.table[n-1].name == m[1] && g.table[n-1].net < 0:
		g.table[n-1].net = us / 1e6
	}
}

// reset forgets the parts of a pause that is no longer the longest.
func (g *gcPhases) reset() { g.noRoom, g.parallel, g.rescan, g.young = 0, 0, 0, 0 }

// figures says what the longest pause was for.
func (g *gcPhases) figures(r *attach.Reading) {
	if g.noRoom > 0 {
		text := fmt.Sprintf("of the longest, %s for objects that found no room to be moved to (Evacuation Failure)", span(g.noRoom))
		if g.parallel > 0 {
			text += fmt.Sprintf(", and %s for what the collector's threads did side by side", span(g.parallel))
		}
		r.Figures = append(r.Figures, text)
	}
	if g.rescan > 0 {
		text := fmt.Sprintf("of the longest, a remark, %s rescanned what had changed", span(g.rescan))
		if g.young > 0 {
			text += fmt.Sprintf(", with the young generation %.0f %% full", 100*g.young)
		}
		r.Figures = append(r.Figures, text)
	}
	if g.mode > 0 {
		r.Figures = append(r.Figures,
			"the program filled the old generation before CMS was done (concurrent mode failure): "+
				attach.Plural(g.mode, "time"))
	}
	if g.promotion > 0 {
		r.Figures = append(r.Figures,
			"the old generation had no room for what survived (promotion failed): "+attach.Plural(g.promotion, "time"))
	}
	if g.full > 0 {
		r.Figures = append(r.Figures,
			"objects found no room to be moved to (to-space exhausted, evacuation failure): "+
				attach.Plural(g.full, "time"))
	}
	if g.old > 0 {
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s in use in the old generation (%.0f %%)",
			finding.Bytes(int64(g.used)), finding.Bytes(int64(g.old)), 100*g.used/g.old))
	}
}

// stalled says how long threads waited for memory: first where that was longer than any pause.
func (c *collections) stalled(r *attach.Reading) {
	if len(c.stalls) == 0 {
		return
	}
	line := fmt.Sprintf("%s of threads that waited for memory, longest %s",
		attach.Plural(len(c.stalls), "stall"), span(slices.Max(c.stalls)))
	if c.cycles > 0 && c.vain == 0 {
		line += fmt.Sprintf("; %.0f %% of the heap in use after the last cycle that says so", c.left)
	}
	if slices.Max(c.stalls) > c.most {
		r.Figures = append([]string{line}, r.Figures...)
		return
	}
	r.Figures = append(r.Figures, line)
}

// judgeTable says what Shenandoah's table of a cycle shows.
func (g *gcPhases) judgeTable(r *attach.Reading) {
	r.Title = "Shenandoah's table of a cycle, " + attach.Plural(len(g.table), "pause")
	most := g.table[0]
	for _, p := range g.table[1:] {
		if p.gross > most.gross {
			most = p
		}
	}
	line := fmt.Sprintf("the longest pause: %s, %s", most.name, span(most.gross))
	if most.net >= 0 {
		line += fmt.Sprintf(", of which %s was its work and %s the way to the safepoint and back",
			span(most.net), span(max(0, most.gross-most.net)))
	}
	r.Figures = append(r.Figures, line)
	for _, p := range g.table {
		if p != most && len(r.Figures) < 3 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s: %s", p.name, span(p.gross)))
		}
	}
	r.Not = "That concurrent phases stop anybody: they run beside the program. Gross (G) has net (N) in it: they do not add up."
	if most.gross < longStop {
		r.State, r.Means = attach.Healthy, "No pause is long enough for requests to feel it."
		return
	}
	r.Means = "A pause is long enough for requests to feel it; how many requests met it is not in it."
	r.Signs = append(r.Signs, attach.Sign{Cause: "jvm-safepoint", Grade: attach.Candidate, Proof: []string{line}})
}
