package exectrace

import (
	"math/bits"
	"slices"
)

// A worker decodes one generation on its own. Each goroutine and each P that does anything in a
// generation has its status written before that. So no state need be carried from one generation to
// the next.
//
//  1. Batches are chained per M (a thread). Each M has a cursor, with the type and the time of its
//     next event decoded.
//  2. A heap orders the cursors by that time. The first cursor runs until its next event is later
//     than the second's. Only one event in twenty changes the M, so the heap is touched that often.
//  3. Starts, wakings and steals carry sequence numbers of their G or P. A number that does not fit
//     yet stops its M, which is held aside. After each event of the other Ms it is tried again.
//  4. What cannot fit any more, since something was lost, goes on by time after holdNS: a gap says
//     so.
//  5. Events go to blocks with ids of this generation. The consumer turns them into the trace's.

// holdNS is how long, in the trace's time, an M is held for a number that does not come. A thief
// may be throttled by the kernel between stealing a P and writing that down: its victim waits that
// long to be explained. Clocks of Linux are never so far apart. After the first loss in a
// generation there is less to hope for.
const (
	holdNS     = 300e6
	holdLossNS = 2e6
)

type cursor struct {
	d     []byte // the current batch's bytes
	i     int    // behind the type and time of the pending event
	ts    uint64 // of the pending event
	upTo  uint64 // an event of this batch that is later is damage
	m     ThreadID
	batch int32 // index of the current batch, or -1
	first int32
	g     int32 // index of the goroutine that it runs, or -1
	p     int32
	typ   byte
}

type goroutine struct {
	id         uint64
	seq        uint64
	status     uint8 // goRunnable…; 0 unknown
	introduced bool  // for batches: an event or a creation had its number
}

type proc struct {
	seq    uint64
	status uint8 // procRunning…; 0 unknown
}

// heapEntry is a cursor with the time of its next event.
type heapEntry = dueAt[int32]

// sample is one CPU sample.
type sample struct {
	ts, m, p, g, stack uint64
}

type block struct {
	ev    []Event
	batch *Batch  // instead of ev
	end   *genEnd // with the last block of a generation
	sum   *summed // instead of events
}

// genEnd is what a worker says of a whole generation.
type genEnd struct {
	stats Stats
	gaps  []Gap
	err   error
}

type worker struct {
	data []byte
	gen  *generation
	freq uint64
	mul  uint64 // ns in a tick, if that is a whole number; else 0

	chain []int32   // by batch: the M's next one, or -1
	ms    goMap     // M -> cursor
	cur   []*cursor // pointers stay valid while it grows
	heap  byTime[int32]
	stuck []heapEntry // held aside, oldest first

	ids    goMap // goroutine -> index
	gs     []goroutine
	gfree  []int32
	ps     []proc
	gcSeq  uint64
	gcSeen bool

	samples []sample
	nextS   int

	buf    []Event
	lossy  bool   // something of this generation was lost
	gapEnd uint64 // the end of the last gap that was emitted
	force  bool   // the event must be applied whether it fits or not
	end    genEnd
	send   func([]Event) ([]Event, bool) // hands over a full block, gives an empty one

	batch     *Batch // nil: blocks of events are wanted; else buf is its Other
	synced    int    // how many events in buf have their record
	sendBatch func(*Batch) (*Batch, bool)
	stopped   bool
}

// reset readies w for another generation. It keeps the memory.
func (w *worker) reset(g *generation, freq uint64) {
	w.gen, w.freq = g, freq
	w.mul = 0
	if freq != 0 && 1e9%freq == 0 && 1e9/freq <= 64 { // larger ones might overflow
		w.mul = 1e9 / freq
	}
	w.ms.reset()
	w.ids.reset()
	w.cur, w.heap, w.stuck = w.cur[:0], w.heap[:0], w.stuck[:0]
	w.gs, w.gfree, w.ps = w.gs[:0], w.gfree[:0], w.ps[:0]
	w.gcSeen = false
	w.samples, w.nextS = w.samples[:0], 0
	w.gapEnd, w.lossy, w.force = 0, false, false
	w.end = genEnd{}
}

// time turns ticks into nanoseconds, exactly: rounded down, with 128 bits in between.
func (w *worker) time(ts uint64) Time {
	if w.mul != 0 {
		return Time(ts * w.mul)
	}
	return scale(ts, w.freq)
}

func scale(ts, freq uint64) Time {
	hi, lo := bits.Mul64(ts, 1e9)
	if hi >= freq {
		return Time(1<<63 - 1)
	}
	q, _ := bits.Div64(hi, lo, freq)
	return Time(min(q, 1<<63-1))
}

// ticks turns nanoseconds into ticks, roughly.
func (w *worker) ticks(ns uint64) uint64 {
	hi, lo := bits.Mul64(ns, w.freq)
	if hi >= 1e9 {
		return never >> 1
	}
	q, _ := bits.Div64(hi, lo, 1e9)
	return q
}

// decode reads the generation and hands out its blocks, except the last.
func (w *worker) decode() {
	g := w.gen
	w.end.stats.Generations = 1
	w.end.stats.Batches = g.batchCount()
	w.end.stats.Experimental = g.skipped
	w.readSamples()
	w.emit(Event{Time: w.time(g.minTs), G: NoGoroutine, On: NoGoroutine, M: NoThread, P: NoProc, Proc: NoProc,
		Slot: NoSlot, OnSlot: NoSlot, Kind: KindSync})
	w.start()
	w.startLost()

	hold := w.ticks(holdNS)
	for !w.stopped {
		if w.lossy {
			hold = w.ticks(holdLossNS)
		}
		// An M that is held aside goes first, once another's event has made its own fit.
		if len(w.stuck) > 0 && w.tryStuck(hold) {
			continue
		}
		if len(w.heap) == 0 {
			if len(w.stuck) == 0 {
				break
			}
			continue
		}
		top := w.heap[0]
		if w.nextS < len(w.samples) && top.ts > w.samples[w.nextS].ts {
			w.emitSample()
			continue
		}
		// The first M runs until another M, or a sample, is due. While some M is held aside it runs
		// one event only: that one may be what the held M waits for.
		limit := w.second()
		if w.nextS < len(w.samples) {
			limit = min(limit, w.samples[w.nextS].ts)
		}
		w.step(top, limit, len(w.stuck) > 0)
	}
	for w.nextS < len(w.samples) && !w.stopped {
		w.emitSample()
	}
}

// step runs the heap's first cursor, and puts it where it belongs then.
func (w *worker) step(top heapEntry, limit uint64, once bool) {
	switch w.run(w.cur[top.v], limit, once) {
	case ranOn:
		w.heap[0].ts = w.cur[top.v].ts
		w.heap.down()
	case ranOut:
		w.heap.pop()
	case ranStuck:
		w.heap.pop()
		e := heapEntry{w.cur[top.v].ts, top.v}
		at, _ := slices.BinarySearchFunc(w.stuck, e, func(a, b heapEntry) int {
			if a.ts <= b.ts {
				return -1
			}
			return 1
		})
		w.stuck = slices.Insert(w.stuck, at, e)
		w.end.stats.Repaired++
	}
}

// tryStuck tries the cursors that are held aside, oldest first. The first that goes on is put back
// into the heap. A cursor that is held for too long is made to go on. It reports whether one went
// on.
func (w *worker) tryStuck(hold uint64) bool {
	for k := range w.stuck {
		e := w.stuck[k]
		c := w.cur[e.v]
		// Only the oldest is forced, when nothing else is left to run or what is left is too late.
		force := k == 0 && (len(w.heap) == 0 || w.heap[0].ts-min(w.heap[0].ts, e.ts) > hold)
		w.force = force
		r := w.run(c, e.ts, true)
		w.force = false
		if r == ranStuck {
			continue
		}
		w.stuck = slices.Delete(w.stuck, k, k+1)
		if r == ranOn {
			w.heap.push(heapEntry{c.ts, e.v})
		}
		return true
	}
	return false
}

// second is the earliest time in the heap behind the first entry.
func (w *worker) second() uint64 {
	h := w.heap
	t := uint64(never)
	if len(h) > 1 {
		t = h[1].ts
	}
	if len(h) > 2 {
		t = min(t, h[2].ts)
	}
	return t
}

// start chains the batches per M and opens a cursor on each.
func (w *worker) start() {
	bs := w.gen.batches
	w.chain = slices.Grow(w.chain[:0], len(bs))[:len(bs)]
	tails := make([]int32, 0, 64)
	for k := range bs {
		w.chain[k] = -1
		c := w.cursorOf(bs[k].m)
		if int(c) == len(tails) {
			tails = append(tails, int32(k))
			w.cur[c].first = int32(k)
			continue
		}
		w.chain[tails[c]] = int32(k)
		tails[c] = int32(k)
	}
	for k := range w.cur {
		c := w.cur[k]
		c.batch = c.first
		w.open(c)
		if w.advance(c) {
			w.heap.push(heapEntry{c.ts, int32(k)})
		}
	}
}

// cursorOf gives the index of m's cursor, a new one if there is none.
func (w *worker) cursorOf(m uint64) int32 {
	if v, ok := w.ms.get(m); ok {
		return int32(v)
	}
	k := int32(len(w.cur))
	if int(k) < cap(w.cur) {
		w.cur = w.cur[:k+1]
	} else {
		w.cur = append(w.cur, nil)
	}
	if w.cur[k] == nil {
		w.cur[k] = new(cursor)
	}
	*w.cur[k] = cursor{m: ThreadID(m), batch: -1, first: -1, g: -1, p: -1}
	w.ms.put(m, uint32(k))
	return k
}

// open points c at the start of its current batch.
func (w *worker) open(c *cursor) {
	b := &w.gen.batches[c.batch]
	c.d = w.data[b.off:b.end]
	c.i = 0
	c.ts = b.ts
	c.upTo = w.gen.endTs
	if n := w.chain[c.batch]; n >= 0 && w.gen.batches[n].ts >= b.ts {
		// The runtime writes last+1 where its clock did not move on, so events run ahead of the
		// next batch a little.
		c.upTo = w.gen.batches[n].ts + w.freq/64
	}
}

// advance decodes the type and the time of c's next event, going on to the M's next batch as
// needed. It reports whether there is one.
func (w *worker) advance(c *cursor) bool {
	for {
		if c.i < len(c.d) {
			c.typ = c.d[c.i]
			dt, i := uvarint(c.d, c.i+1)
			ts := c.ts + dt
			if i <= len(c.d) && ts <= c.upTo && ts >= c.ts && timed(c.typ) {
				c.i, c.ts = i, ts
				return true
			}
			w.damaged(c)
		} else if w.gen.batches[c.batch].cut {
			w.damaged(c)
		}
		n := w.chain[c.batch]
		if n < 0 {
			c.d, c.i = nil, 0
			return false
		}
		c.batch = n
		w.open(c)
	}
}

// readSamples collects and orders the CPU samples.
func (w *worker) readSamples() {
	for _, s := range w.gen.samples {
		d := w.data[s.off:s.end]
		for i := 1; i < len(d) && d[i] == evCPUSample; {
			var v [5]uint64
			i++
			for k := range v {
				v[k], i = uvarint(d, i)
			}
			if i > len(d) || len(w.samples) >= maxSamples {
				w.end.stats.Dropped++
				break
			}
			w.samples = append(w.samples, sample{min(v[0], maxTicks), v[1], v[2], v[3], v[4]})
		}
	}
	slices.SortStableFunc(w.samples, func(a, b sample) int {
		if a.ts < b.ts {
			return -1
		}
		if a.ts > b.ts {
			return 1
		}
		return 0
	})
}

// maxSamples bounds the CPU samples of one generation: 100 a second on each of a thousand CPUs.
const maxSamples = 100_000
