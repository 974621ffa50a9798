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
	g := f.at(ev.G, ev.Slot)
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

// act is what one goroutine did to another.
type act struct {
	time  exectrace.Time
	on    exectrace.GoID    // who did it
	slot  uint32            // its slot
	stack exectrace.StackID // and where it stood
}

// call: g goes into a system call.
func (f *Finder) call(g *gstate, stack exectrace.StackID, t exectrace.Time) {
	if stack == 0 || g.role == roleNever {
		return
	}
	in := f.enter(g, stack)
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
	if g.flags&flagWriting != 0 {
		g.flags &^= flagWriting
		if g.flags&flagHolds != 0 {
			f.relayWritten(g, t)
		} else if g.phase == phaseOpen {
			g.flushed = t
		}
	}
}

// enter is what the stack of g's own event means; the first tells what g is.
func (f *Finder) enter(g *gstate, id exectrace.StackID) *stackInfo {
	var in *stackInfo
	if int(id) < len(f.stacks) && f.stacks[id].known {
		in = &f.stacks[id]
	} else {
		in = f.stack(id)
	}
	if g.role == roleNone && in.entry != 0 && !f.entries[in.entry].launch.decided {
		g.entry, g.role = in.entry, f.entries[in.entry].role
		f.arrived(g)
		if g.role == roleLife && g.phase == phaseNone {
			f.open(g, f.now, flagOpenBegin)
			f.proven(g)
		}
	}
	return in
}

// status is a goroutine met while it already does something, or met again at a generation's begin.
func (f *Finder) status(g *gstate, ev *exectrace.Event) {
	if ev.From == ev.To && ev.From != exectrace.Undetermined && g.role != roleNone {
		return
	}
	var in *stackInfo
	if ev.Stack != 0 {
		in = f.enter(g, ev.Stack)
	}
	if ev.To == exectrace.Waiting && g.flags&flagWaiting == 0 {
		g.flags |= flagWaiting
		g.class = classOf(ev.Reason)
		// only idleness can be told: of anything else the begin was not seen
		if in != nil && g.phase == phaseNone {
			if f.isIdle(g, in) {
				g.phase = phaseIdle
			} else {
				f.see(g, in, ev.Time)
			}
		}
	}
}

// create: g begins to live. A creation without the creator's stack is a goroutine that was there when the trace began.
func (f *Finder) create(g *gstate, id exectrace.GoID, slot uint32, start exectrace.StackID, by act) {
	f.abandon(g, Lost)
	if g.flags&flagHolds != 0 {
		f.release(g, by.time)
	}
	f.reset(g, id, slot)
	g.wokenBy = by.slot
	fresh := by.stack != 0
	if start != 0 {
		in := f.stack(start)
		if g.entry = in.entry; !f.entries[in.entry].launch.decided {
			g.role = f.entries[in.entry].role
		}
	}
	if !fresh {
		if g.role == roleLife {
			f.open(g, by.time, flagOpenBegin)
			f.proven(g)
		}
		return
	}
	if on := f.on(g, &by); on != nil {
		in := f.enter(on, by.stack)
		if on.role == roleHTTP1 && in.where == whereFresh {
			f.httpFresh(on, by.time)
		}
		f.see(on, in, by.time)
		on.flags |= flagSpawned
		switch {
		case on.flags&flagChild != 0 && on.role == roleUnknown, on.phase == phaseOpen && (on.role != roleUnknown || on.flags&flagUser != 0):
			g.flags |= flagChild
		}
		if g.role == roleUnknown || g.role == roleNone {
			f.relayTo(on, g, by.time)
		}
		if g.role == roleUnknown && f.entries[on.entry].accepts {
			f.entries[g.entry].accepted = true
		}
	}
	switch g.role {
	case roleNone:
		if f.entries[g.entry].launch.decided {
			g.flags |= flagFresh
			f.open(g, by.time, 0) // of what it is called to do; arrived tells
		}
	case roleLife:
		g.flags &^= flagChild
		f.open(g, by.time, 0)
		f.proven(g)
	case roleHTTP1:
		g.flags &^= flagChild
		f.open(g, by.time, 0) // the first request may be there already
	case roleUnknown:
		g.flags |= flagFresh
		f.born(g, by.time)
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
		// part of another's activation: its waits say nothing, but for one
		if in.marks&markAccept != 0 {
			f.entries[g.entry].accepts = true
		}
		return
	}
	switch g.role {
	case roleHTTP1:
		f.httpBlock(g, in, t)
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
	} else if g.class.own() && (in.marks&markBody == 0 || in.marks&markRPC != 0) {
		g.flags |= flagWaited | flagBusy
	}
}

// wake: g's wait is over.
func (f *Finder) wake(g *gstate, by act) {
	g.flags &^= flagWaiting
	if by.slot != exectrace.NoSlot && by.slot != g.slot {
		f.wakes(g, by)
	} else if g.role == roleUnknown {
		f.woken(g, nil)
	}
	g.wokenBy = by.slot
	if g.flags&flagDeferred != 0 {
		f.deferredEnd(g, by.slot)
	}
	if g.phase == phaseNone && g.role != roleNever {
		// If it was an idle wait its next read will tell.
		g.flags |= flagWoke
		g.begin = by.time
	}
	switch g.role {
	case roleHTTP1:
		switch {
		case g.phase == phaseIdle:
			f.open(g, by.time, 0)
		case g.flags&flagAborting != 0:
			g.flags &^= flagAborting
			if g.phase == phaseMaybe {
				g.prevEnd = by.time
			}
		}
	case roleLoop, roleUnknown:
		if g.phase == phaseIdle {
			f.open(g, by.time, 0)
			f.proven(g)
		}
	}
}

// wakes: On wakes g, and what On's stack and state tell of On.
func (f *Finder) wakes(g *gstate, by act) {
	on := f.on(g, &by)
	if on == nil {
		return
	}
	if g.role == roleUnknown {
		f.woken(g, on)
	}
	if on.role == roleNever || by.stack == 0 && on.role != roleUnknown {
		return
	}
	in := f.enter(on, by.stack)
	if on.role == roleHTTP1 && in.marks&markAbort != 0 {
		f.httpAbort(on, in, by.time)
		return
	}
	f.see(on, in, by.time)
	if in.marks&markWrite != 0 {
		f.write(on, in)
	}
	// g waits for a message; if that is its work on gives it some
	if g.class == waitChan && g.role == roleUnknown && on.role == roleUnknown && g.entry != on.entry {
		f.entries[on.entry].gives++
		f.gave(on)
		if g.phase == phaseIdle {
			f.relayTo(on, g, by.time)
		}
	}
	// g waits in the middle of an activation: on works for it
	if g.phase == phaseOpen && g.entry != on.entry {
		on.flags |= flagServed
	}
}

// see: g stands at a stack. It proves what g is in, and may name it.
func (f *Finder) see(g *gstate, in *stackInfo, t exectrace.Time) {
	if g.role == roleHTTP1 {
		f.httpSee(g, in, t)
	}
	if g.phase != phaseOpen {
		return
	}
	if g.name == 0 && g.flags&flagUser == 0 {
		g.name = in.name
	}
	if in.marks&markOurs != 0 {
		g.flags |= flagOurs
	}
	if in.marks&markRPC != 0 {
		g.flags |= flagRPC
	}
}

// write: g writes to a connection, its request's own if the stack shows it.
func (f *Finder) write(g *gstate, in *stackInfo) {
	f.again(g)
	if g.phase != phaseOpen {
		return
	}
	if in.marks&markWrite == 0 && (g.role == roleHTTP1 || g.role == roleLife) {
		return // to somebody else
	}
	if g.writes < 1<<30 {
		g.writes++
	}
	// Who passes a long answer on waits for it too. That is a slow body, unless each piece is pushed on.
	push := in.marks&markPush != 0
	if (g.flags&flagWaited != 0 || g.flags&flagPassing != 0 && push) && g.streamed < 255 {
		g.streamed++
	}
	g.flags &^= flagWaited
	if push {
		g.flags &^= flagPassing
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
	// the next in its slot is begun afresh by its id
	g.id, g.role, g.phase, g.flags, g.serial = 0, roleNone, phaseNone, 0, g.serial+1
}
