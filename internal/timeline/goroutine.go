package timeline

import "github.com/whystall/whystall/exectrace"

// slotOf is the goroutine of an event, made if it is not there.
func (t *Timeline) slotOf(slot uint32, id exectrace.GoID) (g *G, isNew bool) {
	const most = 1 << 22 // the reader's slots are dense; this bounds what a broken one asks for
	if slot >= most {
		return nil, false
	}
	for int(slot) >= len(t.slots) {
		t.slots = append(t.slots, make([]G, max(16, len(t.slots)))...)
	}
	g = &t.slots[slot]
	if g.goid == id && g.Ident != 0 {
		return g, false
	}
	if g.Ident != 0 {
		t.leave(g, t.now)
		t.detach(g)
	}
	*g = G{Ident: t.newIdent(id, &t.ring), goid: id, proc: -1, epoch: uint32(len(t.gaps))}
	return g, true
}

func (t *Timeline) detach(g *G) {
	t.dead = append(t.dead, deadIdent{t.head, g.Ident})
	*g = G{proc: -1}
}

// leave undoes what g's present state counts for.
func (t *Timeline) leave(g *G, now int64) {
	if t.stale(g) {
		g.proc = -1
		return
	}
	switch g.state() {
	case Runnable:
		t.runnableNS += now
		if t.runnable--; t.runnable == 0 {
			t.procs.setWork(false, now)
		}
	case Waiting:
		if int(g.site) < len(t.waiting) {
			t.waiting[g.site]--
		}
	case Running, Syscall:
		if g.proc >= 0 {
			t.procs.release(g.proc, now, g.Ident, g.stack)
			g.proc = -1
		}
	}
}

// Pin makes sure that the segment g is in is kept: that of a very long wait is put back.
func (t *Timeline) Pin(g *G) {
	if g.Cur == 0 || t.alive(g.Cur) {
		return
	}
	s, seq := t.add()
	*s = Segment{w: uint64(g.start)<<16 | g.meta, Stack: g.stack}
	if st := g.state(); st == Running || st == Syscall {
		s.EnderSeg = g.thread
	}
	g.Cur = seq
}

// enter begins g's next segment. The counts of the state are the caller's.
func (t *Timeline) enter(g *G, now int64, meta uint64, stack uint32) *Segment {
	prev := uint32(0)
	if g.Cur != 0 {
		t.Pin(g)
		prev = uint32(g.Cur)
	}
	s, seq := t.add()
	meta |= g.ranges
	*s = Segment{w: uint64(now)<<16 | meta, Prev: prev, Stack: stack}
	g.Cur, g.start, g.meta, g.stack = seq, now, meta, stack
	return s
}

// run begins a running segment, with the ranges it is in.
func (t *Timeline) run(g *G, now int64, meta uint64) {
	s := t.enter(g, now, meta|Running.bits(), g.innermost())
	s.EnderSeg, g.thread = t.thread, t.thread
	if g.ranges&metaSweep != 0 {
		s.Ender = g.sweep
	}
}

// innermost is where the innermost of g's ranges began, 0 outside of all.
func (g *G) innermost() uint32 {
	switch {
	case g.ranges&^metaAssist != 0:
		return g.rangeStack
	case g.ranges != 0:
		return g.assistStack
	}
	return 0
}

// call begins a segment in a syscall.
func (t *Timeline) call(g *G, now int64, meta uint64, stack uint32) {
	s := t.enter(g, now, meta|Syscall.bits(), stack)
	s.EnderSeg, g.thread = t.thread, t.thread
}

// moved cuts the segment of a goroutine that a status finds on another thread than before.
func (t *Timeline) moved(g *G, now int64) {
	if t.thread == noThread || t.thread == g.thread {
		return
	}
	switch g.state() {
	case Running:
		t.run(g, now, 0)
	case Syscall:
		t.call(g, now, 0, g.stack)
	}
}

// revive gives a goroutine that a gap made unknown a segment that says so. The caller gives it its
// state.
func (t *Timeline) revive(g *G, now int64) {
	at, stale := t.StaleAt(g)
	if !stale {
		return
	}
	g.ranges = 0
	g.epoch = uint32(len(t.gaps))
	g.proc = -1
	if g.Cur != 0 {
		t.Pin(g)
		t.at(g.Cur).w |= metaGap // who ended it cannot be known any more
		t.enter(g, max(at, g.start), Unknown.bits()|metaGap, 0)
	}
	g.meta = Unknown.bits() | metaGap
}

// actor is the goroutine that did something to another: at least it runs.
func (t *Timeline) actor(slot uint32, id exectrace.GoID, now int64) *G {
	g, isNew := t.slotOf(slot, id)
	if g == nil {
		return nil
	}
	if isNew || t.stale(g) {
		meta := uint64(0)
		if isNew {
			meta = metaFirst
		}
		t.revive(g, now)
		t.run(g, now, meta)
	}
	return g
}

// transition takes a goroutine from one state to another:
//  1. Find it, or make it.
//  2. Inside a gap the event says only who exists.
//  3. A goroutine that a gap made unknown gets a segment which says so. A status that repeats what
//     is known changes nothing.
//  4. Births and wake-ups have an actor. A goroutine that goes into a syscall, or comes
//     back at once, keeps its P.
//  5. Of any other the state is left, with all it counts for, and the next is entered.
func (t *Timeline) transition(ev *exectrace.Event, now int64) {
	var first uint64
	var g *G
	isNew := false
	if int(ev.Slot) < len(t.slots) && t.slots[ev.Slot].goid == ev.G && t.slots[ev.Slot].Ident != 0 {
		g = &t.slots[ev.Slot] // as slotOf does, without the call
	} else if g, isNew = t.slotOf(ev.Slot, ev.G); g == nil {
		return
	}
	if now < t.inGapUntil {
		t.insideGap(g, isNew, ev, now)
		return
	}
	t.lostAll = false
	switch {
	case isNew && ev.From == exectrace.NotExist && ev.To != exectrace.NotExist:
		t.born(g, ev, now)
		return
	case isNew:
		first = metaFirst
	case t.stale(g):
		t.revive(g, now)
	case ev.From == ev.To:
		if ev.Stack != 0 && g.stack == 0 && g.state() == Waiting {
			t.learnWait(g, ev)
		}
		t.moved(g, now)
		return
	}
	from := g.state()
	if ev.To == exectrace.Runnable && from == Waiting {
		t.wake(ev, now)
		return
	}
	if g.meta&(7|metaFirst|metaGap) == Syscall.bits() && ev.To != exectrace.Syscall && g.stack != 0 {
		t.called(g, now)
	}
	if g.proc >= 0 && from == Syscall && ev.To == exectrace.Running && int32(ev.P) == g.proc {
		t.procs.back(g.proc, now)
		t.run(g, now, first)
		return
	}
	if ev.To == exectrace.Syscall && g.proc >= 0 && from == Running {
		t.learnEntry(g, ev.Stack)
		t.procs.syscall(g.proc, now)
		t.call(g, now, first, uint32(ev.Stack))
		return
	}
	if ev.Stack != 0 && from == Running {
		t.learnEntry(g, ev.Stack)
	}
	if from == Running && g.proc >= 0 {
		g.stack = uint32(ev.Stack) // where it stopped: a stop-the-world may have awaited it
	}
	t.leave(g, now)
	// No goroutine leaves its P while it sweeps: of one that seems to, the sweep's end was lost.
	g.ranges &^= metaSweep
	t.arrive(g, ev, from, first, now)
}

// insideGap takes another thread's event inside a gap: only who exists is known. What a new
// goroutine did is unknown until the gap ends.
func (t *Timeline) insideGap(g *G, isNew bool, ev *exectrace.Event, now int64) {
	if ev.To == exectrace.NotExist {
		t.detach(g)
	} else if isNew {
		g.epoch = uint32(max(len(t.gaps)-1, 0))
		t.learnEntry(g, ev.Stack)
		t.enter(g, now, Unknown.bits()|metaGap|metaFirst, 0)
	}
}

// arrive puts g, which has left its state, into that of ev. First is the bit of a first segment.
func (t *Timeline) arrive(g *G, ev *exectrace.Event, from State, first uint64, now int64) {
	switch ev.To {
	case exectrace.Running:
		t.run(g, now, first)
		t.place(g, ev, now)
	case exectrace.Runnable:
		why := WhyPreempted
		switch {
		case ev.Reason == exectrace.ReasonYield:
			why = WhyYielded
		case from == Syscall:
			why = WhySyscall
		case from == Unknown:
			why = WhyStatus
		}
		t.enter(g, now, Runnable.bits()|why.bits()|first, 0)
		t.ready()
	case exectrace.Waiting:
		t.learnEntry(g, ev.Stack)
		t.enter(g, now, Waiting.bits()|t.class(ev.Reason, ev.Stack).bits()|first, uint32(ev.Stack))
		t.wait(g)
	case exectrace.Syscall:
		t.learnEntry(g, ev.Stack)
		t.call(g, now, first, uint32(ev.Stack))
		t.placeInSyscall(g, ev, now)
	case exectrace.NotExist:
		t.detach(g)
	default:
		t.enter(g, now, Unknown.bits()|first, 0)
	}
}

// called counts a call that ended, if it is a socket's.
func (t *Timeline) called(g *G, now int64) {
	if !t.Get(exectrace.StackID(g.stack)).socket {
		return
	}
	ns := now - g.start
	if ns >= LongCallNS {
		// A world that was stopped meanwhile may keep the call from returning, whatever the thread
		// did.
		if _, _, _, stopped := t.stops.stopped(g.start, now, now); stopped {
			return
		}
	}
	if t.old {
		ns = max(ns, shortCallNS)
	}
	t.Calls.add(ns)
}

// ready counts one more runnable goroutine.
func (t *Timeline) ready() {
	t.runnableNS -= t.now
	if t.runnable++; t.runnable == 1 {
		t.procs.setWork(true, t.now)
	}
	t.runnableMax = max(t.runnableMax, t.runnable)
}

// wait counts g as waiting at its site.
func (t *Timeline) wait(g *G) {
	t.waitAtSite(g, t.Get(exectrace.StackID(g.stack)), waitOf(g.meta))
}

func (t *Timeline) waitAtSite(g *G, info *Stack, w Wait) {
	g.site = info.Site
	if w == WaitLock {
		g.site = info.LockSite
	}
	for uint(g.site) >= uint(len(t.waiting)) {
		t.waiting = append(t.waiting, make([]int32, max(64, len(t.waiting)))...)
	}
	t.waiting[g.site]++
}

// learnWait gives a wait that is known only from a status the stack that a later status has.
func (t *Timeline) learnWait(g *G, ev *exectrace.Event) {
	t.learnEntry(g, ev.Stack)
	w := t.class(ev.Reason, ev.Stack)
	g.stack = uint32(ev.Stack)
	g.meta = g.meta&^(15<<metaWait) | w.bits()
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.Stack = g.stack
		s.w = s.w&^(15<<metaWait) | w.bits()
	}
	t.waiting[g.site]--
	t.wait(g)
}

// nameless reports whether g's entry function is not known, or a launcher, or perhaps a wrapper.
func (t *Timeline) nameless(g *G) bool { return g.occupant <= uint32(t.launchers) || g.wrapped }

// learnEntry names g after a stack of its own, unless it has a name.
func (t *Timeline) learnEntry(g *G, stack exectrace.StackID) {
	if !t.nameless(g) || stack == 0 {
		return
	}
	in, id := t.Get(stack), &t.idents[g.Ident]
	if id.Entry <= t.launchers || g.wrapped && in.Entry != 0 && !in.cut {
		id.Entry = in.Entry
		g.occupant = uint32(id.Entry)
	}
	g.wrapped = t.old && (in.alone || g.wrapped && in.Entry == 0)
}

// place puts g on the event's P. False: there is no such P.
func (t *Timeline) place(g *G, ev *exectrace.Event, now int64) bool {
	old, ok := t.procs.take(int32(ev.P), ev.Slot, g.holder(), now)
	if !ok {
		return false
	}
	g.proc = int32(ev.P)
	t.procs.ps[g.proc].thread = t.thread
	// The goroutine that was on the P did not say that it left.
	if o := t.Slot(old); o != nil && o != g && o.proc == g.proc {
		o.proc = -1
	}
	return true
}

// placeInSyscall puts g, which is in a syscall, on the event's P.
func (t *Timeline) placeInSyscall(g *G, ev *exectrace.Event, now int64) {
	if t.place(g, ev, now) {
		t.procs.syscall(g.proc, now)
	}
}
