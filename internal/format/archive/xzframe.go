package archive

import (
	"encoding/binary"
	"errors"
	"io"
)

// xzFrame passes an xz stream on and follows its frame, so that a block which wants a large
// dictionary is refused before the decoder allocates it: the decoder itself has no such limit.
// The layout is that of the xz file format 1.1.0 (tukaani.org/xz/xz-file-format.txt), sections 2
// and 3, and of LZMA2's chunks.
//
// What it does not understand it passes on: the decoder says what is wrong.
type xzFrame struct {
	r     io.Reader
	state xzState
	skip  int64  // bytes to pass over
	need  int    // bytes that the state wants to see
	seen  []byte // those that came
	check int    // size of a block's check
	block int64  // bytes of the block so far, for its padding
	err   error
}

type xzState int

const (
	xzStreamHeader xzState = iota
	xzBlockHeaderSize
	xzBlockHeader
	xzChunk
	xzChunkHeader
	xzRest // the index and what follows, or what is not understood
)

var errXZFrame = errors.New("xz: damaged block header")

func (x *xzFrame) Read(p []byte) (int, error) {
	if x.err != nil {
		return 0, x.err
	}
	n, err := x.r.Read(p)
	if e := x.follow(p[:n]); e != nil {
		x.err = e
		return 0, e
	}
	return n, err
}

// follow moves along the frame.
func (x *xzFrame) follow(p []byte) error {
	for len(p) > 0 {
		if x.state == xzRest {
			return x.rest(p)
		}
		if x.skip > 0 {
			n := min(x.skip, int64(len(p)))
			x.skip -= n
			p = p[n:]
			continue
		}
		if x.need == 0 {
			x.need = map[xzState]int{xzStreamHeader: 12, xzBlockHeaderSize: 1, xzChunk: 1}[x.state]
			x.seen = x.seen[:0]
		}
		n := min(x.need-len(x.seen), len(p))
		x.seen = append(x.seen, p[:n]...)
		p = p[n:]
		if len(x.seen) == x.need {
			x.need = 0
			if err := x.step(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest looks for another stream behind the index: streams can follow each other, at multiples of
// four bytes.
func (x *xzFrame) rest(p []byte) error {
	for i, c := range p {
		x.seen = append(x.seen, c)
		if len(x.seen) > 6 {
			x.seen = x.seen[1:]
		}
		if string(x.seen) == "\xfd7zXZ\x00" {
			x.state, x.need = xzStreamHeader, 12
			return x.follow(p[i+1:])
		}
	}
	return nil
}

// step looks at what the state wanted to see.
func (x *xzFrame) step() error {
	b := x.seen
	switch x.state {
	case xzStreamHeader:
		// The check's size by its id: 2.1.1.2.
		x.check = []int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[b[7]&15]
		x.state = xzBlockHeaderSize
	case xzBlockHeaderSize:
		if b[0] == 0 { // the index
			x.state, x.seen = xzRest, x.seen[:0]
			return nil
		}
		x.state, x.need, x.seen = xzBlockHeader, int(b[0])*4+4-1, x.seen[:0]
	case xzBlockHeader:
		x.state, x.block = xzChunk, 0
		return x.header(b)
	case xzChunk:
		x.block++
		switch {
		case b[0] == 0: // the end of the block: padding to four bytes, then the check
			x.skip = (4-x.block%4)%4 + int64(x.check)
			x.state = xzBlockHeaderSize
		case b[0] >= 0x80: // unpacked size, packed size, and properties from 0xc0 on
			x.need = 4
			if b[0] >= 0xc0 {
				x.need = 5
			}
			x.state, x.seen = xzChunkHeader, x.seen[:0]
		default:
			x.need, x.state, x.seen = 2, xzChunkHeader, x.seen[:0]
		}
	case xzChunkHeader:
		size := int64(binary.BigEndian.Uint16(b)) + 1
		if len(b) >= 4 {
			size = int64(binary.BigEndian.Uint16(b[2:])) + 1
		}
		x.block += int64(len(b)) + size
		x.skip, x.state = size, xzChunk
	}
	return nil
}

// header reads a block's filters: flags, optional sizes, then for each filter its id, the size
// of its properties, and these. LZMA2's only property is the dictionary's size (5.3.1).
func (x *xzFrame) header(b []byte) error {
	if len(b) < 5 {
		return errXZFrame
	}
	flags, rest := b[0], b[1:len(b)-4]
	for _, bit := range []byte{0x40, 0x80} {
		if flags&bit != 0 {
			_, n := binary.Uvarint(rest)
			if n <= 0 {
				return errXZFrame
			}
			rest = rest[n:]
		}
	}
	x.block = 0 // its header is a multiple of four
	for range int(flags&3) + 1 {
		id, n := binary.Uvarint(rest)
		if n <= 0 {
			return errXZFrame
		}
		size, m := binary.Uvarint(rest[n:])
		if m <= 0 || size > uint64(len(rest)-n-m) {
			return errXZFrame
		}
		rest = rest[n+m:]
		if id == 0x21 && size == 1 {
			if d := dictionary(rest[0]); d > MaxDictionary {
				return &dictionaryError{d}
			}
		}
		rest = rest[size:]
	}
	return nil
}

// dictionary is the size that LZMA2's property means: 2 or 3 times a power of two.
func dictionary(bits byte) int64 {
	if bits &= 63; bits >= 40 {
		return 4 << 30
	}
	return int64(2|bits&1) << (bits/2 + 11)
}
