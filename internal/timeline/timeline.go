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

	// Launchers are functions that goroutines begin with and that only call what they were given: who runs is what they call.
	Launchers []string

	// Threads keeps with which thread each P was held: what [Timeline.Holds] tells.
	Threads bool
}

// G is a goroutine that is there now. It lies at its [exectrace.Event.Slot].
type G struct {
	Cur    uint64 // number of the segment it is in, which may be no longer kept; 0: nobody is here
	Ident  uint32
	thread uint32 // of the running or syscall segment it is in
	start  int64  // of the segment it is in
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

	// Served tells that another kind of goroutine ended a wait of its for a message, as one does that gives it work.
	Served bool
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

	thread uint32 // of the event that is applied
	long   bool   // tests: no short cuts

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
	runnableNS  int64   // goroutines x time, less runnable x now
	waiting     []int32 // by FuncID of the site
	turns       map[FuncID]*turns
	gaps        []Gap
	inGapUntil  int64
	lostAll     bool // nobody came back since the last gap began

	Silences  []Silence
	Silence   SilenceSum
	Calls     Moments // reads and writes of sockets, which do not block: a long one tells of a thread that lost its CPU
	timerproc FuncID
}

type deadIdent struct {
	head  uint64
	ident uint32
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
	// As with the ring: room that need not move. A server that makes a goroutine a request has so many in the ring's reach.
	t := &Timeline{src: src, Stacks: NewStacks(src), idents: make([]Ident, 1, 1<<17), dead: make([]deadIdent, 0, 1<<16)}
	t.ring.init(o.Bytes / 24)
	t.procs.init()
	t.procs.threads = o.Threads
	for _, name := range o.Launchers { // first, so that to be one is to have a small number
		t.launchers = max(t.launchers, t.intern(Plain(name)))
	}
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

// Word is a string of the trace, as the kind of a stop-the-world.
func (t *Timeline) Word(id exectrace.StringID) string { return t.src.String(id) }

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
		t.procs.rotateAt = blockNS
	}
	now := max(t.Rel(at), t.now)
	if now-t.now > SilenceNS && t.runnable > 0 && now > t.inGapUntil {
		t.silence(t.now, now)
	}
	for now >= t.procs.rotateAt {
		t.procs.rotate(t.procs.rotateAt)
	}
	t.now = now
	return now
}

// clock is Advance where it only moves the clock.
func (t *Timeline) clock(at exectrace.Time) int64 {
	now := int64(at - t.base)
	if now >= t.procs.rotateAt || now-t.now > SilenceNS {
		return t.Advance(at)
	}
	t.now = max(now, t.now)
	return t.now
}

// maxSilences bounds the list; a 20 ms silence at a time these are 22 minutes of them.
const maxSilences = 1 << 16

func (t *Timeline) silence(b, e int64) {
	s := Silence{b, e, t.procs.used < t.procs.count()}
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
	now := t.clock(ev.Time)
	t.Woken.Lock = false
	t.thread = uint32(ev.M)
	switch ev.Kind {
	case exectrace.KindGoroutine:
		if t.long || !t.swift(ev, now) {
			t.goroutine(ev, now)
		}
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
	t.runnableNS += int64(t.runnable) * begin
	t.runnable = 0
	t.procs.setWork(false, begin)
	clear(t.waiting)
	t.procs.forget(begin)
	t.ranges.forget(begin)
	t.procs.setStopped(false, begin)
	t.lostAll = true
}

// Wakes are the stretches of work waiting beside an idle P: a thread was woken for it and did not come.
func (t *Timeline) Wakes() Moments {
	t.procs.idle(t.now)
	return t.procs.wakes
}

// Gaps are the stretches of which nothing is known.
func (t *Timeline) Gaps() []Gap { return t.gaps }
