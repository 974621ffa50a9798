package exectrace

import (
	"cmp"
	"slices"
)

// events adds up events that are in order.
func (a *summer) events(b []Event) {
	if len(b) > 0 {
		a.span(b[0].Time, b[len(b)-1].Time)
	}
	for i := range b {
		e := &b[i]
		switch e.Kind {
		case KindGoroutine:
			a.goroutine(e)
		case KindProc:
			if e.Proc < 0 {
				continue // only damage says so
			}
			a.proc(e.Proc, e.Time).to(e.Time, e.To)
		case KindGap:
			a.lost(e.Time)
		case KindRangeBegin, KindRangeActive, KindRangeEnd:
			a.ranges(e)
		case KindMetric:
			if e.Metric == MetricHeapLive {
				a.sum.HeapLiveMax = max(a.sum.HeapLiveMax, e.Arg[0])
			}
		case KindTaskBegin:
			a.sum.Tasks++
		case KindRegionBegin:
			a.sum.Regions++
		case KindLog:
			a.sum.Logs++
		}
	}
}

func (a *summer) goroutine(e *Event) {
	l := a.lifeOf(e)
	if e.From == NotExist && e.Reason != ReasonStatus {
		l.Older = false
		l.NS[Undetermined] = 0
		l.Created = e.Time
		l.named = true
		l.Entry = a.entryOf(e.Stack)
	} else if !l.named && e.Stack != 0 && e.Reason != ReasonUnblock {
		l.named = true
		l.Entry = a.entryOf(e.Stack)
	}
	// A P enters the syscall with its goroutine and leaves it with the goroutine.
	if e.P >= 0 && e.G == e.On {
		if e.To == Syscall && e.From == Running {
			a.proc(e.P, e.Time).to(e.Time, Syscall)
		} else if e.To == Running && e.From == Syscall {
			a.proc(e.P, e.Time).to(e.Time, Running)
		}
	}
	l.to(e.Time, e.To)
	if e.To == NotExist {
		a.end(l, e.Time)
	}
}

func (a *summer) ranges(e *Event) {
	switch e.Range {
	case RangeSTW, RangeGC:
		a.mark(Interval{Begin: e.Time, G: e.G, Name: e.Name, Stack: e.Stack}, e.Range, e.Kind)
	case RangeAssist:
		a.sum.AssistNS += open(a.assist, &a.assists, int64(e.G), e)
	case RangeSweep:
		a.sum.SweepNS += open(a.sweep, &a.sweeps, int64(e.Proc), e)
		if e.Kind == KindRangeEnd {
			a.sum.SweptBytes += e.Arg[0]
			a.sum.ReclaimedBytes += e.Arg[1]
		}
	}
}

// open opens or closes a range of key, and gives what to add to the sum of its times. n counts the
// ranges that an earlier generation left open. Their keys are not known, and their starts are in
// the sum already.
func open(since map[int64]Time, n *int64, key int64, e *Event) int64 {
	s, ok := since[key]
	switch {
	case e.Kind == KindRangeBegin || e.Kind == KindRangeActive && !ok && *n == 0:
		since[key] = e.Time
	case e.Kind == KindRangeEnd && ok:
		delete(since, key)
		return int64(e.Time - s)
	case e.Kind == KindRangeEnd && *n > 0:
		*n--
		return int64(e.Time)
	}
	return 0
}

func (a *summer) count(n *Counts) {
	a.sum.Tasks += n.Tasks
	a.sum.Regions += n.Regions
	a.sum.Logs += n.Logs
	a.sum.SweptBytes += n.SweptBytes
	a.sum.ReclaimedBytes += n.ReclaimedBytes
	a.sum.HeapLiveMax = max(a.sum.HeapLiveMax, n.HeapLiveMax)
}

func (a *summer) summedG(g *sumG, stack StackID, time func(uint64) Time, mul uint64, end Time) {
	if g.start && g.end != 0 {
		// Its whole life is here: it need not be remembered.
		r := &a.one
		*r = GoroutineTotal{G: GoID(g.id), Entry: a.entryOf(stack), Created: time(g.first), Ended: time(g.end)}
		g.addTo(&r.NS, mul)
		a.ended(r)
		return
	}
	first := time(g.first)
	l := a.life(GoID(g.id), first)
	if g.start {
		l.Older = false
	} else if known := goStates[g.state]; l.state == known {
		// Generations overlap a little, hence the max. Behind another trace's generation nothing is
		// sure.
		l.NS[known] = max(0, l.NS[known]+int64(first-l.since))
	} else {
		l.NS[Undetermined] += max(0, int64(first-l.since))
	}
	if !l.named && g.stack != 0 {
		l.named = true
		l.Entry = a.entryOf(stack)
	}
	l.state = g.addTo(&l.NS, mul)
	l.since = end
	if g.end != 0 {
		l.since = time(g.end)
		l.state = NotExist
		a.end(l, l.since)
	}
}

// addTo adds g's times, and gives the state in which it is at the end.
func (g *sumG) addTo(ns *StateTimes, mul uint64) State {
	now := NotExist
	for x, v := range g.acc {
		st := [...]State{Runnable, Running, Waiting, Syscall}[x]
		ns[st] += int64(v&^stillOpen) * int64(mul)
		if v&stillOpen != 0 {
			now = st
		}
	}
	return now
}

// finish closes what is open and orders the sums.
func (a *summer) finish() *Totals {
	end := a.sum.End
	open := make([]uint32, 0, len(a.lives))
	for k := range a.lives {
		if a.lives[k].state != NotExist {
			open = append(open, uint32(k))
		}
	}
	slices.SortFunc(open, func(x, y uint32) int { return cmp.Compare(a.lives[x].G, a.lives[y].G) })
	for _, k := range open {
		l := &a.lives[k]
		l.Alive = true
		a.end(l, max(end, l.since))
	}
	for k := range a.procs {
		if l := &a.procs[k]; l.Created >= 0 {
			l.to(max(end, l.since), Undetermined)
			a.sum.Procs = append(a.sum.Procs, ProcTotal{ProcID(k), l.NS})
		}
	}
	for _, l := range [][]Interval{a.sum.Pauses, a.sum.GCs} {
		for k := range l {
			if l[k].Open {
				l[k].End = end
			}
		}
	}
	a.lostRanges(end)
	slices.SortStableFunc(a.sum.Entries, func(x, y EntryTotal) int {
		return cmp.Or(cmp.Compare(y.NS[Running], x.NS[Running]), cmp.Compare(x.Entry, y.Entry))
	})
	return &a.sum
}
