package request

import "github.com/whystall/whystall/exectrace"

// goroutine takes what happened to one.
func (f *Finder) goroutine(ev *exectrace.Event) {
	f.grow(ev.OnSlot) // before pointers into the table are taken
	if ev.From == exectrace.NotExist && ev.To != exectrace.NotExist && ev.Slot < maxSlots {
		f.grow(ev.Slot)
		f.create(&f.gs[ev.Slot], ev)
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
		f.block(g, ev)
	case exectrace.Syscall:
		if ev.Stack != 0 && g.role != roleNever {
			in := f.enter(g, ev.Stack)
			if (g.role == roleUnknown || g.role == roleLoop) && f.isIdle(g, in) {
				f.loopRead(g, ev.Time)
				return
			}
			if g.role == roleUnknown {
				f.learnRead(g, in)
			}
			f.see(g, in, ev.Time)
			if in.marks&(markWrite|markNetWrite) != 0 {
				f.write(g, in)
			}
			if in.marks&markFlush != 0 && g.role == roleHTTP1 {
				f.httpFlush(g)
			}
		}
	case exectrace.NotExist:
		f.end(g, ev.Time)
	case exectrace.Running, exectrace.Runnable:
		switch ev.From {
		case exectrace.Waiting:
			f.wake(g, ev)
		case exectrace.Syscall:
			if g.flags&flagWriting != 0 {
				g.flags &^= flagWriting
				if g.phase == phaseOpen {
					g.flushed = ev.Time
				}
			}
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
	if g.role == roleNone && in.entry != 0 {
		g.entry, g.role = in.entry, f.entries[in.entry].role
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
func (f *Finder) create(g *gstate, ev *exectrace.Event) {
	f.abandon(g, Lost)
	f.reset(g, ev.G, ev.Slot)
	g.wokenBy = ev.OnSlot
	fresh := ev.OnStack != 0
	if ev.Stack != 0 {
		in := f.stack(ev.Stack)
		g.entry, g.role = in.entry, f.entries[in.entry].role
	}
	if !fresh {
		if g.role == roleLife {
			f.open(g, ev.Time, flagOpenBegin)
			f.proven(g)
		}
		return
	}
	if on := f.on(ev); on != nil {
		in := f.enter(on, ev.OnStack)
		if on.role == roleHTTP1 && in.where == whereFresh {
			f.httpFresh(on, ev.Time)
		}
		f.see(on, in, ev.Time)
		on.flags |= flagSpawned
		switch {
		case on.flags&flagChild != 0 && on.role == roleUnknown, on.phase == phaseOpen && (on.role != roleUnknown || on.flags&flagUser != 0):
			g.flags |= flagChild
		}
		if g.role == roleUnknown && f.entries[on.entry].accepts {
			f.entries[g.entry].accepted = true
		}
	}
	switch g.role {
	case roleLife:
		g.flags &^= flagChild
		f.open(g, ev.Time, 0)
		f.proven(g)
	case roleHTTP1:
		g.flags &^= flagChild
		f.open(g, ev.Time, 0) // the first request may be there already
	case roleUnknown:
		g.flags |= flagFresh
		f.born(g, ev.Time)
	}
}

// block: g waits from now on.
func (f *Finder) block(g *gstate, ev *exectrace.Event) {
	g.flags = g.flags&^flagWoke | flagWaiting
	g.class = classOf(ev.Reason)
	g.site = 0
	if g.role == roleNever {
		return
	}
	in := f.enter(g, ev.Stack)
	if g.phase == phaseNone && g.flags&flagChild != 0 && g.role == roleUnknown {
		// part of another's activation: its waits say nothing, but for one
		if in.marks&markAccept != 0 {
			f.entries[g.entry].accepts = true
		}
		return
	}
	switch g.role {
	case roleHTTP1:
		f.httpBlock(g, in, ev.Time)
	case roleLoop, roleUnknown:
		f.loopBlock(g, in, ev.Time)
	default:
		f.see(g, in, ev.Time)
	}
	if in.marks&(markWrite|markNetWrite) != 0 {
		f.write(g, in)
	} else if in.marks&markAnswer != 0 {
		g.flags |= flagPassing
	} else if g.class.own() && (in.marks&markBody == 0 || in.marks&markRPC != 0) {
		g.flags |= flagWaited
	}
}

// wake: g's wait is over.
func (f *Finder) wake(g *gstate, ev *exectrace.Event) {
	g.flags &^= flagWaiting
	if ev.OnSlot != exectrace.NoSlot && ev.OnSlot != ev.Slot {
		f.wakes(g, ev)
	} else if g.role == roleUnknown {
		f.woken(g, nil)
	}
	g.wokenBy = ev.OnSlot
	if g.flags&flagDeferred != 0 {
		f.deferredEnd(g, ev)
	}
	if g.phase == phaseNone && g.role != roleNever {
		// If it was an idle wait its next read will tell.
		g.flags |= flagWoke
		g.begin = ev.Time
	}
	switch g.role {
	case roleHTTP1:
		switch {
		case g.phase == phaseIdle:
			f.open(g, ev.Time, 0)
		case g.flags&flagAborting != 0:
			g.flags &^= flagAborting
			if g.phase == phaseMaybe {
				g.prevEnd = ev.Time
			}
		}
	case roleLoop, roleUnknown:
		if g.phase == phaseIdle {
			f.open(g, ev.Time, 0)
			f.proven(g)
		}
	}
}

// wakes: On wakes g, and what On's stack and state tell of On.
func (f *Finder) wakes(g *gstate, ev *exectrace.Event) {
	on := f.on(ev)
	if on == nil {
		return
	}
	if g.role == roleUnknown {
		f.woken(g, on)
	}
	if on.role == roleNever || ev.OnStack == 0 && on.role != roleUnknown {
		return
	}
	in := f.enter(on, ev.OnStack)
	if on.role == roleHTTP1 && in.marks&markAbort != 0 {
		f.httpAbort(on, in, ev.Time)
		return
	}
	f.see(on, in, ev.Time)
	if in.marks&markWrite != 0 {
		f.write(on, in)
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
