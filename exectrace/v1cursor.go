package exectrace

import (
	"slices"
)

// v1Rec is one decoded event. A "Local" form, which implies its sequence number, has the type of
// the full form, and local set.
type v1Rec struct {
	ts    uint64 // ticks
	a     [3]uint64
	stk   uint32
	typ   uint8
	local bool
}

const (
	// v1Chunk is the most events that a cursor holds, v1Ahead the least, as long as there are any.
	// Syscall exits among them are known before they are due: v1Scan.exit counts on v1Ahead > 96.
	v1Chunk = 256
	v1Ahead = 128
)

// v1Cursor decodes one P's stream, a chunk at a time.
type v1Cursor struct {
	m       *v1Merge
	pid     int32
	idx     int32
	spans   []v1Span
	next    int // span to open next
	off     int
	end     int
	ts      uint64
	limit   uint64 // where the P's next batch starts: no event of this one is later
	hole    bool   // the batch is damaged at its end
	drained bool
	alone   bool // the ends of syscalls are not wanted ahead of time

	buf []v1Rec // from i on not yet merged
	i   int

	// What the merge knows of the P.
	g     GoID // that runs there; 0: none
	slot  uint32
	state State
	epoch uint32
}

// fill tops up the buffer. What the caller holds of buf is invalid afterwards.
func (c *v1Cursor) fill() {
	if c.drained {
		if c.i == len(c.buf) {
			c.buf, c.i = nil, 0
		}
		return
	}
	n := copy(c.buf, c.buf[c.i:])
	c.buf, c.i = c.buf[:n], 0
	for len(c.buf) < v1Chunk {
		if c.off >= c.end && !c.open() {
			c.drained = true
			return
		}
		c.decode()
	}
}

// open starts the P's next batch. It reports whether there is one.
func (c *v1Cursor) open() bool {
	if c.hole {
		// The P's goroutine from before the damage may not be the one after it.
		c.hole = false
		c.buf = append(c.buf, v1Rec{ts: min(c.ts, c.limit)})
		return true
	}
	if c.next >= len(c.spans) {
		return false
	}
	s := c.spans[c.next]
	c.next++
	_, ticks, off, ok := v1Header(c.m.data, int(s.off))
	if !ok {
		c.m.dropped++
		return true
	}
	c.off, c.end = off, int(s.off)+int(s.n)
	c.ts = ticks
	c.hole = s.flags&spanHole != 0
	c.limit = never
	if c.next < len(c.spans) {
		if _, ticks, _, ok := v1Header(c.m.data, int(c.spans[c.next].off)); ok && ticks >= c.ts {
			// Events within one tick are numbered on, so they may run a little ahead of the clock.
			c.limit = ticks + v1Slack
		}
	}
	return true
}

// decode appends events of the open batch, until the batch ends or the chunk is full.
func (c *v1Cursor) decode() {
	data := c.m.data[:c.end]
	off, ts := c.off, c.ts
	for off < len(data) && len(c.buf) < v1Chunk {
		if len(c.buf) == cap(c.buf) {
			c.buf = slices.Grow(c.buf, v1Chunk/8)
		}
		b := data[off]
		d := c.m.shapes[b]
		off++
		end := 0
		switch d.shape {
		case shapeTimed:
			if n := c.quick(data, off, b&63, int(d.values), ts); n > 0 {
				ts = c.buf[len(c.buf)-1].ts
				off = n
				continue
			}
		case shapePrefixed:
			size, n := v1Uvarint(data, off)
			if n == 0 || size > v1MaxRecord || int(size) > len(data)-n {
				off = len(data)
				c.m.dropped++
				continue
			}
			off, end = n, n+int(size)
			if b&63 == v1CPUSample {
				off = end
				continue
			}
		default:
			if off = v1Skip(data, off-1, d); off == 0 {
				off = len(data)
			}
			continue
		}
		c.buf = append(c.buf, v1Rec{})
		r := &c.buf[len(c.buf)-1]
		was := ts
		v, n := v1Uvarint(data, off)
		ts += v
		r.ts = ts
		r.typ = b & 63
		for k := 0; k < int(d.values)-2 && n != 0; k++ {
			r.a[k], n = v1Uvarint(data, n)
		}
		if d.values > 1 && n != 0 {
			v, n = v1Uvarint(data, n)
			if v1HasStack[r.typ] {
				r.stk = uint32(v)
			} else {
				r.a[d.values-2] = v
			}
		}
		if n == 0 || end != 0 && n > end || ts > c.limit {
			// Its bytes are there but do not say what they should, or say a time after the start of
			// the next batch.
			c.buf = c.buf[:len(c.buf)-1]
			c.m.dropped++
			ts = was
			if end != 0 {
				n = end
			} else if n == 0 {
				n = len(data)
			}
			off = n
			continue
		}
		off = n
		if end != 0 {
			off = end
		}
		switch r.typ {
		case v1GoSysExit:
			c.exit(r)
		case v1GoSysExitLocal:
			r.a[1], r.a[2] = 0, r.a[1]
			r.typ, r.local = v1GoSysExit, true
			c.exit(r)
		case v1GoStartLocal:
			r.typ, r.local = v1GoStart, true
		case v1GoUnblockLocal:
			r.typ, r.local = v1GoUnblock, true
		case v1Log:
			r.a[2] = uint64(off)
			if size, n := v1Uvarint(data, off); n != 0 && size <= v1MaxString && int(size) <= len(data)-n {
				off = n + int(size)
			} else {
				r.a[2], off = 0, len(data)
			}
		}
	}
	c.off, c.ts = off, ts
}

// quick appends the event whose numbers start at off, and gives where they end. It gives 0 where it
// leaves the event to decode: syscall exits, numbers of more than three bytes, the last bytes of
// the batch, and what is later than an event of this batch may be.
func (c *v1Cursor) quick(data []byte, off int, typ uint8, values int, ts uint64) int {
	if len(data)-off < 16 || typ == v1GoSysExitLocal {
		return 0
	}
	p := (*[16]byte)(data[off:])
	var x [4]uint64
	i := 0
	for k := 0; k < values; k++ {
		v := uint64(p[i&15])
		i++
		if v >= 0x80 {
			b := uint64(p[i&15])
			i++
			v = v&0x7f | b&0x7f<<7
			if b >= 0x80 {
				b := uint64(p[i&15])
				i++
				v |= b << 14
				if b >= 0x80 {
					return 0
				}
			}
		}
		x[k&3] = v
	}
	ts += x[0]
	if ts > c.limit {
		return 0
	}
	n := len(c.buf)
	c.buf = c.buf[:n+1]
	r := &c.buf[n]
	*r = v1Rec{ts: ts, typ: typ}
	if v1HasStack[typ] {
		r.stk = uint32(x[(values-1)&3])
		if values == 3 {
			r.a[0] = x[1]
		}
	} else {
		r.a[0], r.a[1] = x[1], x[2]
	}
	switch typ {
	case v1GoStartLocal:
		r.typ, r.local = v1GoStart, true
	case v1GoUnblockLocal:
		r.typ, r.local = v1GoUnblock, true
	}
	return off + i
}

func (c *v1Cursor) exit(r *v1Rec) {
	if real := r.a[2]; real != 0 && real < r.ts && !c.alone {
		c.m.noteExit(real, r.a[0])
		c.m.due = min(c.m.due, real)
	}
}

// v1HasStack says whether the last value of a type is a stack.
var v1HasStack = [64]bool{
	v1Gomaxprocs: true, v1GCStart: true, v1SweepStart: true, v1GoCreate: true, v1GoStop: true, v1GoSched: true,
	v1GoPreempt: true, v1GoSleep: true, v1GoBlock: true, v1GoUnblock: true, v1GoBlockSend: true,
	v1GoBlockRecv: true, v1GoBlockSelect: true, v1GoBlockSync: true, v1GoBlockCond: true, v1GoBlockNet: true,
	v1GoSysCall: true, v1GoUnblockLocal: true, v1GoBlockGC: true, v1AssistStart: true, v1TaskCreate: true,
	v1TaskEnd: true, v1Region: true, v1Log: true, v1CPUSample: true,
}

// v1Skip steps over the record at off, which is no event. It gives 0 when it cannot.
func v1Skip(data []byte, off int, d v1Shape) int {
	switch d.shape {
	case shapeBatch:
		_, _, n, _ := v1Header(data, off)
		return n
	case shapeString:
		_, n := v1Uvarint(data, off+1)
		return v1Blob(data, n)
	case shapeStack, shapePrefixed:
		return v1Blob(data, off+1)
	case shapeUntimed:
		_, n := v1Uvarint(data, off+1)
		return n
	}
	return 0
}

// v1Blob steps over a length and as many bytes. It gives 0 when it cannot.
func v1Blob(data []byte, off int) int {
	size, n := v1Uvarint(data, off)
	if off == 0 || n == 0 || size > v1MaxString || int(size) > len(data)-n {
		return 0
	}
	return n + int(size)
}

// scout reads the syscall exits of a part of a batch ahead of its turn. An exit that the cursor
// finds too is noted twice, which does no harm: the second time the goroutine is not in that
// syscall any more.
func (m *v1Merge) scout(l v1Late) {
	if int(l.span) < m.cursors[l.proc].next-1 {
		return
	}
	ts, off := l.ts, int(l.off)
	data := m.data[:off+int(l.n)]
	for off < len(data) {
		b := data[off]
		d := m.shapes[b]
		at := off
		n := off + 1
		if d.shape == shapePrefixed && b&63 != v1CPUSample {
			if _, n = v1Uvarint(data, n); n == 0 {
				return
			}
		} else if d.shape != shapeTimed {
			if off = v1Skip(data, at, d); off == 0 {
				return
			}
			continue
		}
		var v [5]uint64
		for k := 0; k < int(d.values); k++ {
			if v[k], n = v1Uvarint(data, n); n == 0 {
				return
			}
		}
		ts += v[0]
		switch b {
		case v1GoSysExit | 3<<6:
			if v[3] != 0 && v[3] < ts {
				m.noteExit(v[3], v[1])
			}
		case v1GoSysExitLocal | 2<<6:
			if v[2] != 0 && v[2] < ts {
				m.noteExit(v[2], v[1])
			}
		}
		off = n
		if d.shape == shapePrefixed {
			if off = v1Blob(data, at+1); off == 0 {
				return
			}
			if b&63 == v1Log {
				if off = v1Blob(data, off); off == 0 {
					return
				}
			}
		}
	}
}

// v1MaxExits bounds how many exits are noted: 16 MB. Beyond it an exit is handed out when its
// goroutine gets a P.
const v1MaxExits = 1 << 20

// noteExit notes when goroutine g came back from a syscall that had blocked.
func (m *v1Merge) noteExit(ticks, g uint64) {
	if len(m.exits) < v1MaxExits {
		m.exits.push(dueAt[uint64]{ticks, g})
	}
}
