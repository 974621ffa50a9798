package thread

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/unit"
)

// Threads' units are all known before any is explained. So only those are that the columns are made of, and not, as of goroutines' requests, each
// that may turn out to be slow: of units that wait behind each other that was four times as many, and each of them tells of all that went before it.

// unit adds a unit of work to its group and gives for how long it was on a CPU; -1: it is in no column.
func (t *pass) unit(u *unit.Unit) (own int64) {
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
	own = t.own(grp, u)
	grp.Tally(wall)
	grp.Candidate(wall, t.o.SlowOver) // counts those over it
	h := books.Hash(uint64(u.TID), uint64(b))
	grp.Draw(own, h)
	return own
}

// mostUnitNS is longer than any recording: such a unit is a damaged one.
const mostUnitNS = 1<<47 - 1

func (t *pass) rel(u *unit.Unit) (begin, end int64) {
	return u.Begin - t.base, u.End - t.base
}

// picked is a unit that is explained.
type picked struct {
	unit  int32
	slow  bool // or one of the next, should all groups have too few slow ones
	other bool // of the sample
}

// pick chooses who is explained once all units are known, in their order.
func (t *pass) pick(own []int64) (list []picked) {
	least, most := t.books.Settle()
	slow := make([][]int32, len(least)) // by group
	for i := range own {
		if own[i] < 0 {
			continue
		}
		u := &t.units.Units[i]
		b, e := t.rel(u)
		if e-b >= least[u.Group] {
			slow[u.Group] = append(slow[u.Group], int32(i))
		}
		if t.books.Group(u.Group).Drawn(own[i], books.Hash(uint64(u.TID), uint64(b))) {
			list = append(list, picked{unit: int32(i), other: true})
		}
	}
	for id, l := range slow {
		if t.o.SlowOver == 0 && len(l) > 0 {
			slices.SortFunc(l, func(a, b int32) int {
				x, y := &t.units.Units[a], &t.units.Units[b]
				return cmp.Or(cmp.Compare(y.End-y.Begin, x.End-x.Begin), cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.TID, y.TID), cmp.Compare(a, b))
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
			list[n-1].slow, list[n-1].other = true, true
			continue
		}
		list[n] = c
		n++
	}
	return list[:n]
}

// keep explains a unit that was picked and keeps what was found.
func (t *pass) keep(u *unit.Unit, own int64, c picked) {
	grp := t.books.Group(u.Group)
	b, e := t.rel(u)
	h := books.Hash(uint64(u.TID), uint64(b))
	slow, other := c.slow && grp.Fits(e-b), c.other && grp.Wants(own, h)
	if !slow && !other {
		return
	}
	k := &books.Kept{Begin: b, End: e, Running: own, Number: int64(u.TID), Hash: h, Group: grp}
	t.explain(k, u)
	t.books.Keep(k, slow, other, func() []request.Group { return t.units.Groups })
}
