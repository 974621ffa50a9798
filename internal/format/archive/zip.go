package archive

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Bounds of a zip: what is read to find its members bounds what that allocates.
const (
	maxIndex      = 8 << 20
	MaxZipInOrder = 32 << 20 // of a zip that can only be read in order: it has its index at its end
)

// Zip calls visit for each file of a zip.
func Zip(name string, r io.ReaderAt, size int64, b *Budget, visit Visit) (Left, error) {
	w := &walker{b: b, visit: visit}
	w.zip(name, "", r, size, 0)
	return w.left, w.stop
}

// zipStream reads a zip that cannot be sought in.
func (w *walker) zipStream(name, prefix string, r io.Reader, depth int) {
	data, err := io.ReadAll(io.LimitReader(r, MaxZipInOrder+1))
	switch {
	case err != nil:
		w.note(name, packError(err))
	case len(data) > MaxZipInOrder:
		w.note(name, fmt.Errorf("a zip of more than %d MiB that cannot be sought in: unpack it first", MaxZipInOrder>>20))
	default:
		w.zip(name, prefix, bytes.NewReader(data), int64(len(data)), depth)
	}
}

func (w *walker) zip(name, prefix string, r io.ReaderAt, size int64, depth int) {
	index := &boundedAt{r: r, left: maxIndex}
	z, err := zip.NewReader(index, size)
	if err != nil {
		if index.left < 0 {
			err = errMembers
		} else if errors.Is(err, zip.ErrFormat) {
			err = errors.New("not a zip, or cut short: copy it again")
		}
		w.note(name, err)
		return
	}
	index.left = 1 << 62
	for _, f := range z.File {
		if w.stop != nil {
			return
		}
		if w.b.Members--; w.b.Members < 0 {
			w.note(name, errMembers)
			return
		}
		if !f.Mode().IsRegular() && !f.Mode().IsDir() {
			w.other(name + ":" + f.Name)
		}
		if !f.Mode().IsRegular() || f.UncompressedSize64 == 0 {
			continue
		}
		at := name + ":" + f.Name
		if f.Flags&1 != 0 {
			w.note(at, errors.New("it is encrypted: unpack it first"))
			continue
		}
		m, err := f.Open()
		if err != nil {
			w.note(at, err)
			continue
		}
		w.open(at, join(prefix, f.Name), &counted{r: m, left: &w.b.Bytes}, depth+1)
		m.Close()
	}
}

// boundedAt reads at most left bytes.
type boundedAt struct {
	r    io.ReaderAt
	left int64
}

func (b *boundedAt) ReadAt(p []byte, off int64) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, errMembers
	}
	return b.r.ReadAt(p, off)
}

// ZipHas reports whether a zip has a member of this name. A zip whose index is too large to be read
// has none.
func ZipHas(r io.ReaderAt, size int64, name string) bool {
	z, err := zip.NewReader(&boundedAt{r: r, left: maxIndex}, size)
	return err == nil && slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == name })
}
