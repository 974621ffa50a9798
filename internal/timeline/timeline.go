package timeline

import (
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// SilenceNS is how long no thread may say anything, while something is runnable, before it is a silence.
const SilenceNS = 20e6

// Options of New. The zero value is right for most.
type Options struct {
	Bytes int // of segments to keep; 0: 24 MiB
}

// G is a goroutine that is there now. It lies at its [exectrace.Event.Slot].
type G struct {
	Cur    uint64 // number of the segment it is in, which may be no longer kept; 0: nobody is here
	Ident  uint32
	start  int64 // of the segment it is in
	meta   uint64
	stack  uint32
	ranges uint64 // meta bits of the ranges it is in
	rstack uint32 // where the sweep or stop-the-world began
	astack uint32 // where the assist began
	sweep  uint32 // its number
	astart int64  // when the assist began
	site   FuncID // where it waits
	proc   int32  // the P it is on, or -1
	epoch  uint32 // gaps that it knows of
	who    uint32 // on a P: its entry function or kind of GC worker
	goid   exectrace.GoID
}

// Ident is who a goroutine is. It is kept as long as a segment may refer to it.
type Ident struct {
	GoID  exectrace.GoID
	Entry FuncID // its entry function, once known
}

// Woken is a goroutine that the last event woke from a lock.
type Woken struct {
	Lock    bool
	Waiter  uint32 // Ident
	Begin   int64
	End     int64
	Stack   exectrace.StackID // of the waiter
	By      Ender
	Waker   uint32 // Ident
	Seg     uint32 // the waker's segment
	OnStack exectrace.StackID
	Site    FuncID
	Queue   int32 // how many waited there, it included
}

// Gap is a stretch of which nothing is known.
type Gap struct{ Begin, End int64 }

// Timeline is who is in which state now, and a bounded stretch of what was. Times inside are relative to the first event: see Rel and Abs.
type Timeline struct {
	ring
	*Stacks
	src  Source
	base exectrace.Time
	any  bool // there was an event
	now  int64

	slots  []G
	idents []Ident
	dead   []deadIdent // in order of death
	deadAt int         // first of dead not yet used again
	never  uint32      // times an ident had to be taken from segments still kept

	procs  procs
	ranges ranges
	Woken  Woken

	runnable    int32 // goroutines now
	runnableMax int32
	waiting     []int32 // by FuncID of the site
	gaps        []Gap
	inGapUntil  int64
	lostAll     bool // nobody came back since the last gap began

	Silences  []Silence
	Silence   SilenceSum
	Calls     Moments // reads and writes of sockets, which do not block: a long one tells of a thread that lost its CPU
	Wakes     Moments // stretches of work waiting beside an idle P: a thread was woken for it and did not come
	wakeNS    int64   // of the stretch that is open
	timerproc FuncID
}

type deadIdent struct {
	ident uint32
	head  uint64
}

// Silence is a stretch without an event of any thread while something was runnable.
type Silence struct {
	Begin, End int64
	Few        bool // fewer goroutines ran than there were Ps: Go would have run one
}

// SilenceSum adds them up.
type SilenceSum struct {
	N, NS, FewNS, Max int64
}

// LongCallNS is how long a read or write of a socket does not take on a CPU: the kernel copies some 100 KB or finds
// nothing to do [healthy servers: 10 us on average, 0-5 % of the time in calls this long; beside CPU hogs 12-84 %].
const LongCallNS = 2e6

// shortCallNS stands for calls whose end a trace does not record: formats before 1.22 have only that of a call which
// lost its P, and some of those end within this.
const shortCallNS = 10e3

// Moments adds up what takes microseconds when threads get a CPU, and those that took LongCallNS or more.
type Moments struct{ N, NS, Long, LongNS int64 }

func (c *Moments) add(ns int64) {
	c.N++
	c.NS += ns
	if ns >= LongCallNS {
		c.Long++
		c.LongNS += ns
	}
}

// New makes a Timeline for the events of src.
func New(src Source, o Options) *Timeline {
	if o.Bytes <= 0 {
		o.Bytes = 24 << 20
	}
	t := &Timeline{src: src, Stacks: NewStacks(src), idents: make([]Ident, 1, 256)}
	t.ring.init(o.Bytes / 24)
	t.procs.init()
	t.timerproc = t.intern("runtime.timerproc")
	return t
}

// maxTime keeps times within the 48 bits a segment has: three days. What comes later happens then.
const maxTime = 1<<47 - 1

// Rel is a time relative to the first event.
func (t *Timeline) Rel(at exectrace.Time) int64 {
	d := int64(at) - int64(t.base)
	return min(max(d, 0), maxTime)
}

// Abs is the trace's own time again.
func (t *Timeline) Abs(rel int64) int64 { return int64(t.base) + rel }

// Now is the time of the last event.
func (t *Timeline) Now() int64 { return t.now }

// Slot is the goroutine at slot, nil without one.
func (t *Timeline) Slot(slot uint32) *G {
	if int64(slot) >= int64(len(t.slots)) || t.slots[slot].Ident == 0 {
		return nil
	}
	return &t.slots[slot]
}

// Who tells who ident is.
func (t *Timeline) Who(ident uint32) *Ident { return &t.idents[ident] }

// EntryOf is the entry function of ident.
func (t *Timeline) EntryOf(ident uint32) FuncID { return t.idents[ident].Entry }

// StaleAt tells since when nothing is known of g because of a gap.
func (t *Timeline) StaleAt(g *G) (int64, bool) {
	if int(g.epoch) == len(t.gaps) {
		return 0, false
	}
	return t.gaps[g.epoch].Begin, true
}

// Start is when a segment began.
func (t *Timeline) Start(s *Segment) int64 { return s.start() }

// Advance moves the clock to an event's time without applying the event.
func (t *Timeline) Advance(at exectrace.Time) int64 {
	if !t.any {
		t.any, t.base = true, at
	}
	now := t.Rel(at)
	if now > t.now {
		if now-t.now > SilenceNS && t.runnable > 0 && now > t.inGapUntil {
			t.silence(t.now, now)
		}
		for now >= t.procs.rotateAt {
			t.procs.rotate(t.procs.rotateAt)
		}
		if t.runnable > 0 && t.procs.free() {
			t.wakeNS += now - t.now
		} else if t.wakeNS > 0 {
			t.Wakes.add(t.wakeNS)
			t.wakeNS = 0
		}
		t.procs.runnableNS += int64(t.runnable) * (now - t.now)
		t.now = now
	}
	return t.now
}

// maxSilences bounds the list; a 20 ms silence at a time these are 22 minutes of them.
const maxSilences = 1 << 16

func (t *Timeline) silence(b, e int64) {
	s := Silence{b, e, t.procs.busy() < t.procs.count()}
	t.Silence.N++
	t.Silence.NS += e - b
	t.Silence.Max = max(t.Silence.Max, e-b)
	if s.Few {
		t.Silence.FewNS += e - b
	}
	if len(t.Silences) >= maxSilences {
		t.Silences = append(t.Silences[:0], t.Silences[maxSilences/2:]...)
	}
	t.Silences = append(t.Silences, s)
}

// Apply takes the next event.
func (t *Timeline) Apply(ev *exectrace.Event) {
	now := t.Advance(ev.Time)
	t.Woken.Lock = false
	switch ev.Kind {
	case exectrace.KindGoroutine:
		t.goroutine(ev, now)
	case exectrace.KindProc:
		if now >= t.inGapUntil {
			t.proc(ev, now)
		}
	case exectrace.KindRangeBegin, exectrace.KindRangeActive, exectrace.KindRangeEnd:
		if now >= t.inGapUntil {
			t.rangeEvent(ev, now)
		}
	case exectrace.KindMetric:
		switch ev.Metric {
		case exectrace.MetricGOMAXPROCS:
			t.procs.setCount(ev.Arg[0], now)
		case exectrace.MetricHeapLive:
			t.ranges.live(int64(min(ev.Arg[0], 1<<62)))
		case exectrace.MetricHeapGoal:
			t.ranges.goal(int64(min(ev.Arg[0], 1<<62)))
		}
	case exectrace.KindLabel:
		if g := t.Slot(ev.Slot); g != nil {
			if who := workerMode(t.src.String(ev.Name)); who != 0 {
				g.who = who
				if g.proc >= 0 && State(g.meta&7) == Running {
					t.procs.rename(g.proc, who, now)
				}
			}
		}
	case exectrace.KindGap:
		t.gap(now, t.Rel(exectrace.Time(ev.Arg[0])))
	}
}

func workerMode(label string) uint32 {
	switch {
	case strings.HasPrefix(label, "GC (dedicated"):
		return WhoGCDedicated
	case strings.HasPrefix(label, "GC (idle"):
		return WhoGCIdle
	case strings.HasPrefix(label, "GC (fractional"):
		return WhoGCFractional
	}
	return 0
}

// maxGaps bounds the list of gaps: more only lengthen the last.
const maxGaps = 1 << 16

// gap forgets every state. Each goroutine and P begins again at its first event after end.
func (t *Timeline) gap(begin, end int64) {
	end = max(end, begin)
	if n := len(t.gaps); n > 0 && (begin <= t.gaps[n-1].End && t.lostAll || n >= maxGaps) {
		t.gaps[n-1].End = max(t.gaps[n-1].End, end)
	} else {
		t.gaps = append(t.gaps, Gap{begin, end})
	}
	t.inGapUntil = max(t.inGapUntil, end)
	t.runnable = 0
	t.procs.setWork(false, begin)
	clear(t.waiting)
	t.procs.forget(begin)
	t.ranges.forget(begin)
	t.procs.setStopped(false, begin)
	t.lostAll = true
}

// Gaps are the stretches of which nothing is known.
func (t *Timeline) Gaps() []Gap { return t.gaps }

// newIdent takes a free identity: that of a goroutine whose last segment is no longer kept, else a new one.
func (t *Timeline) newIdent(id exectrace.GoID) uint32 {
	const most = 1 << 18 // 6 MB
	if t.deadAt < len(t.dead) {
		d := t.dead[t.deadAt]
		if d.head < t.oldest || len(t.idents) >= most {
			if d.head >= t.oldest {
				t.never++
				t.oldest = min(d.head+1, t.head)
			}
			t.deadAt++
			if t.deadAt > 1024 && t.deadAt*2 > len(t.dead) {
				t.dead = t.dead[:copy(t.dead, t.dead[t.deadAt:])]
				t.deadAt = 0
			}
			t.idents[d.ident] = Ident{GoID: id}
			return d.ident
		}
	}
	t.idents = append(t.idents, Ident{GoID: id})
	return uint32(len(t.idents) - 1)
}

// slotOf is the goroutine of an event, made if it is not there.
func (t *Timeline) slotOf(slot uint32, id exectrace.GoID) (g *G, isNew bool) {
	const most = 1 << 22 // the reader's slots are dense; this only bounds what a broken one could ask for
	if slot >= most {
		return nil, false
	}
	for int(slot) >= len(t.slots) {
		t.slots = append(t.slots, make([]G, max(16, len(t.slots)))...)
	}
	g = &t.slots[slot]
	if g.goid == id && g.Ident != 0 {
		return g, false
	}
	if g.Ident != 0 {
		t.leave(g, t.now)
		t.detach(g)
	}
	*g = G{Ident: t.newIdent(id), goid: id, proc: -1, epoch: uint32(len(t.gaps))}
	return g, true
}

func (t *Timeline) detach(g *G) {
	t.dead = append(t.dead, deadIdent{g.Ident, t.head})
	*g = G{proc: -1}
}

// leave undoes what g's present state counts for.
func (t *Timeline) leave(g *G, now int64) {
	if int(g.epoch) != len(t.gaps) {
		g.proc = -1
		return
	}
	switch State(g.meta & 7) {
	case Runnable:
		if t.runnable--; t.runnable == 0 {
			t.procs.setWork(false, now)
		}
	case Waiting:
		if int(g.site) < len(t.waiting) {
			t.waiting[g.site]--
		}
	case Running, Syscall:
		if g.proc >= 0 {
			t.procs.release(g.proc, now, g.Ident, g.stack)
			g.proc = -1
		}
	}
}

// Pin makes sure that the segment g is in is kept: one that waited for very long is put back.
func (t *Timeline) Pin(g *G) {
	if g.Cur == 0 || t.alive(g.Cur) {
		return
	}
	s, seq := t.add()
	*s = Segment{w: uint64(g.start)<<16 | g.meta, Stack: g.stack}
	g.Cur = seq
}

// enter begins g's next segment. The counts of the state are the caller's.
func (t *Timeline) enter(g *G, now int64, meta uint64, stack uint32) *Segment {
	prev := uint32(0)
	if g.Cur != 0 {
		t.Pin(g)
		prev = uint32(g.Cur)
	}
	s, seq := t.add()
	meta |= g.ranges
	*s = Segment{w: uint64(now)<<16 | meta, Prev: prev, Stack: stack}
	g.Cur, g.start, g.meta, g.stack = seq, now, meta, stack
	return s
}

// run begins a running segment, which tells the ranges it is in.
func (t *Timeline) run(g *G, now int64, meta uint64) {
	stack := uint32(0)
	switch {
	case g.ranges&^metaAssist != 0:
		stack = g.rstack
	case g.ranges != 0:
		stack = g.astack
	}
	s := t.enter(g, now, meta|uint64(Running), stack)
	if g.ranges&metaSweep != 0 {
		s.Ender = g.sweep
	}
}

// revive gives a goroutine that a gap made unknown a segment that says so. Its state is for the caller to give.
func (t *Timeline) revive(g *G, now int64) {
	at, stale := t.StaleAt(g)
	if !stale {
		return
	}
	g.ranges = 0
	g.epoch = uint32(len(t.gaps))
	g.proc = -1
	if g.Cur != 0 {
		t.Pin(g)
		t.at(g.Cur).w |= metaGap // who ended it cannot be known any more
		t.enter(g, max(at, g.start), uint64(Unknown)|metaGap, 0)
	}
	g.meta = uint64(Unknown) | metaGap
}

// actor is who did something to another goroutine: at least it runs.
func (t *Timeline) actor(slot uint32, id exectrace.GoID, now int64) *G {
	g, isNew := t.slotOf(slot, id)
	if g == nil {
		return nil
	}
	if _, stale := t.StaleAt(g); isNew || stale {
		meta := uint64(0)
		if isNew {
			meta = metaFirst
		}
		t.revive(g, now)
		t.run(g, now, meta)
	}
	return g
}

// goroutine takes a goroutine from one state to another.
func (t *Timeline) goroutine(ev *exectrace.Event, now int64) {
	var first uint64
	var g *G
	isNew := false
	if int(ev.Slot) < len(t.slots) && t.slots[ev.Slot].goid == ev.G && t.slots[ev.Slot].Ident != 0 {
		g = &t.slots[ev.Slot] // as slotOf does, without the call
	} else if g, isNew = t.slotOf(ev.Slot, ev.G); g == nil {
		return
	}
	if now < t.inGapUntil {
		// Other threads' events inside a gap: only who exists is taken from them.
		if ev.To == exectrace.NotExist {
			t.detach(g)
		} else if isNew {
			g.epoch = uint32(max(len(t.gaps)-1, 0))
			t.learnEntry(g, ev)
			// what it did is unknown until the gap ends
			t.enter(g, now, uint64(Unknown)|metaGap|metaFirst, 0)
		}
		return
	}
	t.lostAll = false
	switch {
	case isNew:
		if ev.From == exectrace.NotExist && ev.To != exectrace.NotExist {
			t.born(g, ev, now)
			return
		}
		first = metaFirst
	default:
		if _, stale := t.StaleAt(g); stale {
			t.revive(g, now)
		} else if ev.From == ev.To {
			if ev.Stack != 0 && g.stack == 0 && State(g.meta&7) == Waiting {
				t.learnWait(g, ev)
			}
			return // a status that repeats what is known
		}
	}

	if ev.To == exectrace.Runnable && State(g.meta&7) == Waiting {
		t.wake(g, ev, now)
		return
	}
	if g.meta&(7|metaFirst|metaGap) == uint64(Syscall) && ev.To != exectrace.Syscall && g.stack != 0 {
		t.called(g, now)
	}
	if g.proc >= 0 && State(g.meta&7) == Syscall && ev.To == exectrace.Running && int32(ev.P) == g.proc {
		// back from a syscall with its P
		t.procs.back(g.proc, now)
		t.run(g, now, first)
		return
	}
	if ev.To == exectrace.Syscall && g.proc >= 0 && State(g.meta&7) == Running {
		t.learnEntry(g, ev)
		t.procs.syscall(g.proc, now)
		t.enter(g, now, uint64(Syscall)|first, uint32(ev.Stack))
		return
	}
	from := State(g.meta & 7)
	if ev.Stack != 0 && from == Running {
		t.learnEntry(g, ev)
	}
	if from == Running && g.proc >= 0 {
		g.stack = uint32(ev.Stack) // where it stopped: for who was awaited
	}
	t.leave(g, now)
	g.ranges &^= metaSweep // no goroutine leaves its P while it sweeps; one that seems to lost its end
	switch ev.To {
	case exectrace.Running:
		t.run(g, now, first)
		t.place(g, ev, now, false)
	case exectrace.Runnable:
		why := WhyPreempted
		switch {
		case ev.Reason == exectrace.ReasonYield:
			why = WhyYielded
		case from == Syscall:
			why = WhySyscall
		case from == Unknown:
			why = WhyStatus
		}
		t.enter(g, now, uint64(Runnable)|uint64(why)<<metaWait|first, 0)
		t.ready()
	case exectrace.Waiting:
		t.learnEntry(g, ev)
		t.enter(g, now, uint64(Waiting)|uint64(t.class(ev.Reason, ev.Stack))<<metaWait|first, uint32(ev.Stack))
		t.wait(g)
	case exectrace.Syscall:
		t.learnEntry(g, ev)
		t.enter(g, now, uint64(Syscall)|first, uint32(ev.Stack))
		t.place(g, ev, now, true)
	case exectrace.NotExist:
		t.detach(g)
	default:
		t.enter(g, now, uint64(Unknown)|first, 0)
	}
}

// called counts a call that ended if it is a socket's.
func (t *Timeline) called(g *G, now int64) {
	if !t.Get(exectrace.StackID(g.stack)).socket {
		return
	}
	if now-g.start >= LongCallNS {
		// A world that was stopped meanwhile may keep the call from returning, whatever the thread did.
		if _, _, _, stopped := t.Stopped(g.start, now); stopped {
			return
		}
	}
	ns := now - g.start
	if t.src.Version() < 22 {
		ns = max(ns, shortCallNS)
	}
	t.Calls.add(ns)
}

func (t *Timeline) ready() {
	if t.runnable++; t.runnable == 1 {
		t.procs.setWork(true, t.now)
	}
	t.runnableMax = max(t.runnableMax, t.runnable)
}

// wait counts g as waiting at its site.
func (t *Timeline) wait(g *G) {
	info := t.Get(exectrace.StackID(g.stack))
	g.site = info.Site
	if Wait(g.meta>>metaWait&15) == WaitLock {
		g.site = info.LockSite
	}
	for int(g.site) >= len(t.waiting) {
		t.waiting = append(t.waiting, make([]int32, max(64, len(t.waiting)))...)
	}
	t.waiting[g.site]++
}

// learnWait gives a wait known only from a status the stack that a later status has.
func (t *Timeline) learnWait(g *G, ev *exectrace.Event) {
	t.learnEntry(g, ev)
	w := t.class(ev.Reason, ev.Stack)
	g.stack = uint32(ev.Stack)
	g.meta = g.meta&^(15<<metaWait) | uint64(w)<<metaWait
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.Stack = g.stack
		s.w = s.w&^(15<<metaWait) | uint64(w)<<metaWait
	}
	t.waiting[g.site]--
	t.wait(g)
}

func (t *Timeline) learnEntry(g *G, ev *exectrace.Event) {
	if g.who == 0 && ev.Stack != 0 {
		if id := &t.idents[g.Ident]; id.Entry == 0 {
			id.Entry = t.Get(ev.Stack).Entry
			g.who = uint32(id.Entry)
		}
	}
}

// place puts g on the event's P.
func (t *Timeline) place(g *G, ev *exectrace.Event, now int64, syscall bool) {
	if old, ok := t.procs.take(int32(ev.P), ev.Slot, g.who, now); ok {
		g.proc = int32(ev.P)
		if syscall {
			t.procs.syscall(g.proc, now)
		}
		// who was on it and did not say that it left
		if o := t.Slot(old); o != nil && o != g && o.proc == g.proc {
			o.proc = -1
		}
	}
}

// born begins a goroutine with who made it, so that its maker's story can be told for the time before.
func (t *Timeline) born(g *G, ev *exectrace.Event, now int64) {
	t.learnEntry(g, ev)
	by, ident, seg := EnderNobody, uint32(0), uint64(0)
	slot := ev.Slot
	if ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot {
		if o := t.actor(ev.OnSlot, ev.On, now); o != nil {
			t.Pin(o)
			by, ident, seg = EnderGoroutine, o.Ident, o.Cur
			g = &t.slots[slot] // actor may have moved them
		}
	} else if ev.P != exectrace.NoProc {
		by = EnderP
	}
	s := t.enter(g, now, uint64(Runnable)|uint64(WhyNewborn)<<metaWait|uint64(by)<<metaEnder, uint32(ev.OnStack))
	s.Ender, s.EnderSeg = ident, uint32(seg)
	switch ev.To {
	case exectrace.Runnable:
		t.ready()
	case exectrace.Running:
		t.run(g, now, 0)
		t.place(g, ev, now, false)
	case exectrace.Syscall: // a C thread that came in
		t.enter(g, now, uint64(Syscall), uint32(ev.Stack))
		t.place(g, ev, now, true)
	default: // a coroutine waits to be switched to
		t.enter(g, now, uint64(Waiting)|uint64(WaitMessage)<<metaWait, 0)
		t.wait(g)
	}
}

// wake ends g's wait and notes who did it, unless that is known to be a lie: the event names the thread's
// current goroutine also when the runtime polls the network or runs timers on its behalf.
func (t *Timeline) wake(g *G, ev *exectrace.Event, now int64) {
	by, ident, seg := EnderNobody, uint32(0), uint64(0)
	slot := ev.Slot
	switch {
	case ev.On != exectrace.NoGoroutine && ev.OnSlot != ev.Slot:
		if o := t.actor(ev.OnSlot, ev.On, now); o != nil {
			t.Pin(o)
			by, ident, seg = EnderGoroutine, o.Ident, o.Cur
			g = &t.slots[slot]
		}
	case ev.P != exectrace.NoProc:
		by = EnderP
	}
	w := Wait(g.meta >> metaWait & 15)
	if by == EnderGoroutine {
		switch w {
		case WaitNetwork:
			if ev.OnStack == 0 || !t.Get(ev.OnStack).deadline {
				by = EnderP
			}
		case WaitTimer:
			by = EnderP
		default:
			if e := t.idents[ident].Entry; e != 0 && e == t.timerproc {
				by = EnderP // Go before 1.14 has a goroutine for timers
			}
		}
	}
	queue := t.waiting[g.site]
	begin, stack := g.start, g.stack
	t.leave(g, now)
	if t.alive(g.Cur) {
		s := t.at(g.Cur)
		s.w |= uint64(by) << metaEnder
		s.Ender, s.EnderSeg = ident, uint32(seg)
	} else {
		g.meta |= uint64(by) << metaEnder
	}
	s := t.enter(g, now, uint64(Runnable)|uint64(WhyWoken)<<metaWait, uint32(ev.OnStack))
	if p := t.Seg(s.Prev); p != nil && by == EnderGoroutine {
		p.Ender, p.EnderSeg = ident, uint32(seg)
	}
	s = t.at(g.Cur)
	s.Ender = uint32(queue)
	t.ready()
	if w == WaitLock {
		t.Woken = Woken{
			Lock: true, Waiter: g.Ident, Begin: begin, End: now, Stack: exectrace.StackID(stack),
			By: by, Waker: ident, Seg: uint32(seg), OnStack: ev.OnStack, Site: g.site, Queue: queue,
		}
	}
}
