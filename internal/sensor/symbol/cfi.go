package symbol

import "encoding/binary"

// Call frame information says, for each place in the code, where the caller's registers are.
// Exceptions need it, so stripped programs and those without frame pointers have it as well. This
// file knows the part of DWARF's language, as .eh_frame has it, that compilers write for ordinary
// functions of amd64. Where a function needs more (the CFA by an expression, as in a PLT), the
// stack ends.

const (
	regBP, regSP, regRA = 6, 7, 16

	maxEntry   = 64 << 10 // bytes of one CIE or FDE
	maxStates  = 16       // remembered
	maxCFISize = 1 << 30
)

// cfiRow says how to find a function's caller from one place in it.
type cfiRow struct {
	ok     bool
	last   bool // it has no caller: a thread starts here
	signal bool // the caller was interrupted: its place is no return address
	cfaReg uint8
	cfa    int64 // from that register
	ra     int64 // from the CFA
	bp     int64 // where the caller's bp is, from the CFA
	bpKept bool  // bp is saved at all; otherwise it is still the caller's
	bpLost bool  // nothing is known of the caller's bp
}

// cfi finds the row for a linked address.
func (im *image) cfi(pc uint64) cfiRow {
	hdr, ok := im.named(".eh_frame_hdr")
	if !ok || im.machine != machineAMD64 || !im.wide || hdr.size < 12 || hdr.size > maxCFISize {
		return cfiRow{}
	}
	h, err := im.bytes(hdr.off, 12)
	// All linkers write this format: a table of 4-byte pairs that count from the section's start,
	// with a 4-byte count.
	if err != nil || h[0] != 1 || h[1]&0xf != 0xb || h[2] != 0x03 || h[3] != 0x3b {
		return cfiRow{}
	}
	le := binary.LittleEndian
	n := uint64(le.Uint32(h[8:]))
	if n == 0 || 12+8*n > hdr.size {
		return cfiRow{}
	}
	pair := func(i uint64) (begin, entry uint64, ok bool) {
		b, err := im.bytes(hdr.off+12+8*i, 8)
		if err != nil {
			return 0, 0, false
		}
		return hdr.addr + uint64(int64(int32(le.Uint32(b)))), hdr.addr + uint64(int64(int32(le.Uint32(b[4:])))), true
	}
	lo, hi := uint64(0), n
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		begin, _, ok := pair(mid)
		if !ok {
			return cfiRow{}
		}
		if begin <= pc {
			lo = mid
		} else {
			hi = mid
		}
	}
	begin, entry, ok := pair(lo)
	if !ok || begin > pc {
		return cfiRow{}
	}
	return im.fde(entry, pc)
}

// cfiEntry reads a CIE or FDE: what comes after its length, and where that starts.
func (im *image) cfiEntry(addr uint64) (b []byte, at uint64, ok bool) {
	off, ok := im.place(addr)
	if !ok {
		return nil, 0, false
	}
	head, err := im.bytes(off, 4)
	if err != nil {
		return nil, 0, false
	}
	n := uint64(binary.LittleEndian.Uint32(head))
	if n < 4 || n > maxEntry {
		return nil, 0, false
	}
	b, err = im.bytes(off+4, n)
	return b, addr + 4, err == nil
}

func (im *image) fde(addr, pc uint64) (row cfiRow) {
	b, at, ok := im.cfiEntry(addr)
	if !ok {
		return row
	}
	back := uint64(binary.LittleEndian.Uint32(b))
	if back == 0 || back > at {
		return row
	}
	c, ok := im.cie(at - back)
	if !ok {
		return row
	}
	// The start of the code counts from where it is written; its size has the same width.
	d := cfiBytes{b: b, at: 4}
	var begin, size uint64
	switch c.encoding {
	case 0x1b: // pc-relative, 4 bytes
		begin = at + 4 + uint64(int64(int32(d.fixed(4))))
		size = d.fixed(4)
	case 0x00, 0x04: // absolute, 8 bytes
		begin, size = d.fixed(8), d.fixed(8)
	default:
		return row
	}
	if c.augmented {
		d.skip(d.uleb())
	}
	if d.bad || pc < begin || pc-begin >= size {
		return row
	}
	m := cfiMachine{cie: c, loc: begin, pc: pc}
	m.row.bpKept = false
	if !m.run(cfiBytes{b: c.code}, true) {
		return row
	}
	m.initial = m.row
	if !m.run(cfiBytes{b: b[d.at:]}, false) {
		return row
	}
	m.row.ok, m.row.signal = m.cfaKnown && m.raKnown || m.row.last, c.signal
	return m.row
}

type cie struct {
	align     int64 // of data
	step      uint64
	encoding  byte
	augmented bool
	signal    bool
	code      []byte
}

func (im *image) cie(addr uint64) (c cie, ok bool) {
	b, _, ok := im.cfiEntry(addr)
	if !ok || binary.LittleEndian.Uint32(b) != 0 {
		return c, false
	}
	d := cfiBytes{b: b, at: 4}
	version := d.byte()
	augmentation := d.text()
	c.step, c.align = d.uleb(), d.sleb()
	ra := uint64(0)
	if version == 1 {
		ra = uint64(d.byte())
	} else {
		ra = d.uleb()
	}
	if version != 1 && version != 3 || ra != regRA {
		return c, false
	}
	for i, a := range augmentation {
		switch {
		case i == 0 && a == 'z':
			c.augmented = true
			d.uleb()
		case !c.augmented:
			return c, false
		case a == 'R':
			c.encoding = d.byte()
		case a == 'L':
			d.byte()
		case a == 'P':
			switch d.byte() & 0xf {
			case 0x0, 0x4, 0xc:
				d.skip(8)
			case 0x3, 0xb:
				d.skip(4)
			default:
				return c, false
			}
		case a == 'S':
			c.signal = true
		case a == 'B':
		default:
			return c, false
		}
	}
	if d.bad {
		return c, false
	}
	c.code = b[d.at:]
	return c, true
}

// cfiMachine runs the instructions up to a place in the code.
type cfiMachine struct {
	cie               cie
	loc, pc           uint64
	row, initial      cfiRow
	cfaKnown, raKnown bool
	stack             []cfiMachine
}

// run reports whether it knew all instructions. It runs all of a CIE (all), and an FDE's up to pc.
func (m *cfiMachine) run(d cfiBytes, all bool) bool {
	for d.at < len(d.b) {
		op := d.byte()
		arg := uint64(op & 0x3f)
		switch op >> 6 {
		case 1:
			m.loc += arg * m.cie.step
		case 2:
			m.saved(arg, int64(d.uleb())*m.cie.align)
		case 3:
			m.restore(arg)
		default:
			if !m.extended(op, &d) {
				return false
			}
		}
		if d.bad {
			return false
		}
		if !all && m.loc > m.pc {
			// The row before this one holds: advancing alone has changed nothing yet.
			return true
		}
	}
	return true
}

func (m *cfiMachine) extended(op byte, d *cfiBytes) bool {
	switch op {
	case 0x00: // nop
	case 0x02:
		m.loc += d.fixed(1) * m.cie.step
	case 0x03:
		m.loc += d.fixed(2) * m.cie.step
	case 0x04:
		m.loc += d.fixed(4) * m.cie.step
	case 0x05: // offset_extended
		r := d.uleb()
		m.saved(r, int64(d.uleb())*m.cie.align)
	case 0x06:
		m.restore(d.uleb())
	case 0x07: // undefined
		switch d.uleb() {
		case regRA:
			m.row.last = true
		case regBP:
			m.row.bpLost = true
		}
	case 0x08: // same_value
		if d.uleb() == regBP {
			m.row.bpKept, m.row.bpLost = false, false
		}
	case 0x09: // register
		if r := d.uleb(); r == regBP {
			m.row.bpLost = true
		} else if r == regRA {
			m.raKnown = false
		}
		d.uleb()
	case 0x0a: // remember_state
		if len(m.stack) >= maxStates {
			return false
		}
		m.stack = append(m.stack, cfiMachine{row: m.row, cfaKnown: m.cfaKnown, raKnown: m.raKnown})
	case 0x0b: // restore_state
		n := len(m.stack) - 1
		if n < 0 {
			return false
		}
		m.row, m.cfaKnown, m.raKnown = m.stack[n].row, m.stack[n].cfaKnown, m.stack[n].raKnown
		m.stack = m.stack[:n]
	case 0x0c: // def_cfa
		m.base(d.uleb())
		m.row.cfa = int64(d.uleb())
	case 0x0d: // def_cfa_register
		m.base(d.uleb())
	case 0x0e: // def_cfa_offset
		m.row.cfa = int64(d.uleb())
	case 0x0f: // def_cfa_expression
		d.skip(d.uleb())
		m.cfaKnown = false
	case 0x10, 0x16: // expression, val_expression
		r := d.uleb()
		d.skip(d.uleb())
		if r == regBP {
			m.row.bpLost = true
		} else if r == regRA {
			m.raKnown = false
		}
	case 0x11: // offset_extended_sf
		r := d.uleb()
		m.saved(r, d.sleb()*m.cie.align)
	case 0x12: // def_cfa_sf
		m.base(d.uleb())
		m.row.cfa = d.sleb() * m.cie.align
	case 0x13: // def_cfa_offset_sf
		m.row.cfa = d.sleb() * m.cie.align
	case 0x14: // val_offset
		if d.uleb() == regBP {
			m.row.bpLost = true
		}
		d.uleb()
	case 0x2e: // GNU_args_size
		d.uleb()
	default:
		return false
	}
	return true
}

func (m *cfiMachine) base(reg uint64) {
	m.cfaKnown = reg == regSP || reg == regBP
	m.row.cfaReg = uint8(min(reg, 255))
}

func (m *cfiMachine) saved(reg uint64, off int64) {
	switch reg {
	case regBP:
		m.row.bp, m.row.bpKept, m.row.bpLost = off, true, false
	case regRA:
		m.row.ra, m.raKnown, m.row.last = off, true, false
	}
}

func (m *cfiMachine) restore(reg uint64) {
	switch reg {
	case regBP:
		m.row.bp, m.row.bpKept, m.row.bpLost = m.initial.bp, m.initial.bpKept, m.initial.bpLost
	case regRA:
		m.row.ra, m.row.last = m.initial.ra, m.initial.last
	}
}

// cfiBytes reads numbers, and remembers if there were too few bytes.
type cfiBytes struct {
	b   []byte
	at  int
	bad bool
}

func (d *cfiBytes) byte() byte {
	if d.at >= len(d.b) {
		d.bad = true
		return 0
	}
	d.at++
	return d.b[d.at-1]
}

func (d *cfiBytes) fixed(n int) (v uint64) {
	for i := range n {
		v |= uint64(d.byte()) << (8 * i)
	}
	return v
}

func (d *cfiBytes) skip(n uint64) {
	if n > uint64(len(d.b)-d.at) {
		d.bad = true
		d.at = len(d.b)
		return
	}
	d.at += int(n)
}

func (d *cfiBytes) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		c := d.byte()
		if shift < 64 {
			v |= uint64(c&0x7f) << shift
		}
		if c&0x80 == 0 || d.bad {
			return v
		}
	}
}

func (d *cfiBytes) sleb() (v int64) {
	for shift := 0; ; shift += 7 {
		c := d.byte()
		if shift < 64 {
			v |= int64(c&0x7f) << shift
		}
		if c&0x80 == 0 || d.bad {
			if c&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

func (d *cfiBytes) text() string {
	for i := d.at; i < len(d.b); i++ {
		if d.b[i] == 0 {
			s := string(d.b[d.at:i])
			d.at = i + 1
			return s
		}
	}
	d.bad = true
	return ""
}
