package kernel

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Reader reads a stream. Damage costs the blocks that it hits; Ended says what was lost.
type Reader struct {
	open    func() (io.ReadCloser, error)
	h       Header
	threads []Thread
	stacks  map[uint32][]uint32
	frames  map[uint32]Frame
	nframes int // of all stacks
	late    []Record
	ended   string
	version int
}

// NewReader reads a stream's header. open opens the stream at its start, once for each pass.
func NewReader(open func() (io.ReadCloser, error)) (*Reader, error) {
	r := &Reader{open: open}
	err := r.pass(func(kind byte, b *blockReader) error {
		if kind != blockHeader {
			return errors.New("it does not start with a header")
		}
		raw, err := b.body()
		if err != nil {
			return err
		}
		if r.h, err = readHeader(raw, r.version); err != nil {
			return err
		}
		return errStop
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", Member, err)
	}
	return r, nil
}

var (
	errStop     = errors.New("enough was read")
	errNoStream = errors.New("not a kernel stream of whystall, or of a newer one")
)

// maxSights bounds what a header lists.
const maxSights = 200

func readHeader(raw []byte, version int) (h Header, err error) {
	if version == 1 {
		h, err = readHeader1(raw)
	} else {
		err = json.Unmarshal(raw, &h)
	}
	h.clean()
	return h, err
}

// clean bounds what a header says, and replaces what cannot be.
func (h *Header) clean() {
	h.CPUs = slices.DeleteFunc(h.CPUs, func(c int) bool { return c < 0 || c > 1<<16 })
	h.CPUs = h.CPUs[:min(len(h.CPUs), 1<<13)]
	h.Recorded = h.Recorded[:min(len(h.Recorded), maxSights)]
	h.Missing = h.Missing[:min(len(h.Missing), maxSights)]
	for i := range h.Missing {
		h.Missing[i].clean()
	}
	h.Source, h.Kernel, h.NoteFrom = clip(h.Source), clip(h.Kernel), clip(h.NoteFrom)
}

func clip(s string) string { return s[:min(len(s), 500)] }

// Header of the stream.
func (r *Reader) Header() Header { return r.h }

// Threads lists the threads that were named so far.
func (r *Reader) Threads() []Thread { return r.threads }

// Ended says what is missing, "" if nothing is.
func (r *Reader) Ended() string { return r.ended }

// Stack returns a stack's frames.
func (r *Reader) Stack(id uint32) []Frame {
	ids := r.stacks[id]
	if ids == nil {
		return nil
	}
	out := make([]Frame, 0, len(ids))
	for _, n := range ids {
		out = append(out, r.frames[n]) // a frame whose block was lost has no name
	}
	return out
}

// Each calls f with the records in order. It reads the stream twice: first the late records, which
// it must hold, then the others, among which it inserts them.
func (r *Reader) Each(f func([]Record) error) error {
	r.threads, r.stacks, r.frames, r.nframes, r.late, r.ended = nil, map[uint32][]uint32{}, map[uint32]Frame{}, 0, nil, ""
	err := r.pass(func(kind byte, b *blockReader) error {
		if kind != blockLate {
			return nil
		}
		if len(r.late) > maxLate {
			b.lose("more late records than a stream may have")
			return nil
		}
		raw, err := b.body()
		if err != nil {
			return err
		}
		var none chain
		d := items{b: raw, r: r}
		for d.more() {
			if rec := d.record(&none); rec != nil {
				r.late = append(r.late, *rec)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", Member, err)
	}
	r.late, _ = sortRecords(r.late, nil)
	late := r.late
	var block []Record
	var horizon int64
	whole := false
	var failed error
	err = r.pass(func(kind byte, b *blockReader) error {
		switch kind {
		case blockEnd:
			whole = true
			_, err := b.body()
			return err
		case blockRecords:
		default:
			return nil
		}
		raw, err := b.body()
		if err != nil {
			return err
		}
		block = block[:0]
		var c chain
		d := items{b: raw, r: r}
		for d.more() {
			rec := d.record(&c)
			if rec == nil {
				continue
			}
			for len(late) > 0 && late[0].Time <= rec.Time {
				block = append(block, late[0])
				late = late[1:]
			}
			// The order is promised even for a stream that lies.
			if rec.Time < horizon {
				rec.Time = horizon
			}
			horizon = rec.Time
			block = append(block, *rec)
		}
		if d.bad {
			b.lose("a block does not decode to its end")
		}
		if len(block) > 0 {
			if failed = f(block); failed != nil {
				return errStop
			}
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", Member, err)
	}
	if len(late) > 0 {
		if err := f(late); err != nil {
			return err
		}
	}
	slices.SortStableFunc(r.threads, func(a, b Thread) int {
		switch {
		case a.Since < b.Since:
			return -1
		case a.Since > b.Since:
			return 1
		}
		return 0
	})
	if !whole && r.ended == "" {
		r.ended = "it was cut off: recording goes on, or was killed"
	}
	return nil
}

// blockReader is one block of a pass.
type blockReader struct {
	r   *Reader
	raw uint32
	sum uint32
	z   *zstd.Decoder
	buf []byte // body as it stands in the file
	out []byte
}

func (b *blockReader) lose(why string) {
	if b.r.ended == "" {
		b.r.ended = "damaged: " + why
	}
}

// body checks and decompresses the block. A damaged block is empty, and counts as lost.
func (b *blockReader) body() ([]byte, error) {
	if crc32.Checksum(b.buf, castagnoli) != b.sum {
		b.lose("a block's checksum is wrong")
		return nil, nil
	}
	out, err := b.z.DecodeAll(b.buf, b.out[:0])
	if err != nil || len(out) != int(b.raw) {
		b.lose("a block does not decompress")
		return nil, nil
	}
	b.out = out
	return out, nil
}

// pass calls f for each block.
func (r *Reader) pass(f func(kind byte, b *blockReader) error) error {
	in, err := r.open()
	if err != nil {
		return err
	}
	defer in.Close()
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxBody), zstd.WithDecoderMaxWindow(maxBody), zstd.WithDecoderLowmem(true))
	if err != nil {
		return err
	}
	defer z.Close()
	br := bufio.NewReaderSize(in, 64<<10)
	head := make([]byte, max(len(magic), headSize))
	if _, err := io.ReadFull(br, head[:len(magic)]); err != nil {
		return errNoStream
	}
	switch string(head[:len(magic)]) {
	case magic:
		r.version = 2
	case magic1:
		r.version = 1
	default:
		return errNoStream
	}
	b := &blockReader{r: r, z: z}
	first := true
	for {
		head, err := br.Peek(headSize)
		if len(head) < headSize {
			if err == io.EOF {
				if len(head) > 0 {
					b.lose("its end is cut off")
				}
				return nil
			}
			return err
		}
		size := binary.LittleEndian.Uint32(head[5:])
		b.raw, b.sum = binary.LittleEndian.Uint32(head[9:]), binary.LittleEndian.Uint32(head[13:])
		kind := head[4]
		if !bytes.HasPrefix(head, []byte(blockMark)) || size > maxBody || b.raw > maxBody || kind == 0 || kind > blockEnd {
			b.lose("bytes that are no block were skipped")
			br.Discard(1)
			// On to the next mark.
			for {
				peek, err := br.Peek(32 << 10)
				if i := bytes.Index(peek, []byte(blockMark)); i >= 0 {
					br.Discard(i)
					break
				}
				if err != nil {
					return nil
				}
				br.Discard(len(peek) - len(blockMark) + 1)
			}
			continue
		}
		br.Discard(headSize)
		if cap(b.buf) < int(size) {
			// Room grows with the bytes that are there, not with the size that the block states.
			var grown bytes.Buffer
			n, err := io.CopyN(&grown, br, int64(size))
			b.buf = grown.Bytes()
			if n < int64(size) {
				b.lose("its end is cut off")
				return ignoreEOF(err)
			}
		} else if _, err := io.ReadFull(br, b.buf[:size]); err != nil {
			b.lose("its end is cut off")
			return ignoreEOF(err)
		}
		b.buf = b.buf[:size]
		if first && kind != blockHeader {
			return errors.New("it does not start with a header")
		}
		first = false
		if err := f(kind, b); err == errStop {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}
