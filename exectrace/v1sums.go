package exectrace

import (
	"cmp"
	"iter"
	"slices"
)

// Sums of formats 1.11 to 1.21, by the method of sums.go.
//
//  1. The merge orders the start of the trace, in which the runtime introduces what existed before.
//  2. The rest is summed up in windows of time, in each window one P after another: within a P, the
//     file is in order. A goroutine that was not created in the window enters it in the state in
//     which it left the one before.
//  3. At a window's end, each sum must be a time within the window. If one is not, or if anything
//     is out of the ordinary, the trace is read again in order.

// v1Window is how much of the file a window spans, roughly.
const v1Window = 2 << 20

// maxV1Marks bounds what is kept of a window until it is sorted: 10 MB.
const maxV1Marks = 200 << 10

// v1Sums sums a trace up.
type v1Sums struct {
	sums // of a window
	t    *Trace
	a    *summer
	m    *v1Merge
	ps   []v1SumP // by cursor

	from, until uint64 // ticks: the window
	base        Time   // its start less one: times in it count from there, and 0 is none

	stw     GoID // that stopped the world
	stwName StringID
}

// v1SumP is what is known of a P.
type v1SumP struct {
	g     *sumG // that it runs; nil: none
	gid   uint64
	last  uint64 // ticks
	n     uint64 // events
	sys   Time   // start of a syscall, which blocks if the next event says so
	sysAt uint64 // which event that was
	sweep Time   // open since, or noSweep
	state State
}

const (
	noSweep = -1
)

// totalsV1 adds the trace up for a. It reports whether it could. If not, a is of no use, and the
// goroutines that ended before the given time were handed out.
func (t *Trace) totalsV1(a *summer) (before Time, ok bool) {
	if !t.v1Scan() {
		return 0, true
	}
	x := t.v1
	if x.freq == 0 || x.joined > 0 || len(x.holes) > 0 || x.last < x.first || x.last-x.first >= 1<<46 {
		return 0, false
	}
	m := t.newV1Merge()
	m.brief = true
	each, ended := a.each, false
	a.each = func(*GoroutineTotal) { ended = true }
	t.v1Alone(m, func(b v1Block) bool { a.events(b.ev); return true })
	a.each = each
	if t.read.err != nil {
		return 0, true
	}
	s := &v1Sums{t: t, a: a, m: m, until: m.nowTick, stw: m.stw, stwName: t.v1Name(m.stwKind)}
	if ok = !m.init && !ended && len(t.read.gaps) == len(t.spooled) && s.start(); !ok {
		return 0, false
	}
	if err := guard(func() error {
		for _, until := range s.cuts() {
			before = m.clock.time(s.until)
			s.from, s.until = s.until, until
			if ok = s.window(); !ok {
				return nil
			}
		}
		return nil
	}); err != nil {
		t.read.fail(err)
	}
	if ok {
		s.finish()
	}
	return before, ok
}

// cuts gives the ends of the windows in ticks. The last window is open.
func (s *v1Sums) cuts() []uint64 {
	at := make([]uint64, len(s.t.data)/v1Window+1)
	for i := range s.m.procs {
		for _, sp := range s.m.procs[i].spans {
			if _, ticks, _, ok := v1Header(s.t.data, int(sp.off)); ok && ticks > s.until && ticks <= s.m.last {
				at[sp.off/v1Window] = ticks
			}
		}
	}
	slices.Sort(at)
	at = slices.DeleteFunc(slices.Compact(at), func(ticks uint64) bool { return ticks == 0 })
	return append(at, never)
}

// v1Entry has, for a state in which a goroutine enters a window, the index of its sum and its
// number in a status.
var v1Entry = [stateCount]struct{ acc, status uint8 }{
	Runnable: {accRunnable, goRunnable}, Running: {accRunning, goRunning},
	Waiting: {accWaiting, goWaiting}, Syscall: {accSyscall, goSyscall},
}

// start takes over what the merge knows. It reports whether that is all there is to know.
func (s *v1Sums) start() bool {
	m, a := s.m, s.a
	for _, e := range m.slots.ids.e {
		g := &m.gs[e.val]
		if !e.used || g.epoch != m.epoch || g.where == v1Dead {
			continue
		}
		k, ok := a.ids.get(e.key)
		if !ok || g.free || !a.lives[k].named {
			return false
		}
		l := &a.lives[k]
		l.seq = uint64(g.seq)
		if g.where == v1Waiting && l.state == Runnable {
			l.state = Syscall // it came back, but the record of that is still to be read
		}
	}
	s.ids.anon = true
	s.ps = make([]v1SumP, len(m.cursors))
	for i := range m.cursors {
		c, p := &m.cursors[i], &s.ps[i]
		c.alone = true
		*p = v1SumP{gid: uint64(c.g), last: m.nowTick, sysAt: 1 << 63, sweep: noSweep}
		if since, ok := a.sweep[int64(c.pid)]; ok {
			p.sweep = since
			delete(a.sweep, int64(c.pid))
		}
		if c.pid >= 0 && int(c.pid) < len(a.procs) {
			p.state = a.procs[c.pid].state
		}
	}
	return true
}

// window sums up one window and adds it to the rest. It reports whether it fits.
func (s *v1Sums) window() bool {
	m, a := s.m, s.a
	s.base = m.clock.time(s.from) - 1
	if m.clock.time(min(s.until, m.last))-s.base >= one/2 {
		return false
	}
	s.marks, s.counts = s.marks[:0], Counts{}
	s.ids.reset()
	for i := range s.ps {
		p := &s.ps[i]
		if p.g = nil; p.gid != 0 {
			p.g = s.ids.get(p.gid)
		}
		if !s.take(&m.cursors[i], p) {
			return false
		}
	}
	if s.bad || m.dropped > 0 {
		return false
	}
	until := s.until
	if until == never { // the last batches start later than any event
		until = s.from
		for i := range s.ps {
			until = max(until, s.ps[i].last)
		}
	}
	end := m.clock.time(until)
	s.max = uint64(end - s.base)
	for id, g := range s.numbered() {
		if !s.fits(id, g) {
			return false
		}
	}
	at := func(rel uint64) Time { return s.base + Time(rel) }
	for id, g := range s.numbered() {
		n := g.id & maxV1Seq
		g.id = id
		a.summedG(g, StackID(g.stack), at, 1, end)
		if g.start && g.end == 0 {
			a.life(GoID(id), 0).seq = n + 1
		}
	}
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.ts, b.ts) })
	for i := range s.marks {
		s.marked(&s.marks[i])
	}
	a.count(&s.counts)
	a.span(end, end)
	return true
}

// numbered gives the window's goroutines, in an order that depends on the trace alone.
func (s *v1Sums) numbered() iter.Seq2[uint64, *sumG] {
	return func(yield func(uint64, *sumG) bool) {
		for _, e := range s.ids.more.e {
			if !e.used {
				continue
			}
			p := s.ids.mem.get(int(e.val))
			for x := range p {
				if p[x].used() && !yield(e.key*pageSize+uint64(x), &p[x]) {
					return
				}
			}
		}
	}
}

// fits closes g's sums. It reports whether they are sums that can be, and whether no event with a
// number is missing.
func (s *v1Sums) fits(id uint64, g *sumG) bool {
	seq := uint64(1)
	k, old := s.a.ids.get(id)
	if old == g.start {
		return false
	}
	if g.start {
		g.stack = s.t.v1Stack(g.stack)
	} else {
		l := &s.a.lives[k]
		b := v1Entry[l.state]
		if b.status == 0 {
			return false
		}
		// It was in that state when the window started, which is time 1.
		g.first, g.state = 1, b.status
		g.acc[b.acc] -= 1 | one
		seq = l.seq
		l.seq += g.id & maxV1Seq
	}
	// Numbers count up by one. So the highest that was read is below the first one expected plus
	// how many were read, if none is missing.
	if g.id>>32 >= seq+g.id&maxV1Seq {
		return false // one before its last is missing
	}
	open, ok := closeSums(g.acc[:], s.max)
	return ok && (open == 0) == (g.end != 0) && open <= 1
}

// maxV1Seq bounds sequence numbers, and so how many a window has. In a window, sumG.id has two
// values: above 32 bits the highest number that was read, below how many were.
const maxV1Seq = 1<<32 - 1

// count notes that g has an event with a number. It reports whether the number is one that can be.
func (g *sumG) count(r *v1Rec) bool {
	g.id++
	if !r.local && r.a[1] > g.id>>32 {
		g.id = r.a[1]<<32 | g.id&maxV1Seq
		return r.a[1] <= maxV1Seq
	}
	return true
}

// marked adds what needs the order over all Ps.
func (s *v1Sums) marked(k *mark) {
	a, e := s.a, Event{Time: s.base + Time(k.ts), Kind: k.kind, G: k.g}
	switch {
	case k.rng == RangeAssist:
		a.sum.AssistNS += open(a.assist, &a.assists, int64(k.g), &e)
		return
	case k.rng == RangeSTW && k.kind == KindRangeBegin:
		s.stw, s.stwName = k.g, s.t.v1Name(uint32(k.name))
	case k.rng == RangeGC:
		e.Stack = StackID(s.t.v1Stack(uint32(k.stack)))
		a.mark(Interval{Begin: e.Time, G: NoGoroutine, Stack: e.Stack}, k.rng, k.kind)
		return
	}
	a.mark(Interval{Begin: e.Time, G: s.stw, Name: s.stwName}, k.rng, k.kind)
	if k.kind == KindRangeEnd {
		s.stw, s.stwName = NoGoroutine, 0
	}
}

// finish adds what is left at the trace's end.
func (s *v1Sums) finish() {
	m, a := s.m, s.a
	for len(m.samples.heap) > 0 {
		end := m.clock.time(m.samples.next().ts)
		a.span(end, end)
		s.n++
	}
	for i := range s.ps {
		if since := s.ps[i].sweep; since != noSweep {
			a.sweep[int64(m.cursors[i].pid)] = since
		}
	}
	s.t.read.stats.Events += s.n + 1 // and the Sync at the end
}
