package timeline

import (
	"github.com/whystall/whystall/exectrace"
)

// STWs lists the stop-the-worlds that are kept, oldest first; the number of the first is base.
func (t *Timeline) STWs() (list []STW, base uint32) { return t.ranges.stws, t.ranges.stwsLost }

// before is the number of stop-the-worlds that began before e. Who explains asks for ever earlier times, so that the
// last answer is near.
func (t *Timeline) before(e int64) int {
	l, i := t.ranges.stws, min(t.ranges.near, len(t.ranges.stws))
	for i < len(l) && l[i].Begin < e {
		i++
	}
	for i > 0 && l[i-1].Begin >= e {
		i--
	}
	t.ranges.near = i
	return i
}

// Stopped gives, of what of [s,e) the world was being stopped or was stopped, the latest stretch, and the number of
// the stop-the-world. False: none.
func (t *Timeline) Stopped(s, e int64) (begin, end int64, n uint32, ok bool) {
	l := t.ranges.stws
	if n := len(l); n == 0 || l[n-1].End != 0 && l[n-1].End <= s {
		return 0, 0, 0, false // asked of the latest, as mostly
	}
	for i := t.before(e) - 1; i >= 0; i-- {
		begin, end = max(s, l[i].Begin), min(e, l[i].until(t.now))
		if begin < end {
			return begin, end, t.ranges.stwsLost + uint32(i), true
		}
		if l[i].End != 0 && l[i].End <= s {
			break
		}
	}
	return 0, 0, 0, false
}

// STWBefore gives the number of the last stop-the-world that began before e and had not ended by s.
func (t *Timeline) STWBefore(s, e int64) (n uint32, ok bool) {
	i := t.before(e) - 1
	if i < 0 || t.ranges.stws[i].End != 0 && t.ranges.stws[i].End <= s {
		return 0, false
	}
	return t.ranges.stwsLost + uint32(i), true
}

func (s *STW) until(now int64) int64 {
	if s.Start != 0 {
		return s.Start
	}
	return now
}

// RangeNS is how much of [s,e) overlaps with a stop-the-world's whole range, its starting included.
func (t *Timeline) RangeNS(s, e int64) (ns int64) {
	l := t.ranges.stws
	for i := t.before(e) - 1; i >= 0; i-- {
		end := l[i].End
		if end == 0 {
			end = t.now
		}
		if end <= s {
			break
		}
		ns += max(0, min(e, end)-max(s, l[i].Begin))
	}
	return ns
}

// MarkNS is how much of [s,e) the concurrent mark phase was open.
func (t *Timeline) MarkNS(s, e int64) (ns int64) {
	l, i := t.ranges.marks, min(t.ranges.nearMark, len(t.ranges.marks))
	if n := len(l); n == 0 || l[n-1].End != 0 && l[n-1].End <= s {
		return 0
	}
	for i < len(l) && l[i].Begin < e {
		i++
	}
	for i > 0 && l[i-1].Begin >= e {
		i--
	}
	t.ranges.nearMark = i
	for i--; i >= 0; i-- {
		end := l[i].End
		if end == 0 {
			end = t.now
		}
		if end <= s {
			break
		}
		ns += max(0, min(e, end)-max(s, l[i].Begin))
	}
	return ns
}

// SilenceIn is how much of [s,e) was silence.
func (t *Timeline) SilenceIn(s, e int64) (ns int64) {
	l := t.Silences
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].End <= s {
			break
		}
		ns += max(0, min(e, l[i].End)-max(s, l[i].Begin))
	}
	return ns
}

// GC sums up the collector.
type GC struct {
	Cycles, MarkNS, AssistNS  int64
	GoalMin, GoalMax, LiveMax int64
	Marked, Goal              int64 // averages over the cycles: heap found live, goal until the next; 0 not known
	Assists, Triggers         map[exectrace.StackID]*SiteSum
}

// GC is what the collector did up to now.
func (t *Timeline) GC() GC {
	r := &t.ranges
	g := GC{Cycles: r.Cycles, MarkNS: r.MarkNS, AssistNS: r.assistNS, GoalMin: r.GoalMin, GoalMax: r.GoalMax, LiveMax: r.LiveMax,
		Assists: r.assists, Triggers: r.triggers}
	if r.marked > 0 {
		g.Marked, g.Goal = r.markedSum/r.marked<<10, r.goalSum/r.marked<<10
	}
	if n := len(r.marks); n > 0 && r.marks[n-1].End == 0 {
		g.MarkNS += t.now - r.marks[n-1].Begin
	}
	return g
}

// Sweeps lists the longest, longest first.
func (t *Timeline) Sweeps() []Sweep { return t.ranges.top }
