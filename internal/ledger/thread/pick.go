package thread

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/unit"
)

// All units of threads are known before any is explained. So only the units that make up the
// columns are explained. The ledger of goroutines must explain each request that may turn out to be
// slow. Of units that wait behind each other that was four times as many. And the story of such a
// unit is long, since it holds all that went before it.

// addUnit adds a unit of work to its group, and returns for how long it was on a CPU; -1: it is in
// no column.
func (t *pass) addUnit(u *unit.Unit) (running int64) {
	grp := t.books.Group(u.Group)
	if grp == nil || u.LeftOut != request.Kept {
		return -1
	}
	b, e := t.rel(u)
	wall := e - b
	if wall > mostUnitNS {
		grp.Lose()
		return -1
	}
	running = t.addStates(grp, u)
	grp.Tally(wall)
	t.books.Plot(grp, b, wall, int64(u.TID))
	grp.Candidate(wall, t.o.SlowOver) // counts those over it
	h := books.Hash(uint64(u.TID), uint64(b))
	grp.Draw(running, h)
	return running
}

// mostUnitNS is longer than any recording: a longer unit comes from damaged records.
const mostUnitNS = 1<<47 - 1

// rel is a unit's times in the books.
func (t *pass) rel(u *unit.Unit) (begin, end int64) {
	return u.Begin - t.base, u.End - t.base
}

// picked is a unit that is explained.
type picked struct {
	unit   int32
	slow   bool // slow, or one of the next, should all groups together have too few slow ones
	sample bool // of the sample of others
}

// pick chooses the units that are explained, in their order. running is what addUnit returned for
// each.
func (t *pass) pick(running []int64) (list []picked) {
	least, most := t.books.Settle()
	slow := make([][]int32, len(least)) // by group
	for i := range running {
		if running[i] < 0 {
			continue
		}
		u := &t.units.Units[i]
		b, e := t.rel(u)
		if e-b >= least[u.Group] {
			slow[u.Group] = append(slow[u.Group], int32(i))
		}
		if t.books.Group(u.Group).Drawn(running[i], books.Hash(uint64(u.TID), uint64(b))) {
			list = append(list, picked{unit: int32(i), sample: true})
		}
	}
	for id, l := range slow {
		if t.o.SlowOver == 0 && len(l) > 0 {
			slices.SortFunc(l, func(a, b int32) int {
				x, y := &t.units.Units[a], &t.units.Units[b]
				return cmp.Or(cmp.Compare(y.End-y.Begin, x.End-x.Begin),
					cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.TID, y.TID), cmp.Compare(a, b))
			})
			l = l[:min(int64(len(l)), most[id])]
		}
		for _, i := range l {
			list = append(list, picked{unit: i, slow: true})
		}
	}
	slices.SortFunc(list, func(a, b picked) int { return cmp.Compare(a.unit, b.unit) })
	n := 0
	for _, c := range list {
		if n > 0 && list[n-1].unit == c.unit {
			list[n-1].slow, list[n-1].sample = true, true
			continue
		}
		list[n] = c
		n++
	}
	return list[:n]
}

// keep explains a unit that was picked, and keeps the result.
func (t *pass) keep(u *unit.Unit, running int64, c picked) {
	grp := t.books.Group(u.Group)
	b, e := t.rel(u)
	h := books.Hash(uint64(u.TID), uint64(b))
	slow, sample := c.slow && grp.Fits(e-b), c.sample && grp.Wants(running, h)
	if !slow && !sample {
		return
	}
	k := &books.Kept{Begin: b, End: e, Running: running, Number: int64(u.TID), Hash: h, Group: grp}
	t.explain(k, u)
	t.books.Keep(k, slow, sample, func() []request.Group { return t.units.Groups })
}
