package symbol

import (
	"bytes"
	"encoding/binary"
)

// symDef is a symbol of a file that buildELF makes.
type symDef struct {
	name        string
	value, size uint64
	kind, bind  byte
	absent      bool // undefined: of another file
}

const textAt, textSize = 0x401000, 0x1000

// buildELF makes a small ELF file with one executable segment at textAt, a build id, and what
// sections are given.
func buildELF(syms []symDef, dynamic bool, more map[string][]byte) []byte {
	le := binary.LittleEndian
	var strtab bytes.Buffer
	strtab.WriteByte(0)
	symtab := make([]byte, 24)
	for _, s := range syms {
		b := make([]byte, 24)
		le.PutUint32(b, uint32(strtab.Len()))
		strtab.WriteString(s.name + "\x00")
		b[4] = s.bind<<4 | s.kind
		if !s.absent {
			le.PutUint16(b[6:], 1)
		}
		le.PutUint64(b[8:], s.value)
		le.PutUint64(b[16:], s.size)
		symtab = append(symtab, b...)
	}
	type sec struct {
		name  string
		data  []byte
		addr  uint64
		entry uint64
	}
	tab, str := ".symtab", ".strtab"
	if dynamic {
		tab, str = ".dynsym", ".dynstr"
	}
	all := []sec{{name: ".text", data: make([]byte, 64), addr: textAt}}
	if syms != nil {
		all = append(all, sec{name: tab, data: symtab, entry: 24}, sec{name: str, data: strtab.Bytes()})
	}
	at := uint64(0x500000)
	for _, name := range wanted {
		if data, ok := more[name]; ok {
			all = append(all, sec{name: name, data: data, addr: at})
			at += uint64(len(data)+0xfff) &^ 0xfff
		}
	}
	note := []byte("\x04\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00aaaabbbbccccddddeeee")
	var names bytes.Buffer
	names.WriteByte(0)
	file := make([]byte, 64+2*56)
	noteAt := uint64(len(file))
	file = append(file, note...)
	textOff := (uint64(len(file)) + 15) &^ 15
	var heads []byte
	heads = append(heads, make([]byte, 64)...)
	head := func(name string, addr, off, size, entry uint64) {
		h := make([]byte, 64)
		le.PutUint32(h, uint32(names.Len()))
		names.WriteString(name + "\x00")
		le.PutUint32(h[4:], 1)
		le.PutUint64(h[16:], addr)
		le.PutUint64(h[24:], off)
		le.PutUint64(h[32:], size)
		le.PutUint64(h[56:], entry)
		heads = append(heads, h...)
	}
	for _, s := range all {
		for len(file)%16 != 0 {
			file = append(file, 0)
		}
		head(s.name, s.addr, uint64(len(file)), uint64(len(s.data)), s.entry)
		file = append(file, s.data...)
	}
	nameAt := uint64(len(file))
	head(".shstrtab", 0, nameAt, 0, 0)
	le.PutUint64(heads[len(heads)-32:], uint64(names.Len()))
	file = append(file, names.Bytes()...)
	secAt := uint64(len(file))
	file = append(file, heads...)

	copy(file, "\x7fELF\x02\x01\x01")
	le.PutUint16(file[16:], 2)
	le.PutUint16(file[18:], machineAMD64)
	le.PutUint64(file[32:], 64)
	le.PutUint64(file[40:], secAt)
	le.PutUint16(file[54:], 56)
	le.PutUint16(file[56:], 2)
	le.PutUint16(file[58:], 64)
	le.PutUint16(file[60:], uint16(len(heads)/64))
	le.PutUint16(file[62:], uint16(len(heads)/64-1))
	seg := file[64:]
	put := func(kind, flags uint32, off, addr, size, mem uint64) {
		le.PutUint32(seg, kind)
		le.PutUint32(seg[4:], flags)
		le.PutUint64(seg[8:], off)
		le.PutUint64(seg[16:], addr)
		le.PutUint64(seg[32:], size)
		le.PutUint64(seg[40:], mem)
		seg = seg[56:]
	}
	put(segLoad, segExec|4, textOff, textAt, 64, textSize)
	put(segNote, 4, noteAt, 0, uint64(len(note)), 0)
	return file
}

func openELF(b []byte) (*image, error) {
	return readELF(&sliced{b}, int64(len(b)))
}

// goDef is a function of a table that buildPclntab makes.
type goDef struct {
	name  string
	entry uint64
}

// buildPclntab makes Go's table in one of its layouts. The functions end at end.
func buildPclntab(magic uint32, funcs []goDef, end uint64) []byte {
	le := binary.LittleEndian
	word := func(b []byte, v uint64) []byte { return le.AppendUint64(b, v) }
	head := []byte{0, 0, 0, 0, 0, 0, 1, 8}
	le.PutUint32(head, magic)
	n := uint64(len(funcs))
	var names []byte
	names = append(names, 0)
	nameAt := make([]uint32, len(funcs))
	for i, f := range funcs {
		nameAt[i] = uint32(len(names))
		names = append(names, f.name+"\x00"...)
	}
	narrow := magic == go118 || magic == go120
	field := uint64(8)
	if narrow {
		field = 4
	}
	headSize := uint64(8 + 8)
	switch {
	case magic == go116:
		headSize = 8 + 7*8
	case narrow:
		headSize = 8 + 8*8
	}
	// After the header: the names (not of 1.2), then functab, then the functions.
	nameBase := headSize
	tabAt := headSize
	if magic != go12 {
		tabAt += uint64(len(names))
	}
	funcAt := (2*n + 1) * field // from functab
	const size = 48
	var tab, body []byte
	put := func(b []byte, v uint64) []byte {
		if narrow {
			return le.AppendUint32(b, uint32(v))
		}
		return word(b, v)
	}
	base := uint64(0)
	if narrow {
		base = textAt
	}
	for i, f := range funcs {
		off := funcAt + uint64(i)*size
		name := uint64(nameAt[i])
		if magic == go12 {
			off += tabAt
			name += tabAt + funcAt + n*size
		}
		tab = put(put(tab, f.entry-base), off)
		one := put(nil, f.entry-base)
		one = le.AppendUint32(one, uint32(name))
		body = append(body, append(one, make([]byte, size-len(one))...)...)
	}
	tab = put(tab, end-base)
	out := word(head, n)
	switch {
	case magic == go116:
		for _, v := range []uint64{0, nameBase, 0, 0, 0, tabAt} {
			out = word(out, v)
		}
	case narrow:
		for _, v := range []uint64{0, 0, nameBase, 0, 0, 0, tabAt} {
			out = word(out, v)
		}
	}
	if magic != go12 {
		out = append(out, names...)
	}
	out = append(append(out, tab...), body...)
	if magic == go12 {
		out = append(out, names...)
	}
	return out
}
