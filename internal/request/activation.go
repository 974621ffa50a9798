package request

import "github.com/whystall/whystall/exectrace"

// An activation goes through these steps: open, when it may have begun; proven, when it is one for
// sure; close or abandon, which emit it.

// open begins what may become an activation of g at t. It is one once proven.
func (f *Finder) open(g *gstate, t exectrace.Time, with flags) {
	g.phase, g.begin, g.prevEnd, g.flushed = phaseMaybe, t, 0, 0
	g.name, g.writes, g.streamed, g.task = 0, 0, 0, 0
	g.flags = g.flags&flagsKept | with
	if t < f.gapEnd {
		g.flags |= flagLost
	}
	g.serial++
	g.group = NoGroup
}

// proven says that what g has begun is an activation.
func (f *Finder) proven(g *gstate) {
	if g.phase == phaseMaybe {
		g.phase = phaseOpen
		g.group = f.groupOf(g)
	}
}

// openAs begins what is known to be an activation.
func (f *Finder) openAs(g *gstate, t exectrace.Time, with flags) {
	f.open(g, t, with)
	f.proven(g)
}

// close ends g's open activation at t.
func (f *Finder) close(g *gstate, t exectrace.Time) {
	if g.phase != phaseOpen {
		return
	}
	why := Kept
	switch {
	case g.flags&flagOurs != 0:
		why = Ours
	case g.flags&flagLost != 0:
		why = Lost
	case g.flags&flagOpenBegin != 0:
		why = OpenBegin
	case g.streamed >= 3 && g.flags&flagUser == 0 && g.role != roleUnknown:
		why = Stream
	case f.options.Entry != nil && !f.wanted(g):
		why = Unfiltered
	}
	f.emit(g, t, why)
	g.phase = phaseNone
	g.flags &= flagsKept
}

// abandon gives up what g is in the middle of.
func (f *Finder) abandon(g *gstate, why LeftOut) {
	if g.phase == phaseOpen {
		switch {
		case g.flags&flagOurs != 0:
			why = Ours
		case g.flags&flagOpenBegin != 0 && why == OpenEnd:
			why = OpenBegin
		}
		f.emit(g, f.now, why)
	}
	if g.phase != phaseHijacked {
		g.phase = phaseNone
	}
	g.flags &= flagsKept
}

// emit hands out g's activation, which ended at t, and counts it.
func (f *Finder) emit(g *gstate, t exectrace.Time, why LeftOut) {
	if t < g.begin {
		t = g.begin
	}
	g.serial++
	gr := &f.groups[g.group]
	if why == Kept {
		gr.Count++
		f.tally(g)
	} else {
		gr.LeftOut[why]++
	}
	prev := g.prevEnd
	if prev > t {
		prev = t
	}
	f.ended = append(f.ended, Activation{G: g.id, Begin: g.begin, End: t, PrevEnd: prev, Slot: g.slot,
		Group: g.group, Name: g.name, LeftOut: why, Writes: g.writes})
}
