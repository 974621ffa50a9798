package timeline

import (
	"github.com/whystall/whystall/exectrace"
)

// newIdent takes a free identity: that of a goroutine whose last segment is no longer kept, else a new one.
func (t *Timeline) newIdent(id exectrace.GoID) uint32 {
	const most = 1 << 18 // 6 MB
	if t.deadAt < len(t.dead) {
		d := t.dead[t.deadAt]
		if d.head < t.oldest || len(t.idents) >= most {
			if d.head >= t.oldest {
				t.never++
				t.oldest = min(d.head+1, t.head)
			}
			t.deadAt++
			if t.deadAt > 1024 && t.deadAt*2 > len(t.dead) {
				t.dead = t.dead[:copy(t.dead, t.dead[t.deadAt:])]
				t.deadAt = 0
			}
			t.idents[d.ident] = Ident{GoID: id}
			return d.ident
		}
	}
	t.idents = append(t.idents, Ident{GoID: id})
	return uint32(len(t.idents) - 1)
}

// slotOf is the goroutine of an event, made if it is not there.
func (t *Timeline) slotOf(slot uint32, id exectrace.GoID) (g *G, isNew bool) {
	const most = 1 << 22 // the reader's slots are dense; this only bounds what a broken one could ask for
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
	*g = G{Ident: t.newIdent(id), goid: id, proc: -1, epoch: uint32(len(t.gaps))}
	return g, true
}

func (t *Timeline) detach(g *G) {
	t.dead = append(t.dead, deadIdent{t.head, g.Ident})
	*g = G{proc: -1}
}

// leave undoes what g's present state counts for.
func (t *Timeline) leave(g *G, now int64) {
	if int(g.epoch) != len(t.gaps) {
		g.proc = -1
		return
	}
	switch State(g.meta & 7) {
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

// Pin makes sure that the segment g is in is kept: one that waited for very long is put back.
func (t *Timeline) Pin(g *G) {
	if g.Cur == 0 || t.alive(g.Cur) {
		return
	}
	s, seq := t.add()
	*s = Segment{w: uint64(g.start)<<16 | g.meta, Stack: g.stack}
	if st := State(g.meta & 7); st == Running || st == Syscall {
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

// run begins a running segment, which tells the ranges it is in.
func (t *Timeline) run(g *G, now int64, meta uint64) {
	stack := uint32(0)
	switch {
	case g.ranges&^metaAssist != 0:
		stack = g.rstack
	case g.ranges != 0:
		stack = g.astack
	}
	s := t.enter(g, now, meta|uint64(Running), stack)
	s.EnderSeg, g.thread = t.thread, t.thread
	if g.ranges&metaSweep != 0 {
		s.Ender = g.sweep
	}
}

// call begins a segment in a syscall.
func (t *Timeline) call(g *G, now int64, meta uint64, stack uint32) {
	s := t.enter(g, now, meta|uint64(Syscall), stack)
	s.EnderSeg, g.thread = t.thread, t.thread
}

// moved cuts the segment of a goroutine that a status finds on another thread than it was on.
func (t *Timeline) moved(g *G, now int64) {
	if t.thread == noThread || t.thread == g.thread {
		return
	}
	switch State(g.meta & 7) {
	case Running:
		t.run(g, now, 0)
	case Syscall:
		t.call(g, now, 0, g.stack)
	}
}

// revive gives a goroutine that a gap made unknown a segment that says so. Its state is for the caller to give.
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
		t.enter(g, max(at, g.start), uint64(Unknown)|metaGap, 0)
	}
	g.meta = uint64(Unknown) | metaGap
}

// actor is who did something to another goroutine: at least it runs.
func (t *Timeline) actor(slot uint32, id exectrace.GoID, now int64) *G {
	g, isNew := t.slotOf(slot, id)
	if g == nil {
		return nil
	}
	if _, stale := t.StaleAt(g); isNew || stale {
		meta := uint64(0)
		if isNew {
			meta = metaFirst
		}
		t.revive(g, now)
		t.run(g, now, meta)
	}
	return g
}

// goroutine takes a goroutine from one state to another.
func (t *Timeline) goroutine(ev *exectrace.Event, now int64) {
	var first uint64
	var g *G
	isNew := false
	if int(ev.Slot) < len(t.slots) && t.slots[ev.Slot].goid == ev.G && t.slots[ev.Slot].Ident != 0 {
		g = &t.slots[ev.Slot] // as slotOf does, without the call
	} else if g, isNew = t.slotOf(ev.Slot, ev.G); g == nil {
		return
	}
	if now < t.inGapUntil {
		// Other threads' events inside a gap: only who exists is taken from them.
		if ev.To == exectrace.NotExist {
			t.detach(g)
		} else if isNew {
			g.epoch = uint32(max(len(t.gaps)-1, 0))
			t.learnEntry(g, ev)
			// what it did is unknown until the gap ends
			t.enter(g, now, uint64(Unknown)|metaGap|metaFirst, 0)
		}
		return
	}
	t.lostAll = false
	switch {
	case isNew:
		if ev.From == exectrace.NotExist && ev.To != exectrace.NotExist {
			t.born(g, ev, now)
			return
		}
		first = metaFirst
	default:
		if _, stale := t.StaleAt(g); stale {
			t.revive(g, now)
		} else if ev.From == ev.To {
			if ev.Stack != 0 && g.stack == 0 && State(g.meta&7) == Waiting {
				t.learnWait(g, ev)
			}
			t.moved(g, now)
			return // a status that repeats what is known
		}
	}

	if ev.To == exectrace.Runnable && State(g.meta&7) == Waiting {
		t.wake(g, ev, now)
		return
	}
	if g.meta&(7|metaFirst|metaGap) == uint64(Syscall) && ev.To != exectrace.Syscall && g.stack != 0 {
		t.called(g, now)
	}
	if g.proc >= 0 && State(g.meta&7) == Syscall && ev.To == exectrace.Running && int32(ev.P) == g.proc {
		// back from a syscall with its P
		t.procs.back(g.proc, now)
		t.run(g, now, first)
		return
	}
	if ev.To == exectrace.Syscall && g.proc >= 0 && State(g.meta&7) == Running {
		t.learnEntry(g, ev)
		t.procs.syscall(g.proc, now)
		t.call(g, now, first, uint32(ev.Stack))
		return
	}
	from := State(g.meta & 7)
	if ev.Stack != 0 && from == Running {
		t.learnEntry(g, ev)
	}
	if from == Running && g.proc >= 0 {
		g.stack = uint32(ev.Stack) // where it stopped: for who was awaited
	}
	t.leave(g, now)
	g.ranges &^= metaSweep // no goroutine leaves its P while it sweeps; one that seems to lost its end
	switch ev.To {
	case exectrace.Running:
		t.run(g, now, first)
		t.place(g, ev, now, false)
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
		t.enter(g, now, uint64(Runnable)|uint64(why)<<metaWait|first, 0)
		t.ready()
	case exectrace.Waiting:
		t.learnEntry(g, ev)
		t.enter(g, now, uint64(Waiting)|uint64(t.class(ev.Reason, ev.Stack))<<metaWait|first, uint32(ev.Stack))
		t.wait(g)
	case exectrace.Syscall:
		t.learnEntry(g, ev)
		t.call(g, now, first, uint32(ev.Stack))
		t.place(g, ev, now, true)
	case exectrace.NotExist:
		t.detach(g)
	default:
		t.enter(g, now, uint64(Unknown)|first, 0)
	}
}

// called counts a call that ended if it is a socket's.
func (t *Timeline) called(g *G, now int64) {
	if !t.Get(exectrace.StackID(g.stack)).socket {
		return
	}
	if now-g.start >= LongCallNS {
		// A world that was stopped meanwhile may keep the call from returning, whatever the thread did.
		if _, _, _, stopped := t.Stopped(g.start, now); stopped {
			return
		}
	}
	ns := now - g.start
	if t.src.Version() < 22 {
		ns = max(ns, shortCallNS)
	}
	t.Calls.add(ns)
}

func (t *Timeline) ready() {
	t.runnableNS -= t.now
	if t.runnable++; t.runnable == 1 {
		t.procs.setWork(true, t.now)
	}
	t.runnableMax = max(t.runnableMax, t.runnable)
}

// wait counts g as waiting at its site.
func (t *Timeline) wait(g *G) {
	info := t.Get(exectrace.StackID(g.stack))
	g.site = info.Site
	if Wait(g.meta>>metaWait&15) == WaitLock {
		g.site = info.LockSite
	}
	for int(g.site) >= len(t.waiting) {
		t.waiting = append(t.waiting, make([]int32, max(64, len(t.waiting)))...)
	}
	t.waiting[g.site]++
}

// learnWait gives a wait known only from a status the stack that a later status has.
func (t *Timeline) learnWait(g *G, ev *exectrace.Event) {
	t.learnEntry(g, ev)
	w := t.class(ev.Reason, ev.Stack)
	g.stack = uint32(ev.Stack)
	g.meta = g.meta&^(15<<metaWait) | uint64(w)<<metaWait
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.Stack = g.stack
		s.w = s.w&^(15<<metaWait) | uint64(w)<<metaWait
	}
	t.waiting[g.site]--
	t.wait(g)
}

func (t *Timeline) learnEntry(g *G, ev *exectrace.Event) {
	if g.who <= uint32(t.launchers) && ev.Stack != 0 {
		if id := &t.idents[g.Ident]; id.Entry <= t.launchers {
			id.Entry = t.Get(ev.Stack).Entry
			g.who = uint32(id.Entry)
		}
	}
}

// holds is what g has a P for.
func (g *G) holds() uint32 {
	if g.ranges&metaSweep != 0 {
		return WhoSweep
	}
	return g.who
}

// place puts g on the event's P.
func (t *Timeline) place(g *G, ev *exectrace.Event, now int64, syscall bool) {
	if old, ok := t.procs.take(int32(ev.P), ev.Slot, g.holds(), now); ok {
		g.proc = int32(ev.P)
		t.procs.ps[g.proc].thread = t.thread
		if syscall {
			t.procs.syscall(g.proc, now)
		}
		// who was on it and did not say that it left
		if o := t.Slot(old); o != nil && o != g && o.proc == g.proc {
			o.proc = -1
		}
	}
}

// born begins a goroutine with who made it, so that its maker's story can be told for the time before.
func (t *Timeline) born(g *G, ev *exectrace.Event, now int64) {
	t.learnEntry(g, ev)
	by, ident, seg := EnderNobody, uint32(0), uint64(0)
	slot := ev.Slot
	if ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot {
		if o := t.actor(ev.OnSlot, ev.On, now); o != nil {
			t.Pin(o)
			by, ident, seg = EnderGoroutine, o.Ident, o.Cur
			g = &t.slots[slot] // actor may have moved them
		}
	} else if ev.P != exectrace.NoProc {
		by = EnderP
	}
	s := t.enter(g, now, uint64(Runnable)|uint64(WhyNewborn)<<metaWait|uint64(by)<<metaEnder, uint32(ev.OnStack))
	s.Ender, s.EnderSeg = ident, uint32(seg)
	switch ev.To {
	case exectrace.Runnable:
		t.ready()
	case exectrace.Running:
		t.run(g, now, 0)
		t.place(g, ev, now, false)
	case exectrace.Syscall: // a C thread that came in
		t.call(g, now, 0, uint32(ev.Stack))
		t.place(g, ev, now, true)
	default: // a coroutine waits to be switched to
		t.enter(g, now, uint64(Waiting)|uint64(WaitMessage)<<metaWait, 0)
		t.wait(g)
	}
}

// wake ends g's wait and notes who did it, unless that is known to be a lie.
func (t *Timeline) wake(g *G, ev *exectrace.Event, now int64) {
	by, ident, seg := EnderNobody, uint32(0), uint64(0)
	slot := ev.Slot
	switch {
	case ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot:
		if o := t.actor(ev.OnSlot, ev.On, now); o != nil {
			t.Pin(o)
			by, ident, seg = EnderGoroutine, o.Ident, o.Cur
			g = &t.slots[slot]
		}
	case ev.P != exectrace.NoProc:
		by = EnderP
	}
	w := Wait(g.meta >> metaWait & 15)
	if by == EnderGoroutine {
		by = t.believed(w, ident, ev.OnStack)
	}
	queue := t.waiting[g.site]
	begin, stack := g.start, g.stack
	if w == WaitMessage && by == EnderGoroutine {
		t.turn(g, ident, begin, now)
	}
	t.leave(g, now)
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.w |= uint64(by) << metaEnder
		s.Ender, s.EnderSeg = ident, uint32(seg)
	} else {
		g.meta |= uint64(by) << metaEnder
	}
	s := t.enter(g, now, uint64(Runnable)|uint64(WhyWoken)<<metaWait, uint32(ev.OnStack))
	if p := t.Seg(s.Prev); p != nil && by == EnderGoroutine {
		p.Ender, p.EnderSeg = ident, uint32(seg)
	}
	s = t.at(g.Cur)
	s.Ender = uint32(queue)
	t.ready()
	if w == WaitLock {
		t.Woken = Woken{
			Lock: true, Waiter: g.Ident, Begin: begin, End: now, Stack: exectrace.StackID(stack),
			By: by, Waker: ident, Seg: uint32(seg), OnStack: ev.OnStack, Site: g.site, Queue: queue,
		}
	}
}
