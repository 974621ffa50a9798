package request

import "github.com/whystall/whystall/exectrace"

// Loops: goroutines of known servers that are idle at certain stacks, and those of unknown entry
// functions, whose idle wait is learned (idle.go).

// loopBlock: a goroutine of a loop, known or not, waits.
func (f *Finder) loopBlock(g *gstate, in *stackInfo, t exectrace.Time) {
	if g.flags&flagUser != 0 && g.phase == phaseOpen {
		f.see(g, in, t)
		return
	}
	if g.role == roleUnknown && g.class.foreign() && f.launched(g, in) {
		return
	}
	if f.isIdle(g, in) {
		if g.phase == phaseOpen { // else it was only looking whether there is more to do
			if s := f.entries[g.entry].server; s != nil && s.needWrite && g.writes == 0 {
				g.serial++
			} else if in.marks&markPoll != 0 && g.flags&(flagActed|flagSpawned) == 0 {
				g.serial++ // it only looked whether there are events
			} else {
				f.close(g, t)
			}
		}
		g.phase = phaseIdle
		g.flags &^= flagFresh
	} else {
		f.proveTail(g)
		f.see(g, in, t)
	}
	if g.role == roleUnknown {
		f.learn(g, in)
	}
}

// loopRead: a member reads where it also waits for work. After an answer was written, or on a new
// connection, this is the next request, if one is there already: what follows will show.
func (f *Finder) loopRead(g *gstate, t exectrace.Time) {
	if g.phase == phaseOpen && g.role == roleUnknown && g.flags&flagUser == 0 {
		f.relayRead(g, t)
	}
	switch {
	case g.flags&flagUser != 0 && g.phase == phaseOpen:
	case g.phase == phaseOpen && g.writes > 0:
		f.close(g, t)
		f.open(g, t, flagTail)
	case g.phase == phaseNone && g.flags&flagWoke != 0:
		f.open(g, g.begin, flagTail)
	case g.phase != phaseOpen && g.flags&flagFresh != 0:
		f.open(g, t, flagTail)
	}
	g.flags &^= flagFresh
}

// learn counts a wait of an unknown group until its idle wait is decided.
func (f *Finder) learn(g *gstate, in *stackInfo) {
	e := &f.entries[g.entry]
	if in.marks&markAccept != 0 {
		e.accepts = true
	}
	if e.idleSite != 0 || e.accepts || in.site == 0 || g.flags&flagChild != 0 {
		return
	}
	g.site = in.site
	f.visit(g, in.site)
	if e.blocks++; e.blocks >= e.decideAt {
		e.decideAt *= 4
		f.decide(g.entry, 8)
	}
}

// visit counts that g is at the site, and whether it has been there before.
func (f *Finder) visit(g *gstate, id uint32) {
	s := &f.sites[id]
	bit := uint64(1) << (uint64(g.id) * 0x9e3779b97f4a7c15 >> 58)
	s.blocks++
	s.members |= bit
	f.entries[g.entry].members |= bit
	if been := uint64(1) << (s.local & 63); g.visited&been != 0 {
		s.returns++
	} else {
		g.visited |= been
	}
	g.flags &^= flagWrote
}

// learnRead counts a read after an answer that did not have to wait: there its loop begins again on
// a busy connection.
func (f *Finder) learnRead(g *gstate, in *stackInfo) {
	switch {
	case in.marks&markNetWrite != 0:
		g.flags |= flagWrote
	case g.flags&flagWrote != 0 && in.marks&markNetRead != 0 && in.site != 0 && f.entries[g.entry].idleSite == 0:
		f.visit(g, in.site)
		f.sites[in.site].net++
	}
}

// woken counts who ended an unknown goroutine's wait; waker is nil when no goroutine did.
func (f *Finder) woken(g, waker *gstate) {
	if g.site == 0 {
		return
	}
	s := &f.sites[g.site]
	switch {
	case g.class == waitNet:
		s.net++ // whoever ended it: the goroutine that polled says nothing
	case g.class == waitTimer, g.class == waitChan && waker == nil:
		s.timer++
	case g.class != waitChan:
		s.unfit++
	case waker.role == roleNever && f.entries[waker.entry].name == "runtime.timerproc":
		s.timer++
	case waker.entry == g.entry, waker.role == roleNever && isRuntime(f.entries[waker.entry].name):
		s.unfit++
	default:
		s.other++
		if waker.waker == g.slot {
			s.replies++
		}
	}
}

// born: a goroutine of an unknown group begins. Its whole life may be an activation.
func (f *Finder) born(g *gstate, t exectrace.Time) {
	e := &f.entries[g.entry]
	if g.flags&flagChild == 0 && e.idleSite == 0 && !e.marked && !e.busy {
		f.open(g, t, 0)
	}
}

// died: it ends. One that was busy since its idle wait saw its connection or its queue close, which
// is no request.
func (f *Finder) died(g *gstate, t exectrace.Time) {
	e := &f.entries[g.entry]
	if g.phase != phaseMaybe || g.flags&(flagChild|flagTail) != 0 || e.idleSite != 0 || e.marked {
		g.phase = phaseNone
		return
	}
	if e.died++; e.died >= 3 {
		e.lifelong = true
	}
	if e.lifelong {
		f.proven(g)
		f.close(g, t)
	}
	g.phase = phaseNone
}
