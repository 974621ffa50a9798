package unit

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/request"
)

// Herds: who puts work into a queue wakes all that wait there, one of them gets it, and the others look and wait again. What they do is no
// unit of work, and there are so many of them that the slowest would be chosen among them. They are told by the wake-ups that come in one go,
// and by the CPU time, of which nearly all of a herd need a small part of what the one with the work needs. A loop whose parts are given to all threads
// at once looks alike but for that; of its parts those that are left out could only be the least.

// A herd: woken by one thread with no more than this between two of them; so many at least; and a part of the CPU time of
// who has the work that is none. Most of the group's units are of herds, and most of those are for nothing, else there is none.
const (
	herdGapNS    = 100e3
	leastHerd    = 8
	futilePart   = 4
	mostOfGroup  = 3
	ofFourUnits  = 4
	fairlyShared = 2
)

func (f *finder) herds() {
	t := &f.t
	of := make([][]int32, len(t.Groups)) // units by group
	for i := range t.Units {
		u := &t.Units[i]
		if r := &t.roles[f.ofGroup[u.Group]]; u.LeftOut == request.Kept && u.Waker != 0 && r.tier == tierChan && t.Groups[u.Group].Kind == "thread loop" {
			of[u.Group] = append(of[u.Group], int32(i))
		}
	}
	for g, units := range of {
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
			for n < len(units) && t.Units[units[n]].Waker == t.Units[units[i]].Waker && t.Units[units[n]].Begin-t.Units[units[n-1]].Begin <= herdGapNS {
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
		// Of a herd whose work was taken by a thread that was awake, none has any: what work takes is told by all herds.
		slices.Sort(longest)
		least := longest[len(longest)/2] / futilePart
		var futile []int32
		for _, h := range herds {
			for _, n := range h {
				if f.onNS[n] < least {
					futile = append(futile, n)
				}
			}
		}
		group, r := &t.Groups[g], &t.roles[f.ofGroup[g]]
		if herded*ofFourUnits < len(units)*mostOfGroup || len(futile)*fairlyShared < herded {
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
	f.onNS = nil
}

// longestOn is the longest CPU time of these units.
func (f *finder) longestOn(units []int32) (ns uint32) {
	for _, n := range units {
		ns = max(ns, f.onNS[n])
	}
	return ns
}
