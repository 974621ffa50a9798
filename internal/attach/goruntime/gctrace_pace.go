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

// apart says how near cycles are to each other that are too few for a rate.
func apart(s gcSum) string {
	if s.perSecond <= 1 {
		return ""
	}
	return fmt.Sprintf("cycles %s apart (mean), ", ms(1e3/s.perSecond))
}

// beforeText is the most that was seen in the cycles that are left out.
func beforeText(cs []cycle) string {
	mark, live := 0.0, 0.0
	for _, c := range cs {
		mark, live = max(mark, c.mark), max(live, c.live)
	}
	return fmt.Sprintf("before them, %s: marking %s at most, beside the program, and up to %.0f MB live", cyclesText(cs), ms(mark), live)
}
