package symbol

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	maxScanned = 1 << 23 // symbols looked at in one table
	maxFuncs   = 1 << 20 // kept of one table: 16 MiB
	walkBack   = 64      // symbols before an address that may cover it: aliases and functions within functions
	maxAsm     = 4 << 10 // how far a function without a size may reach
)

// function is a symbol that covers code. Names stay in the file until asked for.
type function struct {
	start uint32 // from funcs.base
	size  uint32 // 0: it marks the end of those before it, or is assembly
	name  uint32 // in the string table
	bind  uint8  // STB_LOCAL, GLOBAL, WEAK
	mark  bool   // not a function: only where another ends
}

// funcs is one symbol table, sorted by start.
type funcs struct {
	im    *image
	names section
	base  uint64
	all   []function
	whole bool // it has local functions too, so the next symbol is the next in memory
}

// readFuncs reads .symtab or .dynsym. Its file may be another than the mapped one: a debug file has
// the same addresses.
func readFuncs(im *image, table string) (*funcs, error) {
	sec, ok := im.named(table)
	if !ok {
		return nil, nil
	}
	strs := ".strtab"
	if table == ".dynsym" {
		strs = ".dynstr"
	}
	names, ok := im.named(strs)
	entry := uint64(16)
	if im.wide {
		entry = 24
	}
	if !ok || sec.entry != entry {
		return nil, fmt.Errorf("%s: entries of %d bytes", table, sec.entry)
	}
	from, to := im.executable()
	if to <= from || to-from > 1<<32 {
		return nil, fmt.Errorf("%s: code from %#x to %#x", table, from, to)
	}
	f := &funcs{im: im, names: names, base: from}
	if sec.size/entry > maxScanned {
		return nil, fmt.Errorf("%s: %d symbols, over the limit of %d", table, sec.size/entry, maxScanned)
	}
	r := io.NewSectionReader(im.r, int64(sec.off), int64(sec.size))
	block := make([]byte, 4096*entry)
	for {
		n, err := io.ReadFull(r, block)
		for b := block[:uint64(n)/entry*entry]; len(b) > 0; b = b[entry:] {
			f.add(b, from, to)
		}
		if len(f.all) > maxFuncs {
			return nil, fmt.Errorf("%s: over %d functions", table, maxFuncs)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(f.all, func(a, b function) int {
		// The later of two is tried first: of those with one start, the shortest.
		return cmp.Or(cmp.Compare(a.start, b.start), -cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name))
	})
	f.all = slices.Clip(f.all)
	return f, nil
}

func (f *funcs) add(b []byte, from, to uint64) {
	const function_, notype, section_, local = 2, 0, 3, 0
	le := binary.LittleEndian
	var value, size uint64
	var info byte
	var index uint16
	if f.im.wide {
		info, index, value, size = b[4], le.Uint16(b[6:]), le.Uint64(b[8:]), le.Uint64(b[16:])
	} else {
		value, size, info, index = uint64(le.Uint32(b[4:])), uint64(le.Uint32(b[8:])), b[12], le.Uint16(b[14:])
	}
	kind, bind := info&15, info>>4
	if index == 0 || index >= 0xff00 && index != 0xffff || value < from || value >= to ||
		kind != function_ && kind != notype {
		return
	}
	g := function{start: uint32(value - from), size: uint32(min(size, to-value)),
		name: le.Uint32(b), bind: bind, mark: kind == notype}
	if kind == function_ && bind == local {
		f.whole = true
	}
	f.all = append(f.all, g)
}

// find returns the name of the function that covers addr, as it is in the table; "" if there is
// none.
func (f *funcs) find(addr uint64) string {
	if f == nil || addr < f.base || addr-f.base > 1<<32-1 {
		return ""
	}
	at := uint32(addr - f.base)
	i, _ := slices.BinarySearchFunc(f.all, at, func(g function, at uint32) int {
		if g.start <= at {
			return -1
		}
		return 1
	})
	next := i
	for low := max(0, i-walkBack); i > low; i-- {
		if g := f.all[i-1]; !g.mark && g.size > 0 && at-g.start < g.size {
			return f.best(i - 1)
		}
	}
	return f.assembly(at, next)
}

// best chooses among the names of one function: those without a leading underscore first, then
// global, weak, local.
func (f *funcs) best(i int) string {
	g := f.all[i]
	var best string
	var least int
	for low := max(0, i-walkBack); i >= low && f.all[i].start == g.start; i-- {
		h := f.all[i]
		if h.mark || h.size != g.size {
			continue
		}
		// In "clock_nanosleep@@GLIBC_2.17" the version matters to the linker only.
		s, _, _ := strings.Cut(f.im.text(f.names, h.name), "@")
		rank := 4*min(len(s)-len(strings.TrimLeft(s, "_")), 3) + [4]int{2, 0, 1, 3}[h.bind&3]
		if strings.HasPrefix(s, "_Z") || strings.HasPrefix(s, "_R") {
			rank -= 4 // mangled, not meant to be hidden
		}
		if strings.HasPrefix(s, "__GI_") {
			rank += 8 // glibc's names for its own use
		}
		if s != "" && (best == "" || rank < least || rank == least && s < best) {
			best, least = s, rank
		}
	}
	return best
}

// assembly names a function without a size, which lasts until the next symbol. If local symbols
// were stripped, the next in the table need not be the next in memory.
func (f *funcs) assembly(at uint32, next int) string {
	if !f.whole || next == 0 || next == len(f.all) {
		return ""
	}
	start := f.all[next-1].start
	if at-start >= maxAsm {
		return ""
	}
	for i := next - 1; i >= max(0, next-walkBack) && f.all[i].start == start; i-- {
		if g := f.all[i]; !g.mark && g.size == 0 {
			return f.best(i)
		}
	}
	return ""
}
