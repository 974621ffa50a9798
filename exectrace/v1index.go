package exectrace

import "fmt"

// v1Index is what the first pass over a trace of formats 1.11 to 1.21 finds. The pass is needed
// because the clock's rate and the stacks stand at the end, and because each P's batches lie
// scattered. It walks every record, but keeps only where batches, strings and stacks are: 16 bytes
// for a batch of 64 KB.
type v1Index struct {
	procs   []v1Proc
	byPid   map[int32]int
	samples []v1Span // batches that hold CPU samples
	strings v1Offsets
	stacks  v1Offsets
	late    []v1Late
	holes   []v1Hole
	freq    uint64
	first   uint64 // ticks of the first event
	last    uint64
	batches int64
	joined  int // where another trace starts, which is not read; 0: there is none

	// Filled as events refer to them.
	stackIDs  v1IDs
	stringIDs v1IDs
}

// v1Proc is one P's batches, in order. P -1 has what threads without a P wrote.
type v1Proc struct {
	pid   int32
	spans []v1Span

	// Of the pass itself.
	n      uint64    // timed events
	ts     uint64    // of the last one
	ck     [4]uint64 // ts of the last four events whose number is a multiple of 32: see exit
	opened bool
}

// v1Span is one batch's bytes, with its header.
type v1Span struct {
	off   int64
	n     uint32
	flags uint32
}

// spanHole marks a batch that is damaged at its end: what follows on this P does not continue it.
const spanHole = 1

// v1Late is a batch with a syscall exit that happened further back than a v1Cursor looks ahead.
type v1Late struct {
	ticks uint64 // the earliest such exit
	ts    uint64 // of the event before the first record
	off   int64  // the first record
	n     uint32 // bytes until after the last
	proc  int32
	span  int32
	exits int32
}

// v1MaxID bounds the numbers of strings and stacks: 8 MB each, four times what tables keeps.
const v1MaxID = 1 << 20

// v1Offsets finds a numbered record's bytes. The runtime numbers from 1 on without holes. A hostile
// file need not: numbers beyond the dense part are left out.
type v1Offsets struct {
	off []int64
	n   int
}

func (o *v1Offsets) put(id uint64, off int64) {
	if id == 0 || id > min(uint64(2*o.n)+64<<10, v1MaxID) {
		return
	}
	if int(id) >= len(o.off) {
		o.off = append(o.off, make([]int64, int(id)+1-len(o.off))...)
	}
	// Of two records with one number the first counts, so that what an id means does not change.
	if o.off[id] == 0 {
		o.off[id] = off
		o.n++
	}
}

// v1Scan is the state of the first pass.
type v1Scan struct {
	*v1Index
	data   []byte
	shapes *[256]v1Shape

	p       int // index of the current P, -1 before any
	start   int // of the current batch
	events  bool
	samples bool
	late1   v1Late // of this batch
}

func v1Scanned(data []byte, v Version) *v1Index {
	x := &v1Index{byPid: map[int32]int{}}
	s := &v1Scan{v1Index: x, data: data, shapes: v1Shapes(v), p: -1}
	off := headerLen
	for off < len(data) {
		end, why := s.walk(off)
		s.closeBatch(end, why != "")
		if why == "" {
			break
		}
		next := s.resync(end + 1)
		if another := anotherTrace(data[end:next]); another >= 0 && s.batches > 0 {
			// Its clock and its ids are its own; it may be another process'.
			if s.joined = end + another; another > 0 {
				s.hole(end, s.joined, why)
			}
			break
		}
		s.hole(end, next, why)
		off = next
	}
	s.finish()
	return x
}

// walk reads records from off on. It stops at the end of the file, or at a record that cannot be
// one: then it gives that record's offset and why.
func (s *v1Scan) walk(off int) (int, string) {
	data := s.data
	var p *v1Proc
	if s.p >= 0 {
		p = &s.procs[s.p]
	}
	for off < len(data) {
		rec := off
		b := data[off]
		d := s.shapes[b]
		off++
		if p == nil && d.shape != shapeBatch {
			return rec, "no batch starts here"
		}
		why := ""
		switch d.shape {
		case shapeTimed:
			if n, v := v1Quick(data, off, int(d.values)); n > 0 && b != v1GoSysExitLocal|2<<6 {
				off = n
				p.step(v)
				if !s.events {
					s.open(p)
				}
				continue
			}
			off, why = s.timed(p, rec)
		case shapePrefixed:
			size, n := v1Uvarint(data, off)
			if n == 0 || size > v1MaxRecord || int(size) > len(data)-n {
				return rec, "an event is cut off"
			}
			off = n + int(size)
			if b&63 == v1CPUSample {
				s.sample(data[n:off])
				continue
			}
			v, n := v1Uvarint(data[:off], n)
			if n == 0 || v > v1MaxDelta && -v > v1MaxSkew {
				return rec, "an event's time is damaged"
			}
			ts := p.ts
			p.step(v)
			if !s.events {
				s.open(p)
			}
			if typ := b & 63; typ == v1GoSysExit {
				s.sysExit(p, rec, n, off, ts)
			} else if typ == v1Log {
				if off = v1Blob(data, off); off == 0 {
					return rec, "a log message is cut off"
				}
			}
			continue
		case shapeBatch:
			if off, why = s.batch(rec); why == "" {
				p = &s.procs[s.p]
			}
		case shapeString, shapeStack, shapeUntimed:
			off, why = s.table(rec)
		default:
			why = fmt.Sprintf("%#02x starts no event", b)
		}
		if why != "" {
			return rec, why
		}
	}
	return off, ""
}

// step goes on to p's next event, which is so many ticks behind the last.
func (p *v1Proc) step(ticks uint64) {
	p.ts += ticks
	p.n++
	if p.n&31 == 0 {
		p.ck[p.n>>5&3] = p.ts
	}
}

// timed reads the record at offset rec, which has a time and up to two values. It gives the index
// behind it, or why it cannot be a record; so do batch and table.
func (s *v1Scan) timed(p *v1Proc, rec int) (int, string) {
	data, b, ts := s.data, s.data[rec], p.ts
	v, off := v1Uvarint(data, rec+1)
	if off == 0 || v > v1MaxDelta && -v > v1MaxSkew {
		return rec, "an event's time is damaged"
	}
	p.step(v)
	if !s.events {
		s.open(p)
	}
	if b == v1GoSysExitLocal|2<<6 {
		_, n := v1Uvarint(data, off)
		if n != 0 {
			v, n = v1Uvarint(data, n)
		}
		if n == 0 {
			return rec, "an event is cut off"
		}
		s.exit(p, v, rec, n, ts)
		return n, ""
	}
	for k := s.shapes[b].values; k > 1; k-- {
		for {
			if off >= len(data) {
				return rec, "an event is cut off"
			}
			c := data[off]
			off++
			if c < 0x80 {
				break
			}
		}
	}
	return off, ""
}

// sysExit looks at a prefixed syscall exit, whose values start at n and end at end.
func (s *v1Scan) sysExit(p *v1Proc, rec, n, end int, before uint64) {
	var real uint64
	for k := 0; k < 3 && n != 0; k++ {
		real, n = v1Uvarint(s.data[:end], n)
	}
	if n != 0 {
		s.exit(p, real, rec, end, before)
	}
}

// batch reads a batch's head and makes its P the current one.
func (s *v1Scan) batch(rec int) (int, string) {
	pid, ticks, n, ok := v1Header(s.data, rec)
	if !ok {
		return rec, "a batch's head is damaged"
	}
	i, known := s.byPid[pid]
	if !known && len(s.procs) >= v1MaxProcs {
		return rec, fmt.Sprintf("a batch of P %d is one P too many", pid)
	}
	s.closeBatch(rec, false)
	if !known {
		i = len(s.procs)
		s.byPid[pid] = i
		s.procs = append(s.procs, v1Proc{pid: pid})
	}
	s.batches++
	s.p, s.start = i, rec
	s.procs[i].ts = ticks
	return n, ""
}

// table notes where a string or a stack is, and reads the clock's rate.
func (s *v1Scan) table(rec int) (int, string) {
	data, b := s.data, s.data[rec]
	v, n := v1Uvarint(data, rec+1) // a string's number, a stack's length, or the value
	off := n
	switch s.shapes[b].shape {
	case shapeString:
		var size uint64
		if n != 0 {
			size, n = v1Uvarint(data, off)
		}
		if n == 0 || size > v1MaxString || int(size) > len(data)-n {
			return rec, "a string is cut off"
		}
		s.strings.put(v, int64(off))
		return n + int(size), ""
	case shapeStack:
		if n == 0 || v > v1MaxRecord || int(v) > len(data)-n {
			return rec, "a stack is cut off"
		}
		off = n + int(v)
		if id, n := v1Uvarint(data[:off], n); n != 0 {
			s.stacks.put(id, int64(n))
		}
		return off, ""
	}
	if n == 0 {
		return rec, "a record is cut off"
	}
	if b == v1Frequency && v >= v1MinFreq && v <= v1MaxFreq {
		s.freq = v
	}
	return off, ""
}

// v1Quick steps over an event's numbers. It gives the index behind them and the first, which is the
// time. The index is 0 if a number has more than three bytes, or if the file ends soon.
func v1Quick(data []byte, off, values int) (int, uint64) {
	if len(data)-off < 16 {
		return 0, 0
	}
	p := (*[16]byte)(data[off:])
	v := uint64(p[0])
	i := 1
	if v >= 0x80 {
		v = v&0x7f | uint64(p[1]&0x7f)<<7
		i = 2
		if p[1] >= 0x80 {
			v |= uint64(p[2]) << 14
			i = 3
			if p[2] >= 0x80 {
				return 0, 0
			}
		}
	}
	for k := 1; k < values; k++ {
		for p[i&15] >= 0x80 {
			if i++; i > 12 {
				return 0, 0
			}
		}
		i++
	}
	return off + i, v
}

// v1Header reads a batch's head at off: the P, -1 for none, and the ticks at which it starts.
func v1Header(data []byte, off int) (pid int32, ticks uint64, end int, ok bool) {
	v, n := v1Uvarint(data, off+1)
	if n == 0 || v >= 1<<20 && v != 1<<64-1 {
		return 0, 0, 0, false
	}
	ticks, end = v1Uvarint(data, n)
	return int32(v), ticks, end, end != 0 && ticks < 1<<63
}

// open notes the first event of a batch. The first one of its P may be the trace's first. Those of
// later batches do not count: one damaged head must not move the origin of time.
func (s *v1Scan) open(p *v1Proc) {
	s.events = true
	if p.opened {
		return
	}
	p.opened = true
	if s.first == 0 || p.ts < s.first {
		s.first = p.ts
	}
}

// exit looks at a syscall's exit. Its record stands where the goroutine got a P again, which may be
// long after the exit itself. When more than some 64 events of this P lie between the two, the
// second pass must know, so that it looks for the exit in time. The P's checkpoints (ck) say at
// what time it was 64 to 96 events ago.
func (s *v1Scan) exit(p *v1Proc, real uint64, rec, end int, before uint64) {
	if real == 0 || p.n < 64 || real >= p.ck[(p.n>>5-2)&3] {
		return
	}
	l := &s.late1
	if l.exits == 0 {
		*l = v1Late{ticks: real, ts: before, off: int64(rec)}
	}
	l.exits++
	l.ticks = min(l.ticks, real)
	l.n = uint32(int64(end) - l.off)
}

func (s *v1Scan) sample(b []byte) {
	s.samples = true
	if _, n := v1Uvarint(b, 0); n != 0 {
		if v, n := v1Uvarint(b, n); n != 0 && (s.first == 0 || v < s.first && s.first-v < 1<<32) {
			s.first = v
		}
	}
}

func (s *v1Scan) closeBatch(end int, damaged bool) {
	if s.p < 0 {
		return
	}
	p := &s.procs[s.p]
	sp := v1Span{off: int64(s.start), n: uint32(min(end-s.start, 1<<32-1))}
	if damaged {
		sp.flags = spanHole
	}
	if s.samples {
		s.v1Index.samples = append(s.v1Index.samples, sp)
	}
	if s.events || damaged {
		if s.late1.exits > 0 {
			s.late1.proc, s.late1.span = int32(s.p), int32(len(p.spans))
			s.late = append(s.late, s.late1)
		}
		p.spans = append(p.spans, sp)
	}
	s.events, s.samples, s.late1 = false, false, v1Late{}
}
