package ledger

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/unit"
)

// Threads' units are all known before any is explained. So only those are that the columns are made of, and not, as of goroutines' requests, each
// that may turn out to be slow: of units that wait behind each other that was four times as many, and each of them tells of all that went before it.

// unit adds a unit of work to its group and gives for how long it was on a CPU; -1: it is in no column.
func (t *threadPass) unit(u *unit.Unit) (own int64) {
	grp := t.group(u.Group)
	if grp == nil || u.LeftOut != request.Kept {
		return -1
	}
	b, e := t.rel(u)
	wall := e - b
	if wall != u.End-u.Begin { // longer than any recording: a damaged one
		grp.gone++
		return -1
	}
	own = t.own(grp, u)
	grp.tally(wall)
	grp.candidate(wall, t.o.SlowOver) // counts those over it
	h := hash2(uint64(u.TID), uint64(b))
	for int(u.Group) >= len(t.picks) {
		t.picks = append(t.picks, &[strata][]uint64{})
	}
	if l := &t.picks[u.Group][stratum(own)]; len(*l) < perStratum || h < (*l)[len(*l)-1] {
		i, _ := slices.BinarySearch(*l, h)
		*l = slices.Insert(*l, i, h)
		*l = (*l)[:min(len(*l), perStratum)]
	}
	return own
}

func (t *threadPass) rel(u *unit.Unit) (begin, end int64) {
	return t.tl.Rel(exectrace.Time(u.Begin)), t.tl.Rel(exectrace.Time(u.End))
}

// picked is a unit that is explained.
type picked struct {
	unit  int32
	slow  bool // or one of the next, should all groups have too few slow ones
	other bool // of the sample
}

// pick chooses who is explained once all units are known, in their order.
func (t *threadPass) pick(own []int64) (list []picked) {
	slow := make([][]int32, len(t.groups)) // by group
	for _, g := range t.groups {
		switch {
		case g == nil:
		case t.o.SlowOver > 0:
			g.thr = t.o.SlowOver
		default:
			g.thr = g.hist.least(g.slowest() + atLeast)
		}
	}
	for i := range own {
		if own[i] < 0 {
			continue
		}
		u := &t.units.Units[i]
		g := t.groups[u.Group]
		b, e := t.rel(u)
		if e-b >= g.thr {
			slow[u.Group] = append(slow[u.Group], int32(i))
		}
		if l := t.picks[u.Group][stratum(own[i])]; hash2(uint64(u.TID), uint64(b)) <= l[len(l)-1] {
			list = append(list, picked{unit: int32(i), other: true})
		}
	}
	for id, l := range slow {
		if t.o.SlowOver == 0 && len(l) > 0 {
			slices.SortFunc(l, func(a, b int32) int {
				x, y := &t.units.Units[a], &t.units.Units[b]
				return cmp.Or(cmp.Compare(y.End-y.Begin, x.End-x.Begin), cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.TID, y.TID), cmp.Compare(a, b))
			})
			l = l[:min(int64(len(l)), t.groups[id].slowest()+atLeast)]
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
func (t *threadPass) keep(u *unit.Unit, own int64, c picked) {
	grp := t.groups[u.Group]
	b, e := t.rel(u)
	h := hash2(uint64(u.TID), uint64(b))
	slow, other := c.slow && e-b >= grp.floor, c.other && grp.wants(own, h)
	if !slow && !other {
		return
	}
	k := &kept{begin: b, end: e, own: own, goid: int64(u.TID), hash: h, group: grp}
	t.explain(k, u)
	if slow {
		grp.cands, grp.walls = append(grp.cands, k), append(grp.walls, k.wall())
		t.bytes += k.size()
	}
	if other {
		t.bytes += grp.sample(k)
	}
	if t.bytes > maxKept {
		t.shrink()
	}
}
