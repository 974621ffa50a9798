package request

import "github.com/whystall/whystall/exectrace"

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
	f.push(begin{t, g.slot, g.serial})
}

// proven: what was begun is an activation.
func (f *Finder) proven(g *gstate) {
	if g.phase == phaseMaybe {
		g.phase = phaseOpen
		g.group = f.groupOf(g)
	}
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
	case f.o.Entry != nil && !f.asked(g):
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

func (f *Finder) emit(g *gstate, t exectrace.Time, why LeftOut) {
	if t < g.begin {
		t = g.begin
	}
	g.serial++ // lets go of the horizon
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
	f.out = append(f.out, Activation{G: g.id, Begin: g.begin, End: t, PrevEnd: prev, Slot: g.slot,
		Group: g.group, Name: g.name, LeftOut: why, Writes: g.writes})
}

// queue holds the begins of what is open, oldest first. What has ended is dropped when it comes to the front.
type queue struct {
	begins []begin
	head   int
}

type begin struct {
	t      exectrace.Time
	slot   uint32
	serial uint32
}

func (f *Finder) push(b begin) {
	q := &f.queue
	if len(q.begins) == cap(q.begins) {
		f.Oldest(f.now)
		if q.head > len(q.begins)/2 {
			q.begins = q.begins[:copy(q.begins, q.begins[q.head:])]
			q.head = 0
		}
	}
	q.begins = append(q.begins, b)
	// A begin may be found later than it was. It is put in its place, if that is near.
	for i := len(q.begins) - 1; i > q.head && i > len(q.begins)-64 && q.begins[i-1].t > b.t; i-- {
		q.begins[i], q.begins[i-1] = q.begins[i-1], b
	}
}

// Oldest is the time from which on history is needed for activations that are open at now: at most Options.Lookback
// before it. Long polls are given up on, not waited for.
func (f *Finder) Oldest(now exectrace.Time) exectrace.Time {
	q := &f.queue
	for ; q.head < len(q.begins); q.head++ {
		b := q.begins[q.head]
		g := &f.gs[b.slot]
		open := (g.phase == phaseOpen || g.phase == phaseMaybe) && g.serial == b.serial
		if open && b.t >= now-f.o.Lookback && g.flags&(flagOurs|flagOpenBegin) == 0 && g.streamed < 3 {
			return b.t
		}
	}
	q.begins, q.head = q.begins[:0], 0
	return now
}
