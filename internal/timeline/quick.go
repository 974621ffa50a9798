package timeline

import "github.com/whystall/whystall/exectrace"

// The quick path: what transition does, for the changes that nearly all events are. A goroutine is
// made or woken, gets a P, blocks, is in a syscall, ends.
//
// It takes a change only where nothing is lost, new or no longer kept, and where both sides agree
// on the state before. Of any other it returns false and has done nothing. TestQuick compares both
// ways.

// quick takes an event, if it can.
func (t *Timeline) quick(ev *exectrace.Event, now int64) bool {
	if uint(ev.Slot) >= uint(len(t.slots)) || now < t.inGapUntil || ev.From == ev.To {
		return false
	}
	g := &t.slots[ev.Slot]
	if g.goid != ev.G || !t.sure(g) {
		return false
	}
	switch g.state() {
	case Runnable:
		return ev.To == exectrace.Running && t.quickStart(g, ev.Slot, int32(ev.P), now)
	case Running:
		switch ev.To {
		case exectrace.Waiting:
			return t.quickBlock(g, ev.Stack, ev.Reason, now)
		case exectrace.Syscall:
			return t.quickCall(g, ev.Stack, now)
		case exectrace.NotExist:
			return t.quickEnd(g, ev.Stack, now)
		}
	case Syscall:
		return ev.To == exectrace.Running && t.quickBack(g, int32(ev.P), now)
	case Waiting:
		if ev.To != exectrace.Runnable {
			return false
		}
		waker := exectrace.NoSlot
		if ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot {
			if waker = ev.OnSlot; uint(waker) >= uint(len(t.slots)) || t.slots[waker].goid != ev.On {
				return false
			}
		}
		return t.quickWake(g, waker, int32(ev.P), ev.OnStack, now)
	}
	return false
}

// sure reports whether the segment that g is in is kept and no gap has made it unknown.
func (t *Timeline) sure(g *G) bool {
	return g.Ident != 0 && g.Cur >= t.oldest && !t.stale(g)
}

// next is the segment after one that is kept. The caller fills in Stack, Ender and EnderSeg.
func (t *Timeline) next(g *G, now int64, meta uint64) *Segment {
	s, seq := t.add()
	s.w, s.Prev = uint64(now)<<16|meta, uint32(g.Cur)
	g.Cur, g.start, g.meta = seq, now, meta
	return s
}

// quickBorn begins a goroutine that another one, maker, makes.
func (t *Timeline) quickBorn(r *exectrace.Record, id, maker exectrace.GoID, now int64) bool {
	if uint(r.Arg) >= uint(len(t.slots)) || uint(r.Stack) >= uint(len(t.infos)) || r.Arg == r.Slot {
		return false
	}
	g, o, info := &t.slots[r.Slot], &t.slots[r.Arg], &t.infos[r.Stack]
	if g.Ident != 0 || o.goid != maker || !t.sure(o) || !info.known {
		return false
	}
	t.lostAll = false
	*g = G{Ident: t.newIdent(id, &t.ring), goid: id, proc: -1, epoch: uint32(len(t.gaps)), stack: uint32(r.Name)}
	if r.Stack != 0 {
		t.idents[g.Ident].Entry = info.Entry
		g.occupant = uint32(info.Entry)
		g.wrapped = t.old && info.alone
	}
	t.Pin(o) // newIdent may have forgotten the oldest segments
	s := t.next(g, now, Runnable.bits()|WhyNewborn.bits()|EnderGoroutine.bits())
	s.Stack, s.Ender, s.EnderSeg = g.stack, o.Ident, uint32(o.Cur)
	t.ready()
	return true
}

// quickStart puts a runnable goroutine on a P that is idle.
func (t *Timeline) quickStart(g *G, slot uint32, proc int32, now int64) bool {
	p := &t.procs
	if uint(proc) >= uint(len(p.ps)) || g.proc >= 0 {
		return false
	}
	x := &p.ps[proc]
	if x.cat != procIdle || x.slot != exectrace.NoSlot || x.occupant != holderNobody {
		return false
	}
	t.lostAll = false
	p.idle(now)
	t.runnableNS += now
	if t.runnable--; t.runnable == 0 {
		p.work = false
	}
	p.byCat[procIdle] += now - x.since
	p.spare--
	p.used++
	x.since, x.held, x.slot, x.occupant, x.cat, x.active = now, now, slot, g.occupant, runs(g.occupant), true
	x.thread = t.thread
	g.proc = proc
	g.ranges &^= metaSweep
	g.stack = g.innermost()
	g.thread = t.thread
	s := t.next(g, now, Running.bits()|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, 0, t.thread
	return true
}

// quickBlock takes a running goroutine off its P to wait.
func (t *Timeline) quickBlock(g *G, stack exectrace.StackID, reason exectrace.Reason, now int64) bool {
	p := &t.procs
	if uint(g.proc) >= uint(len(p.ps)) || uint(stack) >= uint(len(t.infos)) {
		return false
	}
	info := &t.infos[stack]
	if !info.known {
		return false
	}
	t.lostAll = false
	if t.nameless(g) {
		t.learnEntry(g, stack)
	}
	p.release(g.proc, now, g.Ident, uint32(stack))
	g.proc = -1
	g.ranges &^= metaSweep
	w := info.wait
	if !info.classed || info.reason != reason {
		w = t.classify(info, stack, reason)
	}
	t.waitAtSite(g, info, w)
	g.stack = uint32(stack)
	s := t.next(g, now, Waiting.bits()|w.bits()|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, 0, 0
	return true
}

// quickCall takes a goroutine with a known entry function into a syscall.
func (t *Timeline) quickCall(g *G, stack exectrace.StackID, now int64) bool {
	if g.proc < 0 || t.nameless(g) && stack != 0 {
		return false
	}
	t.lostAll = false
	t.procs.syscall(g.proc, now)
	t.call(g, now, 0, uint32(stack))
	return true
}

// quickEnd ends a goroutine with a known entry function.
func (t *Timeline) quickEnd(g *G, stack exectrace.StackID, now int64) bool {
	if g.proc < 0 || t.nameless(g) && stack != 0 {
		return false
	}
	t.lostAll = false
	t.procs.release(g.proc, now, g.Ident, uint32(stack))
	t.detach(g)
	return true
}

// quickBack takes a goroutine out of a syscall in which it kept its P.
func (t *Timeline) quickBack(g *G, proc int32, now int64) bool {
	if g.proc < 0 || proc != g.proc {
		return false
	}
	t.lostAll = false
	if g.meta&(metaFirst|metaGap) == 0 && g.stack != 0 {
		t.called(g, now)
	}
	t.procs.back(g.proc, now)
	t.run(g, now, 0)
	return true
}

// quickWake ends the wait of g. Waker is the slot of the goroutine that did, NoSlot for none.
func (t *Timeline) quickWake(g *G, waker uint32, proc int32, stack exectrace.StackID, now int64) bool {
	ender, ident, seg := EnderNobody, uint32(0), uint64(0)
	if waker != exectrace.NoSlot {
		o := &t.slots[waker]
		if !t.sure(o) {
			return false
		}
		ender, ident, seg = EnderGoroutine, o.Ident, o.Cur
	} else if exectrace.ProcID(proc) != exectrace.NoProc {
		ender = EnderP
	}
	if int(g.site) >= len(t.waiting) {
		return false
	}
	t.lostAll = false
	w := waitOf(g.meta)
	if ender == EnderGoroutine {
		ender = t.believed(w, ident, stack)
	}
	queue := t.waiting[g.site]
	t.waiting[g.site]--
	if w == WaitMessage && ender == EnderGoroutine {
		t.turns.add(g.site, g.Ident, ident, g.start, now, &t.identities)
	}
	wait := t.at(g.Cur)
	wait.w |= ender.bits()
	wait.Ender, wait.EnderSeg = ident, uint32(seg)
	t.woke(g, w, g.start, now, g.stack)
	if w == WaitLock {
		t.Woken = Woken{
			Lock: true, Waiter: g.Ident, Begin: g.start, End: now, Stack: exectrace.StackID(g.stack),
			EnderKind: ender, Waker: ident, Seg: uint32(seg), OnStack: stack, Site: g.site, Queue: queue,
		}
	}
	g.stack = uint32(stack)
	s := t.next(g, now, Runnable.bits()|WhyWoken.bits()|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, uint32(queue), 0
	t.ready()
	return true
}
