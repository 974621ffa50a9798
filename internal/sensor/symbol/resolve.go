package symbol

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// module is one file that code is mapped from. Its symbols are read at the first look-up. A file
// that cannot be read names nothing: its addresses are given as module+offset.
type module struct {
	path  string
	exe   bool // it is the process's program
	file  *os.File
	ready bool // headers were read
	named bool // symbol tables were

	im    *image
	goTab *pclntab
	tabs  []*funcs

	rows   map[uint64]cfiRow // by linked address
	calls  map[uint64]bool   // whether a call stands before it
	frames int8              // frame pointers: 0: not known yet; 1: it keeps them; -1: it does not
	debug  *os.File
}

func (m *module) close() {
	for _, f := range []*os.File{m.file, m.debug} {
		if f != nil {
			f.Close()
		}
	}
	*m = module{path: m.path, exe: m.exe, ready: true, named: true}
}

// anonymous is the module of code that a runtime made.
const anonymous = "[anon]"

// resolve names one address of a mapping. It returns at least one frame, the outermost last.
func (t *Table) resolve(m *mapping, addr uint64) []Frame {
	off := addr - m.start + m.offset
	fr := Frame{Addr: addr, Module: m.path, Offset: off}
	mod := m.mod
	switch {
	case m.path == "[vdso]":
		mod = t.vdso()
		fr.Offset = addr - m.start
		off = fr.Offset
	case mod == nil:
		// Code that a runtime generated, whatever it calls its memory.
		if fr.Module == "" || strings.HasPrefix(fr.Module, "[anon") || fr.Module == "[heap]" || fr.Module == "[stack]" {
			fr.Module = anonymous
		}
		fr.Offset = addr - m.start
		return []Frame{fr}
	}
	t.load(mod)
	if mod.im == nil {
		return []Frame{fr}
	}
	linked, ok := mod.im.address(off)
	if !ok {
		return []Frame{fr}
	}
	fr.Offset = linked
	if names := mod.goTab.frames(linked, nil); len(names) > 0 {
		frames := make([]Frame, len(names))
		for i, s := range names {
			frames[i] = fr
			frames[i].Func = s
		}
		return frames
	}
	t.loadFuncs(mod)
	for _, f := range mod.tabs {
		if s := f.find(linked); s != "" {
			fr.Func = readable(s)
			break
		}
	}
	return []Frame{fr}
}

// load reads a module's headers, and Go's function table if it has one.
func (t *Table) load(m *module) {
	if m.ready {
		return
	}
	m.ready = true
	if m.file == nil {
		return
	}
	st, err := m.file.Stat()
	if err != nil {
		return
	}
	if m.im, err = readELF(m.file, st.Size()); err != nil {
		return
	}
	m.goTab, _ = readPclntab(m.im)
}

// loadFuncs reads the full symbol table, or that of an installed debug file, or the exported
// symbols. In a Go program they are asked only about what Go's own table lacks: C code.
func (t *Table) loadFuncs(m *module) {
	if m.named {
		return
	}
	m.named = true
	add := func(im *image, table string) bool {
		f, err := readFuncs(im, table)
		if err != nil || f == nil || len(f.all) == 0 {
			return false
		}
		if t.tabled+len(f.all) > maxTabled {
			return false // other files have too many already
		}
		t.tabled += len(f.all)
		m.tabs = append(m.tabs, f)
		return true
	}
	if add(m.im, ".symtab") {
		return
	}
	if im := t.debugFile(m); im != nil && add(im, ".symtab") {
		return
	}
	add(m.im, ".dynsym")
}

// debugFile looks for the separate debug file of a build id, in the target's file system and in
// ours.
func (t *Table) debugFile(m *module) *image {
	id := m.im.buildID
	if len(id) < 6 {
		return nil
	}
	name := "usr/lib/debug/.build-id/" + id[:2] + "/" + id[2:] + ".debug"
	for _, root := range []string{filepath.Join(t.dir, "root"), t.host + "/"} {
		f, err := openBelow(root, name)
		if err != nil {
			continue
		}
		if st, err := f.Stat(); err == nil {
			if im, err := readELF(f, st.Size()); err == nil && im.buildID == id {
				m.debug = f
				return im
			}
		}
		f.Close()
	}
	return nil
}

// vdso reads our own: the kernel maps the same one into all processes of a word size.
func (t *Table) vdso() *module {
	if t.kernel == nil {
		t.kernel = &module{path: "[vdso]", ready: true}
		if r, err := ownVDSO(); err == nil {
			t.kernel.im, _ = readELF(r, r.Size())
		}
	}
	return t.kernel
}

// readable returns a C++ or Rust name as its language has it, without parameters; any other name as
// it is.
func readable(name string) (out string) {
	if !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") && !strings.HasPrefix(name, "__Z") {
		return name
	}
	// Names come from files that anybody may have written.
	defer func() {
		if recover() != nil {
			out = name
		}
	}()
	if len(name) > 2<<10 {
		return name
	}
	s, err := demangle.ToString(name, demangle.NoParams, demangle.MaxLength(9))
	if err != nil || s == "" {
		return name
	}
	return s
}
