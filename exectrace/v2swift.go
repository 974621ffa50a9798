package exectrace

import (
	"encoding/binary"
	"math/bits"
)

// The way to totals that needs no order.
//
// How long a goroutine was in a state is the sum of the times it left it less the sum of those it entered it,
// and a sum does not care in which order it is added up. So each batch is decoded on its own, in the order of the file,
// with nothing kept but what its M runs: no merge by time, no events.
//
//  1. Every transition adds its time to the state that is left and takes it from the one that is entered. Each time
//     carries a one in its upper bits, so the same sum counts.
//  2. At the generation's end the state that is still open is the one that was entered once more than left; it is closed.
//  3. Then every sum must be a time within the generation and every count 0. If not, something was
//     lost or is damaged: the generation is read again in order, as for events.
//
// It takes a quarter of the time of the ordered way.

// one is what a transition counts beside its time: 2^40 ticks of 64 ns are 19 hours, no generation's length.
const one = 1 << 40

// Accumulators. They are indices, so that a transition is two additions.
const (
	accRunnable = iota
	accRunning
	accWaiting
	accSyscall
	accCount
)

// swiftG is a goroutine in a generation: one cache line.
type swiftG struct {
	acc   [accCount]uint64
	id    uint64
	first uint64 // when its status was written or it was created
	end   uint64 // when it ended; 0: it lives
	stack uint32 // one of its stacks, the generation's id
	state uint8  // what its status was; 0: it was created
	start bool   // stack is where it starts
}

// swiftP is a P in a generation: running, idle, in a syscall, and lost to a thief when its status was written.
type swiftP struct {
	acc   [4]uint64
	first uint64
	state uint8
	lost  bool
}

const (
	accPRunning = iota
	accPIdle
	accPSyscall
	accPLost
)

type swiftM struct {
	m       uint64
	g       *swiftG // nil none
	p       *swiftP
	pending *swiftG // what stands for the goroutine that it had from before
	syscall bool    // its P is in a syscall with it
	fresh   bool    // nothing is known of it yet
}

// swift decodes one generation.
type swift struct {
	w     *worker
	ids   pages
	pends []*swiftG // those that stand for others
	ps    []*swiftP // by P; nil: not heard of
	ms    []*swiftM // pointers stay valid while it grows
	mids  goMap
	min   uint64
	max   uint64 // the last event's time
	n     int64

	marks  []mark
	assist openSum
	sweep  openSum
	counts Counts
	bad    bool
}

// mark is a beginning or an end of a stop-the-world or of a GC cycle.
type mark struct {
	ts    uint64
	g     GoID
	name  StringID // the generation's
	stack StackID  // the generation's
	rng   Range
	kind  Kind
}

// openSum is the sum of the times of ends less those of beginnings, and how many more of those there were.
type openSum struct {
	ticks int64
	open  int64
	// those said to be open at the generation's beginning
	activeTicks int64
	active      int64
}

// run decodes all batches; false if the generation has to be read in order.
func (s *swift) run(w *worker) bool {
	g := w.gen
	if w.mul == 0 || !g.complete || g.restart || len(g.lost) > 0 {
		return false
	}
	*s = swift{w: w, ids: s.ids, pends: s.pends[:0], ps: s.ps[:0], ms: s.ms[:0], mids: s.mids, marks: s.marks[:0]}
	s.ids.reset()
	s.mids.reset()
	s.min = g.minTs
	for k := range g.batches {
		b := &g.batches[k]
		if b.cut || b.ts < s.min || b.ts-s.min >= one/2 || !s.batch(b) || s.ids.n > maxPages {
			return false
		}
	}
	return !s.bad && s.close()
}

// short are the bytes that the last byte of a varint must be among for varint to decode it.
const short = 0x8080808080

// first8 reads eight bytes; d has them.
func first8(d []byte, i int) uint64 { return binary.LittleEndian.Uint64(d[i:]) }

// stopBits marks the last byte of every varint in w.
func stopBits(w uint64) uint64 { return ^w & 0x8080808080808080 }

// varint gives the value of the varint that ends at the lowest of w's stop bits, at most five bytes of it.
func varint(w, stops uint64) uint64 {
	x := w & (stops ^ (stops - 1))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000 | x>>4&0x7f0000000
}

// batch decodes one batch. Its last events are copied to where eight bytes can always be read.
func (s *swift) batch(b *batchRef) bool {
	m := s.thread(b.m)
	d := s.w.data[b.off:b.end]
	ts := b.ts - s.min
	i, ok := 0, true
	if len(d) > swiftTail {
		if ts, i, ok = s.events(m, d, len(d)-swiftTail, ts); !ok {
			return false
		}
	}
	var tail [2*swiftTail + 64]byte
	n := copy(tail[:], d[i:])
	_, i, ok = s.events(m, tail[:], n, ts)
	return ok && i == n
}

// swiftTail is more than two events' longest encoding.
const swiftTail = 128

// events decodes those that begin before end. It gives the time of the last and the index behind it.
//
// What bounds it is the chain from one event's index to the next one's. So an event is loaded whole, eight bytes at once,
// and its length comes from its stop bits in a few instructions, while the values are worked out beside that. Only an event
// longer than that loads its arguments again. Where nearly all events of a kind are of one length, a branch on that takes the place of
// reckoning it: it is foreseen, and the next event is loaded without waiting for this one.
func (s *swift) events(m *swiftM, d []byte, end int, ts uint64) (uint64, int, bool) {
	i := 0
	n := int64(0)
	top := s.ids.top // pages.get stands here twice: a call would spill all that is in registers
	for i < end {
		w := first8(d, i)
		typ := byte(w)
		stops := stopBits(w) &^ 0xff
		at := bits.TrailingZeros64(stops) // the last byte of the time
		if at > 40 {
			// A distance of more than four bytes: twenty seconds.
			dt, k := uvarint(d, i+1)
			if ts += dt; ts >= one/2 || k > len(d) {
				goto bad
			}
			n++
			var ok bool
			if i, ok = s.rare(m, typ, d, k, ts); !ok {
				goto bad
			}
			continue
		}
		ts += varint4(w>>8, stops>>8)
		val := ts | one
		n++
		// as are the ends of the arguments, from base on; a and ao begin with the first of them.
		as := stops & (stops - 1)
		base := i
		a, ao := w>>(at+1), as>>(at+1)
		again := false
	args:
		switch typ {
		case evGoStart:
			as1 := as & (as - 1)
			if as1 == 0 {
				goto long
			}
			i = base + bits.TrailingZeros64(as1)>>3 + 1
			if ao&short == 0 || m.g != nil {
				goto bad
			}
			id := varint(a, ao)
			e := &top[id/pageSize%(1<<topBits)]
			if e.key != id/pageSize {
				s.ids.find(e, id/pageSize)
			}
			g := &e.p[id%pageSize]
			g.acc[accRunnable] += val
			g.acc[accRunning] -= val
			m.g, m.fresh = g, false

		case evGoUnblock:
			as2 := as & (as - 1)
			as2 &= as2 - 1
			if as2 == 0 {
				goto long
			}
			i = base + bits.TrailingZeros64(as2)>>3 + 1
			if ao&short == 0 {
				goto bad
			}
			id := varint(a, ao)
			e := &top[id/pageSize%(1<<topBits)]
			if e.key != id/pageSize {
				s.ids.find(e, id/pageSize)
			}
			g := &e.p[id%pageSize]
			g.acc[accWaiting] += val
			g.acc[accRunnable] -= val

		case evGoBlock, evGoStop:
			as1 := as & (as - 1)
			if as1 == 0 {
				goto long
			}
			if uint32(as1) == 1<<31 {
				i += 4
			} else {
				i = base + bits.TrailingZeros64(as1)>>3 + 1
			}
			g := m.g
			if g == nil {
				goto bad
			}
			g.acc[accRunning] += val
			if typ == evGoBlock {
				g.acc[accWaiting] -= val
			} else {
				g.acc[accRunnable] -= val
			}
			if g.stack == 0 {
				g.stack = second(a, ao)
			}
			m.g = nil

		case evGoSyscallBegin:
			as1 := as & (as - 1)
			if as1 == 0 {
				goto long
			}
			i = base + bits.TrailingZeros64(as1)>>3 + 1
			g, p := m.g, m.p
			if g == nil || p == nil {
				goto bad
			}
			g.acc[accRunning] += val
			g.acc[accSyscall] -= val
			if g.stack == 0 {
				g.stack = second(a, ao)
			}
			p.acc[accPRunning] += val
			p.acc[accPSyscall] -= val
			m.syscall = true

		case evGoSyscallEnd:
			if at == 15 {
				i += 2
			} else {
				i += at>>3 + 1
			}
			if m.g == nil && !s.pend(m) {
				goto bad
			}
			g, p := m.g, m.p
			if p == nil || !m.syscall {
				goto bad
			}
			g.acc[accSyscall] += val
			g.acc[accRunning] -= val
			p.acc[accPSyscall] += val
			p.acc[accPRunning] -= val
			m.syscall = false

		case evUserRegionBegin, evUserRegionEnd, evGoCreate, evGoCreateBlocked:
			as2 := as & (as - 1)
			as2 &= as2 - 1
			if as2 == 0 {
				goto long
			}
			i = base + bits.TrailingZeros64(as2)>>3 + 1
			if typ == evUserRegionBegin {
				s.counts.Regions++
			} else if typ != evUserRegionEnd {
				s.create(typ, varint(a, ao), uint64(second(a, ao)), ts)
			}

		default:
			var ok bool
			if i, ok = s.rare(m, typ, d, i+at>>3+1, ts); !ok {
				goto bad
			}
		}
		continue
	long:
		i += at>>3 + 1
		if again {
			// Longer than eight bytes even so.
			var ok bool
			if i, ok = s.rare(m, typ, d, base, ts); !ok {
				goto bad
			}
			continue
		}
		again = true
		base = i
		a = first8(d, i)
		as = stopBits(a)
		ao = as
		goto args
	}
	s.n += n
	s.max = max(s.max, ts)
	return ts, i, i <= len(d)
bad:
	return ts, i, false
}

// second is the value of the second varint in a.
func second(a, stops uint64) uint32 {
	n := bits.TrailingZeros64(stops) + 1
	return uint32(varint(a>>n, stops>>n))
}

// varint4 is varint for at most four bytes.
func varint4(w, stops uint64) uint64 {
	x := w & (stops ^ (stops - 1))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000
}

// noTime is the first time of a goroutine whose status or creation has not come by yet.
const noTime = ^uint64(0)

func (s *swift) thread(m uint64) *swiftM {
	k, ok := s.mids.get(m)
	if !ok {
		k = uint32(len(s.ms))
		s.ms = append(s.ms, &swiftM{m: m, fresh: true})
		s.mids.put(m, k)
	}
	return s.ms[k]
}

// pend makes a goroutine to stand for the one that the M has been in a syscall with since before the
// generation: another M writes its status, and that may be in a batch further on.
func (s *swift) pend(m *swiftM) bool {
	if !m.fresh {
		return false
	}
	g := &swiftG{first: noTime}
	s.pends = append(s.pends, g)
	m.pending, m.g, m.fresh = g, g, false
	return true
}

func (s *swift) create(typ byte, id, start, ts uint64) {
	g := s.ids.get(id)
	if g.first != noTime {
		s.bad = true
		return
	}
	g.first, g.stack, g.start = ts, uint32(start), true
	if typ == evGoCreate {
		g.acc[accRunnable] -= ts | one
	} else {
		g.acc[accWaiting] -= ts | one
	}
}
