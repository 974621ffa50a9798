package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Budget is what may still be spent. Several archives can share one.
type Budget struct {
	Members int   // files and folders, read or not
	Bytes   int64 // unpacked
}

// MaxDictionary is the most memory that one packed stream may ask for.
const MaxDictionary = 64 << 20

// DefaultBudget is enough for the archives that tools of support make.
func DefaultBudget() *Budget { return &Budget{Members: 50_000, Bytes: 4 << 30} }

// errSpent are the ends of budgets.
var (
	errMembers = errors.New("more members than are read: give the file that matters")
	errBytes   = errors.New("more than is unpacked at once: give the file that matters")
	errNested  = errors.New("an archive in an archive in an archive: unpack it first")
)

// Visit gets one file. Its name is the path in the archive. It need not read the file to its
// end. An error ends the walk and is returned.
type Visit func(name string, r io.Reader) error

// headSize is how much of a file tells what it is: a tar's mark stands at its byte 257.
const headSize = 512

// Known reports whether data is the start of what Walk opens. A file that is only packed counts.
func Known(data []byte) bool { return kindOf(data) != plain }

type kind int

const (
	plain kind = iota
	tarred
	zipped
	gzipped
	zstded
	xzed
	bzipped
)

func kindOf(data []byte) kind {
	switch {
	case bytes.HasPrefix(data, []byte("\x1f\x8b")):
		return gzipped
	case bytes.HasPrefix(data, []byte("\x28\xb5\x2f\xfd")):
		return zstded
	case bytes.HasPrefix(data, []byte("\xfd7zXZ\x00")):
		return xzed
	case len(data) > 10 && bytes.HasPrefix(data, []byte("BZh")) && data[3] >= '1' &&
		data[3] <= '9' && bytes.Equal(data[4:10], []byte("1AY&SY")):
		return bzipped
	case bytes.HasPrefix(data, []byte("PK\x03\x04")), bytes.HasPrefix(data, []byte("PK\x05\x06")):
		return zipped
	case len(data) >= 262 && bytes.Equal(data[257:262], []byte("ustar")):
		return tarred
	}
	return plain
}

// Left is what a walk did not give to visit.
type Left struct {
	Notes  []string // what was too much or damaged, a line each
	Others int      // links and devices: they have nothing to read, and are not followed
	Other  string   // the name of the first of them
}

// walker walks one archive.
type walker struct {
	b     *Budget
	visit Visit
	left  Left
	stop  error           // of visit: ends everything
	bufs  []*bufio.Reader // that are free: most members are much smaller than one
}

// bufSize is enough for a look ahead, and for reads of some length.
const bufSize = 64 << 10

// buffered gives a buffer that the caller gives back when it is done.
func (w *walker) buffered(r io.Reader) *bufio.Reader {
	n := len(w.bufs)
	if n == 0 {
		return bufio.NewReaderSize(r, bufSize)
	}
	b := w.bufs[n-1]
	w.bufs = w.bufs[:n-1]
	b.Reset(r)
	return b
}

func (w *walker) unbuffered(b *bufio.Reader) {
	b.Reset(nil)
	w.bufs = append(w.bufs, b)
}

// Walk calls visit for each file of the archive or packed file that r reads.
func Walk(name string, r io.Reader, b *Budget, visit Visit) (Left, error) {
	w := &walker{b: b, visit: visit}
	w.open(name, "", r, 0)
	return w.left, w.stop
}

// other counts what has nothing to read.
func (w *walker) other(name string) {
	if w.left.Others++; w.left.Others == 1 {
		w.left.Other = name
	}
}

func (w *walker) note(name string, err error) {
	if err != nil && w.stop == nil {
		w.left.Notes = append(w.left.Notes, fmt.Sprintf("read %s: %v", name, err))
	}
}

// open looks at what r reads. name is for notes, member for visit; depth counts the archives
// around.
func (w *walker) open(name, member string, r io.Reader, depth int) {
	buf := w.buffered(r)
	defer func() { w.unbuffered(buf) }()
	head, _ := buf.Peek(headSize)
	k := kindOf(head)
	for packs := 0; k >= gzipped; packs++ {
		if packs == 2 {
			w.note(name, errors.New("packed more than twice: unpack it first"))
			return
		}
		unpacked, done, err := unpack(k, buf)
		if err != nil {
			w.note(name, err)
			return
		}
		packed := buf
		defer w.unbuffered(packed)
		defer done()
		buf = w.buffered(&counted{r: unpacked, left: &w.b.Bytes})
		head, err = buf.Peek(headSize)
		if len(head) == 0 && err != io.EOF {
			w.note(name, packError(err))
			return
		}
		k = kindOf(head)
	}
	switch {
	case k == plain:
		w.file(name, member, buf)
	case depth == 2:
		w.note(name, errNested)
	case k == zipped:
		w.zipInOrder(name, member, buf, depth)
	default:
		w.tar(name, member, buf, depth)
	}
}

// file hands a file to visit, and notes what kept it from being read to its end.
func (w *walker) file(name, member string, r io.Reader) {
	e := &errorKeeper{r: r}
	if err := w.visit(member, e); err != nil {
		w.stop = err
		return
	}
	if e.err != nil && e.err != io.EOF {
		w.note(name, packError(e.err))
	}
}

// tar walks a tar.
func (w *walker) tar(name, prefix string, r io.Reader, depth int) {
	t := tar.NewReader(r)
	for w.stop == nil {
		h, err := t.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			w.note(name, packError(err))
			return
		}
		if w.b.Members--; w.b.Members < 0 {
			w.note(name, errMembers)
			return
		}
		if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			w.other(name + ":" + h.Name)
		}
		if h.Typeflag != tar.TypeReg || h.Size == 0 && h.Name == "" {
			continue
		}
		w.open(name+":"+h.Name, join(prefix, h.Name), &counted{r: t, left: &w.b.Bytes}, depth+1)
	}
}

// join names a member of an archive that is itself a member.
func join(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + ":" + name
}

// counted stops where the budget of bytes is spent.
type counted struct {
	r    io.Reader
	left *int64
}

func (c *counted) Read(p []byte) (int, error) {
	if *c.left <= 0 {
		return 0, errBytes
	}
	n, err := c.r.Read(p[:min(int64(len(p)), *c.left)])
	*c.left -= int64(n)
	return n, err
}

// errorKeeper remembers why reading ended, for who does not look at errors of readers.
type errorKeeper struct {
	r   io.Reader
	err error
}

func (e *errorKeeper) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil {
		e.err = err
	}
	return n, err
}
