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
	g, p    int32 // -1 none
	pending int32 // what stands for the goroutine that it had from before, or -1
	syscall bool  // its P is in a syscall with it
	fresh   bool  // nothing is known of it yet
}

// swift decodes one generation.
type swift struct {
	w    *worker
	gs   []swiftG
	ids  goMap
	ps   []swiftP
	ms   []*swiftM // pointers stay valid while it grows
	mids goMap
	min  uint64
	max  uint64 // the last event's time
	n    int64

	marks   []mark
	assist  openSum
	sweep   openSum
	counts  Counts
	bad     bool
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
	if w.mul == 0 || !g.complete || len(g.lost) > 0 {
		return false
	}
	*s = swift{w: w, gs: s.gs[:0], ids: s.ids, ps: s.ps[:0], ms: s.ms[:0], mids: s.mids, marks: s.marks[:0]}
	s.ids.reset()
	s.mids.reset()
	s.min = g.minTs
	for k := range g.batches {
		b := &g.batches[k]
		if b.cut || b.ts < s.min || b.ts-s.min >= one/2 || !s.batch(b) {
			return false
		}
	}
	return s.close()
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
	ts, i, ok = s.events(m, tail[:], n, ts)
	return ok && i == n
}

// swiftTail is more than two events' longest encoding.
const swiftTail = 128

// events decodes those that begin before end. It gives the time of the last and the index behind it.
func (s *swift) events(m *swiftM, d []byte, end int, ts uint64) (uint64, int, bool) {
	i := 0
	gs := s.gs
	n := int64(0)
	for i < end {
		w := first8(d, i)
		typ := byte(w)
		w >>= 8
		stops := stopBits(w) &^ (0xff << 56) // seven bytes are there
		at := bits.TrailingZeros64(stops)
		if at > 40 { // no stop, or a distance of more than five bytes
			s.gs = gs
			return ts, i, false
		}
		ts += varint(w, stops)
		i += 2 + at>>3
		a := first8(d, i)
		as := stopBits(a)
		val := ts | one
		n++
		switch typ {
		case evGoStart:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 || m.g >= 0 {
				goto bad
			}
			k := s.g(varint(a, as))
			gs = s.gs
			g := &gs[k]
			g.acc[accRunnable] += val
			g.acc[accRunning] -= val
			m.g, m.fresh = int32(k), false
			i += bits.TrailingZeros64(as1)>>3 + 1

		case evGoUnblock:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 {
				goto bad
			}
			k := s.g(varint(a, as))
			gs = s.gs
			g := &gs[k]
			g.acc[accWaiting] += val
			g.acc[accRunnable] -= val
			i += bits.TrailingZeros64(as2)>>3 + 1

		case evGoBlock, evGoStop:
			as1 := as & (as - 1)
			if as1 == 0 || m.g < 0 {
				goto bad
			}
			g := &gs[m.g]
			g.acc[accRunning] += val
			if typ == evGoBlock {
				g.acc[accWaiting] -= val
			} else {
				g.acc[accRunnable] -= val
			}
			l0 := bits.TrailingZeros64(as) + 1
			if g.stack == 0 {
				g.stack = uint32(varint(a>>l0, as>>l0))
			}
			m.g = -1
			i += bits.TrailingZeros64(as1)>>3 + 1

		case evGoSyscallBegin:
			as1 := as & (as - 1)
			if as1 == 0 || m.g < 0 || m.p < 0 {
				goto bad
			}
			g := &gs[m.g]
			g.acc[accRunning] += val
			g.acc[accSyscall] -= val
			l0 := bits.TrailingZeros64(as) + 1
			if g.stack == 0 {
				g.stack = uint32(varint(a>>l0, as>>l0))
			}
			p := &s.ps[m.p]
			p.acc[accPRunning] += val
			p.acc[accPSyscall] -= val
			m.syscall = true
			i += bits.TrailingZeros64(as1)>>3 + 1

		case evGoSyscallEnd:
			if m.g < 0 {
				if !s.pend(m) {
					goto bad
				}
				gs = s.gs
			}
			g := &gs[m.g]
			g.acc[accSyscall] += val
			g.acc[accRunning] -= val
			if m.p < 0 || !m.syscall {
				goto bad
			}
			p := &s.ps[m.p]
			p.acc[accPSyscall] += val
			p.acc[accPRunning] -= val
			m.syscall = false

		case evUserRegionBegin, evUserRegionEnd, evGoCreate, evGoCreateBlocked:
			as2 := as & (as - 1)
			as2 &= as2 - 1
			if as2 == 0 {
				var ok bool
				if i, ok = s.rare(m, typ, d, i, ts); !ok {
					goto bad
				}
				gs = s.gs
				continue
			}
			if typ == evUserRegionBegin {
				s.counts.Regions++
			} else if typ != evUserRegionEnd {
				l0 := bits.TrailingZeros64(as) + 1
				s.create(typ, varint(a, as), varint(a>>l0, as>>l0), ts)
				gs = s.gs
			}
			i += bits.TrailingZeros64(as2)>>3 + 1

		default:
			var ok bool
			if i, ok = s.rare(m, typ, d, i, ts); !ok {
				goto bad
			}
			gs = s.gs
		}
	}
	s.n += n
	s.max = max(s.max, ts)
	return ts, i, i <= len(d)
bad:
	return ts, i, false
}

func (s *swift) g(id uint64) uint32 {
	if k, ok := s.ids.get(id); ok {
		return k
	}
	return s.newG(id)
}

func (s *swift) newG(id uint64) uint32 {
	k := uint32(len(s.gs))
	s.gs = append(s.gs, swiftG{id: id, first: noTime})
	s.ids.put(id, k)
	return k
}

// noTime is the first time of a goroutine whose status or creation has not come by yet.
const noTime = ^uint64(0)

func (s *swift) thread(m uint64) *swiftM {
	k, ok := s.mids.get(m)
	if !ok {
		k = uint32(len(s.ms))
		s.ms = append(s.ms, &swiftM{m: m, g: -1, p: -1, pending: -1, fresh: true})
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
	k := uint32(len(s.gs))
	s.gs = append(s.gs, swiftG{first: noTime})
	m.pending, m.g, m.fresh = int32(k), int32(k), false
	return true
}

func (s *swift) create(typ byte, id, start, ts uint64) {
	k := s.g(id)
	g := &s.gs[k]
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
