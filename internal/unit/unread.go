package unit

import (
	"math"
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// span is a stretch of time.
type span struct{ begin, end int64 }

// longTurn notes a turn of a thread that computed for onNS, which is leastHeldNS or more.
func (f *finder) longTurn(tid uint32, s span, onNS int64) {
	if f.set.long == nil {
		f.set.long = map[uint32][]span{}
	}
	f.set.long[tid] = append(f.set.long[tid], s)
	f.set.Loop.Long++
	f.set.Loop.LongNS += onNS
}

// InLong reports whether thread tid was in a turn at a time that computed for 2 ms or more without
// a wait for work, and until when that holds.
func (t *Set) InLong(tid uint32, at int64) (long bool, until int64) {
	l := t.long[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].end > at })
	switch {
	case i == len(l):
		return false, math.MaxInt64
	case l[i].begin > at:
		return false, l[i].begin
	}
	return true, l[i].end
}

// unread moves the starts of units back to when their data came, where the loop was at something
// else then. The unit's first read says it: a unit may be several requests whose turns were too
// short to be told.
func (f *finder) unread() {
	t := &f.set
	t.of = map[uint32]unitRange{}
	for i := range t.Units {
		tid := t.Units[i].TID
		r, ok := t.of[tid]
		if !ok {
			r.from = int32(i)
		}
		r.to = int32(i) + 1
		t.of[tid] = r
	}
	first := map[*Unit]int64{} // when each was read first, of those whose data lay there
	f.timeline.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		l := t.Of(e.TID)
		i := sort.Search(len(l), func(i int) bool { return l[i].End > e.End })
		if i == len(l) {
			return true
		}
		u := &l[i]
		if u.LeftOut != request.Kept || u.Taken > e.End || u.Taken <= e.Begin ||
			!t.Groups[u.Group].Listed || f.waitedWithin(e.TID, e.Begin, u.Taken) {
			return true
		}
		if at, seen := first[u]; !seen || e.End < at {
			first[u], u.Begin = e.End, e.Begin
		}
		return true
	}, kernel.SocketReady)
}

// waitedWithin reports whether a thread waited for work at some time of [lo,hi), or is none that
// does so at sockets. Such a wait ends at once where data lies in one of them: then the read that
// took it was not recorded. Of several threads that share the work one may sleep, as another waits
// for sockets.
func (f *finder) waitedWithin(tid uint32, lo, hi int64) bool {
	l := f.set.life(tid, lo)
	if l == nil || l.role < 0 || f.set.roles[l.role].tier != tierNet || !l.aroundSockets() {
		return true
	}
	f.between = f.timeline.Stretches(tid, lo, hi, f.between[:0])
	for i := range f.between {
		s := &f.between[i]
		if s.Doing != sched.Blocked {
			continue
		}
		if k := f.keyOf(s); l.waitsForWorkAt(&k) || k.block == sched.BlockFutex && f.set.roles[l.role].lives > 1 {
			return true
		}
	}
	return false
}
