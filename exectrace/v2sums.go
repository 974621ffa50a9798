package exectrace

import "math/bits"

// Sums of formats 1.22 and later, by the method of sums.go: a generation at a time, which each
// worker decodes on its own, batch by batch.

// v2SumP is a P in a generation. Its sums are those of running, of being idle, of being in a
// syscall, and of being lost to a thief when its status was written.
type v2SumP struct {
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

// v2SumM is an M (a thread) in a generation.
type v2SumM struct {
	m       uint64
	g       *sumG // nil: none
	p       *v2SumP
	pending *sumG // a stand-in for the goroutine that it had before the generation: see pend
	syscall bool  // its P is in a syscall with it
	fresh   bool  // no event says yet what it runs
}

// v2Sums decodes one generation.
type v2Sums struct {
	sums
	w      *worker
	pends  []*sumG   // the stand-ins
	ps     []*v2SumP // by P; nil: no event names it
	ms     []*v2SumM // pointers stay valid while it grows
	mids   goMap
	min    uint64 // the earliest time of a batch, from which times here count
	assist openSum
	sweep  openSum
}

// run decodes all batches. It reports whether the sums hold; if not, the generation must be read in
// order.
func (s *v2Sums) run(w *worker) bool {
	g := w.gen
	if w.mul == 0 || !g.complete || g.restart || len(g.lost) > 0 {
		return false
	}
	*s = v2Sums{sums: sums{ids: s.ids, marks: s.marks[:0]}, w: w, pends: s.pends[:0], ps: s.ps[:0],
		ms: s.ms[:0], mids: s.mids}
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

// batch decodes one batch. Its last events are copied to where eight bytes can always be read.
func (s *v2Sums) batch(b *batchRef) bool {
	m := s.thread(b.m)
	d := s.w.data[b.off:b.end]
	ts := b.ts - s.min
	i, ok := 0, true
	if len(d) > sumsTail {
		if ts, i, ok = s.events(m, d, len(d)-sumsTail, ts); !ok {
			return false
		}
	}
	var tail [2*sumsTail + 64]byte
	n := copy(tail[:], d[i:])
	_, i, ok = s.events(m, tail[:], n, ts)
	return ok && i == n
}

// sumsTail is more than the longest encoding of two events.
const sumsTail = 128

// events decodes the events of M m that start before end. It gives the time of the last and the
// index behind it, and whether it could.
//
// The chain from one event's index to the next one's bounds its speed. So:
//
//  1. An event is loaded whole, as eight bytes in w. Stop bits (v2varint.go) say in a few
//     instructions where its time ends (at) and where its arguments end (as). Meanwhile the values
//     are worked out beside that chain.
//  2. By type, the event adds its time to the sum that is left, and takes it from the sum that is
//     entered. m has what the thread runs.
//  3. An event longer than eight bytes loads its arguments again, from their own start (again).
//     What is still longer, and what is rare, goes to rare.
//  4. Where nearly all events of a kind have one length, a branch on that length takes the place of
//     reckoning it. The branch is predicted, so the next event is loaded without waiting for this
//     one.
//
// base is where the loaded bytes start, a and ao are the bytes and the stop bits from the first
// argument on.
func (s *v2Sums) events(m *v2SumM, d []byte, end int, ts uint64) (uint64, int, bool) {
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
		// as marks the ends of the arguments, counted from base.
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
			} else if typ == evGoCreate {
				s.create(accRunnable, varint(a, ao), uint64(second(a, ao)), ts)
			} else if typ == evGoCreateBlocked {
				s.create(accWaiting, varint(a, ao), uint64(second(a, ao)), ts)
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
			// The arguments alone are longer than eight bytes.
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

func (s *v2Sums) thread(m uint64) *v2SumM {
	k, ok := s.mids.get(m)
	if !ok {
		k = uint32(len(s.ms))
		s.ms = append(s.ms, &v2SumM{m: m, fresh: true})
		s.mids.put(m, k)
	}
	return s.ms[k]
}

// pend makes a stand-in for the goroutine with which the M has been in a syscall since before the
// generation. Another M writes that goroutine's status, which may be in a batch further on: then
// fold puts the two together.
func (s *v2Sums) pend(m *v2SumM) bool {
	if !m.fresh {
		return false
	}
	g := &sumG{first: noTime}
	s.pends = append(s.pends, g)
	m.pending, m.g, m.fresh = g, g, false
	return true
}
