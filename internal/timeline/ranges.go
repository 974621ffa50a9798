package timeline

import "github.com/whystall/whystall/exectrace"

// rangeEvent takes the start or end of a range: a mark phase of the whole process, or an assist, a
// sweep or a stop-the-world of one goroutine. That goroutine's running segment is cut there.
func (t *Timeline) rangeEvent(ev *exectrace.Event, now int64) {
	if ev.Range == exectrace.RangeGC {
		if ev.Kind == exectrace.KindRangeEnd {
			t.gc.markEnd(now)
		} else {
			t.gc.markBegin(ev.Stack, now)
		}
		return
	}
	slot, id := t.rangeOwner(ev)
	if slot == exectrace.NoSlot {
		return
	}
	var g *G
	if ev.Kind == exectrace.KindRangeActive {
		// the goroutine need not run
		g, _ = t.slotOf(slot, id)
		if g != nil && g.Cur == 0 {
			t.enter(g, now, Unknown.bits()|metaFirst, 0)
		}
	} else {
		g = t.actor(slot, id, now)
	}
	if g == nil || t.stale(g) || ev.Range == exectrace.RangeNone {
		return
	}
	if ev.Kind == exectrace.KindRangeEnd {
		t.rangeEnd(g, ev, slot, now)
	} else {
		t.rangeBegin(g, ev, slot, now)
	}
	if g.state() == Running {
		t.run(g, now, 0)
	}
}

// rangeOwner is the goroutine that a range is on; NoSlot: none. A sweep of old formats names its P.
func (t *Timeline) rangeOwner(ev *exectrace.Event) (slot uint32, id exectrace.GoID) {
	if ev.Slot != exectrace.NoSlot {
		return ev.Slot, ev.G
	}
	if ev.OnSlot != exectrace.NoSlot {
		return ev.OnSlot, ev.On
	}
	if ev.Range == exectrace.RangeSweep && ev.Proc >= 0 && int(ev.Proc) < len(t.procs.ps) {
		slot = t.procs.ps[ev.Proc].slot
		if g := t.Slot(slot); g != nil {
			return slot, t.idents[g.Ident].GoID
		}
	}
	return exectrace.NoSlot, 0
}

func (t *Timeline) rangeBegin(g *G, ev *exectrace.Event, slot uint32, now int64) {
	switch ev.Range {
	case exectrace.RangeAssist:
		g.assistStack, g.assistStart = uint32(ev.Stack), now
		g.ranges |= metaAssist
		if g.proc >= 0 {
			t.procs.assist(g.proc, now)
		}
	case exectrace.RangeSweep:
		g.rangeStack = uint32(ev.Stack)
		g.sweep = t.gc.sweepBegin(slot, now, t.idents[g.Ident].GoID, ev.Stack)
		g.ranges |= metaSweep
		if g.proc >= 0 {
			t.procs.rename(g.proc, g.holder(), now)
		}
	case exectrace.RangeSTW:
		g.rangeStack = uint32(ev.Stack)
		t.stwBegin(g, ev, slot, now)
		g.ranges |= metaSTW
	}
}

func (t *Timeline) rangeEnd(g *G, ev *exectrace.Event, slot uint32, now int64) {
	switch ev.Range {
	case exectrace.RangeAssist:
		if g.ranges&metaAssist != 0 {
			t.gc.assisted(exectrace.StackID(g.assistStack), now-g.assistStart)
		}
		g.ranges &^= metaAssist
		if g.proc >= 0 {
			t.procs.assistEnd(g.proc, now)
		}
	case exectrace.RangeSweep:
		if g.ranges&metaSweep != 0 {
			t.gc.sweepEnd(slot, now, ev.Arg[0], ev.Arg[1])
		}
		g.ranges &^= metaSweep
		if g.proc >= 0 {
			t.procs.rename(g.proc, g.holder(), now)
		}
	case exectrace.RangeSTW:
		t.stops.end(now)
		g.ranges &^= metaSTW
	}
}

func (t *Timeline) stwBegin(g *G, ev *exectrace.Event, slot uint32, now int64) {
	if ev.Kind == exectrace.KindRangeActive && t.stops.phase != stwNone && slot == t.stops.initSlot {
		return // repeated by a generation
	}
	id := &t.idents[g.Ident]
	if id.Entry <= t.launchers && ev.Stack != 0 {
		id.Entry = t.Get(ev.Stack).Entry
	}
	t.stops.begin(STW{Begin: now, Kind: ev.Name, GoID: id.GoID, Initiator: id.Entry,
		Stack: ev.Stack}, slot, g.proc, ev.M)
}
