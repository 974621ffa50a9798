package timeline

import "github.com/whystall/whystall/exectrace"

// swift does what goroutine does for the transitions that nearly all events are: a goroutine is woken, gets a P, blocks, is
// in a syscall, ends. It takes them where nothing is lost, new, or no longer kept, and both sides agree on what was before; of
// anything else it says false and has done nothing.
func (t *Timeline) swift(ev *exectrace.Event, now int64) bool {
	if uint(ev.Slot) >= uint(len(t.slots)) || now < t.inGapUntil || ev.From == ev.To {
		return false
	}
	g := &t.slots[ev.Slot]
	if g.goid != ev.G || g.Ident == 0 || g.Cur < t.oldest || int(g.epoch) != len(t.gaps) {
		return false
	}
	switch State(g.meta & 7) {
	case Runnable:
		return ev.To == exectrace.Running && t.swiftStart(g, ev.Slot, int32(ev.P), now)
	case Running:
		switch ev.To {
		case exectrace.Waiting:
			return t.swiftBlock(g, ev.Stack, ev.Reason, now)
		case exectrace.Syscall, exectrace.NotExist:
			return t.swiftLeave(g, ev.Stack, ev.To == exectrace.NotExist, now)
		}
	case Syscall:
		return ev.To == exectrace.Running && t.swiftBack(g, int32(ev.P), now)
	case Waiting:
		if ev.To != exectrace.Runnable {
			return false
		}
		on := exectrace.NoSlot
		if ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot {
			if on = ev.OnSlot; uint(on) >= uint(len(t.slots)) || t.slots[on].goid != ev.On {
				return false
			}
		}
		return t.swiftWake(g, on, int32(ev.P), ev.OnStack, now)
	}
	return false
}

// Record is Apply for a record that is no OpOther, as far as swift would take its event; id and on are as [exectrace.Roster]
// says. False: only the time has moved, and the event is to be applied.
func (t *Timeline) Record(r *exectrace.Record, id, on exectrace.GoID) bool {
	now := t.clock(r.Time)
	t.Woken.Lock = false
	t.thread = r.M
	if r.Op > exectrace.OpEnd {
		switch r.Op {
		case exectrace.OpRegionBegin, exectrace.OpRegionEnd:
			return true // they tell nothing of states
		case exectrace.OpHeapLive:
			t.ranges.live(int64(min(uint64(r.Name)<<32|uint64(r.Arg), 1<<62)))
			return true
		}
		return false
	}
	if uint(r.Slot) >= uint(len(t.slots)) || now < t.inGapUntil || t.long {
		return false
	}
	if r.Op == exectrace.OpCreate {
		return t.swiftBorn(r, id, on, now)
	}
	g := &t.slots[r.Slot]
	if g.goid != id || g.Ident == 0 || g.Cur < t.oldest || int(g.epoch) != len(t.gaps) {
		return false
	}
	switch r.Op {
	case exectrace.OpStart:
		return State(g.meta&7) == Runnable && t.swiftStart(g, r.Slot, int32(r.P), now)
	case exectrace.OpBlock:
		return State(g.meta&7) == Running && t.swiftBlock(g, r.Stack, r.Reason, now)
	case exectrace.OpWake:
		if State(g.meta&7) != Waiting {
			return false
		}
		by := exectrace.NoSlot
		if on != exectrace.NoGoroutine && r.Arg != r.Slot {
			if by = r.Arg; uint(by) >= uint(len(t.slots)) || t.slots[by].goid != on {
				return false
			}
		}
		return t.swiftWake(g, by, int32(r.P), r.Stack, now)
	case exectrace.OpSyscall:
		return State(g.meta&7) == Running && t.swiftLeave(g, r.Stack, false, now)
	case exectrace.OpSyscallEnd:
		return State(g.meta&7) == Syscall && t.swiftBack(g, int32(r.P), now)
	case exectrace.OpEnd:
		return State(g.meta&7) == Running && t.swiftLeave(g, r.Stack, true, now)
	}
	return false
}

// swiftBorn begins a goroutine that another one makes.
func (t *Timeline) swiftBorn(r *exectrace.Record, id, on exectrace.GoID, now int64) bool {
	if uint(r.Arg) >= uint(len(t.slots)) || uint(r.Stack) >= uint(len(t.infos)) || r.Arg == r.Slot {
		return false
	}
	g, o, info := &t.slots[r.Slot], &t.slots[r.Arg], &t.infos[r.Stack]
	if g.Ident != 0 || o.goid != on || o.Ident == 0 || o.Cur < t.oldest || int(o.epoch) != len(t.gaps) || !info.known {
		return false
	}
	t.lostAll = false
	*g = G{Ident: t.newIdent(id), goid: id, proc: -1, epoch: uint32(len(t.gaps)), stack: uint32(r.Name)}
	if r.Stack != 0 {
		t.idents[g.Ident].Entry = info.Entry
		g.who = uint32(info.Entry)
	}
	t.Pin(o) // room for an identity may have been made at the cost of the oldest segments
	s := t.next(g, now, uint64(Runnable)|uint64(WhyNewborn)<<metaWait|uint64(EnderGoroutine)<<metaEnder)
	s.Stack, s.Ender, s.EnderSeg = g.stack, o.Ident, uint32(o.Cur)
	t.ready()
	return true
}

func (t *Timeline) swiftStart(g *G, slot uint32, proc int32, now int64) bool {
	p := &t.procs
	if uint(proc) >= uint(len(p.ps)) || g.proc >= 0 {
		return false
	}
	x := &p.ps[proc]
	if x.cat != procIdle || x.slot != exectrace.NoSlot || x.who != whoNobody {
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
	x.since, x.held, x.slot, x.who, x.cat, x.active = now, now, slot, g.who, runs(g.who), true
	x.thread = t.thread
	g.proc = proc
	g.ranges &^= metaSweep
	g.stack = 0
	if g.ranges&^metaAssist != 0 {
		g.stack = g.rstack
	} else if g.ranges != 0 {
		g.stack = g.astack
	}
	g.thread = t.thread
	s := t.next(g, now, uint64(Running)|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, 0, t.thread
	return true
}

func (t *Timeline) swiftBlock(g *G, stack exectrace.StackID, reason exectrace.Reason, now int64) bool {
	p := &t.procs
	if uint(g.proc) >= uint(len(p.ps)) || uint(stack) >= uint(len(t.infos)) {
		return false
	}
	info := &t.infos[stack]
	if !info.known {
		return false
	}
	t.lostAll = false
	if g.who <= uint32(t.launchers) && stack != 0 {
		if id := &t.idents[g.Ident]; id.Entry <= t.launchers {
			id.Entry = info.Entry
			g.who = uint32(id.Entry)
		}
	}
	p.release(g.proc, now, g.Ident, uint32(stack))
	g.proc = -1
	g.ranges &^= metaSweep
	if !info.classed || info.reason != reason {
		info.wait, info.reason, info.classed = t.class(reason, stack), reason, true
	}
	g.site = info.Site
	if info.wait == WaitLock {
		g.site = info.LockSite
	}
	for uint(g.site) >= uint(len(t.waiting)) {
		t.waiting = append(t.waiting, make([]int32, max(64, len(t.waiting)))...)
	}
	t.waiting[g.site]++
	g.stack = uint32(stack)
	s := t.next(g, now, uint64(Waiting)|uint64(info.wait)<<metaWait|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, 0, 0
	return true
}

// swiftLeave takes a goroutine whose entry is known into a syscall, or to its end.
func (t *Timeline) swiftLeave(g *G, stack exectrace.StackID, ends bool, now int64) bool {
	if g.proc < 0 || g.who <= uint32(t.launchers) && stack != 0 {
		return false
	}
	t.lostAll = false
	if !ends {
		t.procs.syscall(g.proc, now)
		t.call(g, now, 0, uint32(stack))
		return true
	}
	t.procs.release(g.proc, now, g.Ident, uint32(stack))
	t.detach(g)
	return true
}

// swiftBack takes a goroutine out of a syscall that kept its P.
func (t *Timeline) swiftBack(g *G, proc int32, now int64) bool {
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

func (t *Timeline) swiftWake(g *G, on uint32, proc int32, stack exectrace.StackID, now int64) bool {
	by, ident, seg := EnderNobody, uint32(0), uint64(0)
	if on != exectrace.NoSlot {
		o := &t.slots[on]
		if o.Ident == 0 || o.Cur < t.oldest || int(o.epoch) != len(t.gaps) {
			return false
		}
		by, ident, seg = EnderGoroutine, o.Ident, o.Cur
	} else if exectrace.ProcID(proc) != exectrace.NoProc {
		by = EnderP
	}
	if int(g.site) >= len(t.waiting) {
		return false
	}
	t.lostAll = false
	w := Wait(g.meta >> metaWait & 15)
	if by == EnderGoroutine {
		by = t.believed(w, ident, stack)
	}
	queue := t.waiting[g.site]
	t.waiting[g.site]--
	if w == WaitMessage && by == EnderGoroutine {
		t.turn(g, ident, g.start, now)
	}
	wait := t.at(g.Cur)
	wait.w |= uint64(by) << metaEnder
	wait.Ender, wait.EnderSeg = ident, uint32(seg)
	if w == WaitLock {
		t.Woken = Woken{
			Lock: true, Waiter: g.Ident, Begin: g.start, End: now, Stack: exectrace.StackID(g.stack),
			By: by, Waker: ident, Seg: uint32(seg), OnStack: stack, Site: g.site, Queue: queue,
		}
	}
	g.stack = uint32(stack)
	s := t.next(g, now, uint64(Runnable)|uint64(WhyWoken)<<metaWait|g.ranges)
	s.Stack, s.Ender, s.EnderSeg = g.stack, uint32(queue), 0
	t.ready()
	return true
}

// next is the segment after one that is kept. Its Stack, Ender and EnderSeg are the caller's.
func (t *Timeline) next(g *G, now int64, meta uint64) *Segment {
	s, seq := t.add()
	s.w, s.Prev = uint64(now)<<16|meta, uint32(g.Cur)
	g.Cur, g.start, g.meta = seq, now, meta
	return s
}

// believed is who ended a wait that the event says a goroutine did. The event names the thread's current goroutine also
// when the runtime polls the network or runs timers on its behalf.
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
