package timeline

import "github.com/whystall/whystall/exectrace"

// Options of New. The zero value is right for most.
type Options struct {
	Bytes int // of segments to keep; 0: 24 MiB

	// Launchers are functions that goroutines begin with and that only call what they were given. A
	// goroutine is then named after what its launcher calls.
	Launchers []string

	// Threads says that the kernel's records know the trace's threads.
	Threads bool
	// Holds keeps with which thread each P was held, for [Timeline.Holds].
	Holds bool
	// Ps keeps which P it was, too. Only stories ask.
	Ps bool
}

// G is a goroutine that is there now. It lies at its [exectrace.Event.Slot].
type G struct {
	Cur         uint64 // number of the segment it is in, perhaps no longer kept; 0: nobody is here
	Ident       uint32
	thread      uint32 // of the running or syscall segment it is in
	start       int64  // of the segment it is in
	meta        uint64
	stack       uint32
	ranges      uint64 // meta bits of the ranges it is in
	rangeStack  uint32 // where the sweep or stop-the-world began
	assistStack uint32 // where the assist began
	sweep       uint32 // its number
	assistStart int64
	site        FuncID // where it waits
	proc        int32  // the P it is on, or -1
	epoch       uint32 // gaps that it knows of
	occupant    uint32 // when on a P: its entry function or kind of GC worker
	goid        exectrace.GoID
	// wrapped: it is named after the function that it was begun with. Go 1.17 to 1.20 wrap a call
	// with arguments in a function that stacks do not show, so its own first stack says better.
	wrapped bool
	nap     uint32 // the stack of the short sleep that was its last wait; 0: it was none
}

func (g *G) state() State { return stateOf(g.meta) }

// holder is the occupant of the P that g holds.
func (g *G) holder() uint32 {
	if g.ranges&metaSweep != 0 {
		return HolderSweep
	}
	return g.occupant
}

// Woken is a goroutine that the last event woke from a lock.
type Woken struct {
	Lock      bool
	Waiter    uint32 // Ident
	Begin     int64
	End       int64
	Stack     exectrace.StackID // of the waiter
	EnderKind Ender
	Waker     uint32 // Ident
	Seg       uint32 // the waker's segment
	OnStack   exectrace.StackID
	Site      FuncID
	Queue     int32 // how many waited there, it included
}

// Gap is a stretch of which nothing is known.
type Gap struct{ Begin, End int64 }

// Timeline is who is in which state now, and a bounded stretch of the past. Times inside are
// relative to the first event: see Rel and Abs.
//
// Each part that can stand alone is a type of its own:
//   - the segments (ring), and who goroutines are (identities);
//   - what stacks mean (Stacks);
//   - the Ps (procs), the stop-the-worlds (stops), the garbage collector (collector);
//   - the ends of waits (turns), and silences.
//
// What is here ties them together: the goroutines' present states and the clock.
type Timeline struct {
	ring
	identities
	*Stacks
	silences
	procs procs
	stops stops
	gc    collector
	turns turns

	src     Source
	old     bool // a format before 1.22
	base    exectrace.Time
	started bool // there was an event
	now     int64
	thread  uint32 // of the event that is applied
	noQuick bool   // tests: no quick path

	slots       []G
	runnable    int32 // goroutines now
	runnableMax int32
	runnableNS  int64   // goroutines x time, less runnable x now
	waiting     []int32 // goroutines now, by FuncID of the site
	timerproc   FuncID
	Woken       Woken

	gaps       []Gap
	inGapUntil int64
	lostAll    bool // nobody came back since the last gap began

	// Calls are reads and writes of sockets. They do not block: in a long one the thread lost its
	// CPU.
	Calls Moments
	Naps  Naps
}

// New makes a Timeline for the events of src.
func New(src Source, o Options) *Timeline {
	if o.Bytes <= 0 {
		o.Bytes = 24 << 20
	}
	t := &Timeline{src: src, old: src.Version() < 22, Stacks: NewStacks(src)}
	t.ring.init(o.Bytes / 24)
	t.identities.init()
	t.procs.init()
	t.procs.threads, t.procs.numbers = o.Holds, o.Holds && o.Ps
	t.stops.procs, t.stops.blind = &t.procs, t.old && !o.Threads
	for _, name := range o.Launchers { // first, so that a launcher has a small number
		t.launchers = max(t.launchers, t.intern(Plain(name)))
	}
	t.timerproc = t.intern("runtime.timerproc")
	return t
}

// Rel is a time relative to the first event.
func (t *Timeline) Rel(at exectrace.Time) int64 {
	d := int64(at) - int64(t.base)
	return min(max(d, 0), maxTime)
}

// Abs is the trace's own time again.
func (t *Timeline) Abs(rel int64) int64 { return int64(t.base) + rel }

// Now is the time of the last event.
func (t *Timeline) Now() int64 { return t.now }

// Advance moves the clock to an event's time without applying the event.
func (t *Timeline) Advance(at exectrace.Time) int64 {
	if !t.started {
		t.started, t.base = true, at
		t.procs.rotateAt = blockNS
	}
	now := max(t.Rel(at), t.now)
	if now-t.now > SilenceNS && t.runnable > 0 && now > t.inGapUntil {
		t.silent(Silence{t.now, now, t.procs.used < t.procs.count()})
	}
	for now >= t.procs.rotateAt {
		t.procs.rotate(t.procs.rotateAt)
	}
	t.now = now
	return now
}

// clock is Advance for the events, nearly all, which only move the clock.
func (t *Timeline) clock(at exectrace.Time) int64 {
	now := int64(at - t.base)
	if now >= t.procs.rotateAt || now-t.now > SilenceNS {
		return t.Advance(at)
	}
	t.now = max(now, t.now)
	return t.now
}

// Word is a string of the trace, as the kind of a stop-the-world.
func (t *Timeline) Word(id exectrace.StringID) string { return t.src.String(id) }

// Slot is the goroutine at slot, nil without one.
func (t *Timeline) Slot(slot uint32) *G {
	if int64(slot) >= int64(len(t.slots)) || t.slots[slot].Ident == 0 {
		return nil
	}
	return &t.slots[slot]
}

// StaleAt says since when nothing is known of g because of a gap.
func (t *Timeline) StaleAt(g *G) (int64, bool) {
	if !t.stale(g) {
		return 0, false
	}
	return t.gaps[g.epoch].Begin, true
}

// stale reports whether a gap has made g unknown.
func (t *Timeline) stale(g *G) bool { return int(g.epoch) != len(t.gaps) }

// Start is when a segment began.
func (t *Timeline) Start(s *Segment) int64 { return s.start() }
