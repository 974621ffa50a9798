package timeline

import "github.com/whystall/whystall/exectrace"

// enderOf is who woke or made the event's goroutine: the kind and, for a goroutine, its ident and
// segment. It may move t.slots.
func (t *Timeline) enderOf(ev *exectrace.Event, now int64) (e Ender, ident uint32, seg uint64) {
	switch {
	case ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot:
		if o := t.actor(ev.OnSlot, ev.On, now); o != nil {
			t.Pin(o)
			return EnderGoroutine, o.Ident, o.Cur
		}
	case ev.P != exectrace.NoProc:
		return EnderP, 0, 0
	}
	return EnderNobody, 0, 0
}

// born begins a goroutine and names its maker: the ledger goes on with that for the time before.
func (t *Timeline) born(g *G, ev *exectrace.Event, now int64) {
	t.learnEntry(g, ev.Stack)
	maker, ident, seg := t.enderOf(ev, now)
	g = &t.slots[ev.Slot] // enderOf may have moved them
	s := t.enter(g, now, Runnable.bits()|WhyNewborn.bits()|maker.bits(), uint32(ev.OnStack))
	s.Ender, s.EnderSeg = ident, uint32(seg)
	switch ev.To {
	case exectrace.Runnable:
		t.ready()
	case exectrace.Running:
		t.run(g, now, 0)
		t.place(g, ev, now)
	case exectrace.Syscall: // a C thread that came in
		t.call(g, now, 0, uint32(ev.Stack))
		t.placeInSyscall(g, ev, now)
	default: // a coroutine waits to be switched to
		t.enter(g, now, Waiting.bits()|WaitMessage.bits(), 0)
		t.wait(g)
	}
}

// wake ends the wait of ev's goroutine and notes who ended it, unless that is known to be wrong.
func (t *Timeline) wake(ev *exectrace.Event, now int64) {
	ender, ident, seg := t.enderOf(ev, now)
	g := &t.slots[ev.Slot] // not before: enderOf may move them
	w := waitOf(g.meta)
	if ender == EnderGoroutine {
		ender = t.believed(w, ident, ev.OnStack)
	}
	queue := t.waiting[g.site]
	begin, stack := g.start, g.stack
	if w == WaitMessage && ender == EnderGoroutine {
		t.turns.add(g.site, g.Ident, ident, begin, now, &t.identities)
	}
	t.woke(g, w, begin, now, stack)
	t.leave(g, now)
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.w |= ender.bits()
		s.Ender, s.EnderSeg = ident, uint32(seg)
	} else {
		g.meta |= ender.bits()
	}
	s := t.enter(g, now, Runnable.bits()|WhyWoken.bits(), uint32(ev.OnStack))
	if p := t.Seg(s.Prev); p != nil && ender == EnderGoroutine {
		p.Ender, p.EnderSeg = ident, uint32(seg)
	}
	s = t.at(g.Cur)
	s.Ender = uint32(queue)
	t.ready()
	if w == WaitLock {
		t.Woken = Woken{
			Lock: true, Waiter: g.Ident, Begin: begin, End: now, Stack: exectrace.StackID(stack),
			EnderKind: ender, Waker: ident, Seg: uint32(seg), OnStack: ev.OnStack, Site: g.site, Queue: queue,
		}
	}
}

// believed is who ended a wait when the event names a goroutine. The event names the thread's
// current goroutine also when the runtime polls the network or runs timers on its behalf.
func (t *Timeline) believed(w Wait, ident uint32, stack exectrace.StackID) Ender {
	switch w {
	case WaitNetwork:
		if stack == 0 || !t.Get(stack).deadline {
			return EnderP
		}
	case WaitTimer:
		return EnderP
	default:
		if e := t.idents[ident].Entry; e != 0 && e == t.timerproc {
			return EnderP // Go before 1.14 has a goroutine for timers
		}
	}
	return EnderGoroutine
}
