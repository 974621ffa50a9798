package symbol

import "encoding/binary"

const (
	maxModuleSearch = 64 << 20 // bytes of data looked through for moduledata
	maxRelocations  = 1 << 22
)

// goModule is what is needed of the linker's runtime.firstmoduledata.
type goModule struct {
	text   uint64 // address
	gofunc uint64 // file offset of go:func.*; 0: not known
}

// findModule finds moduledata by its first word, which points to the function table: stripped
// binaries have no symbol for it. In a position-independent program the pointers are in the
// relocations, and those in the file may be 0.
func findModule(im *image, table section, ptr uint64) (goModule, bool) {
	const minpc, text = 20, 22 // words of moduledata, 1.18 and later
	if ptr != 8 || !im.wide {
		return goModule{}, false
	}
	check := func(word func(i uint64) (uint64, bool)) (m goModule, ok bool) {
		first, ok1 := word(minpc)
		m.text, ok = word(text)
		if !ok || !ok1 || first < m.text || m.text == 0 {
			return m, false
		}
		// Words 32 and 33 are covctrs, ecovctrs since 1.20.
		gofunc := uint64(38)
		if magic, err := im.bytes(table.off, 4); err == nil && binary.LittleEndian.Uint32(magic) == go120 {
			gofunc = 40
		}
		if at, ok := word(gofunc); ok {
			m.gofunc, _ = im.place(at)
		}
		return m, true
	}
	if im.kind == kindDyn {
		if m, ok := moduleByRelocations(im, table, check); ok {
			return m, true
		}
	}
	le := binary.LittleEndian
	for _, name := range []string{".go.module", ".noptrdata", ".data.rel.ro", ".data"} {
		sec, ok := im.named(name)
		if !ok {
			continue
		}
		const step = 1 << 16
		for off := uint64(0); off < min(sec.size, maxModuleSearch); off += step {
			b, err := im.bytes(sec.off+off, min(step, sec.size-off))
			if err != nil {
				break
			}
			for i := 0; i+8 <= len(b); i += 8 {
				if le.Uint64(b[i:]) != table.addr {
					continue
				}
				begin := sec.off + off + uint64(i)
				m, ok := check(func(w uint64) (uint64, bool) {
					b, err := im.bytes(begin+8*w, 8)
					if err != nil {
						return 0, false
					}
					return le.Uint64(b), true
				})
				if ok {
					return m, true
				}
			}
		}
	}
	return goModule{}, false
}

// moduleByRelocations looks for moduledata in .rela.dyn, where a pointer is (place, kind, addend).
func moduleByRelocations(im *image, table section,
	check func(func(uint64) (uint64, bool)) (goModule, bool)) (goModule, bool) {
	sec, ok := im.named(".rela.dyn")
	if !ok || sec.size/24 > maxRelocations {
		return goModule{}, false
	}
	le := binary.LittleEndian
	each := func(f func(place, addend uint64)) {
		const step = 24 << 10
		for off := uint64(0); off < sec.size; off += step {
			b, err := im.bytes(sec.off+off, min(step, sec.size-off))
			if err != nil {
				return
			}
			for ; len(b) >= 24; b = b[24:] {
				f(le.Uint64(b), le.Uint64(b[16:]))
			}
		}
	}
	var places []uint64
	each(func(place, addend uint64) {
		if addend == table.addr && len(places) < 8 {
			places = append(places, place)
		}
	})
	for _, begin := range places {
		words := map[uint64]uint64{}
		each(func(place, addend uint64) {
			if place >= begin && place < begin+64*8 {
				words[(place-begin)/8] = addend
			}
		})
		if m, ok := check(func(w uint64) (uint64, bool) { v, ok := words[w]; return v, ok }); ok {
			return m, true
		}
	}
	return goModule{}, false
}
