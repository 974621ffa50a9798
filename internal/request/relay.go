package request

import "github.com/whystall/whystall/exectrace"

// One goroutine may read a request, another work on it and a third answer: there is a pool over a
// channel, a goroutine for each frame, a writer for each connection. The trace records no message,
// only who woke whom.
//
//  1. A goroutine that waits for work has an empty queue, so what wakes it is what it works on: the
//     reader's request goes along (relayTo).
//  2. From there it goes to whomever that goroutine wakes from such a wait, up to MaxHops times.
//  3. The request is over when nobody has it any more (release). It ended with the first write to a
//     connection by the last goroutine that wrote.
//
// What this cannot see:
//
//   - Where all workers are busy the work goes into a queue, nobody is woken, and the request is
//     seen no more: counted in unseen.
//   - Where the writer is busy it is not woken either. What is known then ends with the worker's
//     round: counted in blind.
//
// A goroutine that, after it wrote or handed on, waits for a message in the middle of its round
// asked a question, and did not answer (relayWait).

// maxRelays bounds what never ends.
const maxRelays = 1 << 16

func (f *Finder) holder(slot uint32) *holder {
	if int(slot) >= len(f.holders) {
		f.holders = append(f.holders, make([]holder, int(slot)+1-len(f.holders)+len(f.holders)/4)...)
	}
	return &f.holders[slot]
}

// relayRead: a reader reads on in the middle of what may be a request. If data was there, that is
// the next.
func (f *Finder) relayRead(g *gstate, t exectrace.Time) {
	h := f.holder(g.slot)
	if g.flags&flagRead == 0 {
		g.flags |= flagRead // what woke it
		h.read = g.begin
		return
	}
	f.countUnseen(g)
	h.read = t
	g.flags &^= flagGave
}

// countUnseen counts a read whose data went to nobody, as far as could be seen.
func (f *Finder) countUnseen(g *gstate) {
	if e := &f.entries[g.entry]; g.flags&flagGave == 0 && g.writes == 0 {
		e.unseen++
	}
}

// relayTo: giver gives work to g, which waited for some or was just made.
func (f *Finder) relayTo(giver, g *gstate, t exectrace.Time) {
	if giver.flags&flagHolds != 0 {
		from := *f.holder(giver.slot)
		if from.done || from.n == MaxHops {
			return
		}
		f.holder(giver.slot).done = true
		f.entries[giver.entry].passes++
		f.hold(g, from.relay, from.hops, from.n, t)
		return
	}
	e := &f.entries[giver.entry]
	if giver.role != roleUnknown || giver.phase != phaseOpen || giver.flags&flagUser != 0 || !f.readsNet(e) {
		return
	}
	giver.flags |= flagGave
	begin := giver.begin
	if giver.flags&flagRead != 0 {
		begin = f.holder(giver.slot).read
	}
	id := uint32(len(f.relays))
	if n := len(f.freeRelays); n > 0 {
		id, f.freeRelays = f.freeRelays[n-1], f.freeRelays[:n-1]
	} else if id >= maxRelays {
		return
	} else {
		f.relays = append(f.relays, relay{})
	}
	f.relays[id] = relay{begin: begin, reader: giver.entry, lost: begin < f.gapEnd}
	f.hold(g, id, Hops{}, 0, t)
}

// hold: g has the request from now on.
func (f *Finder) hold(g *gstate, id uint32, hops Hops, n uint8, t exectrace.Time) {
	if g.flags&flagHolds != 0 {
		f.release(g, t)
	}
	hops[n] = t
	*f.holder(g.slot) = holder{hops: hops, n: n + 1, relay: id}
	f.relays[id].refs++
	g.flags |= flagHolds
}

// relayWrite: g, which has a request, begins to write to a connection.
func (f *Finder) relayWrite(g *gstate) {
	h := f.holder(g.slot)
	if h.done {
		return
	}
	h.done = true
	g.flags |= flagWriting
	r := &f.relays[h.relay]
	r.end, r.hops, r.id, r.slot = f.now, h.hops, g.id, g.slot
}

// relayWritten: the write is over.
func (f *Finder) relayWritten(g *gstate, t exectrace.Time) {
	if r := &f.relays[f.holder(g.slot).relay]; r.id == g.id && r.end != 0 {
		r.end = t
	}
}

// relayWait: g, which has a request, waits in the middle of its round.
func (f *Finder) relayWait(g *gstate, in *stackInfo) {
	h := f.holder(g.slot)
	if !h.done || g.class != waitNet && g.class != waitChan || in.marks&markSend != 0 {
		return
	}
	h.done = false
	f.relays[h.relay].end = 0
}

// release: g has its request no more.
func (f *Finder) release(g *gstate, t exectrace.Time) {
	g.flags &^= flagHolds
	h := f.holder(g.slot)
	r := &f.relays[h.relay]
	if r.refs--; r.refs > 0 {
		return
	}
	e := &f.entries[r.reader]
	switch {
	case r.end != 0:
	case f.entries[g.entry].passes > 0: // its kind is seen to hand on, so it did here too
		r.end, r.hops, r.id, r.slot = t, h.hops, g.id, g.slot
		e.blind++
	default:
		f.freeRelays = append(f.freeRelays, h.relay)
		return
	}
	why := Kept
	if e.relayGroup == NoGroup {
		e.relayGroup = f.relayGroup(r.reader)
	}
	if r.lost {
		why = Lost
	} else if f.options.Entry != nil && !f.wantedGroup(e.relayGroup) {
		why = Unfiltered
	}
	gr := &f.groups[e.relayGroup]
	if why == Kept {
		gr.Count++
	} else {
		gr.LeftOut[why]++
	}
	f.ended = append(f.ended, Activation{G: r.id, Begin: r.begin, End: r.end, Slot: r.slot,
		Group: e.relayGroup, LeftOut: why, Hops: r.hops})
	f.freeRelays = append(f.freeRelays, h.relay)
}

// relayGroup makes the group of the requests that goroutines of an entry function read and others
// answer.
func (f *Finder) relayGroup(reader uint32) GroupID {
	e := &f.entries[reader]
	id := GroupID(len(f.groups))
	f.groups = append(f.groups, Group{Entry: e.name, Kind: kindHandedOn,
		Boundary: "from the end of the wait in " + f.sites[e.idleSite].frame +
			" to the first write by who it was handed to", entry: reader})
	return id
}

// sent: g, of an unknown kind, begins to write to a connection.
func (f *Finder) sent(g *gstate) {
	f.entries[g.entry].sends++
	f.gave(g)
	if g.flags&flagHolds != 0 {
		f.relayWrite(g)
	}
}

// gave: g wrote to a connection or gave work to another, which may be what it is asked for.
func (f *Finder) gave(g *gstate) {
	e := &f.entries[g.entry]
	if g.flags&flagGiver != 0 {
		e.repeats++
	}
	g.flags |= flagGiver
	if e.busy && g.flags&(flagUser|flagChild) == 0 {
		f.close(g, f.now)
		f.openAs(g, f.now, 0)
	}
}

// finishRelays counts the requests that somebody still has when the trace ends.
func (f *Finder) finishRelays() {
	for i := range f.gs {
		g := &f.gs[i]
		if g.flags&flagHolds == 0 {
			continue
		}
		r := &f.relays[f.holder(g.slot).relay]
		if e := &f.entries[r.reader]; r.refs > 0 && e.relayGroup != NoGroup {
			f.groups[e.relayGroup].LeftOut[OpenEnd]++
		}
		r.refs = 0
	}
	f.forgetRelays()
}

// forgetRelays: nothing is known any more about who has what.
func (f *Finder) forgetRelays() {
	f.relays, f.freeRelays = f.relays[:0], f.freeRelays[:0]
	for i := range f.gs {
		f.gs[i].flags &^= flagHolds | flagRead | flagGave
	}
}
