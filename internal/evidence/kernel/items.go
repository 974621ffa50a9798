package kernel

import "encoding/binary"

// items decodes a block of records and definitions.
type items struct {
	b    []byte
	r    *Reader
	last int64
	rec  Record
	bad  bool
}

func (d *items) more() bool { return len(d.b) > 0 && !d.bad }

func (d *items) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *items) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *items) byte() byte {
	if len(d.b) == 0 {
		d.bad = true
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *items) name() string {
	n := d.uvarint()
	if n > maxName || n > uint64(len(d.b)) {
		d.bad = true
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// record decodes the next item. It returns nil for a definition, or at damage.
func (d *items) record(c *chain) *Record {
	kind := d.byte()
	switch kind {
	case itemThread:
		d.thread()
		return nil
	case itemFrame:
		d.frame()
		return nil
	case itemStack:
		d.stack()
		return nil
	}
	r := &d.rec
	has := d.byte()
	d.last += d.varint()
	*r = Record{Kind: Kind(kind), Time: d.last, CPU: uint16(d.uvarint())}
	if has&hasFlags != 0 {
		r.Flags = Flags(d.uvarint())
	}
	if has&sameTID != 0 {
		r.TID = c.at(r.CPU)
	} else {
		r.TID = uint32(d.uvarint())
	}
	if has&hasOther != 0 {
		r.Other = uint32(d.uvarint())
	}
	if has&hasKernel != 0 {
		r.Kernel = uint32(d.uvarint())
	}
	if has&hasUser != 0 {
		r.User = uint32(d.uvarint())
	}
	for i := range r.Arg {
		if has&(hasArg0<<i) != 0 {
			r.Arg[i] = d.uvarint()
		}
	}
	c.set(r)
	// A kind of a newer recorder is left out: its fields stand where those of all kinds stand.
	if d.bad || r.Kind == None || r.Kind >= kinds {
		return nil
	}
	return r
}

func (d *items) thread() {
	bits := d.byte()
	t := Thread{Target: bits&1 != 0, Kernel: bits&2 != 0, Since: d.varint()}
	t.TID, t.PID, t.NSTID = uint32(d.uvarint()), uint32(d.uvarint()), uint32(d.uvarint())
	t.Comm, t.Cgroup = d.name(), d.name()
	if !d.bad && len(d.r.threads) < maxThreads {
		d.r.threads = append(d.r.threads, t)
	}
}

// Bits of a frame. A reader from before frameWaits takes a frame with both for one that was called,
// which no recorder writes: what waits is innermost, and nothing was scanned for before it.
const (
	frameInferred = 1 << iota
	frameWaits
)

func (d *items) frame() {
	bits, id := d.byte(), uint32(d.uvarint())
	f := Frame{Inferred: bits&frameInferred != 0, Waits: bits&frameWaits != 0, Addr: d.uvarint(),
		Offset: d.uvarint(), Func: d.name(), Module: d.name()}
	if !d.bad && len(d.r.frames) < maxFrames {
		d.r.frames[id] = f
	}
}

func (d *items) stack() {
	id, n := uint32(d.uvarint()), d.uvarint()
	if n > maxDepth || n > uint64(len(d.b)) {
		d.bad = true
		return
	}
	ids := make([]uint32, 0, n)
	for range n {
		ids = append(ids, uint32(d.uvarint()))
	}
	if d.bad || len(d.r.stacks) >= maxStacks || d.r.nframes+len(ids) > maxFrames {
		return
	}
	d.r.nframes += len(ids)
	d.r.stacks[id] = ids
}
