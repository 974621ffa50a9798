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
