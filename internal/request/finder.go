package request

import (
	"hash/maphash"
	"iter"

	"github.com/whystall/whystall/exectrace"
)

// phase is how far a goroutine is with an activation.
type phase uint8

const (
	phaseNone     phase = iota // in none that is known of
	phaseIdle                  // waits for work
	phaseMaybe                 // would be in one since begin, if what comes proves to be a request
	phaseOpen                  // in one since begin
	phaseHijacked              // never again
)

// flags of a gstate. Those from flagOpenBegin on belong to the activation and go with it.
type flags uint32

const (
	flagChild     flags = 1 << iota // created inside an activation: what it does is part of that
	flagWaiting                     // blocked now
	flagTail                        // still finishing the request before
	flagAborting                    // waits in abortPendingRead
	flagWriting                     // in a system call of finishRequest
	flagUser                        // open is a user's task or region
	flagOpenBegin                   // begin was not seen
	flagOurs
	flagWaited   // had a wait of its own since its last write
	flagPassing  // had a wait for the body of an answer it asked for
	flagServed   // woke a goroutine that was inside an activation of another group
	flagSpawned  // created a goroutine
	flagRPC      // streaming
	flagClosing  // closes its connection
	flagDeferred // task has ended, the goroutine still waits for that to reach it
	flagWrote    // unknown loops: wrote to a connection since it last read
	flagFresh    // its creation was seen, no wait for work since
	flagLost     // begun inside a gap
	flagBusy     // had a wait of its own that was no write
	flagRead     // read since begin
	flagGave     // gave somebody work since it last read
	flagWoke     // woke at begin from a wait that began before the trace, and has done nothing since
	flagGiver    // wrote to a connection or gave work before
	flagHolds    // has a request that it did not read itself: see holder
	flagsKept    = flagChild | flagWaiting | flagWrote | flagFresh | flagHolds | flagGiver
)

// gstate is what a goroutine is in the middle of. One a slot.
type gstate struct {
	begin, prevEnd exectrace.Time
	flushed        exectrace.Time // net/http: finishRequest's last write; deferred task: its end
	id             exectrace.GoID
	task           uint64 // of the open user activation
	visited        uint64 // unknown loops: sites where it has waited, a bit each
	slot           uint32 // its own
	serial         uint32 // of the activation
	entry          uint32
	site           uint32 // unknown loops: where it blocked
	call           uint32 // entry functions that may be launchers: where it waited
	wokenBy        uint32 // slot of who woke it last; NoSlot: nobody
	ender          uint32 // deferred task: slot of who ended it
	name           NameID
	writes         uint32
	group          GroupID
	regions        uint16 // depth of open regions
	streamed       uint8
	role           role
	phase          phase
	class          waitClass // of its present wait
	flags          flags
}

// Finder finds activations. Use: NewFinder, Learn on the stream's beginning, Event for every event of a fresh
// pass in order, Finish. It is for one goroutine.
type Finder struct {
	src Source
	o   Options
	out []Activation

	gs      []gstate
	stacks  []stackInfo
	entries []entry
	sites   []site
	calls   []call
	groups  []Group
	names   []string
	tasks   map[uint64]task

	holders    []holder // by slot, as far as needed
	relays     []relay
	freeRelays []uint32 // of them nobody has

	entryIDs map[string]uint32
	siteIDs  map[uint64]uint32
	nameIDs  map[string]NameID
	groupIDs map[groupKey]GroupID
	callIDs  map[call]uint32
	frames   []exectrace.Frame
	seed     maphash.Seed
	now      exectrace.Time
	gapEnd   exectrace.Time // events are missing until then
	learning bool
	lost     int64 // tasks beyond maxTasks
}

// NewFinder makes a Finder for the trace whose stacks src resolves.
func NewFinder(src Source, o Options) *Finder {
	return &Finder{src: src, o: o, entries: []entry{{group: NoGroup, relayGroup: NoGroup, lastUser: NoGroup}}, sites: make([]site, 1), names: make([]string, 1), tasks: map[uint64]task{},
		entryIDs: map[string]uint32{}, siteIDs: map[uint64]uint32{}, nameIDs: map[string]NameID{},
		groupIDs: map[groupKey]GroupID{}, callIDs: map[call]uint32{}, seed: maphash.MakeSeed()}
}

// learnEvents and learnTime bound the look ahead: a few per cent of the pass over a trace of 50 MB.
const (
	learnEvents = 300_000
	learnTime   = 5e9
)

// Learn looks at a bounded beginning of the trace for the loops of unknown programs, so that the
// pass over the whole finds them from their first event. Without it they are found from when they have repeated themselves.
func (f *Finder) Learn(blocks iter.Seq[[]exectrace.Event]) {
	f.learning = true
	n, first := 0, exectrace.Time(0)
	for b := range blocks {
		if n == 0 && len(b) > 0 {
			first = b[0].Time
		}
		for i := range b {
			f.Event(&b[i])
		}
		n += len(b)
		if n > learnEvents || f.now-first > learnTime {
			break
		}
	}
	f.learning = false
	for i := 1; i < len(f.entries); i++ {
		f.decide(uint32(i), 3)
	}
	// What was learned about stacks and entries stays; what happened has not happened yet.
	clear(f.gs)
	f.gs, f.out, f.now, f.gapEnd, f.lost = f.gs[:0], nil, 0, 0, 0
	f.forgetRelays()
	clear(f.tasks)
	for i := range f.entries {
		f.entries[i].forget()
	}
	for i := range f.groups {
		f.groups[i].Count, f.groups[i].LeftOut = 0, [leftOutCount]int64{}
	}
}

// Event takes the next event, before anybody applies it to the states of goroutines, and returns the activations it
// closes: nearly always none. The slice is overwritten by the next call. An activation's End may
// be earlier than the event: what proves an end can come after it.
func (f *Finder) Event(ev *exectrace.Event) []Activation {
	if !Telling(ev) {
		return nil
	}
	if ev.Kind != exectrace.KindGoroutine {
		return f.other(ev)
	}
	if ev.From == exectrace.Syscall && ev.To != exectrace.NotExist && int(ev.Slot) < len(f.gs) && f.gs[ev.Slot].flags&flagWriting == 0 {
		return nil // came back from a call that was no flush
	}
	if len(f.out) != 0 {
		f.out = f.out[:0]
	}
	f.now = ev.Time
	f.goroutine(ev)
	return f.out
}

// Telling is false of the many events that tell nothing of requests: other kinds, and who got or left a P. Event does
// nothing with those.
func Telling(ev *exectrace.Event) bool {
	if ev.Kind == exectrace.KindGoroutine {
		return silent>>(uint(ev.From)<<3|uint(ev.To))&1 == 0
	}
	return telling>>ev.Kind&1 != 0 && (ev.Kind != exectrace.KindRangeBegin || ev.Range == exectrace.RangeSTW)
}

// silent are the transitions that tell nothing: Runnable to Running and back.
const silent = uint64(1)<<(exectrace.Runnable<<3|exectrace.Running) | uint64(1)<<(exectrace.Running<<3|exectrace.Runnable)

// telling are the kinds besides KindGoroutine that may tell something.
const telling = 1<<exectrace.KindTaskBegin | 1<<exectrace.KindTaskEnd | 1<<exectrace.KindRegionBegin |
	1<<exectrace.KindRegionEnd | 1<<exectrace.KindRangeBegin | 1<<exectrace.KindGap

// other takes an event of another kind.
func (f *Finder) other(ev *exectrace.Event) []Activation {
	if len(f.out) != 0 {
		f.out = f.out[:0]
	}
	f.now = ev.Time
	switch ev.Kind {
	case exectrace.KindTaskBegin:
		f.taskBegin(ev)
	case exectrace.KindTaskEnd:
		f.taskEnd(ev)
	case exectrace.KindRegionBegin:
		f.regionBegin(f.doer(ev), ev.Arg[0], ev.Name, ev.Time)
	case exectrace.KindRegionEnd:
		f.regionEnd(f.doer(ev), ev.Time)
	case exectrace.KindRangeBegin:
		if g := f.at(ev.G, ev.Slot); g != nil && ev.Stack != 0 {
			f.see(g, f.stack(ev.Stack), ev.Time)
		}
	case exectrace.KindGap:
		f.gap(exectrace.Time(ev.Arg[0]))
	}
	return f.out
}

// maxSlots bounds the table against a damaged trace.
const maxSlots = 1 << 22

// at is the state of the goroutine in slot, begun afresh if another has taken it over.
func (f *Finder) at(id exectrace.GoID, slot uint32) *gstate {
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

func (f *Finder) grow(slot uint32) {
	if int(slot) >= len(f.gs) && slot < maxSlots {
		f.gs = append(f.gs, make([]gstate, int(slot)+1-len(f.gs)+len(f.gs)/4)...)
	}
}

func (f *Finder) reset(g *gstate, id exectrace.GoID, slot uint32) {
	*g = gstate{id: id, slot: slot, serial: g.serial + 1, wokenBy: exectrace.NoSlot, group: NoGroup}
}

// on is the goroutine that did something to g; nil if none did.
func (f *Finder) on(g *gstate, by *act) *gstate {
	if by.on == exectrace.NoGoroutine || by.slot == g.slot {
		return nil
	}
	return f.at(by.on, by.slot)
}

// gap: events are missing until end, so ends and begins may be.
func (f *Finder) gap(end exectrace.Time) {
	f.gapEnd = max(f.gapEnd, end)
	f.forgetRelays()
	for i := range f.gs {
		g := &f.gs[i]
		f.abandon(g, Lost)
		if g.phase != phaseHijacked {
			g.phase = phaseNone
		}
		g.flags &= flagChild
		g.regions = 0
	}
	clear(f.tasks)
}

// Finish returns the activations still open when the trace ends at end, as left out.
func (f *Finder) Finish(end exectrace.Time) []Activation {
	f.out, f.now = f.out[:0], end
	f.finishRelays()
	for i := range f.gs {
		f.abandon(&f.gs[i], OpenEnd)
	}
	f.list()
	return f.out
}
