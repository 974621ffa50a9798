package archive

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Marks, lengths and flags of a zip, as PKWARE's APPNOTE.TXT has them (4.3 and 4.4).
const (
	localMark   = "PK\x03\x04"
	entryMark   = "PK\x01\x02"
	endMark     = "PK\x05\x06"
	end64Mark   = "PK\x06\x06"
	locatorMark = "PK\x06\x07"
	behindMark  = "PK\x07\x08"

	localSize   = 30
	entrySize   = 46
	endSize     = 22
	end64Size   = 56
	locatorSize = 20
	mostComment = 1<<16 - 1

	zipEncrypted    = 1 << 0
	zipLengthBehind = 1 << 3

	in64  = 1<<32 - 1 // a length or a place that stands in the extra field
	tag64 = 1         // of that field
)

var (
	errNoDirectory = errors.New("not a zip, or cut short: copy it again")
	errDirectory   = errors.New("its directory is damaged: what comes before is read; copy it again")
)

// directory reads the list of members that stands at a zip's end, one after another. archive/zip
// holds all of them at once: those of 60 000 files take more memory than all else.
type directory struct {
	r    io.ReaderAt
	base int64 // where the zip starts in r: something may stand before it
	n    uint64
	in   *bufio.Reader // the list, from the next member on
	buf  []byte
}

// openDirectory finds the directory.
func openDirectory(r io.ReaderAt, size int64) (*directory, error) {
	end, last, ok := lastRecord(r, size)
	if !ok {
		return nil, errNoDirectory
	}
	n := uint64(binary.LittleEndian.Uint16(last[10:]))
	length := uint64(binary.LittleEndian.Uint32(last[12:]))
	at := uint64(binary.LittleEndian.Uint32(last[16:]))
	if n == 1<<16-1 || length == in64 || at == in64 {
		if where, rec, ok := record64(r, end); ok {
			end = where
			n = binary.LittleEndian.Uint64(rec[32:])
			length = binary.LittleEndian.Uint64(rec[40:])
			at = binary.LittleEndian.Uint64(rec[48:])
		}
	}
	if length > uint64(end) || at > uint64(end)-length {
		return nil, errNoDirectory
	}
	d := &directory{r: r, base: end - int64(length) - int64(at), n: n}
	if d.base > 0 && startsWith(r, int64(at), entryMark) {
		d.base = 0 // its length is wrong, and its place is right
	}
	from := d.base + int64(at)
	if n > 0 && !startsWith(r, from, entryMark) {
		return nil, errNoDirectory
	}
	d.in = bufio.NewReaderSize(io.NewSectionReader(r, from, size-from), 64<<10)
	return d, nil
}

// lastRecord finds the record that ends a zip. Only a comment may follow.
func lastRecord(r io.ReaderAt, size int64) (at int64, record []byte, ok bool) {
	tail := make([]byte, min(size, endSize+mostComment))
	if n, _ := r.ReadAt(tail, size-int64(len(tail))); n < len(tail) {
		return 0, nil, false
	}
	for i := len(tail) - endSize; i >= 0; i-- {
		if string(tail[i:i+4]) == endMark &&
			i+endSize+int(binary.LittleEndian.Uint16(tail[i+20:])) <= len(tail) {
			return size - int64(len(tail)-i), tail[i : i+endSize], true
		}
	}
	return 0, nil, false
}

// record64 finds the larger record of a zip with many members or long ones.
func record64(r io.ReaderAt, end int64) (at int64, record []byte, ok bool) {
	locator := make([]byte, locatorSize)
	if !readAt(r, locator, end-locatorSize, locatorMark) {
		return 0, nil, false
	}
	where := binary.LittleEndian.Uint64(locator[8:])
	record = make([]byte, end64Size)
	if where > uint64(end) || !readAt(r, record, int64(where), end64Mark) {
		return 0, nil, false
	}
	return int64(where), record, true
}

// readAt fills buf, and reports whether it could and buf starts with mark.
func readAt(r io.ReaderAt, buf []byte, at int64, mark string) bool {
	if at < 0 {
		return false
	}
	n, _ := r.ReadAt(buf, at)
	return n == len(buf) && string(buf[:4]) == mark
}

func startsWith(r io.ReaderAt, at int64, mark string) bool {
	return readAt(r, make([]byte, len(mark)), at, mark)
}

// next gives the next member and where its header stands; io.EOF: there is none.
func (d *directory) next() (*zip.FileHeader, int64, error) {
	if mark, _ := d.in.Peek(4); string(mark) != entryMark {
		if uint16(d.n) != 0 { // small zips, and those of some old tools, count 16 bits
			return nil, 0, errDirectory
		}
		return nil, 0, io.EOF
	}
	d.n--
	head := d.room(entrySize)
	if _, err := io.ReadFull(d.in, head); err != nil {
		return nil, 0, errDirectory
	}
	h := &zip.FileHeader{
		CreatorVersion: binary.LittleEndian.Uint16(head[4:]),
		Flags:          binary.LittleEndian.Uint16(head[8:]),
		Method:         binary.LittleEndian.Uint16(head[10:]),
		CRC32:          binary.LittleEndian.Uint32(head[16:]),
		ExternalAttrs:  binary.LittleEndian.Uint32(head[38:]),

		CompressedSize64:   uint64(binary.LittleEndian.Uint32(head[20:])),
		UncompressedSize64: uint64(binary.LittleEndian.Uint32(head[24:])),
	}
	at := uint64(binary.LittleEndian.Uint32(head[42:]))
	name, extra := int(binary.LittleEndian.Uint16(head[28:])), int(binary.LittleEndian.Uint16(head[30:]))
	comment := int(binary.LittleEndian.Uint16(head[32:]))
	rest := d.room(name + extra)
	if _, err := io.ReadFull(d.in, rest); err != nil {
		return nil, 0, errDirectory
	}
	h.Name = string(rest[:name])
	long(rest[name:], &h.UncompressedSize64, &h.CompressedSize64, &at)
	if _, err := d.in.Discard(comment); err != nil || at > 1<<62 {
		return nil, 0, errDirectory
	}
	return h, int64(at), nil
}

// room is n bytes that the next call gives again.
func (d *directory) room(n int) []byte {
	if cap(d.buf) < n {
		d.buf = make([]byte, n)
	}
	return d.buf[:n]
}

// long reads from the extra field what has more than 32 bits: of these, in this order, those that
// say so.
func long(extra []byte, values ...*uint64) {
	for len(extra) >= 4 {
		tag, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if extra = extra[4:]; size > len(extra) {
			return
		}
		if field := extra[:size]; tag == tag64 {
			for _, v := range values {
				if *v == in64 && len(field) >= 8 {
					*v, field = binary.LittleEndian.Uint64(field), field[8:]
				}
			}
			return
		}
		extra = extra[size:]
	}
}

// open gives a member as it is packed.
func (d *directory) open(h *zip.FileHeader, at int64) (io.Reader, error) {
	head := make([]byte, localSize)
	if !readAt(d.r, head, d.base+at, localMark) || h.CompressedSize64 > 1<<62 {
		return nil, zip.ErrFormat
	}
	from := d.base + at + localSize + int64(binary.LittleEndian.Uint16(head[26:])) +
		int64(binary.LittleEndian.Uint16(head[28:]))
	return io.NewSectionReader(d.r, from, int64(h.CompressedSize64)), nil
}

// localHeader reads what stands in front of a member. io.EOF: the directory stands there.
func localHeader(r *bufio.Reader) (*zip.FileHeader, error) {
	switch mark, err := r.Peek(4); {
	case string(mark) == entryMark, string(mark) == endMark, string(mark) == end64Mark:
		return nil, io.EOF
	case len(mark) < 4 && err != io.EOF:
		return nil, err
	case len(mark) < 4:
		return nil, io.ErrUnexpectedEOF
	case string(mark) != localMark:
		return nil, errors.New("damaged: what comes before is read; copy it again")
	}
	head := make([]byte, localSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	h := &zip.FileHeader{
		Flags:  binary.LittleEndian.Uint16(head[6:]),
		Method: binary.LittleEndian.Uint16(head[8:]),
		CRC32:  binary.LittleEndian.Uint32(head[14:]),

		CompressedSize64:   uint64(binary.LittleEndian.Uint32(head[18:])),
		UncompressedSize64: uint64(binary.LittleEndian.Uint32(head[22:])),
	}
	name, extra := int(binary.LittleEndian.Uint16(head[26:])), int(binary.LittleEndian.Uint16(head[28:]))
	rest := make([]byte, name+extra)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	h.Name = string(rest[:name])
	long(rest[name:], &h.UncompressedSize64, &h.CompressedSize64)
	if h.CompressedSize64 > 1<<62 {
		return nil, zip.ErrFormat
	}
	return h, nil
}

// skipLength passes by the checksum and lengths behind a member. A mark may precede them, and
// lengths have 4 or 8 bytes: nothing says which but what follows.
func skipLength(r *bufio.Reader) {
	from := 0
	if mark, _ := r.Peek(4); string(mark) == behindMark {
		from = 4
	}
	for _, size := range []int{from + 12, from + 20} {
		if ahead, _ := r.Peek(size + 2); len(ahead) == size+2 && string(ahead[size:]) == "PK" {
			_, _ = r.Discard(size)
			return
		}
	}
}
