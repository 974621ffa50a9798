package symbol

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
)

// Binary is what is known of the program that a process runs.
type Binary struct {
	Go        bool   // it was built by Go's linker
	GoVersion string // "go1.26.8"; "" where the program does not say
	Arch      string // "amd64", "arm64"; "" for any other
}

// Binary looks at the program. What could not be read is zero. Of a program that is not Go's it
// reads the functions as well, so that the first stacks of a recording need not wait for that.
func (t *Table) Binary() Binary {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b Binary
	m := t.cur.main
	if m == nil {
		return b
	}
	t.load(m)
	if m.im == nil {
		return b
	}
	switch m.im.machine {
	case machineAMD64:
		b.Arch = "amd64"
	case machineARM64:
		b.Arch = "arm64"
	}
	if info, err := readBuildInfo(m.im); err == nil {
		b.GoVersion = info.GoVersion
	}
	if b.Go = b.GoVersion != "" || m.goTab != nil; !b.Go {
		t.loadFuncs(m)
	}
	return b
}

const maxBuildInfo = 32 << 20 // bytes read for it: it is at the start of the data

// readBuildInfo reads what `go version -m` shows.
func readBuildInfo(im *image) (info *buildinfo.BuildInfo, err error) {
	// The standard library's ELF reader is not made for hostile files.
	defer func() {
		if p := recover(); p != nil {
			info, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return buildinfo.Read(&bounded{r: io.NewSectionReader(im.r, 0, im.size), left: maxBuildInfo})
}

// bounded is a file of which only left bytes may be read.
type bounded struct {
	r    io.ReaderAt
	left int
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("it would take more of the file than expected")
	}
	return b.r.ReadAt(p, off)
}

// Notes are addresses in a Go program's scheduler: what its threads sleep on while the world is
// being stopped.
type Notes struct {
	Stop uint64 // sched.stopnote: stop-the-world waits for the last P
	Safe uint64 // sched.safePointNote: a ragged barrier waits for the last P
	Lock uint64 // sched.lock; 0 since Go 1.24, where threads sleep on their own semaphore instead
	From string // how they are known: "symbol runtime.sched, table of Go 1.26"
}

// Notes finds these addresses. An error says why they are not known: the program is stripped, or
// its Go version is not in the table.
func (t *Table) Notes() (Notes, error) {
	b := t.Binary()
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.cur.main
	if m == nil || m.im == nil || !b.Go {
		return Notes{}, errors.New("find runtime.sched: not a Go program")
	}
	o, err := schedOf(b.GoVersion, b.Arch)
	if err != nil {
		return Notes{}, err
	}
	addr, err := findObject(m.im, "runtime.sched")
	if err != nil {
		return Notes{}, err
	}
	bias, ok := t.bias(m)
	if !ok {
		return Notes{}, errors.New("find runtime.sched: the program's mapping is not known")
	}
	n := Notes{Stop: addr + bias + o.stop, Safe: addr + bias + o.safe,
		From: "symbol runtime.sched, table of Go " + o.version}
	if o.lock != 0 {
		n.Lock = addr + bias + o.lock
	}
	return n, nil
}

// bias is what the kernel added to the linked addresses: 0 except for position-independent
// programs.
func (t *Table) bias(mod *module) (uint64, bool) {
	for _, m := range t.cur.maps {
		if m.mod != mod {
			continue
		}
		if linked, ok := mod.im.address(m.offset); ok {
			return m.start - linked, true
		}
		// A mapping starts at a page; the segment starts in the middle of that page.
		for _, s := range mod.im.segments {
			if s.kind == segLoad && s.flags&segExec != 0 && s.off>>12<<12 == m.offset {
				return m.start + (s.off - m.offset) - s.vaddr, true
			}
		}
	}
	return 0, false
}
