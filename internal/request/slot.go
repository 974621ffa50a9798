package request

import "github.com/whystall/whystall/exectrace"

// What every event asks first: which goroutine, what its stack means, what that proves.

// slot is the state of the goroutine in a slot, begun afresh if another has taken it over.
func (f *Finder) slot(id exectrace.GoID, slot uint32) *gstate {
	if slot >= maxSlots {
		return nil
	}
	f.grow(slot)
	g := &f.gs[slot]
	if g.id != id {
		f.abandon(g, Lost)
		if g.flags&flagHolds != 0 {
			f.release(g, f.now)
		}
		f.reset(g, id, slot)
	}
	return g
}

// act is what one goroutine did to another.
type act struct {
	time  exectrace.Time
	id    exectrace.GoID    // of the goroutine that did it
	slot  uint32            // of that goroutine
	stack exectrace.StackID // where it stood
}

// actor is the goroutine that did a to g; nil if none did.
func (f *Finder) actor(g *gstate, a *act) *gstate {
	if a.id == exectrace.NoGoroutine || a.slot == g.slot {
		return nil
	}
	return f.slot(a.id, a.slot)
}

// enter is what the stack of g's own event means; the first says what g is.
func (f *Finder) enter(g *gstate, id exectrace.StackID) *stackInfo {
	var in *stackInfo
	if int(id) < len(f.stacks) && f.stacks[id].known {
		in = &f.stacks[id]
	} else {
		in = f.stack(id)
	}
	if g.flags&flagByStart != 0 && in.entry != 0 {
		f.unwrap(g, in.entry)
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

// unwrap: a stack of g's own says that it is of entry. The compiler wraps a go statement's call
// with arguments. A trace of Go 1.17 to 1.21 names that wrapper as where a goroutine began which
// was there before the trace. Stacks leave it out.
func (f *Finder) unwrap(g *gstate, entry uint32) {
	g.flags &^= flagByStart
	if g.role != roleUnknown || entry == g.entry || g.phase == phaseOpen {
		return
	}
	if f.entries[g.entry].accepted {
		f.entries[entry].accepted = true
	}
	g.role, g.entry = roleNone, 0
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

// isIdle reports whether a member at this stack waits for work.
func (f *Finder) isIdle(g *gstate, in *stackInfo) bool {
	switch g.role {
	case roleHTTP1:
		return in.where == whereIdle || in.where == whereHandshake
	case roleLoop:
		return in.marks&markIdle != 0
	case roleUnknown:
		e := &f.entries[g.entry]
		return in.site != 0 && in.site == e.idleSite && !e.marked && g.flags&flagChild == 0
	}
	return false
}

// proveTail: a loop that read on without a wait does something, so there was a next request.
func (f *Finder) proveTail(g *gstate) {
	if g.phase == phaseMaybe && g.flags&flagTail != 0 && g.role != roleHTTP1 {
		f.proven(g)
	}
}

// write: g writes to a connection, its request's own if the stack shows it.
func (f *Finder) write(g *gstate, in *stackInfo) {
	f.proveTail(g)
	if g.phase != phaseOpen {
		return
	}
	if in.marks&markWrite == 0 && (g.role == roleHTTP1 || g.role == roleLife) {
		return // to somebody else
	}
	if g.writes < 1<<30 {
		g.writes++
	}
	// A goroutine that passes a long answer on waits for it too. That is a slow body, unless each
	// piece is pushed on.
	push := in.marks&markPush != 0
	if (g.flags&flagWaited != 0 || g.flags&flagPassing != 0 && push) && g.streamed < 255 {
		g.streamed++
	}
	g.flags &^= flagWaited
	if push {
		g.flags &^= flagPassing
	}
}
