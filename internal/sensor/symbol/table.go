package symbol

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	maxOpen    = 512     // files kept open
	maxCached  = 1 << 16 // addresses
	maxTabled  = 3 << 19 // functions kept of all files together: 24 MiB
	rereadGap  = time.Second
	rereadMost = 16 * time.Second
)

// Table is the code of one process. Several goroutines may use it. The first look-up in a file
// reads its symbols, which takes a second for the largest: a goroutine that empties a ring buffer
// should not look up.
type Table struct {
	mu   sync.Mutex
	dir  string // /proc/PID
	host string // "" or a test's folder
	now  func() time.Time

	cur, prev *space // prev: before the latest exec
	execAt    int64

	files  map[fileKey]*module
	open   int
	tabled int
	kernel *module // the vdso

	generated generated
}

// space is what is mapped between two execs of the process.
type space struct {
	maps  []mapping
	cache map[uint64][]Frame
	loops map[[2]uint64]bool // whether an address with its caller's is in a loop that waits
	read  time.Time
	gap   time.Duration
	main  *module
}

type fileKey struct{ dev, inode uint64 }

// New reads the memory map of a process and opens the files that it runs from, so that they can be
// read when it has ended. /proc is below root; "" is this machine's. Close closes the files.
func New(pid int, root string) (*Table, error) {
	t := &Table{
		dir:   filepath.Join(root, "/proc", strconv.Itoa(pid)),
		host:  root,
		now:   time.Now,
		files: map[fileKey]*module{},
	}
	t.cur = &space{cache: map[uint64][]Frame{}}
	if err := t.readMaps(t.cur); err != nil {
		return nil, err
	}
	return t, nil
}

// Close closes the files. Frames returned before remain valid.
func (t *Table) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.files {
		m.close()
	}
	t.files, t.open = map[fileKey]*module{}, 0
	t.generated.close()
	return nil
}

// Exec notes that the process runs another program from the time at on, by the clock of Stack's at.
func (t *Table) Exec(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prev, t.execAt = t.cur, at
	t.generated.close()
	t.generated = generated{}
	t.cur = &space{cache: map[uint64][]Frame{}}
	t.readMaps(t.cur) // what cannot be read names nothing
}

// Stack appends the frames of a user stack, innermost first, as far as they can be believed (see
// frame.go). For all addresses but the first it looks up the call before them. A Go address may
// give several frames: those inlined there, and the function they were inlined into.
func (t *Table) Stack(pcs []uint64, at int64, dst []Frame) []Frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.space(at)
	from := len(dst)
	defer func() { t.marks(s, pcs, dst[from:]) }()
	loose := false // the code of the frame before keeps no frame pointers
	for i, pc := range pcs {
		back := min(uint64(i), 1, pc)
		frames := t.look(s, pc-back)
		m := s.mapped(pc - back)
		if i > 0 && m == nil {
			break
		}
		inferred, keeps := loose, true
		switch {
		case m == nil || m.path == "[vdso]": // the kernel's vdso keeps them
		case m.mod == nil || m.mod.im == nil: // generated code, or a file that cannot be read
			keeps = false
		case m.mod.goTab == nil:
			keeps = t.framePointers(m.mod)
			if i > 0 && !m.mod.returns(frames[0].Offset+back) {
				return dst
			}
		}
		if i > 0 && loose && !keeps {
			break
		}
		loose = !keeps
		dst = appendFrames(dst, frames, pc, back, inferred)
	}
	return dst
}

// appendFrames appends the frames that look returned for the address back bytes before pc.
func appendFrames(dst, frames []Frame, pc, back uint64, inferred bool) []Frame {
	for _, fr := range frames {
		fr.Addr, fr.Inferred = pc, inferred
		if fr.Module != "" {
			fr.Offset += back
		}
		dst = append(dst, fr)
	}
	return dst
}

// marks says of the innermost frame whether it is in a loop that waits.
func (t *Table) marks(s *space, pcs []uint64, frames []Frame) {
	if len(pcs) == 0 || len(frames) == 0 {
		return
	}
	key := [2]uint64{pcs[0]}
	if len(pcs) > 1 {
		key[1] = pcs[1]
	}
	m := s.mapped(pcs[0])
	if frames[0].Module == anonymous {
		frames[0].Waits = s == t.cur && t.generated.waits(t, pcs[0])
		return
	}
	waits, known := s.loops[key]
	if !known && m != nil && m.mod != nil && m.mod.im != nil {
		linked, ok := m.mod.im.address(pcs[0] - m.start + m.offset)
		waits = ok && m.mod.im.waits(linked, s.linked(m, pcs[1:]))
		if s.loops == nil || len(s.loops) >= maxCached {
			s.loops = map[[2]uint64]bool{}
		}
		s.loops[key] = waits
	}
	frames[0].Waits = waits
}

// linked are the linked addresses of the first pcs that are of the module of m.
func (s *space) linked(m *mapping, pcs []uint64) (all []uint64) {
	for _, pc := range pcs[:min(len(pcs), loopCallers)] {
		of := s.mapped(pc)
		if of == nil || of.mod != m.mod {
			break
		}
		addr, ok := m.mod.im.address(pc - of.start + of.offset)
		if !ok {
			break
		}
		all = append(all, addr)
	}
	return all
}

func (t *Table) space(at int64) *space {
	if t.prev != nil && at < t.execAt {
		return t.prev
	}
	return t.cur
}

// look returns the frames of one address, which belong to the cache.
func (t *Table) look(s *space, addr uint64) []Frame {
	if fr, ok := s.cache[addr]; ok {
		return fr
	}
	m := s.mapped(addr)
	if m == nil && s == t.cur && t.now().Sub(s.read) >= s.gap {
		n := len(s.maps)
		t.readMaps(s)
		m = s.mapped(addr)
		// A thread that runs where nothing is mapped, for example in code that a JIT has freed,
		// must not make us read forever.
		if m == nil && len(s.maps) == n {
			s.gap = min(2*s.gap, rereadMost)
		} else {
			s.gap = rereadGap
		}
	}
	if m == nil {
		return []Frame{{Addr: addr}} // not cached: the next reading may know
	}
	frames := t.resolve(m, addr)
	if len(s.cache) >= maxCached {
		clear(s.cache)
	}
	s.cache[addr] = frames
	return frames
}

func (s *space) mapped(addr uint64) *mapping {
	i, found := slices.BinarySearchFunc(s.maps, addr, func(m mapping, addr uint64) int {
		switch {
		case m.end <= addr:
			return -1
		case m.start > addr:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return &s.maps[i]
}

// readMaps reads the map and opens the files that are new in it. What was mapped before, but no
// longer is, remains known unless something else is there now.
func (t *Table) readMaps(s *space) error {
	s.read = t.now()
	if s.gap == 0 {
		s.gap = rereadGap
	}
	name := filepath.Join(t.dir, "maps")
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	maps, err := parseMaps(f)
	if err != nil && len(maps) == 0 {
		return fmt.Errorf("read %s: %w", name, err)
	}
	for i := range maps {
		m := &maps[i]
		if m.inode == 0 {
			continue
		}
		key := fileKey{m.dev, m.inode}
		mod, ok := t.files[key]
		if !ok {
			mod = &module{path: m.path}
			t.files[key] = mod
			t.openFile(mod, *m)
		}
		m.mod = mod
		if mod.exe && s.main == nil {
			s.main = mod
		}
	}
	s.maps = merge(maps, s.maps)
	return nil
}

// merge adds to the present mappings the older ones that none of them touches.
func merge(now, old []mapping) []mapping {
	all := slices.Clone(now)
	for _, o := range old {
		i, _ := slices.BinarySearchFunc(now, o.start, func(m mapping, start uint64) int {
			if m.end <= start {
				return -1
			}
			return 1
		})
		if (i == len(now) || now[i].start >= o.end) && len(all) < 2*maxMappings {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b mapping) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	return all
}

// openFile opens a mapped file. It tries the ways that also work for a deleted file, or one in
// another mount namespace, the safest first. If all fail the module stays without a file, and its
// addresses are given as module+offset.
func (t *Table) openFile(mod *module, m mapping) {
	if t.open >= maxOpen {
		return
	}
	try := func(f *os.File, err error) bool {
		if err != nil {
			return false
		}
		mod.file = f
		t.open++
		return true
	}
	exe := filepath.Join(t.dir, "exe")
	if dev, inode, err := identity(exe); err == nil && inode == m.inode && dev == m.dev {
		mod.exe = true
		if try(openRegular(exe)) {
			return
		}
	}
	if try(openRegular(filepath.Join(t.dir, "map_files", fmt.Sprintf("%x-%x", m.start, m.end)))) {
		mod.exe = mod.exe || t.isExe(mod, exe)
		return
	}
	if m.deleted {
		return // only map_files, which needs CAP_SYS_ADMIN, leads to it
	}
	f, err := openBelow(filepath.Join(t.dir, "root"), m.path)
	if err == nil {
		if err = isMapped(f, m); err != nil {
			f.Close()
		}
	}
	if try(f, err) {
		mod.exe = mod.exe || t.isExe(mod, exe)
	}
}

// isExe reports whether the open file is the process' program, for where the map's device number
// does not show it (overlayfs, btrfs).
func (t *Table) isExe(mod *module, exe string) bool {
	a, err := os.Stat(exe)
	b, err2 := mod.file.Stat()
	return err == nil && err2 == nil && os.SameFile(a, b)
}

// openRegular opens a file of the target if it is a regular one: opening a device or a pipe may
// have effects.
func openRegular(name string) (*os.File, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", name)
	}
	return os.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

// openBelow opens a file by its name in the target's mount namespace. It refuses symbolic links
// that lead out of it: they would be followed in ours.
func openBelow(root, name string) (*os.File, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	name = filepath.Clean("/" + name)[1:]
	st, err := r.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("open %s: not a regular file", name)
	}
	return r.OpenFile(name, os.O_RDONLY|nonblock, 0)
}

var _ io.ReaderAt = (*os.File)(nil)
