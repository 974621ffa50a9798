package timeline

import (
	"cmp"
	"sort"

	"github.com/whystall/whystall/exectrace"
)

// STW is one stop-the-world. From Begin to LastStop Ps were being stopped, until Start the world was
// stopped, from there on only the initiator was delayed. Who is awaited is decided by docs/join.md,
// "4. Anatomy of a stop-the-world".
type STW struct {
	Begin, LastStop, Start, End int64 // LastStop 0: nobody was awaited, or it is not known
	Kind                        exectrace.StringID
	GoID                        exectrace.GoID
	Initiator                   FuncID // entry function
	Stack                       exectrace.StackID
	Awaited                     FuncID // entry function of the goroutine on the P that stopped last
	AwaitedStack                exectrace.StackID
	Thread                      uint32 // of the initiator, as the traced process sees it; 0 not known
	AwaitedThread               uint32 // that stopped the last P. A thief's, where the P was retaken; 0 none or not known
	Open                        bool   // its end was not seen
}

// Sweep is one sweep by an allocating goroutine.
type Sweep struct {
	N                uint32 // its number
	Begin, End       int64
	Swept, Reclaimed int64
	GoID             exectrace.GoID
	Stack            exectrace.StackID
}

// Mark is one concurrent mark phase.
type Mark struct{ Begin, End int64 } // End 0: not seen

type stwPhase uint8

const (
	stwNone     stwPhase = iota
	stwAwait             // Ps still run
	stwStopped           // none does
	stwStarting          // another M started a P
)

// Bounds of the lists, oldest forgotten first. At two stop-the-worlds a collection and ten collections a second, an hour.
const (
	maxSTWs   = 1 << 16
	maxMarks  = 1 << 15
	maxSweeps = 1 << 14
	topSweeps = 100
)

// ranges is what encloses other things.
type ranges struct {
	stws     []STW
	stwsLost uint32 // number of the first in stws
	near     int    // see before
	nearMark int
	phase    stwPhase
	others   int32 // Ps other than the initiator's that are not stopped
	initM    exectrace.ThreadID
	initP    int32
	initSlot uint32

	marks  []Mark
	Cycles int64
	MarkNS int64

	sweepN uint32
	open   []Sweep // by slot
	top    []Sweep

	assistNS int64
	assists  map[exectrace.StackID]*SiteSum
	triggers map[exectrace.StackID]*SiteSum

	GoalMin, GoalMax, LiveMax int64

	liveNow                    int64
	low, goalNow               int64 // smallest heap since the last cycle began: what that cycle found live
	markedSum, goalSum, marked int64 // of cycles of which both are known
}

// SiteSum is what happened at one stack.
type SiteSum struct {
	NS, N int64
}

func (r *ranges) goal(bytes int64) {
	if r.GoalMin == 0 || bytes < r.GoalMin {
		r.GoalMin = bytes
	}
	r.GoalMax = max(r.GoalMax, bytes)
	r.goalNow = bytes
}

func (r *ranges) live(bytes int64) {
	r.LiveMax = max(r.LiveMax, bytes)
	r.liveNow = bytes
	if r.low == 0 || bytes < r.low {
		r.low = bytes
	}
}

// room remembers how far the heap was let grow since the cycle before: from what that found live to the goal. Sums
// are of KiB, so that no number of cycles overflows them.
func (r *ranges) room() {
	// With GOGC=off the goal is 0, and what starts cycles is the memory limit: the heap was let grow to what it is.
	if goal := cmp.Or(r.goalNow, r.liveNow); r.low > 0 && goal > 0 && r.Cycles > 0 {
		r.markedSum += r.low >> 10
		r.goalSum += goal >> 10
		r.marked++
	}
	r.low = 0
}

// forget ends what a gap leaves open.
func (r *ranges) forget(now int64) {
	if r.phase != stwNone {
		s := &r.stws[len(r.stws)-1]
		s.End, s.Open = now, true
		if s.Start == 0 {
			s.Start = now
		}
		r.phase = stwNone
	}
	if n := len(r.marks); n > 0 && r.marks[n-1].End == 0 {
		r.marks[n-1].End = now
		r.MarkNS += now - r.marks[n-1].Begin
	}
	clear(r.open)
}

func (t *Timeline) rangeEvent(ev *exectrace.Event, now int64) {
	begins := ev.Kind != exectrace.KindRangeEnd
	r := &t.ranges
	if ev.Range == exectrace.RangeGC {
		r.gc(ev, now, begins)
		return
	}
	slot, id := ev.Slot, ev.G
	if slot == exectrace.NoSlot {
		slot, id = ev.OnSlot, ev.On
	}
	if slot == exectrace.NoSlot && ev.Range == exectrace.RangeSweep && ev.Proc >= 0 && int(ev.Proc) < len(t.procs.ps) {
		if g := t.Slot(t.procs.ps[ev.Proc].slot); g != nil {
			slot, id = t.procs.ps[ev.Proc].slot, t.idents[g.Ident].GoID
		}
	}
	if slot == exectrace.NoSlot {
		return
	}
	var g *G
	if ev.Kind == exectrace.KindRangeActive {
		// the goroutine need not run
		g, _ = t.slotOf(slot, id)
		if g != nil && g.Cur == 0 {
			t.enter(g, now, uint64(Unknown)|metaFirst, 0)
		}
	} else {
		g = t.actor(slot, id, now)
	}
	if g == nil {
		return
	}
	if _, stale := t.StaleAt(g); stale {
		return
	}
	var bit uint64
	switch ev.Range {
	case exectrace.RangeAssist:
		bit = metaAssist
		if begins {
			g.astack = uint32(ev.Stack)
			g.astart = now
		} else if g.ranges&bit != 0 {
			r.assisted(exectrace.StackID(g.astack), now-g.astart)
		}
	case exectrace.RangeSweep:
		bit = metaSweep
		if begins {
			g.rstack = uint32(ev.Stack)
			g.sweep = r.sweepBegin(slot, now, id, ev.Stack)
		} else if g.ranges&bit != 0 {
			r.sweepEnd(slot, now, ev.Arg)
		}
	case exectrace.RangeSTW:
		bit = metaSTW
		if begins {
			g.rstack = uint32(ev.Stack)
			t.stwBegin(ev, g, slot, now)
		} else {
			t.stwEnd(now)
		}
	default:
		return
	}
	if begins {
		g.ranges |= bit
	} else {
		g.ranges &^= bit
	}
	if g.proc >= 0 {
		switch bit {
		case metaAssist:
			t.procs.assist(g.proc, begins, now)
		case metaSweep:
			t.procs.holds(g.proc, g.holds(), now)
		}
	}
	if State(g.meta&7) == Running {
		t.run(g, now, 0)
	}
}

func (r *ranges) gc(ev *exectrace.Event, now int64, begins bool) {
	n := len(r.marks)
	open := n > 0 && r.marks[n-1].End == 0
	switch {
	case begins && open: // a generation repeats it
	case begins:
		if n >= maxMarks {
			r.marks = r.marks[:copy(r.marks, r.marks[n/2:])]
		}
		r.marks = append(r.marks, Mark{Begin: now})
		r.room()
		r.Cycles++
		if ev.Stack != 0 {
			r.triggers = addSite(r.triggers, ev.Stack, 0)
		}
	case open:
		r.marks[n-1].End = now
		r.MarkNS += now - r.marks[n-1].Begin
	case n == 0: // it was open when the trace began
		r.marks = append(r.marks, Mark{Begin: 0, End: now})
		r.MarkNS += now
	}
}

const maxSites = 1 << 13

func addSite(m map[exectrace.StackID]*SiteSum, id exectrace.StackID, ns int64) map[exectrace.StackID]*SiteSum {
	if m == nil {
		m = map[exectrace.StackID]*SiteSum{}
	}
	s := m[id]
	if s == nil {
		if len(m) >= maxSites {
			id = 0
			if s = m[0]; s == nil {
				s = &SiteSum{}
				m[0] = s
			}
		} else {
			s = &SiteSum{}
			m[id] = s
		}
	}
	s.NS += ns
	s.N++
	return m
}

func (r *ranges) assisted(stack exectrace.StackID, ns int64) {
	r.assistNS += ns
	r.assists = addSite(r.assists, stack, ns)
}

func (r *ranges) sweepBegin(slot uint32, now int64, id exectrace.GoID, stack exectrace.StackID) uint32 {
	for int(slot) >= len(r.open) {
		r.open = append(r.open, make([]Sweep, max(16, len(r.open)))...)
	}
	r.sweepN++
	r.open[slot] = Sweep{N: r.sweepN, Begin: now, GoID: id, Stack: stack}
	return r.sweepN
}

func (r *ranges) sweepEnd(slot uint32, now int64, arg [2]uint64) {
	if int(slot) >= len(r.open) || r.open[slot].N == 0 {
		return
	}
	s := r.open[slot]
	r.open[slot] = Sweep{}
	s.End = now
	s.Swept, s.Reclaimed = int64(min(arg[0], 1<<62)), int64(min(arg[1], 1<<62))
	d := s.End - s.Begin
	if n := len(r.top); n == topSweeps && r.top[n-1].End-r.top[n-1].Begin >= d {
		return
	}
	i := sort.Search(len(r.top), func(i int) bool { return r.top[i].End-r.top[i].Begin < d })
	if len(r.top) < topSweeps {
		r.top = append(r.top, Sweep{})
	}
	copy(r.top[i+1:], r.top[i:])
	r.top[i] = s
}

func (t *Timeline) stwBegin(ev *exectrace.Event, g *G, slot uint32, now int64) {
	r := &t.ranges
	if r.phase != stwNone {
		if ev.Kind == exectrace.KindRangeActive && slot == r.initSlot {
			return // repeated by a generation
		}
		t.stwEnd(now)
	}
	if n := len(r.stws); n >= maxSTWs {
		r.stws = r.stws[:copy(r.stws, r.stws[n/2:])]
		r.stwsLost += uint32(n - n/2)
	}
	id := &t.idents[g.Ident]
	if id.Entry <= t.launchers && ev.Stack != 0 {
		id.Entry = t.Get(ev.Stack).Entry
	}
	r.stws = append(r.stws, STW{Begin: now, Kind: ev.Name, GoID: id.GoID, Initiator: id.Entry, Stack: ev.Stack, Thread: known(ev.M)})
	r.phase, r.initM, r.initP, r.initSlot, r.others = stwAwait, ev.M, g.proc, slot, 0
	for i := range t.procs.ps {
		if t.procs.ps[i].active && int32(i) != g.proc {
			r.others++
		}
	}
	if r.others == 0 && t.src.Version() >= 22 {
		r.phase = stwStopped
	}
	t.procs.setStopped(true, now)
}

// known is a thread's id, 0 for none.
func known(m exectrace.ThreadID) uint32 {
	if m < 0 || m >= 1<<32 {
		return 0
	}
	return uint32(m)
}

// procChanged follows the Ps during a stop-the-world.
func (r *ranges) procChanged(t *Timeline, x *proc, ev *exectrace.Event, now int64) {
	s := &r.stws[len(r.stws)-1]
	if int32(ev.Proc) == r.initP || t.src.Version() < 22 {
		return
	}
	byInitiator := ev.M == r.initM
	if x.active {
		r.others++
		if r.phase == stwStopped && !byInitiator {
			r.phase, s.Start = stwStarting, now
			t.procs.setStopped(false, now)
		}
		return
	}
	r.others--
	if r.phase == stwStarting && r.others <= 0 && !r.ranSince(t, s.Start) {
		// A thread was about to take an idle P as the world was stopped, and gave it up at once: nothing had started.
		r.phase, s.Start = stwAwait, 0
		t.procs.setStopped(true, now)
	}
	if r.phase != stwAwait {
		return
	}
	if !byInitiator {
		s.LastStop = now
		s.Awaited, s.AwaitedStack = 0, exectrace.StackID(x.lastStack)
		s.AwaitedThread = known(ev.M)
		if x.lastIdent != 0 {
			s.Awaited = t.idents[x.lastIdent].Entry
		}
	}
	if r.others <= 0 {
		r.phase = stwStopped
	}
}

// ranSince tells whether a P other than the initiator's had a goroutine since from.
func (r *ranges) ranSince(t *Timeline, from int64) bool {
	for i := range t.procs.ps {
		if int32(i) != r.initP && t.procs.ps[i].since > from {
			return true
		}
	}
	return false
}

func (t *Timeline) stwEnd(now int64) {
	r := &t.ranges
	if r.phase == stwNone {
		return
	}
	s := &r.stws[len(r.stws)-1]
	s.End = now
	if s.Start == 0 {
		s.Start = now
	}
	r.phase = stwNone
	t.procs.setStopped(false, now)
}
