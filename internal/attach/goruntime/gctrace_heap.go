package goruntime

import (
	"fmt"
	"math"
	"slices"

	"github.com/whystall/whystall/internal/attach"
)

// heapGrown is the size in MB from which a growing heap is worth a word.
const heapGrown = 16

// noGoal is a goal in MB that no machine has: the runtime prints what its number holds where GOGC
// sets none.
const noGoal = 1 << 40

// rises reports whether most sizes are larger than the one before, and the last one is the largest.
func rises(live []float64) bool {
	up := 0
	for i := 1; i < len(live); i++ {
		if live[i] >= live[i-1] {
			up++
		}
	}
	return len(live) >= someCycles && live[len(live)-1] >= slices.Max(live) && 5*up >= 4*(len(live)-1)
}

// falls reports whether a heap has fallen below half of what it was: then it comes and goes.
func falls(live []float64) bool {
	most := 0.0
	for _, v := range live {
		if most = max(most, v); most >= heapGrown && 2*v < most {
			return true
		}
	}
	return false
}

func heapFigure(cs []cycle, last cycle) string {
	var live, goal []float64
	off := 0
	for _, c := range cs {
		live = append(live, c.live)
		if c.goal >= noGoal && last.goal < noGoal {
			off++ // it is switched on again
			continue
		}
		goal = append(goal, c.goal)
	}
	t := fmt.Sprintf("heap: %.0f MB live%s", attach.Median(live), medianOf(cs))
	if least, most := slices.Min(live), slices.Max(live); falls(live) {
		t += fmt.Sprintf(", %.0f to %.0f MB", least, most)
	}
	if first := live[0]; last.live >= heapGrown && last.live >= 2*first && !falls(live) &&
		(last.live >= 2*attach.Median(live) || rises(live)) {
		t = fmt.Sprintf("heap: it grows from %.0f MB live in gc %d to %.0f MB in gc %d", first,
			cs[0].n, last.live, last.n)
		goal = []float64{last.goal}
	}
	if middle := attach.Median(live); middle >= heapGrown && last.live <= middle/2 {
		t += fmt.Sprintf(", %.0f MB after the last cycle", last.live)
	}
	switch least, most := slices.Min(goal), slices.Max(goal); {
	case last.goal <= 0:
	case last.goal >= noGoal:
		t += ", no goal: the collector is switched off (GOGC=off, or a negative GOGC), and runs only when it is asked for"
		if least < noGoal {
			t += fmt.Sprintf("; before that a goal of %.0f MB at least", least)
		}
	case least > 0 && !alike(least, most):
		t += fmt.Sprintf(", goal %.0f to %.0f MB, %.0f MB in the last cycle", least, most, last.goal)
	default:
		t += fmt.Sprintf(", goal %.0f MB", attach.Median(goal))
		if math.Round(least) != math.Round(most) {
			t += fmt.Sprintf(" (median), %.0f MB in the last cycle", last.goal)
		}
	}
	if off > 0 {
		t += fmt.Sprintf("; %s no goal: the collector was switched off meanwhile (GOGC=off, or a negative GOGC)",
			count(off, "cycle has", "cycles have"))
	}
	return t
}
