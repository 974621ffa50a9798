package request

import "github.com/whystall/whystall/exectrace"

// goroutine takes what happened to one.
func (f *Finder) goroutine(ev *exectrace.Event) {
	f.grow(ev.OnSlot) // before pointers into the table are taken
	if ev.From == exectrace.NotExist && ev.To != exectrace.NotExist && ev.Slot < maxSlots {
		f.grow(ev.Slot)
		f.create(&f.gs[ev.Slot], ev.G, ev.Slot, ev.Stack, act{ev.Time, ev.On, ev.OnSlot, ev.OnStack})
		return
	}
	g := f.slot(ev.G, ev.Slot)
	if g == nil {
		return
	}
	if ev.From == ev.To || ev.From == exectrace.Undetermined || ev.Reason == exectrace.ReasonStatus {
		f.status(g, ev)
		return
	}
	switch ev.To {
	case exectrace.Waiting:
		f.block(g, ev.Stack, ev.Reason, ev.Time)
	case exectrace.Syscall:
		f.call(g, ev.Stack, ev.Time)
	case exectrace.NotExist:
		f.end(g, ev.Time)
	case exectrace.Running, exectrace.Runnable:
		switch ev.From {
		case exectrace.Waiting:
			f.wake(g, act{ev.Time, ev.On, ev.OnSlot, ev.OnStack})
		case exectrace.Syscall:
			f.callEnd(g, ev.Time)
		}
	}
}

// call: g goes into a system call.
func (f *Finder) call(g *gstate, stack exectrace.StackID, t exectrace.Time) {
	if stack == 0 || g.role == roleNever {
		return
	}
	in := f.enter(g, stack)
	if in.marks&markPoll != 0 && g.role == roleUnknown {
		f.block(g, stack, exectrace.ReasonNetwork, t)
		g.flags |= flagPolling
		return
	}
	g.flags |= flagActed
	if (g.role == roleUnknown || g.role == roleLoop) && f.isIdle(g, in) {
		f.loopRead(g, t)
		return
	}
	if g.role == roleUnknown {
		f.learnRead(g, in)
	}
	f.see(g, in, t)
	if in.marks&(markWrite|markNetWrite) != 0 {
		f.write(g, in)
		if in.marks&markSend != 0 && g.role == roleUnknown {
			f.sent(g)
		}
	}
	if in.marks&markFlush != 0 && g.role == roleHTTP1 {
		f.httpFlush(g)
	}
}

// callEnd: g came back from one.
func (f *Finder) callEnd(g *gstate, t exectrace.Time) {
	if g.flags&flagPolling != 0 {
		g.flags &^= flagPolling
		f.wake(g, act{time: t, slot: exectrace.NoSlot})
	}
	if g.flags&flagWriting != 0 {
		g.flags &^= flagWriting
		if g.flags&flagHolds != 0 {
			f.relayWritten(g, t)
		} else if g.phase == phaseOpen {
			g.flushed = t
		}
	}
}

// status: a goroutine is met while it already does something, or met again at a generation's start.
func (f *Finder) status(g *gstate, ev *exectrace.Event) {
	if ev.From == ev.To && ev.From != exectrace.Undetermined && g.role != roleNone {
		return
	}
	var in *stackInfo
	if ev.Stack != 0 {
		in = f.enter(g, ev.Stack)
		g.flags |= flagByStart // before Go 1.22 it is no more than where its life began
	}
	if ev.To == exectrace.Waiting && g.flags&flagWaiting == 0 {
		g.flags |= flagWaiting
		g.class = classOf(ev.Reason)
		// Only idleness can be known: of anything else the start was not seen.
		if in != nil && g.phase == phaseNone {
			if f.isIdle(g, in) {
				g.phase = phaseIdle
			} else {
				f.see(g, in, ev.Time)
			}
		}
	}
}

// create: g begins to live. A creation without the creator's stack is a goroutine that was there
// when the trace began.
func (f *Finder) create(g *gstate, id exectrace.GoID, slot uint32, start exectrace.StackID, a act) {
	f.abandon(g, Lost)
	if g.flags&flagHolds != 0 {
		f.release(g, a.time)
	}
	f.reset(g, id, slot)
	g.waker = a.slot
	fresh := a.stack != 0
	if start != 0 {
		in := f.stack(start)
		if g.entry = in.entry; !f.entries[in.entry].launch.decided {
			g.role = f.entries[in.entry].role
			g.flags |= flagByStart
		}
	}
	if !fresh {
		if g.role == roleLife {
			f.open(g, a.time, flagOpenBegin)
			f.proven(g)
		}
		return
	}
	if maker := f.actor(g, &a); maker != nil {
		in := f.enter(maker, a.stack)
		if maker.role == roleHTTP1 && in.where == whereFresh {
			f.httpFresh(maker, a.time)
		}
		f.see(maker, in, a.time)
		maker.flags |= flagSpawned
		switch {
		case maker.flags&flagChild != 0 && maker.role == roleUnknown, maker.phase == phaseOpen &&
			(maker.role != roleUnknown || maker.flags&flagUser != 0):
			g.flags |= flagChild
		}
		if g.role == roleUnknown || g.role == roleNone {
			f.relayTo(maker, g, a.time)
		}
		if g.role == roleUnknown && f.entries[maker.entry].accepts {
			f.entries[g.entry].accepted = true
		}
	}
	switch g.role {
	case roleNone:
		if f.entries[g.entry].launch.decided {
			g.flags |= flagFresh
			f.open(g, a.time, 0) // of what it is called to do; arrived says
		}
	case roleLife:
		g.flags &^= flagChild
		f.open(g, a.time, 0)
		f.proven(g)
	case roleHTTP1:
		g.flags &^= flagChild
		f.open(g, a.time, 0) // the first request may be there already
	case roleUnknown:
		g.flags |= flagFresh
		f.born(g, a.time)
	}
}

// block: g waits from now on.
func (f *Finder) block(g *gstate, stack exectrace.StackID, reason exectrace.Reason, t exectrace.Time) {
	g.flags = g.flags&^flagWoke | flagWaiting
	g.class = classOf(reason)
	g.site = 0
	if g.role == roleNever {
		return
	}
	in := f.enter(g, stack)
	if reason == exectrace.ReasonCond {
		f.entries[g.entry].conds++
	}
	if g.flags&flagHolds != 0 {
		if f.isIdle(g, in) {
			f.release(g, t)
		} else {
			f.relayWait(g, in)
		}
	}
	if g.phase == phaseNone && g.flags&flagChild != 0 && g.role == roleUnknown {
		// It is part of another's activation: its waits say nothing, but for one.
		if in.marks&markAccept != 0 {
			f.entries[g.entry].accepts = true
		}
		return
	}
	switch g.role {
	case roleHTTP1:
		if !f.httpBlock(g, in, t) {
			f.see(g, in, t)
			if in.marks&markFlush != 0 {
				g.flushed = 0 // the client reads slowly: the write goes on after this
			}
		}
	case roleLoop, roleUnknown:
		f.loopBlock(g, in, t)
	default:
		f.see(g, in, t)
	}
	if in.marks&(markWrite|markNetWrite) != 0 {
		f.write(g, in)
		if in.marks&markSend != 0 && g.flags&flagHolds != 0 {
			f.relayWrite(g)
		}
	} else if in.marks&markAnswer != 0 {
		g.flags |= flagPassing
	} else if g.class.foreign() && (in.marks&markBody == 0 || in.marks&markRPC != 0) {
		g.flags |= flagWaited | flagBusy
	}
}

// wake: g's wait is over.
func (f *Finder) wake(g *gstate, a act) {
	g.flags &^= flagWaiting
	if a.slot != exectrace.NoSlot && a.slot != g.slot {
		f.wakes(g, a)
	} else if g.role == roleUnknown {
		f.woken(g, nil)
	}
	g.waker = a.slot
	if g.flags&flagDeferred != 0 {
		f.deferredEnd(g, a.slot)
	}
	if g.phase == phaseNone && g.role != roleNever {
		// If it was an idle wait, its next read will show.
		g.flags |= flagWoke
		g.begin = a.time
	}
	switch g.role {
	case roleHTTP1:
		switch {
		case g.phase == phaseIdle:
			f.open(g, a.time, 0)
		case g.flags&flagAborting != 0:
			g.flags &^= flagAborting
			if g.phase == phaseMaybe {
				g.prevEnd = a.time
			}
		}
	case roleLoop, roleUnknown:
		if g.phase == phaseIdle {
			f.open(g, a.time, 0)
			f.proven(g)
		}
	}
}

// wakes: another goroutine wakes g. Its stack and state say something about it too.
func (f *Finder) wakes(g *gstate, a act) {
	waker := f.actor(g, &a)
	if waker == nil {
		return
	}
	waker.flags |= flagActed
	if g.role == roleUnknown {
		f.woken(g, waker)
	}
	if waker.role == roleNever || a.stack == 0 && waker.role != roleUnknown {
		return
	}
	in := f.enter(waker, a.stack)
	if waker.role == roleHTTP1 && in.marks&markAbort != 0 {
		f.httpAbort(waker, in, a.time)
		return
	}
	f.see(waker, in, a.time)
	if in.marks&markWrite != 0 {
		f.write(waker, in)
	}
	// g waits for a message. If that is its work, waker gives it some.
	if g.class == waitChan && g.role == roleUnknown && waker.role == roleUnknown && g.entry != waker.entry {
		f.entries[waker.entry].gives++
		f.gave(waker)
		if g.phase == phaseIdle {
			f.relayTo(waker, g, a.time)
		}
	}
	// g waits in the middle of an activation: waker works for it.
	if g.phase == phaseOpen && g.entry != waker.entry {
		waker.flags |= flagServed
	}
}

// end: the goroutine is no more.
func (f *Finder) end(g *gstate, t exectrace.Time) {
	if g.flags&flagHolds != 0 {
		f.release(g, t)
	}
	switch {
	case g.flags&flagDeferred != 0 || g.flags&flagUser != 0:
		f.abandon(g, Elsewhere)
	case g.role == roleHTTP1:
		f.httpEnd(g, t)
	case g.role == roleLife:
		if g.phase == phaseOpen {
			f.close(g, t)
		}
	case g.role == roleUnknown:
		f.died(g, t)
	}
	// The next goroutine in its slot is begun afresh, as its id differs.
	g.id, g.role, g.phase, g.flags, g.serial = 0, roleNone, phaseNone, 0, g.serial+1
}
