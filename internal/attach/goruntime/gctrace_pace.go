package goruntime

import (
	"fmt"

	"github.com/whystall/whystall/internal/attach"
)

// burstTimes is how many times as near as on average most cycles are to the one before, where they
// come in bursts: then a mean is a pace that never was.
const burstTimes = 10

// pace says how fast cycles follow each other.
func pace(cs []cycle, perSecond float64) string {
	var apart []float64
	longest := 0.0
	for i := 1; i < len(cs); i++ {
		if d := cs[i].at - cs[i-1].at; cs[i].n == cs[i-1].n+1 && d > 0 {
			apart = append(apart, d)
			longest = max(longest, d)
		}
	}
	if middle := attach.Median(apart); len(apart) >= 4 && middle*burstTimes*perSecond < 1 &&
		longest >= burstTimes*middle {
		return fmt.Sprintf("cycles come in bursts, %s apart (median), and for %s there was none",
			ms(1e3*middle), seconds(longest))
	}
	return often(perSecond)
}

// A burst is so many cycles, each within so many medians of the one before, that come so many times
// as fast as all do.
const (
	burstLeast = 10
	burstApart = 4
	burstFast  = 2.0
)

// densest is the longest burst of a run; nil: there is none.
func densest(cs []cycle) (best []cycle) {
	var apart []float64
	for i := 1; i < len(cs); i++ {
		if cs[i].n == cs[i-1].n+1 {
			apart = append(apart, cs[i].at-cs[i-1].at)
		}
	}
	near := burstApart * attach.Median(apart)
	from := 0
	for i := 1; i <= len(cs); i++ {
		if i < len(cs) && cs[i].n == cs[i-1].n+1 && cs[i].at-cs[i-1].at <= near {
			continue
		}
		if i-from > len(best) {
			best = cs[from:i]
		}
		from = i
	}
	n := len(best)
	if n < burstLeast || n == len(cs) {
		return nil
	}
	all, own := cs[len(cs)-1].at-cs[0].at, best[n-1].at-best[0].at
	if own <= 0 || all <= 0 || float64(n-1)/own < burstFast*float64(len(cs)-1)/all {
		return nil
	}
	return best
}

// judgeBurst says what GC costs while a burst lasts, if that is much. A mean over all the time
// hides it.
func judgeBurst(g *attach.Reading, s gcSum, cs, burst []cycle) bool {
	b := sumGC(burst)
	used := b.cpuShare - b.stopShare
	if used < someCPU || b.markShare < gcMarking || 2*b.forced > len(burst) {
		return false
	}
	line := fmt.Sprintf("%d of %s come within %s, %s a second: GC marks %s of that time on %s of the Ps' time (%s by assists), and stops the world for %s",
		len(burst), count(len(cs), "cycle", "cycles"), seconds(b.span), each(b.perSecond),
		percent(b.markShare), percent(used), percent(b.assistAll), percent(b.stopShare))
	g.State = attach.CannotTell
	g.Figures = append([]string{line}, g.Figures...)
	g.Means = "GC comes in bursts: over all the time it costs little, and who works in a burst is slower; " + s.stopsAtMost()
	g.Not = "how often such a burst comes, and how long it lasts in all"
	g.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Candidate, Share: b.cpuShare, Proof: []string{line}}}
	g.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load",
		Why: "says how much of the time is such bursts"}}
	return true
}

// Marking whose longest is so many times the median is worth a word, and so is such a share of it
// that goroutines did which allocate.
const (
	unevenMark  = 1.5
	assistWorth = 0.2
)

// markText says how long the longest marking is, and how much of all goroutines did that allocate.
func markText(s gcSum, cs []cycle) (out string) {
	var most, assist, all float64
	for _, c := range cs {
		most = max(most, c.mark)
		assist, all = assist+c.assist, all+c.assist+c.workers+c.idleWorkers
	}
	if most >= unevenMark*s.medianMark && most >= 1 {
		out = fmt.Sprintf(", %s at most", ms(most))
	}
	if share := ratio(assist, all); share >= assistWorth && all >= 1 {
		out += fmt.Sprintf(", %s of its CPU time by goroutines that allocate (assists)", percent(share))
	}
	return out
}

// medianOf is the word behind a median; "": there is one value only.
func medianOf(cs []cycle) string {
	if len(cs) == 1 {
		return ""
	}
	return " (median)"
}

// printedText is GC's share of the CPU since the start, as the lines print it.
func printedText(cs []cycle) string {
	most, last := mostSince(cs), cs[len(cs)-1].sinceStart
	if most > last {
		return fmt.Sprintf("as printed, GC used up to %.0f %% of the CPU since the program started, and %s at the end", most, whole100(last))
	}
	return fmt.Sprintf("as printed, GC used %s of the CPU since the program started", whole100(last))
}

// apart says how near cycles are to each other that are too few for a rate.
func apart(s gcSum) string {
	if s.perSecond <= 1 {
		return ""
	}
	return fmt.Sprintf("cycles %s apart (mean), ", ms(1e3/s.perSecond))
}

// beforeText is the most that was seen in the cycles that are left out.
func beforeText(cs []cycle) string {
	mark, stop, live, size := 0.0, 0.0, 0.0, 0.0
	for _, c := range cs {
		mark, stop = max(mark, c.mark), max(stop, c.stop1, c.stop2)
		live, size = max(live, c.live), max(size, c.before)
	}
	return fmt.Sprintf("before them, %s: marking %s at most, beside the program, stops %s at most, and a heap of up to %.0f MB, %.0f MB live", cyclesText(cs), ms(mark), ms(stop), size, live)
}
