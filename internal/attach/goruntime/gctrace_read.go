package goruntime

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// Floors, as the detectors have them (frequent-gc, mark-assist, stw-pause).
const (
	gcRate    = 2.0  // cycles a second from which no request is far from one
	gcMarking = 0.25 // of the time: a large heap is marked for so long that few cycles are as near
	gcLoss    = 0.15 // of the Ps' time withheld from the program: a seventh of a request
	gcQuarter = 0.25 // of the Ps' time: what the pacer aims at while it marks, all the time
	assistOwn = 0.05 // of the program's own CPU time while GC marks
	veryLong  = 50.0 // ms: a stop that people notice, even if it is the only one
	longStop  = 10.0 // ms: a stop takes microseconds, a time slice of the kernel a few ms
	startup   = 10.0 // s after the start of a program that are not its steady state
	leastSpan = 1.0  // s
	manyCycle = 10   // that are enough for a rate within half of leastSpan
	manyPs    = 8    // from which GOMAXPROCS may be far above a container's quota
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
	forced              int
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
	stalled             int   // cycles whose marking went on for long with hardly a CPU
	longest             cycle // of them
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
	return cs, cs[0].at < startup && !settled(cs)
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
	var marks []float64
	roomy := 0
	for i, c := range cs {
		s.take(c)
		marks = append(marks, c.mark)
		if c.goal <= 0 || c.live < 1 || c.goal >= 1.5*c.live {
			roomy++
		}
		if c.forced {
			s.forced++
		}
		if i == len(cs)-1 && i > 0 {
			break
		}
		mark, assist, workers, idle = mark+c.mark, assist+c.assist, workers+c.workers, idle+c.idleWorkers
		stop += c.stop1 + c.stop2
		capacity += c.mark * float64(c.ps)
	}
	s.medianMark = attach.Median(marks)
	s.cramped = 2*roomy < len(cs)
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
	scale := n / float64(len(cs)-1) / (s.span * 1e3) // lines may be missing
	ps := float64(last.ps)
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
	cs, start := steady(r.cycles)
	s := sumGC(cs)
	s.start = start
	g := attach.Reading{Title: gcTitle(r.cycles)}
	last := r.cycles[len(r.cycles)-1]
	if n := unreadable(cs); 2*n > len(cs) && s.worstStop < veryLong {
		judgeCoarse(&g, s, cs, n)
		return g
	}
	g.Facts = []attach.Fact{{Name: FactGCPause, Value: s.worstStop * 1e6}}
	if s.rated(cs) {
		g.Facts = append(g.Facts, attach.Fact{Name: FactGCCPU, Value: s.cpuShare}, attach.Fact{Name: FactGCMark, Value: s.markShare})
		g.Figures = append(g.Figures, fmt.Sprintf("GC marks %s of the time and takes %s of the CPU time of %s; %s, marking %s each (median)%s",
			percent(s.markShare), percent(s.cpuShare), count(last.ps, "P", "Ps"), pace(cs, s.perSecond), ms(s.medianMark), forcedText(s, len(cs))))
	} else {
		g.Figures = append(g.Figures, fmt.Sprintf("marking takes %s (median)%s; GC used %.0f %% of the CPU since the program started",
			ms(s.medianMark), forcedText(s, len(cs)), last.sinceStart))
	}
	if len(cs) < len(r.cycles) {
		g.Title += fmt.Sprintf("; figures of gc %d to %d, after the program's first %.0f s", cs[0].n, last.n, startup)
	}
	g.Figures = append(g.Figures, stopText(s), heapFigure(cs, last))
	if s.rated(cs) {
		g.Figures = append(g.Figures, fmt.Sprintf("as printed, GC used up to %.0f %% of the CPU; that is since the program started", mostSince(r.cycles)))
	}
	judgeGC(&g, s, cs)
	if s.stalled > 0 {
		g.Figures = append([]string{stalledText(s, len(cs))}, g.Figures...)
	}
	return g
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
	if len(cs) >= manyCycle && s.perSecond*coarseTick >= gcLoss {
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

func often(perSecond float64) string {
	if perSecond > 0 && perSecond < 1 {
		return "one cycle every " + seconds(1/perSecond)
	}
	return each(perSecond) + " cycles a second"
}

func forcedText(s gcSum, n int) string {
	if s.forced == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %d forced (runtime.GC)", s.forced, n)
}

func stopText(s gcSum) string {
	phase := "sweep termination"
	if s.worstSecond {
		phase = "mark termination"
	}
	both := ""
	if s.worstBoth >= 1.1*s.worstStop && s.worstBoth >= 1 {
		both = fmt.Sprintf("; both stops of a cycle take %s at most", ms(s.worstBoth))
	}
	return fmt.Sprintf("stop-the-world: %s, worst %s (%s of gc %d at %g s)%s", middle(s.stops), ms(s.worstStop), phase, s.worst.n, s.worst.at, both)
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

// heapGrown is the size in MB from which a growing heap is worth a word.
const heapGrown = 16

func heapFigure(cs []cycle, last cycle) string {
	var live, goal []float64
	for _, c := range cs {
		live, goal = append(live, c.live), append(goal, c.goal)
	}
	t := fmt.Sprintf("heap: %.0f MB live (median)", attach.Median(live))
	if first := live[0]; last.live >= 2*attach.Median(live) && last.live >= 2*first && last.live >= heapGrown {
		t = fmt.Sprintf("heap: it grows from %.0f MB live in gc %d to %.0f MB in gc %d", first, cs[0].n, last.live, last.n)
		goal = []float64{last.goal}
	}
	if last.goal > 0 {
		t += fmt.Sprintf(", goal %.0f MB", attach.Median(goal))
	}
	return t
}

// judgeGC says what follows. A lack of CPU comes first, since it looks like the cost of GC.
func judgeGC(g *attach.Reading, s gcSum, cs []cycle) {
	// One thread that always ran would use as much of all Ps: a heap of few objects gives no work
	// to more, and that is no wait for a CPU.
	stretched := s.medianMark >= longStop && s.usedOfMark < 0.10 && s.usedOfMark*float64(cs[0].ps) < 0.9
	stretched = stretched || s.stalled >= 2 && 10*s.stalled >= len(cs)
	long := s.longStops >= 2 && (10*s.longStops >= len(cs) || s.longShare >= 0.02)
	frequent := s.perSecond >= gcRate && s.rated(cs) && !s.start
	switch {
	case frequent && !stretched && s.cpuShare-s.longShare >= gcLoss:
		judgeFrequent(g, s, cs)
	case stretched || long:
		judgeStretched(g, s, cs, stretched, long)
	case s.start && (s.cpuShare >= gcLoss/2 || s.markShare >= gcMarking):
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("these are the program's first seconds, in which a heap mostly grows: GC used up to %.0f %% of the CPU (since the start, as printed), and that is not its steady state", mostSince(cs))
		g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load", Why: "cycles after the start decide"}}
	case !s.rated(cs):
		judgeFew(g, s, cs)
	case s.perSecond >= gcRate && s.cpuShare >= gcLoss:
		judgeFrequent(g, s, cs)
	case s.markShare >= gcMarking && s.assistShare >= assistOwn && s.forced*2 < len(cs):
		g.State = attach.Ill
		g.Means = fmt.Sprintf("GC marks %s of the time; a request that allocates meanwhile is made to mark: %s of the program's CPU time in these cycles", percent(s.markShare), percent(s.assistShare))
		if s.cramped {
			g.Means += "; " + noRoom
		}
		g.Not = "which requests assisted, and for how long each"
		g.Signs = []attach.Sign{{Cause: "mark-assist", Grade: attach.Found, Sure: finding.Possible, Share: s.markShare * s.assistShare,
			Proof: []string{g.Figures[0], fmt.Sprintf("assists used %s of the CPU time that GC left to the program while it marked", percent(s.assistShare))}}}
		g.Next = []attach.Next{{Command: "whystall diagnose --pid PID", Why: "shows what slow requests lost to mark assist, and the sites that allocate"}}
	case s.worstStop >= veryLong:
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("one stop took %s, and the others are short: such a stop is mostly a thread that got no CPU, or a call that could not be interrupted", ms(s.worstStop))
		g.Next = []attach.Next{{Command: "whystall diagnose --pid PID", Why: "shows who was waited for when it comes again"}}
	default:
		judgeWell(g, s)
		assisting(g, s, cs)
	}
}

// Of the cycles: so much of the CPU time that marking takes is the assists', and so much of all Ps'
// time meanwhile, where requests that meet a cycle are slow though cycles are few.
const (
	assistMost = 0.5
	assistPs   = 0.25
	assistWall = 5.0 // ms of marking, for less is not felt
	assistFew  = 3   // cycles; fewer only where they are not of the program's start
	someCycles = 5   // of which it may be said how fast they follow each other
)

// assisting adds what those pay who allocate in a cycle, where GC costs little over all time.
func assisting(g *attach.Reading, s gcSum, cs []cycle) {
	var assist, workers, capacity float64
	for _, c := range cs {
		assist, workers, capacity = assist+c.assist, workers+c.workers+c.idleWorkers, capacity+c.mark*float64(c.ps)
	}
	last := cs[len(cs)-1]
	ofMark, ofPs := ratio(assist, assist+workers), ratio(assist, capacity)
	if len(cs) < assistFew && last.at < startup || s.medianMark < assistWall || ofMark < assistMost || ofPs < assistPs {
		return
	}
	proof := fmt.Sprintf("while GC marks, assists do %s of the marking, on %s of the Ps' time", percent(ofMark), percent(ofPs))
	g.Figures = append([]string{proof}, g.Figures...)
	g.State = attach.CannotTell
	g.Means = "GC costs little over all time; but who allocates while it marks does most of the marking, and is slow then"
	g.Not = fmt.Sprintf("how many requests meet a cycle: GC marks %s of the time", percent(s.markShare))
	if len(cs) < assistFew {
		g.Not = fmt.Sprintf("that all cycles are so, nor how often they come: this is %s", count(len(cs), "cycle", "cycles"))
	}
	g.Signs = slices.DeleteFunc(g.Signs, func(s attach.Sign) bool { return s.Cause == "mark-assist" })
	g.Signs = append(g.Signs, attach.Sign{Cause: "mark-assist", Grade: attach.Candidate, Share: s.markShare * ofPs, Proof: []string{proof}})
	g.Next = []attach.Next{{Command: "whystall diagnose --pid PID", Why: "shows what slow requests lost to mark assist, and the sites that allocate"}}
}

func judgeStretched(g *attach.Reading, s gcSum, cs []cycle, stretched, long bool) {
	g.State = attach.CannotTell
	var what []string
	if long {
		what = append(what, fmt.Sprintf("%s of %s or more in %s", count(s.longStops, "stop", "stops"), ms(longStop), count(len(cs), "cycle", "cycles")))
	}
	if s.stalled > 0 {
		what = append(what, stalledText(s, len(cs)))
	} else if stretched {
		what = append(what, fmt.Sprintf("marking took %s by the clock (median) but only %s of the Ps' time meanwhile", ms(s.medianMark), percent(s.usedOfMark)))
	}
	g.Facts = append(g.Facts, attach.Fact{Name: FactGCStretched, Value: float64(max(1, s.longStops))})
	g.Means = strings.Join(what, "; ") + ": the threads of the process were kept off their CPUs, or one was waited for"
	g.Not = "that a stop used CPU: that figure is the Ps times the wall time by arithmetic, and the first one holds the initiator's own wait for a CPU as well"
	causes := []string{"cpu-throttled", "cpu-contention", "gomaxprocs-over-quota"}
	if !stretched {
		causes = []string{"stw-pause", "cpu-throttled", "cpu-contention"}
		if cs[0].ps >= manyPs {
			causes = append(causes, "gomaxprocs-over-quota")
		}
	}
	for _, cause := range causes {
		g.Signs = append(g.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: what, Share: s.stopShare})
	}
	g.Next = []attach.Next{
		{Command: "cat /sys/fs/cgroup/CGROUP/cpu.stat /sys/fs/cgroup/CGROUP/cpu.max", Why: "nr_throttled that rises under load: the quota; else neighbours' CPU use"},
		{Command: "whystall diagnose --pid PID", Why: "shows what the threads lacked during each stop"},
	}
}

func stalledText(s gcSum, n int) string {
	used := s.longest.assist + s.longest.workers + s.longest.idleWorkers
	return fmt.Sprintf("in %d of %s marking hardly got a CPU: gc %d at %g s took %s by the clock and %s of CPU", s.stalled, count(n, "cycle", "cycles"), s.longest.n, s.longest.at, ms(s.longest.mark), ms(used))
}

// judgeFew reads one cycle, or a few within a second: no share of the time follows.
func judgeFew(g *attach.Reading, s gcSum, cs []cycle) {
	last := cs[len(cs)-1]
	g.Glance = true
	if last.sinceStart < 10 && s.worstStop < longStop {
		g.State = attach.Healthy
		g.Means = fmt.Sprintf("GC used %.0f %% of the CPU since the program started, and the stops are short", last.sinceStart)
		g.Not = "how often cycles come: these are too few"
		if len(cs) >= someCycles && s.perSecond >= 1 {
			g.Means = fmt.Sprintf("%s here; GC used %.0f %% of the CPU since the program started, and both stops of a cycle take %s at most", often(s.perSecond), last.sinceStart, ms(s.worstBoth))
			g.Not = fmt.Sprintf("that it stays so: these are %s of it", seconds(s.span))
		}
		assisting(g, s, cs)
		return
	}
	g.State = attach.CannotTell
	g.Means = "too few cycles for a rate"
	if last.at >= startup && last.sinceStart >= 100*gcLoss {
		g.Means += fmt.Sprintf("; but GC used %.0f %% of the CPU in the %s since the program started, which is much", last.sinceStart, seconds(last.at))
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate, Share: last.sinceStart / 100, Proof: g.Figures[:1]}}
	}
	if last.at < startup && settled(cs) && s.perSecond >= gcRate && last.sinceStart >= 100*gcLoss {
		g.Means = fmt.Sprintf("%s in these %s, and GC used %.0f %% of the CPU in the %s since the program started, though the heap does not grow", often(s.perSecond), seconds(s.span), last.sinceStart, seconds(last.at))
		g.Not = "that it stays so: a program that has just started may work in another way than later"
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate, Share: last.sinceStart / 100, Proof: g.Figures[:1]}}
	}
	g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load", Why: "a rate needs cycles over some seconds"}}
}

func judgeFrequent(g *attach.Reading, s gcSum, cs []cycle) {
	sure := finding.Possible
	if s.cpuShare >= gcQuarter {
		sure = finding.Supported
	}
	why := ""
	switch {
	case 2*s.forced >= len(cs):
		why = "; the program asks for them (runtime.GC)"
	case s.cramped:
		why = "; " + noRoom
	}
	g.State = attach.Ill
	g.Means = fmt.Sprintf("%s cycles a second withhold %s of the Ps' time from the program%s", each(s.perSecond), percent(s.cpuShare), why)
	g.Not = "what each request lost"
	proof := []string{g.Figures[0], fmt.Sprintf("assists took %s of the Ps' time, stops %s of the time", percent(s.assistAll), percent(s.stopShare))}
	g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Found, Sure: sure, Share: s.cpuShare, Proof: proof}}
	if s.assistAll >= gcLoss/2 && 2*s.assistAll >= s.cpuShare { // the program's own goroutines do most of it
		g.Signs = append(g.Signs, attach.Sign{Cause: "mark-assist", Grade: attach.Found, Sure: finding.Possible, Share: s.assistAll, BecauseOf: "frequent-gc", Proof: proof[1:]})
	}
	g.Next = []attach.Next{{Command: "tr '\\0' '\\n' < /proc/PID/environ | grep -E 'GOGC|GOMEMLIMIT'", Why: "a low GOGC or a limit near the live heap makes cycles many"}}
}

// noRoom is why cycles come one after another.
const noRoom = "the goal is less than 1.5 times the live heap, so the heap has no room (GOGC, GOMEMLIMIT)"

func judgeWell(g *attach.Reading, s gcSum) {
	g.State = attach.Healthy
	g.Means = "GC costs the program little: it takes little CPU, and the world stops for short"
	switch {
	case s.perSecond >= gcRate:
		g.Not = "that many cycles are harm: what they take of the CPU counts"
	case s.worstStop >= longStop:
		g.Not = "that such a long stop comes often: it is one among short ones"
	}
	for _, cause := range []string{"frequent-gc", "mark-assist"} {
		g.Signs = append(g.Signs, attach.Sign{Cause: cause, Grade: attach.Against, Share: s.cpuShare})
	}
	g.Signs = append(g.Signs, attach.Sign{Cause: "stw-pause", Grade: attach.Against, Share: s.stopShare})
}
