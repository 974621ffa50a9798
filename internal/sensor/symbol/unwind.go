package symbol

import "encoding/binary"

// Regs are a thread's registers as it entered the kernel.
type Regs struct{ IP, SP, BP uint64 }

const (
	maxUnwound = 64
	maxRows    = 1 << 15 // kept of one file
)

// Unwind appends the addresses of a user stack, innermost first, from a copy of its innermost
// bytes: stack[0] is at r.SP. Unlike a chain of frame pointers it lacks no caller, as far as the
// bytes reach and the code says where its callers are. The addresses are for [Table.Exact]. It
// works on amd64; elsewhere, and in code without call frame information, it appends r.IP alone.
func (t *Table) Unwind(r Regs, stack []byte, at int64, dst []uint64) []uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.space(at)
	word := func(addr uint64) (uint64, bool) {
		i := addr - r.SP
		if addr < r.SP || i > uint64(len(stack)) || uint64(len(stack))-i < 8 {
			return 0, false
		}
		return binary.LittleEndian.Uint64(stack[i:]), true
	}
	pc, sp, bp, bpKnown := r.IP, r.SP, r.BP, true
	dst = append(dst, pc)
	back := uint64(0) // for an address that a call returns to, the call is looked up
	for range maxUnwound {
		row := t.rowOf(s, pc-back)
		if !row.ok || row.last {
			break
		}
		base := sp
		if row.cfaReg == regBP {
			if !bpKnown {
				break
			}
			base = bp
		}
		cfa := base + uint64(row.cfa)
		next, ok := word(cfa + uint64(row.ra))
		if !ok || next == 0 || cfa <= sp {
			break
		}
		if row.bpKept {
			bp, bpKnown = word(cfa + uint64(row.bp))
		}
		bpKnown = bpKnown && !row.bpLost
		back = 1
		if row.signal {
			back = 0
		}
		m := s.mapped(next - back)
		if m == nil {
			break
		}
		// If the bytes are not what the code says, the stack ends at the first address that no call
		// returns to.
		if mod := m.mod; mod != nil && back > 0 {
			if t.load(mod); mod.im != nil && mod.goTab == nil {
				if linked, ok := mod.im.address(next - m.start + m.offset); ok && !mod.returns(linked) {
					break
				}
			}
		}
		pc, sp = next, cfa
		dst = append(dst, pc)
	}
	return dst
}

// returns reports whether a call may return to an address. It remembers the answers, as the same
// addresses come again and again.
func (m *module) returns(linked uint64) bool {
	may, ok := m.calls[linked]
	if !ok {
		follows, known := m.im.follows(linked)
		may = follows || !known
		if m.calls == nil || len(m.calls) >= maxRows {
			m.calls = map[uint64]bool{}
		}
		m.calls[linked] = may
	}
	return may
}

// rowOf finds the call frame information for an address.
func (t *Table) rowOf(s *space, addr uint64) cfiRow {
	m := s.mapped(addr)
	if m == nil {
		return cfiRow{}
	}
	mod, off := m.mod, addr-m.start+m.offset
	if m.path == "[vdso]" {
		mod, off = t.vdso(), addr-m.start
	}
	if mod == nil {
		return cfiRow{}
	}
	t.load(mod)
	if mod.im == nil {
		return cfiRow{}
	}
	linked, ok := mod.im.address(off)
	if !ok {
		return cfiRow{}
	}
	row, ok := mod.rows[linked]
	if !ok {
		row = mod.im.cfi(linked)
		if mod.rows == nil || len(mod.rows) >= maxRows {
			mod.rows = map[uint64]cfiRow{}
		}
		mod.rows[linked] = row
	}
	return row
}

// Exact appends the frames of addresses that Unwind returned: it doubts none of them.
func (t *Table) Exact(pcs []uint64, at int64, dst []Frame) []Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.space(at)
	from := len(dst)
	for i, pc := range pcs {
		back := min(uint64(i), 1, pc)
		dst = appendFrames(dst, t.look(s, pc-back), pc, back, false)
	}
	t.marks(s, pcs, dst[from:])
	return dst
}
