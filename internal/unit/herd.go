package unit

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/request"
)

const (
	// herdGapNS is the most time between two wake-ups of one herd: one call wakes all.
	herdGapNS = 100e3
	leastHerd = 8
	// A thread that ran for less than one part in futilePart of what the work takes had none of it.
	futilePart = 4
	// A group has herds only if herdedUnits in ofUnits of its units are of one, and one in
	// futileUnits of those was for nothing.
	herdedUnits, ofUnits = 3, 4
	futileUnits          = 2
)

// herds leaves out units of threads that were woken for nothing. A thread that puts work into a
// queue may wake all that wait there. One of them gets it; the others look and wait again. What
// they did is no unit of work, and there are so many of them that the slow requests would be chosen
// among them.
//  1. A herd is units whose threads one thread woke at nearly the same time.
//  2. The CPU time that the work takes is the median, over the herds, of the most that a member
//     needed.
//  3. Units that needed a small part of it were for nothing.
//  4. Unless herds with such units are the rule in the group, there is none: a loop whose parts are
//     given to all threads at once looks alike but for the CPU time. What would be left out of such
//     a loop is only its smallest parts.
func (f *finder) herds() {
	t := &f.set
	groupUnits := make([][]int32, len(t.Groups))
	for i := range t.Units {
		u := &t.Units[i]
		if r := &t.roles[f.groupRole[u.Group]]; u.LeftOut == request.Kept && u.Waker != 0 &&
			r.tier == tierThread && t.Groups[u.Group].Kind == request.KindThreadLoop {
			groupUnits[u.Group] = append(groupUnits[u.Group], int32(i))
		}
	}
	for g, units := range groupUnits {
		if len(units) < leastHerd {
			continue
		}
		slices.SortFunc(units, func(a, b int32) int {
			x, y := &t.Units[a], &t.Units[b]
			return cmp.Or(cmp.Compare(x.Waker, y.Waker), cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.TID, y.TID))
		})
		var herds [][]int32
		var longest []uint32
		herded := 0
		for i := 0; i < len(units); {
			n := i + 1
			for n < len(units) && t.Units[units[n]].Waker == t.Units[units[i]].Waker &&
				t.Units[units[n]].Begin-t.Units[units[n-1]].Begin <= herdGapNS {
				n++
			}
			if n-i >= leastHerd {
				herded += n - i
				herds = append(herds, units[i:n])
				longest = append(longest, f.longestOn(units[i:n]))
			}
			i = n
		}
		if len(herds) == 0 {
			continue
		}
		// A thread that was awake may take the work before the herd: then none of them has any. So
		// the measure is what the work takes in all herds.
		slices.Sort(longest)
		least := longest[len(longest)/2] / futilePart
		var futile []int32
		for _, h := range herds {
			for _, n := range h {
				if f.unitCPU[n] < least {
					futile = append(futile, n)
				}
			}
		}
		group, r := &t.Groups[g], &t.roles[f.groupRole[g]]
		if herded*ofUnits < len(units)*herdedUnits || len(futile)*futileUnits < herded {
			continue
		}
		for _, n := range futile {
			u := &t.Units[n]
			u.LeftOut = request.Futile
			group.Count--
			group.LeftOut[request.Futile]++
			r.wallNS -= u.End - u.Begin
		}
	}
	f.unitCPU = nil
}

// longestOn is the longest CPU time of one of these units.
func (f *finder) longestOn(units []int32) (ns uint32) {
	for _, n := range units {
		ns = max(ns, f.unitCPU[n])
	}
	return ns
}
