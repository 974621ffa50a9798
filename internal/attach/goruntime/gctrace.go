package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
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
		_, more, _ := wrapped(lines[n:], at)
		n += 1 + more
	}
	return n
}

// mostPieces is in how many lines a gctrace line is looked for: an editor may have broken it behind
// each comma.
const mostPieces = 10

// pieceOf is what the lines hold that a broken line goes on with.
var pieceOf = pattern.New(`^\s*[0-9][0-9.+/>-]* ?(?:ms (?:clock|cpu)|MB(?: goal| stacks| globals)?|P(?: \(forced\))?),?\s*$`)

// wrapped reads a gctrace line, and says how many of the lines below it are the rest of it.
func wrapped(lines []paste.Line, at int) (c cycle, more int, ok bool) {
	text := lines[0].Text[at:]
	c, ok = parseCycle(text)
	if ok || len(lines) < 2 || gctraceAt(lines[1].Text) >= 0 {
		return c, 0, ok
	}
	if c, ok = joined(text, lines[1].Text); ok && !pieceOf.MatchString(lines[1].Text) {
		return c, 1, true
	}
	c, ok = cycle{}, false
	for i := 1; i < min(mostPieces, len(lines)) && pieceOf.MatchString(lines[i].Text) && lines[i].Command == ""; i++ {
		text += " " + strings.TrimSpace(lines[i].Text)
		if longer, whole := parseCycle(text); whole {
			c, more, ok = longer, i, true
		}
	}
	return c, more, ok
}

// joined reads a line that goes on in the next one. The log's own line may have come between: both
// are written to the same file, and a gctrace line is written in pieces.
func joined(first, second string) (c cycle, ok bool) {
	for _, text := range []string{first + " " + second, first + second} {
		if c, ok = parseCycle(text); ok {
			return c, true
		}
	}
	if head, rest, cut := strings.Cut(first, "%: "); cut && !strings.Contains(rest, " clock") {
		return parseCycle(head + "%: " + second)
	}
	return c, false
}

// maxCycles bounds what is held of a long log: days of an ordinary program.
const maxCycles = 200_000

// run is the cycles of one process, from its start or later on.
type run struct {
	cycles []cycle
	source string
	cut    cycle // the head of a line behind them whose end is cut off; n 0: there is none
}

// mostOpen is how many processes may write their cycles by turns where no prefix tells them apart.
const mostOpen = 8

// goesOn returns the run that a cycle belongs to: of those whose last cycle has the number before,
// the one whose cycle was the shortest time ago; else the one above, if number and time grow. nil:
// it is of another start.
func goesOn(open []*run, c cycle) (best *run) {
	for i := len(open) - 1; i >= 0; i-- {
		last := open[i].last()
		if c.n == last.n+1 && c.at >= last.at && (c.ps == last.ps || c.ps == 0 || c.whole) &&
			(best == nil || c.at-last.at < c.at-best.last().at) {
			best = open[i]
		}
	}
	if n := len(open); n > 0 {
		above := open[n-1].last()
		grows := c.n > above.n && c.at >= above.at
		// A few lines may be missing; an older run that would go on after long is a start before.
		near := grows && c.n-above.n <= fewMissing && best != nil && nearer*(c.at-above.at) < c.at-best.last().at
		if grows && (best == nil || near) {
			best = open[n-1]
		}
	}
	return best
}

// Of the run above, where another one has the number before: so many lines may be missing, and so
// many times as near it must be.
const (
	fewMissing = 5
	nearer     = 10
)

func (r *run) last() cycle { return r.cycles[len(r.cycles)-1] }

// rested reports whether the runtime forced a cycle: it lets none be later than this.
func (r *run) rested(c cycle) bool {
	n := len(r.cycles)
	return n > 0 && c.n == r.cycles[n-1].n+1 && !c.forced && c.at-r.cycles[n-1].at >= forcedAfter
}

// lastly puts a run to the end of those that may go on, and leaves out the oldest of too many.
func lastly(open []*run, r *run) []*run {
	if n := len(open); n > 0 && open[n-1] == r {
		return open
	}
	open = append(slices.DeleteFunc(open, func(o *run) bool { return o == r }), r)
	return open[max(0, len(open)-mostOpen):]
}

// runs divides a part by process: a logger's prefix tells them apart, and a number that goes on
// with none of the runs above is another start.
func runs(p *attach.Part) (out []*run, flaws []string) {
	open := map[string][]*run{}
	late := map[string]bool{} // the line above, of the same source, says that the next cycle is forced
	damaged, held := 0, 0
lines:
	for i := 0; i < len(p.Lines); i++ {
		line := p.Lines[i]
		key := fmt.Sprint(line.Source, line.PID)
		at := gctraceAt(line.Text)
		if at < 0 {
			late[key] = forcedLine(line.Text)
			continue
		}
		for _, text := range cyclesIn(line.Text[at:]) {
			c, ok := parseCycle(text)
			if !ok {
				c, _, ok = wrapped(p.Lines[i:], at)
			}
			if !ok {
				if damaged++; damaged <= 3 {
					flaws = append(flaws, fmt.Sprintf("line %d: a gctrace line that is cut or damaged", line.N))
				}
				if head, is := parseStart(text); is {
					if r := goesOn(open[key], head); r != nil {
						r.cut = head
					}
				}
				continue
			}
			r := goesOn(open[key], c)
			if c.ps == 0 && c.at >= 0 {
				if r == nil {
					continue // the only line, without the Ps: no share follows
				}
				c.ps = r.cycles[0].ps
			}
			if held++; held > maxCycles {
				flaws = append(flaws, fmt.Sprintf("line %d: more than %d cycles: the rest is left out", line.N, maxCycles))
				break lines
			}
			if r == nil {
				r = &run{source: line.Source}
				if len(out) == 0 { // mostly there is one, and it is long
					r.cycles = make([]cycle, 0, min(len(p.Lines)-i, maxCycles))
				}
				out = append(out, r)
			}
			c.late, late[key] = late[key] || r.rested(c), false
			r.cycles = append(r.cycles, c)
			open[key] = lastly(open[key], r)
		}
	}
	if damaged > 3 {
		flaws = append(flaws, fmt.Sprintf("%d more lines like that", damaged-3))
	}
	return out, flaws
}

// cyclesIn divides a line at each cycle: a web page may have joined them.
func cyclesIn(text string) (out []string) {
	for {
		const head = len("gc")
		next := gctraceAt(text[head:])
		if next < 0 || len(out) == maxCycles {
			return append(out, text)
		}
		out = append(out, text[:head+next])
		text = text[head+next:]
	}
}

func readGCTrace(p *attach.Part) attach.Reading {
	all, flaws := runs(p)
	if len(all) == 0 {
		return attach.Reading{Title: "gctrace, no line of it whole", State: attach.CannotTell, Flaws: flaws,
			Figures: partsOfLines(p.Lines),
			Means:   "the lines are cut or damaged: no rate and no share of the time follows from them"}
	}
	best, g := mostOf(all)
	switch {
	case len(all) > shownRuns:
		g.Flaws = append(g.Flaws,
			fmt.Sprintf("the lines are of %d starts or processes; the one with most cycles is read", len(all)))
	case len(all) > 1:
		for _, r := range all {
			if r != best {
				g.Title += "; beside them, of another start or process, " + r.brief()
			}
		}
	}
	g.Flaws = append(g.Flaws, flaws...)
	g.Who.PID = p.Lines[0].PID
	if last := best.cycles[len(best.cycles)-1]; last.ps > 0 && !last.whole {
		g.Facts = append(g.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: float64(last.ps)})
	}
	return g
}

// partsOfLines says what lines have whose end is cut off: up to three of them.
func partsOfLines(lines []paste.Line) (out []string) {
	for _, line := range lines {
		at := gctraceAt(line.Text)
		if at < 0 || len(out) == 3 {
			continue
		}
		if c, ok := parseHead(line.Text[at:]); ok {
			out = append(out, fmt.Sprintf("gc %d at %g s: GC used %s of the CPU since the program started; marking %s, stops %s and %s",
				c.n, c.at, whole100(c.sinceStart), ms(c.mark), ms(c.stop1), ms(c.stop2)))
		}
	}
	return out
}

// shownRuns is how many starts or processes are each told of. More are mostly those of a compiler.
const shownRuns = 3

// mostOf returns the run with most cycles, or of a few runs the one that is worse off, and what it
// says.
func mostOf(all []*run) (best *run, g attach.Reading) {
	for _, r := range all {
		if best != nil && len(all) > shownRuns && len(r.cycles) <= len(best.cycles) {
			continue
		}
		read := readConcurrent
		if r.cycles[0].whole {
			read = readStopped
		}
		this := read(r)
		if best == nil || len(all) > shownRuns || rank(this.State) > rank(g.State) ||
			rank(this.State) == rank(g.State) && len(r.cycles) > len(best.cycles) {
			best, g = r, this
		}
	}
	return best, g
}

// rank orders states from the best on.
func rank(s attach.State) int {
	return slices.Index([]attach.State{attach.Healthy, attach.CannotTell, attach.Ill}, s)
}

// brief is a run in a few words.
func (r *run) brief() string {
	worst, marks := 0.0, []float64(nil)
	for _, c := range r.cycles {
		worst = max(worst, c.stop1, c.stop2)
		marks = append(marks, c.mark)
	}
	text := cyclesText(r.cycles)
	if span := r.cycles[len(r.cycles)-1].at - r.cycles[0].at; span > 0 {
		text += " over " + seconds(span)
	}
	if r.cycles[0].whole {
		last := r.cycles[len(r.cycles)-1]
		return fmt.Sprintf("%s, worst stop %s, %s", text, last.stopped(worst), last.sizes())
	}
	return fmt.Sprintf("%s, marking %s each (median), worst stop %s, %s of the CPU since its start", text,
		ms(attach.Median(marks)), ms(worst), whole100(r.cycles[len(r.cycles)-1].sinceStart))
}

func cyclesText(cs []cycle) string {
	if len(cs) == 1 {
		return fmt.Sprintf("1 cycle (gc %d)", cs[0].n)
	}
	return fmt.Sprintf("%d cycles (gc %d to %d)", len(cs), cs[0].n, cs[len(cs)-1].n)
}
