package goruntime

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// judgeGC says what follows. A lack of CPU comes first, since it looks like the cost of GC.
func judgeGC(g *attach.Reading, s gcSum, cs []cycle) {
	// One thread that always ran would use as much of all Ps: a heap of few objects gives no work
	// to more, and that is no wait for a CPU.
	stretched := s.medianMark >= longMark && s.usedOfMark < 0.10 && s.usedOfMark*cs[0].cpus() < 0.9
	stretched = stretched || s.stalled >= 2 && 10*s.stalled >= len(cs)
	long := s.longStops >= 2 && (10*s.longStops >= len(cs) || s.longShare >= 0.02)
	frequent := s.perSecond >= gcRate && s.rated(cs) && !s.start && !s.sparse
	switch {
	case frequent && !stretched && s.cpuShare-s.longShare >= gcLoss:
		judgeFrequent(g, s, cs)
	case stretched || long:
		judgeStretched(g, s, cs, stretched, long)
	case s.start && (s.cpuShare >= gcLoss/2 || s.markShare >= gcMarking):
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("these are the program's first %s: GC used up to %.0f %% of the CPU (since the start, as printed); whether it goes on so is not in them", seconds(cs[len(cs)-1].at), mostSince(cs))
		if 2*s.forced >= len(cs) {
			g.Means += "; the program asks for most of these cycles (runtime.GC), as benchmarks do before each run"
		}
		g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
			Why: "cycles after the start decide"}}
	case s.sparse:
		judgeSparse(g, s, cs)
	case !s.rated(cs):
		judgeFew(g, s, cs)
	case s.perSecond >= gcRate && s.cpuShare >= gcLoss:
		judgeFrequent(g, s, cs)
	case s.markShare >= gcMarking && s.assistShare >= assistOwn &&
		s.medianAssist >= assistFelt && s.forced*2 < len(cs):
		g.State = attach.Ill
		g.Means = fmt.Sprintf("GC marks %s of the time; a request that allocates meanwhile is made to mark: %s of the program's CPU time in these cycles", percent(s.markShare), percent(s.assistShare))
		if s.cramped {
			g.Means += "; " + noRoom
		}
		g.Not = "which requests assisted, and for how long each"
		g.Signs = []attach.Sign{{Cause: "mark-assist", Grade: attach.Found, Sure: finding.Possible,
			Share: s.markShare * s.assistShare,
			Proof: []string{g.Figures[0],
				fmt.Sprintf("assists used %s of the CPU time that GC left to the program while it marked", percent(s.assistShare))}}}
		g.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows what slow requests lost to mark assist, and the sites that allocate"}}
	case s.worstStop >= veryLong:
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("one stop took %s, and the others are short: such a stop is mostly a thread that got no CPU, or a call that could not be interrupted", ms(s.worstStop))
		g.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows who was waited for when it comes again"}}
	default:
		if b := densest(cs); b != nil && judgeBurst(g, s, cs, b) {
			return
		}
		judgeWell(g, s)
		if s.start && g.Not == "" {
			g.Not = fmt.Sprintf("that it stays so: these cycles are of the program's first %s",
				seconds(cs[len(cs)-1].at))
		}
		helped(g, cs)
		assisting(g, s, cs)
	}
}

// Of the cycles: so much of the CPU time that marking takes is the assists', and so much of all Ps'
// time meanwhile, where requests that meet a cycle are slow though cycles are few.
const (
	assistMost = 0.5
	assistPs   = 0.25
	assistWall = 5.0 // ms of marking, for less is not felt

	helpedLeast = 100.0 // ms of CPU in one cycle
	helpedShare = 0.2   // of its marking
	helpedCPUs  = 1.0   // while it marks

	assistFew  = 3 // cycles; of fewer little is said, and of assists only if they are of no start
	someCycles = 5 // of which it may be said how fast they follow each other
)

// helped adds the cycle in which the program's goroutines marked for longest, if that is much: of
// its marking, or of a CPU all the while.
func helped(g *attach.Reading, cs []cycle) {
	most := slices.MaxFunc(cs, func(a, b cycle) int { return cmp.Compare(a.assist, b.assist) })
	share := ratio(most.assist, most.assist+most.workers+most.idleWorkers)
	cpus := ratio(most.assist, most.mark)
	if most.assist < helpedLeast || share < helpedShare && cpus < helpedCPUs {
		return
	}
	g.Figures = append(g.Figures, fmt.Sprintf("assists use %s of CPU in gc %d, %s of its marking: %.1f CPUs for the %s that it marks",
		ms(most.assist), most.n, percent(share), cpus, ms(most.mark)))
	g.Means += fmt.Sprintf("; in gc %d goroutines that allocated did %s of the marking (%s of CPU), and were slower meanwhile",
		most.n, percent(share), ms(most.assist))
}

// assisting adds what those pay who allocate in a cycle, where GC costs little over all time.
func assisting(g *attach.Reading, s gcSum, cs []cycle) {
	var assist, workers, capacity float64
	for _, c := range cs {
		assist, workers, capacity = assist+c.assist, workers+c.workers+c.idleWorkers, capacity+c.mark*c.cpus()
	}
	last := cs[len(cs)-1]
	ofMark, ofPs := ratio(assist, assist+workers), ratio(assist, capacity)
	if len(cs) < assistFew && last.at < startup || s.medianMark < assistWall || ofMark < assistMost || ofPs < assistPs {
		return
	}
	proof := fmt.Sprintf("while GC marks, assists do %s of the marking, on %s of the Ps' time",
		percent(ofMark), percent(ofPs))
	g.State = attach.CannotTell
	g.Means = "GC costs little over all time; but who allocates while it marks does most of the marking, and is slow then"
	g.Not = fmt.Sprintf("how many requests meet a cycle: GC marks %s of the time", percent(s.markShare))
	if len(cs) < assistFew {
		g.Not = fmt.Sprintf("that all cycles are so, nor how often they come: this is %s",
			count(len(cs), "cycle", "cycles"))
	}
	g.Signs = slices.DeleteFunc(g.Signs, func(s attach.Sign) bool { return s.Cause == "mark-assist" })
	g.Signs = append(g.Signs, attach.Sign{Cause: "mark-assist", Grade: attach.Candidate,
		Share: s.markShare * ofPs, Proof: []string{proof}})
	g.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
		Why: "shows what slow requests lost to mark assist, and the sites that allocate"}}
}

func judgeStretched(g *attach.Reading, s gcSum, cs []cycle, stretched, long bool) {
	g.State = attach.CannotTell
	var what []string
	if long {
		what = append(what, fmt.Sprintf("%s of %s or more in %s",
			count(s.longStops, "stop", "stops"), ms(longStop), count(len(cs), "cycle", "cycles")))
	}
	if s.stalled > 0 {
		what = append(what, stalledText(s, len(cs)))
	} else if stretched {
		what = append(what, fmt.Sprintf("marking took %s by the clock (median) but only %s of the Ps' time meanwhile", ms(s.medianMark), percent(s.usedOfMark)))
	}
	g.Facts = append(g.Facts, attach.Fact{Name: FactGCStretched, Value: float64(max(1, s.longStops))})
	g.Means = strings.Join(what, "; ") + ": the threads of the process were kept off their CPUs, or one was waited for"
	g.Not = "that a stop used CPU: that figure is the Ps times the wall time by arithmetic, and the first one holds the initiator's own wait for a CPU as well"
	causes := []string{"cpu-contention", "cpu-throttled", "gomaxprocs-over-quota"}
	short := long && !stretched && s.worstStop < 2*longStop
	switch {
	case short: // a quota withholds CPUs for longer, and other threads take a time slice or more
		causes = []string{"stw-pause"}
		g.Means = strings.Join(what, "; ") +
			": a goroutine that clears or copies much memory, or before Go 1.14 one that loops without a call, cannot be stopped before it is done; or a thread of the process was kept off its CPU"
	case !stretched:
		causes = []string{"stw-pause", "cpu-contention", "cpu-throttled"}
		if cs[0].ps >= manyPs {
			causes = append(causes, "gomaxprocs-over-quota")
		}
	}
	for _, cause := range causes {
		g.Signs = append(g.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: what, Share: s.stopShare})
	}
	g.Next = []attach.Next{
		{Command: "cat /sys/fs/cgroup/CGROUP/cpu.stat /sys/fs/cgroup/CGROUP/cpu.max",
			Why: "only a container or a unit of systemd has a quota: nr_throttled that rises under load; else neighbours' CPU use"},
		{Command: "whystall diagnose --pid PID", Why: "shows what the threads lacked during each stop"},
	}
}

func stalledText(s gcSum, n int) string {
	used := s.longest.assist + s.longest.workers + s.longest.idleWorkers
	return fmt.Sprintf("in %d of %s marking hardly got a CPU: gc %d at %g s took %s by the clock and %s of CPU", s.stalled, count(n, "cycle", "cycles"), s.longest.n, s.longest.at, ms(s.longest.mark), ms(used))
}

// judgeSparse reads a few of many cycles, as of a text out of which somebody cut most lines. What
// they print of the time since the start bounds what GC used between the first and the last one.
func judgeSparse(g *attach.Reading, s gcSum, cs []cycle) {
	first, last := cs[0], cs[len(cs)-1]
	most := ((last.sinceStart+1)*last.at - first.sinceStart*first.at) / 100 / s.span
	least := (last.sinceStart*last.at - (first.sinceStart+1)*first.at) / 100 / s.span
	g.State = attach.CannotTell
	g.Means = fmt.Sprintf("%s of %d cycles are not in the text; GC used %s of the CPU since the program started, as printed", count(s.missing, "line", "lines"), s.missing+len(cs), whole100(last.sinceStart))
	g.Not = "how long the other cycles marked, and stopped the world"
	if most < gcLoss && s.worstStop < longStop {
		g.State = attach.Healthy
		g.Means = fmt.Sprintf("GC costs little: it used less than %s of the Ps' time between the first and the last of these lines", percent(most))
	}
	if least >= gcLoss && s.perSecond >= gcRate {
		g.Means = fmt.Sprintf("GC used %s of the CPU or more between the first and the last of these lines, by what they print of the time since the start; the %s between them are not in the text", percent(least), count(s.missing, "line", "lines"))
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate, Share: least, Proof: g.Figures[:1]}}
	}
	g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
		Why: "all its lines say what GC takes of the time"}}
	if g.State == attach.Healthy {
		g.Next = nil
	}
}

// judgeFew reads one cycle, or a few within a second: no share of the time follows.
func judgeFew(g *attach.Reading, s gcSum, cs []cycle) {
	last := cs[len(cs)-1]
	g.Glance = true
	if last.at < startup && last.sinceStart < 10 && s.worstStop < longStop {
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("of the program's first %s: GC used %s of the CPU in that time, and %s",
			seconds(last.at), whole100(last.sinceStart), s.stopsAtMost())
		g.Not = "how it goes on: a heap mostly grows at the start"
		g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
			Why: "cycles after the start decide"}}
		return
	}
	if last.sinceStart < 10 && s.worstStop < longStop {
		if g.State = attach.Healthy; len(cs) < assistFew {
			g.State = attach.CannotTell
		}
		g.Means = fmt.Sprintf("GC used %s of the CPU since the program started, and %s",
			whole100(last.sinceStart), s.stopsAtMost())
		g.Not = "how often cycles come: these are too few"
		if len(cs) >= someCycles && s.perSecond >= 1 {
			g.Means = fmt.Sprintf("%s here; GC used %s of the CPU since the program started, and both stops of a cycle take %s at most", often(s.perSecond), whole100(last.sinceStart), ms(s.worstBoth))
			g.Not = fmt.Sprintf("that it stays so: these are %s of it", seconds(s.span))
		}
		helped(g, cs)
		assisting(g, s, cs)
		return
	}
	g.State = attach.CannotTell
	g.Means = "too few cycles for a rate"
	if last.at >= startup && last.sinceStart >= 100*gcLoss {
		g.Means += fmt.Sprintf("; but GC used %s of the CPU in the %s since the program started, which is much", whole100(last.sinceStart), seconds(last.at))
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate,
			Share: last.sinceStart / 100, Proof: g.Figures[:1]}}
	} else if rate := float64(last.n) / last.at; last.n >= grown && rate >= gcRate && last.sinceStart >= 100*someCPU {
		g.Means = fmt.Sprintf("%s on average since the program started, %s ago, and GC used %s of the CPU in that time", often(rate), seconds(last.at), whole100(last.sinceStart))
		g.Not = "how it is spread over that time: these lines are too few for a rate of their own"
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate,
			Share: last.sinceStart / 100, Proof: g.Figures[:1]}}
	}
	if last.at < startup && settled(cs) && s.perSecond >= gcRate && last.sinceStart >= 100*gcLoss {
		g.Means = fmt.Sprintf("%s in these %s, and GC used %s of the CPU in the %s since the program started, though the heap does not grow", often(s.perSecond), seconds(s.span), whole100(last.sinceStart), seconds(last.at))
		g.Not = "that it stays so: a program that has just started may work in another way than later"
		g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate,
			Share: last.sinceStart / 100, Proof: g.Figures[:1]}}
	}
	if s.worstStop >= longStop {
		g.Means += fmt.Sprintf("; a stop of the world took %s, and how often one is so long is not in the text", ms(s.worstStop))
		g.Signs = append(g.Signs, attach.Sign{Cause: "stw-pause", Grade: attach.Candidate,
			Proof: []string{stopText(s)}})
	}
	g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
		Why: "a rate needs cycles over some seconds"}}
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
	g.Means = fmt.Sprintf("%s cycles a second withhold %s of the Ps' time from the program%s",
		each(s.perSecond), percent(s.cpuShare), why)
	g.Not = "what each request lost"
	proof := []string{g.Figures[0],
		fmt.Sprintf("assists took %s of the Ps' time, stops %s of the time", percent(s.assistAll),
			percent(s.stopShare))}
	g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Found, Sure: sure, Share: s.cpuShare, Proof: proof}}
	if s.assistAll >= gcLoss/2 && 2*s.assistAll >= s.cpuShare { // the program's own goroutines do most of it
		g.Signs = append(g.Signs, attach.Sign{Cause: "mark-assist", Grade: attach.Found,
			Sure: finding.Possible, Share: s.assistAll, BecauseOf: "frequent-gc", Proof: proof[1:]})
	}
	g.Next = []attach.Next{{Command: "tr '\\0' '\\n' < /proc/PID/environ | grep -E 'GOGC|GOMEMLIMIT'", Why: "a low GOGC or a limit near the live heap makes cycles many"}}
}

// noRoom is why cycles come one after another.
const noRoom = "most goals are less than 1.5 times what the cycle before left alive, so the heap has no room (GOGC, GOMEMLIMIT)"

// Up to here a share of the CPU is little, or no matter, and a stop in ms short.
const (
	littleCPU = 0.05
	someCPU   = 0.10
	shortStop = 1.0
)

// stopsAtMost bounds the stops in words.
func (s gcSum) stopsAtMost() string {
	if s.worstStop < shortStop {
		return fmt.Sprintf("no stop of the world takes %g ms", shortStop)
	}
	return fmt.Sprintf("no stop of the world takes more than %s", ms(s.worstStop))
}

func judgeWell(g *attach.Reading, s gcSum) {
	g.State = attach.Healthy
	g.Means = "GC costs the program little: it takes little CPU, and " + s.stopsAtMost()
	switch {
	case s.markShare >= gcMarking && (s.cpuShare >= someCPU || s.assistShare >= assistOwn) && 2*s.forced < s.cycles:
		g.State = attach.CannotTell
		g.Means = fmt.Sprintf("GC marks %s of the time, which leaves the program fewer of its Ps meanwhile; assists take %s of the Ps' time, and %s", percent(s.markShare), percent(s.assistAll), s.stopsAtMost())
		g.Not = "how much slower requests are while it marks"
		g.Next = []attach.Next{{Command: "whystall diagnose --pid PID",
			Why: "shows what slow requests lost while GC marked"}}
	case s.printed >= 100*someCPU && s.cpuShare < littleCPU:
		g.Means = fmt.Sprintf("GC takes %s of the CPU time here, and up to %.0f %% since the program started, as printed; %s", percent(s.cpuShare), s.printed, s.stopsAtMost())
	case s.cpuShare >= littleCPU:
		g.Means = fmt.Sprintf("GC takes %s of the CPU time, and %s", percent(s.cpuShare), s.stopsAtMost())
	case s.perSecond >= gcRate:
		g.Not = "that many cycles are harm: what they take of the CPU counts"
	case s.worstStop >= longStop:
		g.Not = "that such a long stop comes often: it is one among short ones"
	case s.worstStop >= shortStop:
		g.Not = fmt.Sprintf("that no request meets the longest stop: such a request waits %s", ms(s.worstStop))
	}
	for _, cause := range []string{"frequent-gc", "mark-assist"} {
		g.Signs = append(g.Signs, attach.Sign{Cause: cause, Grade: attach.Against, Share: s.cpuShare})
	}
	g.Signs = append(g.Signs, attach.Sign{Cause: "stw-pause", Grade: attach.Against, Share: s.stopShare})
}
