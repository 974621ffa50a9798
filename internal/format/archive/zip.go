package archive

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"hash/crc32"
	"io"
)

// Zip calls visit for each file of a zip. One that was cut short has no directory at its end, and
// is read in order.
func Zip(name string, r io.ReaderAt, size int64, b *Budget, visit Visit) (Left, error) {
	w := &walker{b: b, visit: visit}
	w.zip(name, "", r, size, 0)
	return w.left, w.stop
}

// ZipHas reports whether a zip has a member of this name among those that are read.
func ZipHas(r io.ReaderAt, size int64, name string) bool {
	d, err := openDirectory(r, size)
	if err != nil {
		return false
	}
	for range DefaultBudget().Members {
		if h, _, err := d.next(); err != nil || h.Name == name {
			return err == nil
		}
	}
	return false
}

func (w *walker) zip(name, prefix string, r io.ReaderAt, size int64, depth int) {
	d, err := openDirectory(r, size)
	if err != nil {
		w.zipInOrder(name, prefix, io.NewSectionReader(r, 0, size), depth)
		return
	}
	var in inflater
	for w.stop == nil {
		h, at, err := d.next()
		if err == io.EOF {
			return
		}
		if err != nil || !w.zipMember(name, h) {
			w.note(name, err)
			return
		}
		if !h.Mode().IsRegular() || h.UncompressedSize64 == 0 || w.encrypted(name, h) {
			continue
		}
		packed, err := d.open(h, at)
		if err != nil {
			w.note(name+":"+h.Name, err)
			continue
		}
		w.unzip(name, prefix, in.open(packed, h), depth, h)
	}
}

// zipMember counts a member, and reports whether the budget has one more.
func (w *walker) zipMember(name string, h *zip.FileHeader) bool {
	if w.b.Members--; w.b.Members < 0 {
		w.note(name, errMembers)
		return false
	}
	if !h.Mode().IsRegular() && !h.Mode().IsDir() {
		w.other(name + ":" + h.Name)
	}
	return true
}

// encrypted reports whether a member is, and notes it.
func (w *walker) encrypted(name string, h *zip.FileHeader) bool {
	if h.Flags&zipEncrypted == 0 {
		return false
	}
	w.note(name+":"+h.Name, errors.New("it is encrypted: unpack it first"))
	return true
}

// unzip looks at a member's content. Nil: nothing here unpacks it.
func (w *walker) unzip(name, prefix string, content io.Reader, depth int, h *zip.FileHeader) {
	if content == nil {
		w.note(name+":"+h.Name, zip.ErrAlgorithm)
		return
	}
	w.open(name+":"+h.Name, join(prefix, h.Name), &counted{r: content, left: &w.b.Bytes}, depth+1)
}

// zipInOrder reads a zip that cannot be sought in, or that has lost its end. What is in front of a
// member says less than the directory: of a link it does not say that it is one.
func (w *walker) zipInOrder(name, prefix string, r io.Reader, depth int) {
	buf := w.buffered(r)
	defer w.unbuffered(buf)
	var in inflater
	for noted := len(w.left.Notes); w.stop == nil; {
		h, err := localHeader(buf)
		if err == io.EOF || err == io.ErrUnexpectedEOF && len(w.left.Notes) > noted {
			return // at the directory, or behind a member of which it was said that it is cut off
		}
		if err != nil || !w.zipMember(name, h) {
			w.note(name, packError(err))
			return
		}
		noted = len(w.left.Notes)
		behind := h.Flags&zipLengthBehind != 0 && h.CompressedSize64 == 0
		packed := io.Reader(buf) // where its length stands behind it, deflate alone knows its end
		if !behind {
			packed = io.LimitReader(buf, int64(h.CompressedSize64))
		} else if h.Method != zip.Deflate || h.Flags&zipEncrypted != 0 {
			w.note(name+":"+h.Name, errors.New("its length stands behind it, so neither its end is known nor what follows: give the zip as a whole file"))
			return
		}
		content := in.open(packed, h)
		if h.Mode().IsRegular() && (behind || h.UncompressedSize64 > 0) && !w.encrypted(name, h) {
			w.unzip(name, prefix, content, depth, h)
		}
		if behind {
			packed = &counted{r: content, left: &w.b.Bytes}
		}
		if _, err := io.Copy(io.Discard, packed); err != nil { // what nobody wanted
			if len(w.left.Notes) == noted {
				w.note(name, packError(err))
			}
			return
		}
		if behind {
			skipLength(buf)
		}
	}
}

// inflater unpacks one member after another with the memory of one.
type inflater struct{ r io.ReadCloser }

// open gives the content of a member; nil: nothing here unpacks it.
func (in *inflater) open(packed io.Reader, h *zip.FileHeader) io.Reader {
	switch {
	case h.Method == zip.Deflate && in.r == nil:
		in.r = flate.NewReader(packed)
		packed = in.r
	case h.Method == zip.Deflate:
		_ = in.r.(flate.Resetter).Reset(packed, nil) // it never fails
		packed = in.r
	case h.Method != zip.Store:
		return nil
	}
	return &summed{r: packed, h: h}
}

// summed holds a member's content to its length and checksum, where they are known.
type summed struct {
	r   io.Reader
	h   *zip.FileHeader
	n   uint64
	sum uint32
}

func (s *summed) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += uint64(n)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, p[:n])
	if err == io.EOF && s.h.UncompressedSize64 > 0 {
		switch {
		case s.n != s.h.UncompressedSize64:
			return n, io.ErrUnexpectedEOF
		case s.h.CRC32 != 0 && s.sum != s.h.CRC32:
			return n, zip.ErrChecksum
		}
	}
	return n, err
}
