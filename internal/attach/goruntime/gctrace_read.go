package goruntime

import (
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// Floors. The first four are the detector's (frequent-gc).
const (
	gcRate     = finding.GCCycles
	gcMarking  = finding.GCMarking
	gcLoss     = finding.GCWithheld
	gcQuarter  = finding.GCOfAll
	assistOwn  = 0.05 // of the program's own CPU time while GC marks
	assistFelt = 10.0 // ms of all assists of a cycle: one request pays no more of it
	veryLong   = 50.0 // ms: a stop that people notice, even if it is the only one
	longStop   = 5.0  // ms: a stop takes microseconds, and a wait for one time slice 3 or 4 ms
	longMark   = 10.0 // ms: marking, or a whole cycle before Go 1.5
	startup    = 10.0 // s after the start of a program that are not its steady state
	grown      = 100  // cycles: a heap that each of them lets grow would fill any machine
	leastSpan  = 1.0  // s
	manyCycle  = 10   // that are enough for a rate within half of leastSpan
	manyPs     = 8    // from which GOMAXPROCS may be far above a container's quota
)

// gcSum is what a run's cycles amount to. The last cycle is not in the sums: its time until the
// next one is not in the text.
type gcSum struct {
	span, perSecond     float64 // s; cycles a second. 0: one cycle only, or no time
	markShare, cpuShare float64 // of the time; of the Ps' time, workers of idle priority not counted
	stopShare           float64 // of the time
	assistShare         float64 // of the program's own CPU time while GC marked
	assistAll           float64 // of the Ps' time
	usedOfMark          float64 // CPU of all markers by the Ps' time while marking
	stopAll             float64 // ms
	missing             int     // cycles between the first and the last one whose lines are not in the text
	sparse              bool    // more are missing than there are: no share of the time follows
	cycles              int
	forced              int  // by runtime.GC
	late                int  // by the runtime
	cramped             bool // the heap can hardly grow between cycles
	start               bool // mostly a program's first seconds
	stops               []float64
	longStops           int
	longShare           float64 // of the time: long stops alone
	worst               cycle
	worstStop           float64
	worstBoth           float64 // of one cycle, its two stops together
	worstSecond         bool    // mark termination
	medianMark          float64
	medianAssist        float64 // ms of CPU in a cycle
	printed             float64 // percent of the CPU since the start, at most
	stalled             int     // cycles whose marking went on for long with hardly a CPU
	longest             cycle   // of them
}

// steady leaves out a program's first seconds where enough is left without them.
func steady(cs []cycle) (kept []cycle, start bool) {
	if cs[0].n > 3 && cs[0].at > startup {
		return cs, false
	}
	for i := range cs {
		if cs[i].at >= startup {
			if len(cs)-i >= 3 && cs[len(cs)-1].at-cs[i].at >= startup/2 {
				return cs[i:], false
			}
			break
		}
	}
	if cs[0].at >= startup || cs[0].n >= grown || settled(cs) {
		return cs, false
	}
	if later := laterPart(cs); settled(later) && later[len(later)-1].at-later[0].at >= leastSpan {
		return later, false
	}
	return cs, true
}

// laterPart is the cycles from a quarter of a program's first seconds on: a heap that is built at
// the start may have its size by then.
func laterPart(cs []cycle) []cycle {
	from := cs[0].at + (cs[len(cs)-1].at-cs[0].at)/4
	return cs[slices.IndexFunc(cs, func(c cycle) bool { return c.at >= from }):]
}

// settled reports whether the heap of a program's first seconds does not grow any more: then they
// are as its steady state. It may rise and fall by turns.
func settled(cs []cycle) bool {
	if len(cs) < manyCycle || cs[0].n < manyCycle {
		return false
	}
	var live []float64
	for _, c := range cs {
		live = append(live, c.live)
	}
	early, late := live[:len(live)/2], live[len(live)/2:]
	return alike(slices.Max(early), slices.Max(late)) && alike(slices.Min(early), slices.Min(late))
}

// alike reports whether two sizes of a heap differ by less than a third.
func alike(a, b float64) bool { return min(a, b) > 0 && max(a, b) <= 1.3*min(a, b) }

// rated reports whether the cycles cover enough time for a rate.
func (s gcSum) rated(cs []cycle) bool {
	return s.span >= leastSpan || s.span >= leastSpan/2 && len(cs) >= manyCycle && !s.start
}

func sumGC(cs []cycle) (s gcSum) {
	var mark, assist, workers, idle, capacity, stop, own float64
	var marks, assists []float64
	goals, tight := 0, 0 // a goal is set by what the cycle before left alive
	for i, c := range cs {
		s.take(c)
		marks, assists = append(marks, c.mark), append(assists, c.assist)
		if i > 0 && c.n == cs[i-1].n+1 && c.goal > 0 {
			goals++
			if c.goal < finding.GCRoom*cs[i-1].live {
				tight++
			}
		}
		if c.forced {
			s.forced++
		}
		if c.late {
			s.late++
		}
		if i == len(cs)-1 && i > 0 {
			break
		}
		mark, assist, workers, idle = mark+c.mark, assist+c.assist, workers+c.workers, idle+c.idleWorkers
		stop += c.stop1 + c.stop2
		capacity += c.mark * c.cpus()
	}
	s.cycles, s.medianMark, s.medianAssist = len(cs), attach.Median(marks), attach.Median(assists)
	s.cramped = 2*tight > goals
	s.usedOfMark = ratio(assist+workers+idle, capacity)
	own = max(assist, capacity-workers-idle)
	s.assistShare = ratio(assist, own)
	first, last := cs[0], cs[len(cs)-1]
	long := s.longShare
	s.longShare = 0
	if s.span = last.at - first.at; s.span <= 0 || len(cs) < 2 {
		s.span = 0
		return s
	}
	n := float64(last.n - first.n)
	s.perSecond = n / s.span
	s.missing = max(0, last.n-first.n+1-len(cs))
	if s.sparse = s.missing > len(cs); s.sparse {
		return s
	}
	scale := n / float64(len(cs)-1) / (s.span * 1e3) // lines may be missing
	ps := last.cpus()
	s.markShare = min(1, mark*scale)
	s.stopShare = min(1, stop*scale)
	s.longShare = min(1, long/(s.span*1e3))
	s.assistAll = min(1, assist*scale/ps)
	s.cpuShare = min(1, (assist+workers)*scale/ps+s.stopShare)
	return s
}

// GC has a quarter of the Ps while it marks, even of a single P: marking that had less of one CPU
// stood still.
const (
	stalledMark = 500.0 // ms
	stalledCPU  = 0.1   // of one CPU
)

func (c *cycle) stalled() bool {
	return c.mark >= stalledMark && c.assist+c.workers+c.idleWorkers < stalledCPU*c.mark
}

func (s *gcSum) take(c cycle) {
	if c.stalled() {
		s.stalled++
		if c.mark > s.longest.mark {
			s.longest = c
		}
	}
	s.worstBoth = max(s.worstBoth, c.stop1+c.stop2)
	for i, stop := range []float64{c.stop1, c.stop2} {
		s.stopAll += stop
		s.stops = append(s.stops, stop)
		if stop >= longStop {
			s.longStops++
			s.longShare += stop // a sum of ms until sumGC divides it
		}
		if stop > s.worstStop || s.worst.ps == 0 {
			s.worst, s.worstStop, s.worstSecond = c, stop, i == 1
		}
	}
}

func readConcurrent(r *run) attach.Reading {
	countCPUs(r.cycles)
	cs, start := steady(r.cycles)
	s := sumGC(cs)
	s.start, s.printed = start, mostSince(cs)
	g := attach.Reading{Title: gcTitle(r.cycles) + r.cutText()}
	last := r.last()
	if n := unreadable(cs); 2*n > len(cs) && s.worstStop < veryLong {
		judgeCoarse(&g, s, cs, n)
		return g
	}
	g.Facts = []attach.Fact{{Name: FactGCPause, Value: s.worstStop * 1e6}}
	switch {
	case s.sparse:
		g.Figures = append(g.Figures,
			fmt.Sprintf("by their numbers %s, of which the text has %d lines; marking takes %s in these (median)%s",
				often(s.perSecond), len(cs), ms(s.medianMark), forcedText(s, len(cs))))
	case s.rated(cs):
		g.Facts = append(g.Facts, attach.Fact{Name: FactGCCPU, Value: s.cpuShare},
			attach.Fact{Name: FactGCMark, Value: s.markShare})
		g.Figures = append(g.Figures,
			fmt.Sprintf("GC marks %s of the time and takes %s of the CPU time of %s%s; %s, marking %s each (median)%s%s",
				percent(s.markShare), percent(s.cpuShare), last.places(), stillText(s),
				pace(cs, s.perSecond), ms(s.medianMark), markText(s, cs), forcedText(s, len(cs))))
		g.Title += "; " + printedText(r.cycles)
	default:
		g.Figures = append(g.Figures,
			fmt.Sprintf("%smarking takes %s%s%s%s; GC used %s of the CPU since the program started",
				apart(s), ms(s.medianMark), medianOf(cs), markText(s, cs), forcedText(s, len(cs)), whole100(last.sinceStart)))
	}
	before := ""
	if len(cs) < len(r.cycles) {
		g.Title += fmt.Sprintf("; figures of gc %d to %d, %s", cs[0].n, last.n, leftOut(cs[0]))
		before = "; " + beforeText(r.cycles[:len(r.cycles)-len(cs)])
	}
	if last.cpus() < float64(last.ps) {
		g.Title += fmt.Sprintf("; GOMAXPROCS %d on %s", last.ps, last.places())
	}
	g.Figures = append(g.Figures, stopText(s), heapFigure(cs, last)+before)
	judgeGC(&g, s, cs)
	if s.stalled > 0 {
		g.Figures = append([]string{stalledText(s, len(cs))}, g.Figures...)
		if g.State == attach.Healthy {
			g.State = attach.CannotTell
			g.Means += "; but once marking stood still: its threads got no CPU, or the process was stopped"
		}
	}
	return g
}

// leftOut says which cycles of a program's start are left out.
func leftOut(first cycle) string {
	if first.at >= startup {
		return fmt.Sprintf("after the program's first %.0f s", startup)
	}
	return fmt.Sprintf("from %s on, when the heap has its size", seconds(first.at))
}

// stillText says how much of a share of the CPU time is stops, in which nothing may be computed.
func stillText(s gcSum) string {
	if 2*s.stopShare < s.cpuShare || s.stopShare < 0.01 {
		return ""
	}
	return fmt.Sprintf(" (%s are the stops, in which CPUs may be idle)", percent(s.stopShare))
}

// unreadable counts the cycles whose phases all took 0 by the clock. It ticks too seldom to time
// them, as on Windows.
func unreadable(cs []cycle) (n int) {
	for _, c := range cs {
		if c.stop1 == 0 && c.mark == 0 && c.stop2 == 0 {
			n++
		}
	}
	return n
}

// coarseTick is the longest tick of a coarse clock in s: a phase that shows as 0 took less.
const coarseTick = 0.016

// unbiased is how many cycles a coarse clock times right in sum: some show as 0, some as a tick.
const unbiased = 100

// judgeCoarse reads cycles whose times say nothing: it only counts them.
func judgeCoarse(g *attach.Reading, s gcSum, cs []cycle, zero int) {
	g.Glance = !s.rated(cs)
	g.Figures = []string{fmt.Sprintf("%d of %d cycles print 0 for every phase: the clock is too coarse for them%s", zero, len(cs), forcedText(s, len(cs)))}
	if s.perSecond > 0 {
		g.Figures = append(g.Figures, often(s.perSecond))
	}
	g.Figures = append(g.Figures, heapFigure(cs, cs[len(cs)-1]))
	g.State = attach.CannotTell
	g.Means = "how long marking and the stops take cannot be read, nor GC's share of the CPU: the clock is too coarse"
	g.Not = "that cycles cost nothing: a phase that is shorter than a tick shows as 0, and the few others show as a tick"
	last := cs[len(cs)-1]
	switch {
	case last.n >= unbiased && last.sinceStart == 0:
		g.Means += "; by the same clock GC used less than 1 % of the CPU since the program started"
	case len(cs) >= manyCycle && s.perSecond*coarseTick >= gcLoss:
		g.Means = fmt.Sprintf("%s, and what they cost cannot be read: the clock is too coarse", often(s.perSecond))
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate, Proof: g.Figures[:2]}}
	}
	g.Next = []attach.Next{{Command: "go tool pprof -top -seconds 30 http://HOST:PORT/debug/pprof/profile", Why: "GC's share of the CPU, without this clock"}}
}

func mostSince(cs []cycle) (most float64) {
	for _, c := range cs {
		most = max(most, c.sinceStart)
	}
	return most
}

func gcTitle(cs []cycle) string {
	what := "gctrace"
	if cs[0].five {
		what = "gctrace with Go 1.5's five phases"
	}
	t := what + ", " + cyclesText(cs)
	if span := cs[len(cs)-1].at - cs[0].at; len(cs) > 1 && span > 0 {
		t += " over " + seconds(span)
	}
	return t
}

// cutText says that the cycle whose line is cut off was long after the one above.
func (r *run) cutText() string {
	if r.cut.n == 0 || !r.rested(r.cut) {
		return ""
	}
	return fmt.Sprintf("; gc %d, whose line is cut off, came %s later, at %g s: the runtime forces one when there was none for %s",
		r.cut.n, seconds(r.cut.at-r.last().at), r.cut.at, seconds(forcedAfter))
}

func often(perSecond float64) string {
	if perSecond > 0 && perSecond < 1 {
		return "one cycle every " + seconds(1/perSecond)
	}
	return each(perSecond) + " cycles a second"
}

func forcedText(s gcSum, n int) (out string) {
	if s.forced > 0 {
		out = fmt.Sprintf("; %d of %d forced (runtime.GC)", s.forced, n)
	}
	if s.late > 0 {
		out += fmt.Sprintf("; %d of %d forced by the runtime, after %s without a cycle", s.late, n,
			seconds(forcedAfter))
	}
	return out
}

func stopText(s gcSum) string {
	if s.cycles == 1 && len(s.stops) == 2 {
		return fmt.Sprintf("stop-the-world: %s (sweep termination) and %s (mark termination) of gc %d at %g s",
			ms(s.stops[0]), ms(s.stops[1]), s.worst.n, s.worst.at)
	}
	phase := "sweep termination"
	if s.worstSecond {
		phase = "mark termination"
	}
	both := ""
	if s.worstBoth >= 1.1*s.worstStop && s.worstBoth >= 1 {
		both = fmt.Sprintf("; both stops of a cycle take %s at most", ms(s.worstBoth))
	}
	if s.stopShare >= 0.01 && s.span >= leastSpan {
		both += fmt.Sprintf("; all stops together %s, %s of the time until the last cycle",
			ms(s.stopAll), percent(s.stopShare))
	}
	return fmt.Sprintf("stop-the-world: %s, worst %s (%s of gc %d at %g s)%s", middle(s.stops),
		ms(s.worstStop), phase, s.worst.n, s.worst.at, both)
}

// twoModes is how far apart the two stops in the middle are where half of all are of another kind:
// the mean of the two would be a stop that never was.
const twoModes = 3

// middle says the median of stops, or where the two halves end and begin.
func middle(stops []float64) string {
	s := slices.Sorted(slices.Values(stops))
	if n := len(s); n >= 8 && n%2 == 0 && s[n/2] > twoModes*s[n/2-1] {
		return fmt.Sprintf("half of the stops take %s or less, and half %s or more", ms(s[n/2-1]), ms(s[n/2]))
	}
	return "median " + ms(attach.Median(stops))
}
