package symbol

import (
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Binary is what is known of the program that a process runs.
type Binary struct {
	Path      string // as the target's mount namespace has it
	BuildID   string // hex, of the linker's note
	Runtime   string // "go", "jvm", "python"; "" native
	GoVersion string // "go1.26.8"
	GoMain    string // path of the main package
	GoModule  string // "example.com/x v1.2.3"
	HasPprof  bool   // net/http/pprof is linked in
	Arch      string // GOARCH's word: "amd64"; "" another
}

// Binary tells about the program. What could not be read is zero.
func (t *Table) Binary() Binary {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b Binary
	for _, m := range t.cur.maps {
		base := filepath.Base(m.path)
		switch {
		case strings.HasPrefix(base, "libjvm.so"):
			b.Runtime = "jvm"
		case strings.HasPrefix(base, "libpython"):
			b.Runtime = "python"
		}
	}
	m := t.cur.main
	if m == nil {
		return b
	}
	t.load(m)
	b.Path = m.path
	if m.im == nil {
		return b
	}
	b.BuildID = m.im.buildID
	switch m.im.machine {
	case 62:
		b.Arch = "amd64"
	case 183:
		b.Arch = "arm64"
	case 3:
		b.Arch = "386"
	case 40:
		b.Arch = "arm"
	}
	info, err := readBuildInfo(m.im)
	switch {
	case err == nil:
		b.GoVersion, b.GoMain = info.GoVersion, info.Path
		if info.Main.Path != "" {
			b.GoModule = strings.TrimSpace(info.Main.Path + " " + info.Main.Version)
		}
	case m.goTab != nil:
		t.problem(m.path, fmt.Errorf("read build info: %w", err))
	}
	switch {
	case b.GoVersion != "" || m.goTab != nil:
		b.Runtime = "go"
		b.HasPprof = m.goTab.has("net/http/pprof.")
	case b.Runtime == "":
		// Debian's python has its interpreter in the program.
		t.loadFuncs(m)
		for _, f := range m.tabs {
			if f.has("Py_BytesMain") || f.has("_PyEval_EvalFrameDefault") {
				b.Runtime = "python"
				break
			}
		}
	}
	return b
}

const maxBuildInfo = 32 << 20 // bytes read for it: it lies at the begin of the data, and debug/elf reads headers

// readBuildInfo reads what `go version -m` shows.
func readBuildInfo(im *image) (info *buildinfo.BuildInfo, err error) {
	// The standard library's ELF reader is not made for files that mean harm.
	defer func() {
		if p := recover(); p != nil {
			info, err = nil, fmt.Errorf("%v", p)
		}
	}()
	return buildinfo.Read(&bounded{r: io.NewSectionReader(im.r, 0, im.size), left: maxBuildInfo})
}

// bounded is a file of which only so much may be read.
type bounded struct {
	r    io.ReaderAt
	left int
}

func (b *bounded) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("more of the file would be read than there is need to")
	}
	return b.r.ReadAt(p, off)
}

// Notes are addresses in a Go program's scheduler: what its threads sleep on when the world is to be stopped.
type Notes struct {
	Stop uint64 // sched.stopnote: stop-the-world waits for the last P
	Safe uint64 // sched.safePointNote: a ragged barrier does
	Lock uint64 // sched.lock; 0 since Go 1.24, where threads sleep on their own semaphore instead
	From string // how they are known: "symbol runtime.sched, table of Go 1.26"
}

// Notes tells where they are; an error says why that is not known: the program is stripped, or its Go is not in the table.
func (t *Table) Notes() (Notes, error) {
	b := t.Binary()
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.cur.main
	if m == nil || m.im == nil || b.Runtime != "go" {
		return Notes{}, errors.New("find runtime.sched: no Go program")
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
	n := Notes{Stop: addr + bias + o.stop, Safe: addr + bias + o.safe, From: "symbol runtime.sched, table of Go " + o.version}
	if o.lock != 0 {
		n.Lock = addr + bias + o.lock
	}
	return n, nil
}

// bias is what the kernel added to the linked addresses: 0 but for position-independent programs.
func (t *Table) bias(mod *module) (uint64, bool) {
	for _, m := range t.cur.maps {
		if m.mod != mod {
			continue
		}
		if linked, ok := mod.im.address(m.offset); ok {
			return m.start - linked, true
		}
		// A mapping begins with its page, a segment in the middle of it.
		for _, s := range mod.im.segments {
			if s.kind == segLoad && s.flags&segExec != 0 && s.off>>12<<12 == m.offset {
				return m.start + (s.off - m.offset) - s.vaddr, true
			}
		}
	}
	return 0, false
}
