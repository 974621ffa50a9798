package exectrace

// StateTimes is how long something was in each State, in nanoseconds: t[Running]. t[Undetermined]
// is what a Gap hides, and what was before the first status of a goroutine that is older than the
// trace.
type StateTimes [stateCount]int64

const stateCount = Idle + 1

// GoroutineTotal is the life of one goroutine, as far as the trace has it.
type GoroutineTotal struct {
	G       GoID
	Entry   StringID // the function it started with: the outermost of any of its stacks
	Created Time     // or when it was first seen, if it is Older than the trace
	Ended   Time     // or the trace's end, if it is still Alive then
	Older   bool
	Alive   bool
	NS      StateTimes
}

// EntryTotal sums up all goroutines that started with one function.
type EntryTotal struct {
	Entry      StringID
	Goroutines int64
	NS         StateTimes
}

// ProcTotal is the life of one P.
type ProcTotal struct {
	P  ProcID
	NS StateTimes // Running, Idle, Syscall, Undetermined
}

// Interval is a stop-the-world or a GC cycle's concurrent mark.
type Interval struct {
	Begin, End Time
	Open       bool     // it lasts beyond the trace's end
	G          GoID     // that stopped the world
	Name       StringID // what for
	Stack      StackID
}

// Counts counts what happened, over all goroutines.
type Counts struct {
	Tasks, Regions, Logs       int64 // begun
	SweptBytes, ReclaimedBytes uint64
	HeapLiveMax                uint64 // bytes
}

// Totals is a trace summed up.
type Totals struct {
	Begin, End Time
	Entries    []EntryTotal // the longest running first
	Procs      []ProcTotal
	Pauses     []Interval // stop-the-worlds, in order
	GCs        []Interval // concurrent marks, in order
	AssistNS   int64      // in GC mark assist, over all goroutines
	SweepNS    int64      // in sweeps, over all Ps
	Counts
}

// maxIntervals bounds Pauses and GCs, maxEntries Entries. The rest of the entries is summed up
// under the entry 0.
const (
	maxIntervals = 128 << 10
	maxEntries   = 32 << 10
)

// Totals reads the whole trace and sums up how long each goroutine and P was in which state. It
// takes a fraction of the time of going through the events: where nothing was lost, sums need no
// order.
//
// each, if not nil, gets every goroutine when it has ended, and those alive at the trace's end, by
// number. What it points to is overwritten. Totals itself keeps only sums, so memory does not grow
// with the trace.
//
// Within a Gap all states are unknown. What shows only in the order of events is no Gap here: a
// whole trace may say that a goroutine was woken before it waited. Each event counts at its own
// time. Events, in contrast, moves an event that comes too late for its place to the time of that
// place. So the sums of the two may differ by some microseconds a generation.
func (t *Trace) Totals(each func(*GoroutineTotal)) *Totals {
	t.reset()
	a := newSummer(t, each)
	switch {
	case t.closed:
		t.read.fail(errClosed)
	case t.version < 22:
		if before, ok := t.totalsV1(a); !ok {
			// From the start, but without the goroutines that were handed out.
			t.reset()
			a = newSummer(t, func(g *GoroutineTotal) {
				if each != nil && g.Ended >= before {
					each(g)
				}
			})
			t.blocksV1(v1Way{alone: true}, func(b []Event) bool { a.events(b); return true })
		}
	default:
		t.totalsV2(a)
	}
	t.end()
	return a.finish()
}

// life is a goroutine that has not ended.
type life struct {
	GoroutineTotal
	since Time
	state State
	named bool
	seq   uint64 // before format 1.22: the number that its next event with a number must have
}

// summer adds up generations, or single events.
type summer struct {
	t     *Trace
	each  func(*GoroutineTotal)
	sum   Totals
	ids   goMap // goroutine -> index in lives
	lives []life
	slots []uint32 // by slot: index in lives of the goroutine that was there last
	free  []uint32
	procs []life         // by P: only NS, since and state
	entry []int32        // by StringID: index+1 in sum.Entries
	stack []int32        // by StackID: its entry + 1, once known
	first bool           // before any event
	one   GoroutineTotal // for each

	pause map[GoID]int // open stop-the-world of each goroutine: index into Pauses
	gc    int          // open GC cycle: index into GCs, or -1

	assist, sweep map[int64]Time // where events are added up: open since, by G and by P

	// Where generations are added up: how many are open.
	assists, sweeps int64
}

func newSummer(t *Trace, each func(*GoroutineTotal)) *summer {
	return &summer{
		t: t, each: each, first: true, pause: map[GoID]int{}, gc: -1,
		assist: map[int64]Time{}, sweep: map[int64]Time{},
	}
}

// life gives g's, a new one from ts on if there is none.
func (a *summer) life(g GoID, ts Time) *life {
	if k, ok := a.ids.get(uint64(g)); ok {
		return &a.lives[k]
	}
	var k uint32
	if n := len(a.free); n > 0 {
		k = a.free[n-1]
		a.free = a.free[:n-1]
	} else {
		k = uint32(len(a.lives))
		a.lives = append(a.lives, life{})
	}
	a.ids.put(uint64(g), k)
	l := &a.lives[k]
	*l = life{GoroutineTotal: GoroutineTotal{G: g, Created: ts, Older: true}, since: ts}
	return l
}

// lifeOf does the same for e's goroutine. It remembers where that life is by the slot, which is the
// same until the goroutine's end.
func (a *summer) lifeOf(e *Event) *life {
	if uint(e.Slot) < uint(len(a.slots)) {
		if k := a.slots[e.Slot]; uint(k) < uint(len(a.lives)) {
			if l := &a.lives[k]; l.G == e.G && l.state != NotExist {
				return l
			}
		}
	}
	l := a.life(e.G, e.Time)
	if e.Slot != NoSlot {
		for uint(e.Slot) >= uint(len(a.slots)) {
			a.slots = append(a.slots, 0)
		}
		a.slots[e.Slot], _ = a.ids.get(uint64(e.G))
	}
	return l
}

// to ends l's state at ts and starts another.
func (l *life) to(ts Time, s State) {
	l.NS[l.state] += int64(ts - l.since)
	l.since, l.state = ts, s
}

// end hands l out and forgets it.
func (a *summer) end(l *life, ts Time) {
	l.Ended = ts
	if l.state != NotExist {
		l.to(ts, NotExist)
	}
	a.ended(&l.GoroutineTotal)
	if k, ok := a.ids.get(uint64(l.G)); ok {
		a.ids.del(uint64(l.G))
		a.free = append(a.free, k)
	}
}

func (a *summer) ended(g *GoroutineTotal) {
	name := g.Entry
	k := element(&a.entry, uint32(name))
	if *k == 0 {
		if len(a.sum.Entries) >= maxEntries {
			name = 0
			k = element(&a.entry, 0)
		}
		if *k == 0 {
			a.sum.Entries = append(a.sum.Entries, EntryTotal{Entry: name})
			*k = int32(len(a.sum.Entries))
		}
	}
	e := &a.sum.Entries[*k-1]
	e.Goroutines++
	for s, ns := range g.NS {
		e.NS[s] += ns
	}
	if a.each != nil {
		a.each(g)
	}
}

// element is l[id]; l grows as needed. id is one of the tables', and so bounded.
func element(l *[]int32, id uint32) *int32 {
	for int(id) >= len(*l) {
		*l = append(*l, make([]int32, max(256, len(*l)))...)
	}
	return &(*l)[id]
}

// entryOf is the function that a stack started with.
func (a *summer) entryOf(id StackID) StringID {
	if int(id) >= len(a.t.tables.stacks) {
		return 0
	}
	k := element(&a.stack, uint32(id))
	if *k == 0 {
		*k = int32(a.findEntry(id)) + 1
	}
	return StringID(*k - 1)
}

func (a *summer) findEntry(id StackID) StringID {
	tb := &a.t.tables
	s := tb.stacks[id]
	w := tb.words.get(s.off, s.n)
	for k := len(w) - 1; k >= 0; k-- {
		fn := tb.frames[w[k]].fn
		if k > 0 && tb.strings[fn] == "runtime.goexit" {
			continue
		}
		return fn
	}
	return 0
}

func (a *summer) proc(p ProcID, ts Time) *life {
	for int(p) >= len(a.procs) {
		a.procs = append(a.procs, life{GoroutineTotal: GoroutineTotal{Created: -1}})
	}
	l := &a.procs[p]
	if l.Created < 0 {
		l.Created, l.since = ts, ts
	}
	return l
}

func (a *summer) span(start, end Time) {
	if a.first {
		a.sum.Begin, a.first = start, false
	}
	a.sum.End = max(a.sum.End, end)
}

// mark opens or closes a stop-the-world or a GC cycle.
func (a *summer) mark(m Interval, rng Range, kind Kind) {
	if rng == RangeSTW {
		k, open := a.pause[m.G]
		switch {
		case kind == KindRangeBegin && len(a.sum.Pauses) < maxIntervals:
			m.Open = true
			a.pause[m.G] = len(a.sum.Pauses)
			a.sum.Pauses = append(a.sum.Pauses, m)
		case kind == KindRangeEnd && open:
			a.sum.Pauses[k].End, a.sum.Pauses[k].Open = m.Begin, false
			delete(a.pause, m.G)
		}
		return
	}
	switch {
	case kind == KindRangeEnd && a.gc >= 0:
		a.sum.GCs[a.gc].End, a.sum.GCs[a.gc].Open = m.Begin, false
		a.gc = -1
	case kind == KindRangeBegin || kind == KindRangeActive && a.gc < 0:
		if len(a.sum.GCs) < maxIntervals {
			m.Open = true
			a.gc = len(a.sum.GCs)
			a.sum.GCs = append(a.sum.GCs, m)
		}
	}
}

// lost makes every state unknown from ts on.
func (a *summer) lost(ts Time) {
	for k := range a.lives {
		if l := &a.lives[k]; l.state != NotExist {
			l.to(max(ts, l.since), Undetermined)
		}
	}
	for k := range a.procs {
		if l := &a.procs[k]; l.Created >= 0 {
			l.to(max(ts, l.since), Undetermined)
		}
	}
	a.lostRanges(ts)
}

// lostRanges ends at ts the assists and sweeps that are open.
func (a *summer) lostRanges(ts Time) {
	a.sum.AssistNS += a.assists * int64(ts)
	a.sum.SweepNS += a.sweeps * int64(ts)
	a.assists, a.sweeps = 0, 0
	for g, since := range a.assist {
		a.sum.AssistNS += int64(ts - since)
		delete(a.assist, g)
	}
	for p, since := range a.sweep {
		a.sum.SweepNS += int64(ts - since)
		delete(a.sweep, p)
	}
}
