package oldclock

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

// staysMost bounds what is read of the kernel's side, 24 bytes each.
const staysMost = 1 << 22

// stay is a stretch that a thread was on a CPU.
type stay struct {
	begin, end int64
	th         int32
}

// stays is the kernel's side.
type stays struct {
	list       []stay // in order of their beginnings
	by         [][]stay
	tids       []uint32
	onNS       []int64
	begin, end int64
}

func readStays(k *sched.Timeline) *stays {
	x := &stays{}
	x.begin, x.end = k.Span()
	var tid uint32
	var by []stay
	n := 0
	k.Stays(func(next uint32) {
		x.add(tid, by)
		tid, by = next, nil
	}, func(b, e int64) {
		if n++; n <= staysMost {
			by = append(by, stay{b, e, int32(len(x.by))})
		}
	})
	x.add(tid, by)
	x.sort()
	return x
}

// add adds a thread that was on a CPU at all.
func (x *stays) add(tid uint32, by []stay) {
	if len(by) == 0 {
		return
	}
	x.tids, x.by = append(x.tids, tid), append(x.by, by)
	var on int64
	for _, s := range by {
		on += s.end - s.begin
	}
	x.onNS = append(x.onNS, on)
}

// sort makes the list of all.
func (x *stays) sort() {
	for _, l := range x.by {
		x.list = append(x.list, l...)
	}
	slices.SortFunc(x.list, func(a, b stay) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.th, b.th)) })
}

// came lists when threads came to a CPU after being off it for a while, at most the most that were
// off longest, in order of time. It returns how long that while is.
func (x *stays) came(least int64, most int) (l []int64, off int64) {
	type back struct{ at, off int64 }
	var all []back
	for _, by := range x.by {
		for i := 1; i < len(by); i++ {
			if d := by[i].begin - by[i-1].end; d >= least {
				all = append(all, back{by[i].begin, d})
			}
		}
	}
	if len(all) > most {
		slices.SortFunc(all, func(a, b back) int { return cmp.Or(cmp.Compare(b.off, a.off), cmp.Compare(a.at, b.at)) })
		all = all[:most]
		least = all[most-1].off
	}
	for _, b := range all {
		l = append(l, b.at)
	}
	slices.Sort(l)
	return l, least
}
