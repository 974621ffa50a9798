package request

import (
	"fmt"

	"github.com/whystall/whystall/exectrace"
)

// A request that one goroutine reads may be worked on by another and answered by a third: a pool over a channel, a
// goroutine a frame, a writer a connection. The trace tells of no message, but of who woke whom. One that waits for work has an
// empty queue, so what wakes it is what it works on: the reader's request goes along, and from there to whom that one
// wakes from such a wait. It is over when nobody has it any more, and ended with the first write to a connection of the last who wrote.
//
//   - Where all workers are busy the work goes into a queue, nobody is woken, and the request is seen no more: counted in unseen.
//   - Where the writer is busy it is not woken either. Then what is known ends with the worker's round: counted in blind.
//   - Who, after it wrote or handed on, waits for a message in the middle of its round asked a question, and did not answer.

// MaxHops is how often a request may be handed on.
const MaxHops = 3

// Hops are when a request was handed on, the first first: from the goroutine that read it to another, and so on to the
// one that the activation names. 0: no more.
type Hops [MaxHops]exectrace.Time

// relay is a request that is under way on goroutines that it was handed to.
type relay struct {
	begin  exectrace.Time // its reader had it
	end    exectrace.Time // of the last write; 0: none yet
	hops   Hops           // to who wrote
	id     exectrace.GoID // who wrote
	slot   uint32         // its slot
	reader uint32         // entry
	refs   int32          // who has it
	passed bool           // one of them handed it on or wrote, as it does with requests
	lost   bool           // begun inside a gap
}

// holder is what a goroutine has to do with requests that are handed on. One a slot, where flagReads or flagHolds is set.
type holder struct {
	read  exectrace.Time // a reader: when it last read on without a wait
	hops  Hops
	n     uint8
	done  bool   // wrote or handed on
	relay uint32 // index into Finder.relays
}

// maxRelays bounds what never ends.
const maxRelays = 1 << 16

func (f *Finder) holder(slot uint32) *holder {
	if int(slot) >= len(f.holders) {
		f.holders = append(f.holders, make([]holder, int(slot)+1-len(f.holders)+len(f.holders)/4)...)
	}
	return &f.holders[slot]
}

// reads tells whether goroutines of e get their work from the network.
func (f *Finder) reads(e *entry) bool {
	return e.idleSite != 0 && f.sites[e.idleSite].tier() == tierNet
}

// relayRead: a reader reads on in the middle of what may be a request: if data was there it is the next.
func (f *Finder) relayRead(g *gstate, t exectrace.Time) {
	h := f.holder(g.slot)
	if g.flags&flagRead == 0 {
		g.flags |= flagRead // what woke it
		h.read = g.begin
		return
	}
	f.unseen(g)
	h.read = t
	g.flags &^= flagGave
}

// unseen: what a reader read went to nobody, as far as could be seen.
func (f *Finder) unseen(g *gstate) {
	if e := &f.entries[g.entry]; g.flags&flagGave == 0 && g.writes == 0 {
		e.unseen++
	}
}

// relayTo: on gives work to g, which waited for some or was just made.
func (f *Finder) relayTo(on, g *gstate, t exectrace.Time) {
	if on.flags&flagHolds != 0 {
		from := *f.holder(on.slot)
		if from.done || from.n == MaxHops {
			return
		}
		f.holder(on.slot).done = true
		f.entries[on.entry].passes++
		f.relays[from.relay].passed = true
		f.hold(g, from.relay, from.hops, from.n, t)
		return
	}
	e := &f.entries[on.entry]
	if on.role != roleUnknown || on.phase != phaseOpen || on.flags&flagUser != 0 || !f.reads(e) {
		return
	}
	on.flags |= flagGave
	begin := on.begin
	if on.flags&flagRead != 0 {
		begin = f.holder(on.slot).read
	}
	id := uint32(len(f.relays))
	if n := len(f.freeRelays); n > 0 {
		id, f.freeRelays = f.freeRelays[n-1], f.freeRelays[:n-1]
	} else if id >= maxRelays {
		return
	} else {
		f.relays = append(f.relays, relay{})
	}
	f.relays[id] = relay{begin: begin, reader: on.entry, lost: begin < f.gapEnd}
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
	r.end, r.hops, r.id, r.slot, r.passed = f.now, h.hops, g.id, g.slot, true
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
	case f.entries[g.entry].passes > 0: // as others do that are seen to hand on
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
	} else if f.o.Entry != nil && !f.askedGroup(e.relayGroup) {
		why = Unfiltered
	}
	gr := &f.groups[e.relayGroup]
	if why == Kept {
		gr.Count++
	} else {
		gr.LeftOut[why]++
	}
	f.out = append(f.out, Activation{G: r.id, Begin: r.begin, End: r.end, Slot: r.slot, Group: e.relayGroup, LeftOut: why, Hops: r.hops})
	f.freeRelays = append(f.freeRelays, h.relay)
}

// Kinds of groups: of relays, and of workers that never wait for work.
const (
	handedOn = "handed on"
	rounds   = "rounds"
)

// handsOn: what goroutines of e read others answer.
func (f *Finder) handsOn(e *entry) bool {
	if !f.reads(e) || e.wrote*10 >= e.count && e.count > 0 {
		return false
	}
	if e.relayGroup != NoGroup && f.groups[e.relayGroup].Count*2 >= e.count {
		return true
	}
	var sends int64 // by others who do not read; whom a sync.Cond tells of work nobody can follow, so that the reader's part is all there is
	for i := range f.entries {
		if o := &f.entries[i]; o != e && o.role == roleUnknown && !f.reads(o) && o.conds*8 < o.sends {
			sends += o.sends
		}
	}
	return sends*2 >= e.count
}

// writer: its goroutines wait for messages, and all they do with one is to write to a connection.
func (e *entry) writer(f *Finder) bool {
	return e.idleSite != 0 && f.sites[e.idleSite].tier() == tierChan && e.count > 0 && e.wrote*10 >= e.count*9 && e.waits*10 < e.count && e.gives*10 < e.count
}

// doubt is what is not in a group's times.
func (f *Finder) doubt(gr *Group) string {
	e := &f.entries[gr.entry]
	switch {
	case gr.Kind == rounds:
		return "its goroutines never wait for work: requests wait before that in a queue or socket, and how long is not in these times"
	case gr.Kind == handedOn && e.unseen*10 > gr.Count:
		return fmt.Sprintf("%d reads gave work to nobody who waited for some: it waited in a queue, and is not among these", e.unseen)
	case gr.Kind == handedOn && e.blind*10 > gr.Count:
		return fmt.Sprintf("%d of %d end where they were handed to a writer that was busy", e.blind, gr.Count)
	case gr.Kind == KindLoop && f.reads(e) && e.tail*2 > e.count:
		return fmt.Sprintf("%d of %d were there before they were read: how long is not in their times", e.tail, e.count)
	}
	return ""
}

// relayGroup makes the group of the requests that goroutines of an entry function read and others answer.
func (f *Finder) relayGroup(reader uint32) GroupID {
	e := &f.entries[reader]
	id := GroupID(len(f.groups))
	f.groups = append(f.groups, Group{Entry: e.name, Kind: handedOn, Boundary: "from the end of the wait in " + f.sites[e.idleSite].frame +
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
		e.again++
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

// forgetRelays: nothing is known any more of who has what.
func (f *Finder) forgetRelays() {
	f.relays, f.freeRelays = f.relays[:0], f.freeRelays[:0]
	for i := range f.gs {
		f.gs[i].flags &^= flagHolds | flagRead | flagGave
	}
}
