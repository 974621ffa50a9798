package symbol

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	maxSegments = 1 << 10
	maxSections = 1 << 16
	maxNames    = 1 << 22 // bytes of section names
	maxNotes    = 1 << 16 // bytes of notes searched for a build id
	maxName     = 4 << 10 // of a symbol
)

var errNotELF = errors.New("not an ELF file")

// image is what is needed of an ELF file. debug/elf would do, but it keeps every symbol with its
// name as a string: 300 MB for a big C++ program.
type image struct {
	r        io.ReaderAt
	size     int64
	wide     bool // 64 bits
	kind     uint16
	machine  uint16
	entry    uint64
	segments []segment
	sections []section // those with one of the names in wanted
	buildID  string    // hex
	code     paged     // for loops.go
	called   []called  // for calls.go
}

type segment struct {
	kind, flags         uint32
	off, vaddr, in, mem uint64
}

type section struct {
	name            string
	kind            uint32
	flags           uint64
	addr, off, size uint64
	link            uint32
	entry           uint64
}

const (
	segLoad, segNote = 1, 4
	segExec          = 1
	secNobits        = 8
	kindDyn          = 3
)

var wanted = []string{".symtab", ".strtab", ".dynsym", ".dynstr", ".text", ".gopclntab",
	".data.rel.ro.gopclntab", ".go.module",
	".data", ".noptrdata", ".data.rel.ro", ".rela.dyn", ".eh_frame_hdr", ".eh_frame"}

// readELF reads headers, section names and the build id: some KiB.
func readELF(r io.ReaderAt, size int64) (*image, error) {
	var h [64]byte
	if n, err := r.ReadAt(h[:], 0); n < 52 {
		if err == nil || err == io.EOF {
			err = errNotELF
		}
		return nil, err
	}
	if string(h[:4]) != "\x7fELF" || h[4] != 1 && h[4] != 2 {
		return nil, errNotELF
	}
	if h[5] != 1 {
		return nil, errors.New("ELF file is big-endian")
	}
	le := binary.LittleEndian
	im := &image{r: r, size: size, wide: h[4] == 2, kind: le.Uint16(h[16:]), machine: le.Uint16(h[18:])}
	var phoff, shoff uint64
	var phsize, phnum, shsize, shnum, names uint16
	if im.wide {
		im.entry, phoff, shoff = le.Uint64(h[24:]), le.Uint64(h[32:]), le.Uint64(h[40:])
		phsize, phnum, shsize, shnum, names = le.Uint16(h[54:]), le.Uint16(h[56:]),
			le.Uint16(h[58:]), le.Uint16(h[60:]), le.Uint16(h[62:])
	} else {
		im.entry, phoff, shoff = uint64(le.Uint32(h[24:])), uint64(le.Uint32(h[28:])), uint64(le.Uint32(h[32:]))
		phsize, phnum, shsize, shnum, names = le.Uint16(h[42:]), le.Uint16(h[44:]),
			le.Uint16(h[46:]), le.Uint16(h[48:]), le.Uint16(h[50:])
	}
	if err := im.readSegments(phoff, phsize, phnum); err != nil {
		return nil, err
	}
	// A file without sections can still be placed in memory, so that its addresses get an offset.
	_ = im.readSections(shoff, shsize, uint32(shnum), uint32(names))
	im.buildID = im.findBuildID()
	return im, nil
}

func (im *image) readSegments(off uint64, size, n uint16) error {
	want := uint16(32)
	if im.wide {
		want = 56
	}
	if n == 0 {
		return errors.New("ELF file has no segments")
	}
	if size != want || n > maxSegments {
		return fmt.Errorf("%d ELF program headers of %d bytes", n, size)
	}
	b, err := im.bytes(off, uint64(n)*uint64(size))
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	for ; len(b) > 0; b = b[size:] {
		s := segment{kind: le.Uint32(b)}
		if im.wide {
			s.flags, s.off, s.vaddr, s.in, s.mem = le.Uint32(b[4:]), le.Uint64(b[8:]),
				le.Uint64(b[16:]), le.Uint64(b[32:]), le.Uint64(b[40:])
		} else {
			s.off, s.vaddr, s.in, s.mem, s.flags = uint64(le.Uint32(b[4:])),
				uint64(le.Uint32(b[8:])), uint64(le.Uint32(b[16:])), uint64(le.Uint32(b[20:])), le.Uint32(b[24:])
		}
		if s.kind == segLoad && (s.vaddr+s.mem < s.vaddr || s.off+s.in < s.off) {
			return errors.New("ELF segment runs over the end of the address space")
		}
		if s.kind == segLoad || s.kind == segNote {
			im.segments = append(im.segments, s)
		}
	}
	return nil
}

func (im *image) readSections(off uint64, size uint16, n, names uint32) error {
	want := uint64(40)
	if im.wide {
		want = 64
	}
	if off == 0 || uint64(size) != want {
		return errors.New("ELF file has no sections")
	}
	// If there are more than the header can count, section 0 has the numbers.
	if n == 0 || names == 0xffff {
		b, err := im.bytes(off, want)
		if err != nil {
			return err
		}
		first := im.section(b)
		if n == 0 {
			n = uint32(min(first.size, maxSections+1))
		}
		if names == 0xffff {
			names = first.link
		}
	}
	if n > maxSections || names >= n {
		return fmt.Errorf("%d ELF sections, names in section %d", n, names)
	}
	b, err := im.bytes(off, uint64(n)*want)
	if err != nil {
		return err
	}
	text := im.section(b[uint64(names)*want:])
	strings, err := im.bytes(text.off, min(text.size, maxNames))
	if err != nil {
		return err
	}
	for i := range uint64(n) {
		head := b[i*want:]
		s := im.section(head)
		s.name = cstring(strings, uint64(binary.LittleEndian.Uint32(head)))
		if slices.Contains(wanted, s.name) && (s.kind == secNobits || s.off+s.size >= s.off &&
			s.off+s.size <= uint64(im.size)) && s.addr+s.size >= s.addr {
			im.sections = append(im.sections, s)
		}
		if len(im.sections) > 4*len(wanted) {
			return errors.New("ELF section names come again and again")
		}
	}
	return nil
}

func (im *image) section(b []byte) section {
	le := binary.LittleEndian
	if im.wide {
		return section{kind: le.Uint32(b[4:]), flags: le.Uint64(b[8:]), addr: le.Uint64(b[16:]),
			off: le.Uint64(b[24:]), size: le.Uint64(b[32:]), link: le.Uint32(b[40:]), entry: le.Uint64(b[56:])}
	}
	return section{kind: le.Uint32(b[4:]), flags: uint64(le.Uint32(b[8:])),
		addr: uint64(le.Uint32(b[12:])), off: uint64(le.Uint32(b[16:])),
		size: uint64(le.Uint32(b[20:])), link: le.Uint32(b[24:]), entry: uint64(le.Uint32(b[36:]))}
}

// named returns the first section of a name that has bytes in the file.
func (im *image) named(name string) (section, bool) {
	for _, s := range im.sections {
		if s.name == name && s.kind != secNobits {
			return s, true
		}
	}
	return section{}, false
}

// bytes reads n bytes at a place of the file. The caller bounds n, and so does the file's size.
func (im *image) bytes(off, n uint64) ([]byte, error) {
	if off > uint64(im.size) || n > uint64(im.size)-off {
		return nil, fmt.Errorf("%d bytes at %d are beyond the end of the file", n, off)
	}
	b := make([]byte, n)
	if _, err := im.r.ReadAt(b, int64(off)); err != nil {
		return nil, err
	}
	return b, nil
}

// address turns a place in the file into the address that it is linked for.
func (im *image) address(off uint64) (uint64, bool) {
	// A page may hold the end of one segment and the start of the next, and is then mapped twice:
	// the executable one is meant.
	for _, s := range im.segments {
		if s.kind == segLoad && s.flags&segExec != 0 && off >= s.off && off-s.off < s.in {
			return off - s.off + s.vaddr, true
		}
	}
	return 0, false
}

// place is the reverse, in any segment.
func (im *image) place(addr uint64) (uint64, bool) {
	for _, s := range im.segments {
		if s.kind == segLoad && addr >= s.vaddr && addr-s.vaddr < s.in {
			return addr - s.vaddr + s.off, true
		}
	}
	return 0, false
}

// executable returns the span of addresses that hold code.
func (im *image) executable() (from, to uint64) {
	from = ^uint64(0)
	for _, s := range im.segments {
		if s.kind == segLoad && s.flags&segExec != 0 {
			from, to = min(from, s.vaddr), max(to, s.vaddr+s.mem)
		}
	}
	return from, to
}

func (im *image) findBuildID() string {
	le := binary.LittleEndian
	for _, s := range im.segments {
		if s.kind != segNote {
			continue
		}
		b, err := im.bytes(s.off, min(s.in, maxNotes))
		for err == nil && len(b) >= 12 {
			name, desc, kind := uint64(le.Uint32(b)), uint64(le.Uint32(b[4:])), le.Uint32(b[8:])
			at := 12 + (name+3)&^3
			next := at + (desc+3)&^3
			if at+desc > uint64(len(b)) {
				break
			}
			if kind == 3 && name == 4 && string(b[12:16]) == "GNU\x00" && desc >= 2 && desc <= 64 {
				return hex.EncodeToString(b[at : at+desc])
			}
			b = b[min(next, uint64(len(b))):]
		}
	}
	return ""
}

// text reads a name of a string table, from the file.
func (im *image) text(table section, at uint32) string {
	if uint64(at) >= table.size {
		return ""
	}
	return readText(im.r, int64(table.off+uint64(at)), table.size-uint64(at))
}

// readText reads a zero-terminated string of at most maxName bytes; "" if it is longer or does not
// end within left bytes.
func readText(r io.ReaderAt, off int64, left uint64) string {
	// Most are short: read little first.
	for _, n := range []uint64{96, maxName} {
		b := make([]byte, min(n, left))
		got, _ := r.ReadAt(b, off)
		if i := strings.IndexByte(string(b[:got]), 0); i >= 0 {
			return string(b[:i])
		}
		if uint64(got) < n {
			break
		}
	}
	return ""
}

func cstring(b []byte, at uint64) string {
	if at >= uint64(len(b)) {
		return ""
	}
	b = b[at:]
	if i := slices.Index(b[:min(len(b), maxName)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}
