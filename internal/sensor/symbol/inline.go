package symbol

import "encoding/binary"

// inlined appends the functions inlined at addr, innermost first (Go 1.18 and later; before, none).
// A function has a tree of the calls inlined into it (funcdata 3). A pc-value table says which node
// a pc is in (pcdata 2), and each node has a pc of its caller.
func (t *pclntab) inlined(f goFunc, addr uint64, dst []string) []string {
	const treeIndex, tree = 2, 3
	if t.version < 118 || t.gofunc == 0 {
		return dst
	}
	// _func: entry, name, args, deferreturn, pcsp, pcfile, pcln, npcdata, cuOffset, then from 1.20
	// startLine; funcID, flag, pad, nfuncdata.
	head, size := uint64(40), uint64(20)
	if t.version >= 120 {
		head, size = 44, 16
	}
	npcdata, ok := t.uint(f.offset+28, 4)
	nfuncdata, ok2 := t.uint(f.offset+head-1, 1)
	if !ok || !ok2 || npcdata <= treeIndex || npcdata > 64 || nfuncdata <= tree {
		return dst
	}
	table, ok := t.uint(f.offset+head+4*treeIndex, 4)
	data, ok2 := t.uint(f.offset+head+4*npcdata+4*tree, 4)
	if !ok || !ok2 || table == 0 || data == 0xffffffff {
		return dst
	}
	values := make([]byte, maxPCValues)
	n, _ := t.r.ReadAt(values, int64(t.pcs+table))
	values = values[:n]
	pc := addr
	for range maxInlined {
		ix, ok := pcValue(values, f.entry, pc, t.quantum)
		if !ok || ix < 0 || ix > 1<<20 {
			return dst
		}
		var call [20]byte
		if _, err := t.im.r.ReadAt(call[:size], int64(t.gofunc+data+uint64(ix)*size)); err != nil {
			return dst
		}
		le := binary.LittleEndian
		nameAt, parent := le.Uint32(call[4:]), le.Uint32(call[8:])
		if t.version < 120 {
			nameAt, parent = le.Uint32(call[12:]), le.Uint32(call[16:])
		}
		s := t.nameAt(uint64(nameAt))
		if s == "" {
			return dst
		}
		dst = append(dst, s)
		pc = f.entry + uint64(parent)
	}
	return dst
}

// pcValue decodes a table of (value, pc) deltas: zigzag and plain varints, the value -1 before the
// first.
func pcValue(b []byte, entry, at, quantum uint64) (int32, bool) {
	value, pc := int32(-1), entry
	for first := true; ; first = false {
		d, n := binary.Uvarint(b)
		if n <= 0 || d == 0 && !first {
			return 0, false
		}
		b = b[n:]
		u := uint32(d)
		value += int32(u>>1) ^ -int32(u&1)
		d, n = binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		pc += uint64(uint32(d)) * quantum
		if at < pc {
			return value, true
		}
	}
}
