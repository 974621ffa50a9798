package exectrace

import (
	"math/bits"
	"slices"
)

// How events of formats 1.11 to 1.21 are put in order:
//
//  1. The first pass finds each P's batches, and the clock's rate, which stands at the end
//     (v1Scanned).
//  2. Each P has a cursor, which decodes the P's batches a chunk at a time. Within a P, the order
//     of the file is the order of events.
//  3. The cursors are merged by time, in runs: a P has its turn as long as its next event is not
//     later than any other P's.
//  4. An event that starts, wakes or creates a goroutine must find that goroutine in the right
//     state and, unless the event is "local", at the right sequence number. If it does not, it
//     waits for events of other Ps (stuck). Such events usually have the time of the same tick.
//  5. If no event of another P brings the goroutine there, events are missing. That is a gap, and
//     every actor starts anew: the merge's epoch goes up, and what was known in an older epoch is
//     void.
//  6. A syscall's exit stands in the file where the goroutine got a P. It is handed out at the time
//     at which it happened: see exitDue.
//  7. Whether a syscall blocked is known by the P's next event, GoSysBlock, which the cursor
//     already has in its chunk.

// v1Merge makes one stream of events of a trace. It belongs to one goroutine, and hands full blocks
// to flush.
type v1Merge struct {
	*v1Index
	data    []byte
	version Version
	shapes  *[256]v1Shape
	flush   func(v1Block) (v1Block, bool) // gives the next block to fill; false: stop
	clock   v1Clock

	cursors []v1Cursor
	heap    []*v1Cursor // by the time of their next event
	samples v1Samples
	exits   byTime[uint64] // goroutines, by when they came back from a syscall
	nLate   int
	nHole   int
	due     uint64 // the earliest of exits, late batches, samples and holes

	slots    slots
	gs       []v1G
	epoch    uint32
	lossy    bool   // goroutines may turn up that no event introduced
	holeEnd  uint64 // until here nothing is expected to fit; 0 outside
	quiet    bool   // what does not fit soon after lastGap is put down to that
	lastGap  Time
	patience int

	init    bool     // the runtime still introduces what existed before the trace
	pending []uint32 // slots of the goroutines whose state it has not said yet
	gcSeq   uint64
	gcKnown bool
	stw     GoID
	stwSlot uint32
	stwKind uint32

	now     Time // of the last event
	nowTick uint64
	block   v1Block
	stopped bool
	halted  bool // stopped, or brief and done; looked at after each event
	packed  bool // batches instead of blocks
	brief   bool // stop when the runtime has introduced what existed before

	repaired, dropped int64
}

// v1Block is what the merge hands over. Its stacks and strings are still numbers of the file.
type v1Block struct {
	ev   []Event
	gaps []Gap

	// Of batches; their Other is ev.
	batch  *Batch
	room   int // records
	synced int // events that have a record
}

// v1Clock turns ticks into nanoseconds since the first event, rounded down, exactly.
type v1Clock struct {
	first, freq uint64
	mul         uint64 // 1e9/freq * 2^v1ClockShift, rounded down
}

// v1ClockShift leaves mul below 2^63 for the lowest rate, v1MinFreq.
const v1ClockShift = 49

func (c *v1Clock) set(first, freq uint64) {
	mul, _ := bits.Div64(1e9>>(64-v1ClockShift), 1e9<<v1ClockShift&(1<<64-1), freq)
	*c = v1Clock{first, freq, mul}
}

func (c *v1Clock) time(ticks uint64) Time {
	if ticks <= c.first {
		return 0
	}
	d := ticks - c.first
	if d >= 1<<46 {
		// Weeks: only damage can say so.
		hi, lo := bits.Mul64(d, 1e9)
		if hi >= c.freq {
			return 1<<63 - 1
		}
		q, _ := bits.Div64(hi, lo, c.freq)
		return Time(min(q, 1<<63-1))
	}
	// A division costs more than the rest of an event. The product is too small by less than one,
	// since d < 2^46 and mul is off by less than 2^-49. Whether it is too small shows in the
	// remainder.
	hi, lo := bits.Mul64(d, c.mul)
	q := hi<<(64-v1ClockShift) | lo>>v1ClockShift
	if d*1e9-q*c.freq >= c.freq {
		q++
	}
	return Time(q)
}

func (m *v1Merge) run() {
	m.cursors = make([]v1Cursor, len(m.procs))
	for i := range m.procs {
		c := &m.cursors[i]
		*c = v1Cursor{m: m, pid: m.procs[i].pid, idx: int32(i), spans: m.procs[i].spans, slot: NoSlot}
		c.fill()
		if len(c.buf) > 0 {
			m.heap = append(m.heap, c)
		}
	}
	m.samples.fill()
	m.rebuild()
	m.setDue()
	m.emit(KindSync)
	for len(m.heap) > 0 && !m.halted {
		m.turn()
	}
	if !m.halted {
		m.dueUntil(never)
		m.endInit()
		m.emit(KindSync)
	}
}

// turn merges one P's events until another P is due.
func (m *v1Merge) turn() {
	c := m.heap[0]
	limit := uint64(never)
	if len(m.heap) > 1 {
		limit = m.heap[1].ts0()
		if len(m.heap) > 2 {
			limit = min(limit, m.heap[2].ts0())
		}
	}
	for !m.halted {
		r := &c.buf[c.i]
		if r.ts > limit {
			break
		}
		if r.ts > m.due {
			m.dueUntil(r.ts)
		}
		turn := v1InTurn
		if r.ts == limit {
			turn = v1Tied
		}
		if !m.apply(c, r, turn) {
			m.stuck(c)
			return
		}
		if !m.advance(c) {
			m.remove(c)
			return
		}
	}
	m.settle(0)
}

// advance puts c at its next event. It reports whether there is one.
func (m *v1Merge) advance(c *v1Cursor) bool {
	c.i++
	if len(c.buf)-c.i <= v1Ahead {
		c.fill()
		return len(c.buf) > 0
	}
	return true
}

func (c *v1Cursor) ts0() uint64 { return c.buf[c.i].ts }

func (c *v1Cursor) before(o *v1Cursor) bool {
	a, b := c.ts0(), o.ts0()
	return a < b || a == b && c.idx < o.idx
}

// settle moves the cursor at heap[i] down to its place.
func (m *v1Merge) settle(i int) {
	h := m.heap
	c := h[i]
	for {
		k := 2*i + 1
		if k >= len(h) {
			break
		}
		if k+1 < len(h) && h[k+1].before(h[k]) {
			k++
		}
		if !h[k].before(c) {
			break
		}
		h[i] = h[k]
		i = k
	}
	h[i] = c
}

// remove takes out a cursor that is at its end.
func (m *v1Merge) remove(c *v1Cursor) {
	i := slices.Index(m.heap, c)
	m.heap = slices.Delete(m.heap, i, i+1)
	m.rebuild()
	m.ended(c)
}

func (m *v1Merge) rebuild() {
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		m.settle(i)
	}
}

// v1Patience bounds how many events may pass one that waits.
const v1Patience = 4096

// stuck is called when the earliest event does not fit. It waits for an event of another P that has
// the same time, or a slightly later one if the CPUs' clocks differ. So events of other Ps are
// merged, the earliest that fits first, until it fits.
func (m *v1Merge) stuck(c *v1Cursor) {
	until := c.ts0()
	if !m.lossy {
		// After a loss it is the rule that an event does not fit. To let others pass it would
		// disorder them too.
		until += v1Slack
	}
	for m.patience < v1Patience && !m.stopped {
		m.patience++
		if o := m.ready(c, until); o >= 0 {
			m.repaired++
			m.next(m.heap[o])
			if m.apply(c, &c.buf[c.i], v1InTurn) {
				m.patience = 0
				m.next(c)
				return
			}
			continue
		}
		break
	}
	m.patience = 0
	m.apply(c, &c.buf[c.i], v1Forced)
	m.next(c)
}

// next puts c at its next event, and the heap in order.
func (m *v1Merge) next(c *v1Cursor) {
	if m.advance(c) {
		m.rebuild()
	} else {
		m.remove(c)
	}
}

// ready merges the earliest event that fits, other than c's, up to the time until. It gives the
// place of its cursor in the heap, -1 if no event fits.
func (m *v1Merge) ready(c *v1Cursor, until uint64) int {
	after, afterIdx := uint64(0), int32(-1)
	for range m.heap {
		best := -1
		for i, o := range m.heap {
			t := o.ts0()
			if o == c || t > until || t < after || t == after && o.idx <= afterIdx {
				continue
			}
			if best < 0 || o.before(m.heap[best]) {
				best = i
			}
		}
		if best < 0 {
			return -1
		}
		o := m.heap[best]
		r := &o.buf[o.i]
		if r.ts > m.due {
			m.dueUntil(r.ts)
		}
		if m.apply(o, r, v1InTurn) {
			return best
		}
		after, afterIdx = r.ts, o.idx
	}
	return -1
}

// setDue finds when the next thing is due that stands in no P's stream.
func (m *v1Merge) setDue() {
	d := uint64(never)
	if len(m.exits) > 0 {
		d = m.exits[0].ts
	}
	if m.nLate < len(m.late) {
		d = min(d, m.late[m.nLate].ticks)
	}
	if m.nHole < len(m.holes) {
		d = min(d, m.holes[m.nHole].start)
	}
	if m.holeEnd != 0 {
		d = min(d, m.holeEnd)
	}
	if len(m.samples.heap) > 0 {
		d = min(d, m.samples.heap[0].ts)
	}
	m.due = d
}

// dueUntil handles what is due before ts, in order.
func (m *v1Merge) dueUntil(ts uint64) {
	for m.setDue(); m.due < ts && !m.stopped; m.setDue() {
		switch d := m.due; {
		case m.nLate < len(m.late) && m.late[m.nLate].ticks == d:
			m.scout(m.late[m.nLate])
			m.nLate++
		case m.nHole < len(m.holes) && m.holes[m.nHole].start == d:
			h := m.holes[m.nHole]
			m.nHole++
			m.hole(h.start, h.end, h.why, h.bytes)
		case m.holeEnd != 0 && m.holeEnd == d: // a sample may say that it is of time 0
			m.tick(d)
			m.holeEnd = 0
			m.epoch++
			m.quiet, m.lastGap = true, m.now
		case len(m.samples.heap) > 0 && m.samples.heap[0].ts == d:
			m.sample(m.samples.next())
		default:
			m.exitDue(m.exits.pop())
		}
	}
}

// hole emits the gap of what could not be read. The hole's end is due by itself.
func (m *v1Merge) hole(start, end uint64, why string, bytes int64) {
	m.tick(start)
	e := m.emit(KindGap)
	e.Arg[0], e.Arg[1] = uint64(max(m.clock.time(end), e.Time)), uint64(min(m.clock.time(start), e.Time))
	m.block.gaps = append(m.block.gaps, Gap{Begin: e.Time, End: Time(e.Arg[0]), Reason: why, Bytes: bytes})
	m.epoch++
	m.lossy = true
	m.gcKnown = false
	if end > start {
		m.holeEnd = max(m.holeEnd, end)
	}
}

// ended is called when a P's stream ends. In a trace that was cut off each stream ends at another
// time. From there on, what the other Ps say is not the whole.
func (m *v1Merge) ended(c *v1Cursor) {
	if m.freq != 0 || c.state == Idle && c.epoch == m.epoch || c.pid < 0 || m.holeEnd > m.last || len(m.heap) == 0 {
		return
	}
	m.hole(m.nowTick, m.last+1, "the trace ends before it is complete: the last events of some Ps are missing", 0)
}

// tick sets the time of the events that follow. It never goes back.
func (m *v1Merge) tick(ticks uint64) {
	if ticks > m.nowTick {
		m.nowTick = ticks
		m.now = m.clock.time(ticks)
	}
}

// emit gives an event to fill in.
func (m *v1Merge) emit(k Kind) *Event {
	if len(m.block.ev) == cap(m.block.ev) {
		m.handOver()
	}
	n := len(m.block.ev)
	m.block.ev = m.block.ev[:n+1]
	e := &m.block.ev[n]
	*e = blank
	e.Kind = k
	e.Time = m.now
	return e
}

// handOver hands over what there is.
func (m *v1Merge) handOver() {
	m.sync()
	if b := m.block.batch; b != nil {
		b.Other = m.block.ev
	}
	if !m.stopped {
		var ok bool
		if m.block, ok = m.flush(m.block); ok {
			return
		}
		m.stopped, m.halted = true, true
	}
	m.block = m.block.empty() // the reader broke off: what is left of this turn goes nowhere
}
