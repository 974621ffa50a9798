package symbol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// pclntab is Go's own table of functions, which is there in stripped binaries too, in the four
// layouts it has had:
//
//	go12   1.2 to 1.15    functab of (pc, offset) words after the header; offsets from the table's start
//	go116  1.16, 1.17     the header has the offsets of the parts
//	go118  1.18, 1.19     pcs are 4 bytes, from the start of text
//	go120  1.20 and later; the header's start of text is 0 since 1.26 (moduledata has it)
//
// Only the pages needed are read: the table of a 500 MB program has 60 MB.
type pclntab struct {
	r       *io.SectionReader
	version int
	ptr     uint64 // bytes of a word
	quantum uint64
	n       uint64 // functions
	text    uint64 // what go118's pcs count from
	names   uint64 // offsets of parts
	pcs     uint64
	funcs   uint64 // functab
	first   uint64 // pcs that it covers
	end     uint64

	gofunc uint64 // file offset that funcdata counts from; 0: not known, and so is inlining
	im     *image
}

const (
	go12  = 0xfffffffb
	go116 = 0xfffffffa
	go118 = 0xfffffff0
	go120 = 0xfffffff1

	maxGoFuncs  = 1 << 24
	maxInlined  = 32   // deep
	maxPCValues = 4096 // bytes of one pc-value table that are decoded
)

var errNoTable = errors.New("no Go function table")

// readPclntab finds the table of a binary; errNoTable if it has none.
func readPclntab(im *image) (*pclntab, error) {
	sec, ok := im.named(".gopclntab")
	if !ok {
		if sec, ok = im.named(".data.rel.ro.gopclntab"); !ok {
			return nil, errNoTable
		}
	}
	t := &pclntab{r: io.NewSectionReader(&paged{r: im.r}, int64(sec.off), int64(sec.size)), im: im}
	if err := t.header(sec); err != nil {
		return nil, fmt.Errorf("read Go function table: %w", err)
	}
	return t, nil
}

func (t *pclntab) header(sec section) error {
	var b [8 + 8*8]byte
	if n, _ := t.r.ReadAt(b[:], 0); n < 8 {
		return io.ErrUnexpectedEOF
	}
	le := binary.LittleEndian
	magic := le.Uint32(b[:])
	t.quantum, t.ptr = uint64(b[6]), uint64(b[7])
	if b[4] != 0 || b[5] != 0 || t.ptr != 4 && t.ptr != 8 || t.quantum != 1 && t.quantum != 2 && t.quantum != 4 {
		return errNoTable
	}
	word := func(i uint64) uint64 {
		if t.ptr == 4 {
			return uint64(le.Uint32(b[8+4*i:]))
		}
		return le.Uint64(b[8+8*i:])
	}
	t.n = word(0)
	switch magic {
	case go12:
		t.version, t.funcs = 12, 8+t.ptr
	case go116:
		t.version, t.names, t.pcs, t.funcs = 116, word(2), word(5), word(6)
	case go118, go120:
		t.version, t.text, t.names, t.pcs, t.funcs = 118, word(2), word(3), word(6), word(7)
		if magic == go120 {
			t.version = 120
		}
		m, ok := findModule(t.im, sec, t.ptr)
		if ok {
			t.text, t.gofunc = m.text, m.gofunc
		} else if t.text == 0 || t.im.kind == kindDyn {
			// This is right unless C code was linked before it.
			text, ok := t.im.named(".text")
			if !ok {
				return errors.New("start of its text is not known")
			}
			t.text = text.addr
		}
	default:
		return fmt.Errorf("magic %#x: of a Go version that is newer than this program", magic)
	}
	size := uint64(t.r.Size())
	if t.n == 0 || t.n > maxGoFuncs || t.names > size || t.pcs > size || t.funcs > size ||
		t.funcs+(2*t.n+1)*t.field() > size {
		return fmt.Errorf("%d functions in %d bytes", t.n, size)
	}
	var ok1, ok2 bool
	t.first, ok1 = t.pc(0)
	t.end, ok2 = t.pc(t.n)
	if !ok1 || !ok2 || t.end <= t.first {
		return fmt.Errorf("it covers %#x to %#x", t.first, t.end)
	}
	return nil
}

// field returns the size of a functab field.
func (t *pclntab) field() uint64 {
	if t.version >= 118 {
		return 4
	}
	return t.ptr
}

func (t *pclntab) uint(off, size uint64) (uint64, bool) {
	var b [8]byte
	if off > uint64(t.r.Size()) {
		return 0, false
	}
	if _, err := t.r.ReadAt(b[:size], int64(off)); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}

// pc returns where function i starts; i may be n, the end.
func (t *pclntab) pc(i uint64) (uint64, bool) {
	v, ok := t.uint(t.funcs+2*i*t.field(), t.field())
	if t.version >= 118 {
		v += t.text
	}
	return v, ok
}

// goFunc is one function.
type goFunc struct {
	entry  uint64
	offset uint64 // of its _func in the table
}

func (t *pclntab) find(addr uint64) (f goFunc, ok bool) {
	if t == nil || addr < t.first || addr >= t.end {
		return f, false
	}
	lo, hi := uint64(0), t.n // pc(lo) <= addr < pc(hi), where the table is sorted
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		pc, ok := t.pc(mid)
		if !ok {
			return f, false
		}
		if pc <= addr {
			lo = mid
		} else {
			hi = mid
		}
	}
	entry, ok1 := t.pc(lo)
	off, ok2 := t.uint(t.funcs+(2*lo+1)*t.field(), t.field())
	if !ok1 || !ok2 || entry > addr {
		return f, false
	}
	if t.version > 12 {
		off += t.funcs
	}
	return goFunc{entry: entry, offset: off}, off < uint64(t.r.Size())
}

// name returns a function's name; "" if the table is damaged.
func (t *pclntab) name(f goFunc) string {
	skip := t.ptr
	if t.version >= 118 {
		skip = 4
	}
	off, ok := t.uint(f.offset+skip, 4)
	if !ok {
		return ""
	}
	return t.nameAt(off)
}

func (t *pclntab) nameAt(off uint64) string {
	at, size := t.names+off, uint64(t.r.Size())
	if off > 1<<31 || at >= size {
		return ""
	}
	return readText(t.r, int64(at), size-at)
}

// frames appends the functions that addr is in, innermost first: those inlined, then the one they
// were inlined into.
func (t *pclntab) frames(addr uint64, dst []string) []string {
	f, ok := t.find(addr)
	if !ok {
		return dst
	}
	dst = t.inlined(f, addr, dst)
	if s := t.name(f); s != "" {
		return append(dst, s)
	}
	return dst
}
