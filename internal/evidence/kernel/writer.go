package kernel

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockSize is how many bytes of items make a block: enough to compress well, and little enough to
// lose.
const blockSize = 256 << 10

// Writer writes a stream. Its methods may be called from several goroutines.
type Writer struct {
	mu        sync.Mutex
	w         io.Writer
	z         *zstd.Encoder
	pending   []Record // there may still be earlier ones
	spare     []Record // room to sort them
	horizon   int64    // all records before this time were written
	items     []byte   // of the block that is being filled
	late      []byte
	last      int64 // time of the last record in items; 0 at a block's start
	lateAt    int64
	chain     chain
	lateChain chain
	frames    map[Frame]uint32
	stacks    map[uint32]bool
	body      []byte
	written   int64
	records   int64
	err       error
}

// NewWriter starts a stream with its header.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(blockSize), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", Member, err)
	}
	kw := &Writer{w: w, z: z, horizon: math.MinInt64, frames: map[Frame]uint32{}, stacks: map[uint32]bool{}}
	b, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", Member, err)
	}
	if _, kw.err = io.WriteString(w, magic); kw.err == nil {
		kw.block(blockHeader, b)
	}
	return kw, kw.fail()
}

func (w *Writer) fail() error {
	if w.err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", Member, w.err)
}

// Records takes records in any order. It copies them; Flush writes them.
func (w *Writer) Records(recs []Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, recs...)
	return w.fail()
}

// Thread names a thread. It is written at once, and so stands before the records of the next Flush.
func (w *Writer) Thread(t Thread) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var bits byte
	if t.Target {
		bits |= 1
	}
	if t.Kernel {
		bits |= 2
	}
	b := append(w.items, itemThread, bits)
	b = binary.AppendVarint(b, t.Since)
	b = binary.AppendUvarint(b, uint64(t.TID))
	b = binary.AppendUvarint(b, uint64(t.PID))
	b = binary.AppendUvarint(b, uint64(t.NSTID))
	b = appendName(b, t.Comm)
	w.items = appendName(b, t.Cgroup)
	w.full()
	return w.fail()
}

// Stack defines a stack, the innermost frame first, once for each id.
func (w *Writer) Stack(id uint32, frames []Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stacks[id] || id == 0 || len(w.stacks) >= maxStacks || len(w.frames) >= maxFrames-maxDepth {
		return w.fail()
	}
	w.stacks[id] = true
	frames = frames[:min(len(frames), maxDepth)]
	var ids [maxDepth]uint32
	for i, f := range frames {
		n, ok := w.frames[f]
		if !ok {
			n = uint32(len(w.frames) + 1)
			w.frames[f] = n
			b := append(w.items, itemFrame, 0)
			if f.Inferred {
				b[len(b)-1] |= frameInferred
			}
			if f.Waits {
				b[len(b)-1] |= frameWaits
			}
			b = binary.AppendUvarint(b, uint64(n))
			b = binary.AppendUvarint(b, f.Addr)
			b = binary.AppendUvarint(b, f.Offset)
			b = appendName(b, f.Func)
			w.items = appendName(b, f.Module)
		}
		ids[i] = n
	}
	b := append(w.items, itemStack)
	b = binary.AppendUvarint(b, uint64(id))
	b = binary.AppendUvarint(b, uint64(len(frames)))
	for _, n := range ids[:len(frames)] {
		b = binary.AppendUvarint(b, uint64(n))
	}
	w.items = b
	w.full()
	return w.fail()
}

func appendName(b []byte, s string) []byte {
	s = s[:min(len(s), maxName)]
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Flush writes the records before upTo, which should be all there are, and keeps the others. A
// record from before upTo that comes later is late, and costs the reader memory.
func (w *Writer) Flush(upTo int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush(upTo)
	w.send()
	return w.fail()
}

func (w *Writer) flush(upTo int64) {
	w.pending, w.spare = sortRecords(w.pending, w.spare)
	n, _ := slices.BinarySearchFunc(w.pending, upTo, func(r Record, t int64) int { return cmp.Compare(r.Time, t) })
	for i := range w.pending[:n] {
		r := &w.pending[i]
		w.records++
		if r.Time < w.horizon {
			w.late = appendRecord(w.late, r, w.lateAt, &w.lateChain)
			w.lateAt = r.Time
			w.lateChain.set(r)
			if len(w.late) >= blockSize {
				w.sendLate()
			}
			continue
		}
		w.items = appendRecord(w.items, r, w.last, &w.chain)
		w.last = r.Time
		w.chain.set(r)
		w.full()
	}
	w.horizon = max(w.horizon, upTo)
	w.pending = w.pending[:copy(w.pending, w.pending[n:])]
}

// sortRecords sorts records by time; those of the same time stay as they came. It returns them, and
// room for the next call. Records come in runs, one for each time that a CPU's ring was read:
// merging runs is cheaper than sorting.
func sortRecords(l, room []Record) (sorted, spare []Record) {
	var ends []int
	for i := 1; i < len(l); i++ {
		if l[i].Time < l[i-1].Time {
			ends = append(ends, i)
		}
	}
	switch {
	case len(ends) == 0:
		return l, room
	case len(ends) > len(l)/8:
		slices.SortStableFunc(l, func(a, b Record) int { return cmp.Compare(a.Time, b.Time) })
		return l, room
	}
	room = slices.Grow(room[:0], len(l))[:len(l)]
	for ends = append(ends, len(l)); len(ends) > 1; l, room = room, l {
		at, n := 0, 0
		for k := 0; k < len(ends); k += 2 {
			mid, end := ends[k], ends[min(k+1, len(ends)-1)]
			merge(room[at:end], l[at:mid], l[mid:end])
			ends[n] = end
			at, n = end, n+1
		}
		ends = ends[:n]
	}
	return l, room
}

func merge(dst, a, b []Record) {
	for len(a) > 0 && len(b) > 0 {
		if b[0].Time < a[0].Time {
			dst[0], b = b[0], b[1:]
		} else {
			dst[0], a = a[0], a[1:]
		}
		dst = dst[1:]
	}
	copy(dst[copy(dst, a):], b)
}

func appendRecord(b []byte, r *Record, last int64, c *chain) []byte {
	var has byte
	if r.Other != 0 {
		has |= hasOther
	}
	if r.Kernel != 0 {
		has |= hasKernel
	}
	if r.User != 0 {
		has |= hasUser
	}
	for i, a := range r.Arg {
		if a != 0 {
			has |= hasArg0 << i
		}
	}
	if r.Kind == Switch && c.at(r.CPU) == r.TID {
		has |= sameTID
	}
	if r.Flags != 0 {
		has |= hasFlags
	}
	b = append(b, byte(r.Kind), has)
	b = binary.AppendVarint(b, r.Time-last)
	b = binary.AppendUvarint(b, uint64(r.CPU))
	if has&hasFlags != 0 {
		b = binary.AppendUvarint(b, uint64(r.Flags))
	}
	if has&sameTID == 0 {
		b = binary.AppendUvarint(b, uint64(r.TID))
	}
	if has&hasOther != 0 {
		b = binary.AppendUvarint(b, uint64(r.Other))
	}
	if has&hasKernel != 0 {
		b = binary.AppendUvarint(b, uint64(r.Kernel))
	}
	if has&hasUser != 0 {
		b = binary.AppendUvarint(b, uint64(r.User))
	}
	for i, a := range r.Arg {
		if has&(hasArg0<<i) != 0 {
			b = binary.AppendUvarint(b, a)
		}
	}
	return b
}

// full sends the block if it is large enough.
func (w *Writer) full() {
	if len(w.items) >= blockSize {
		w.sendItems()
	}
}

func (w *Writer) sendItems() {
	if len(w.items) > 0 {
		w.block(blockRecords, w.items)
	}
	w.items, w.last, w.chain = w.items[:0], 0, chain{}
}

func (w *Writer) sendLate() {
	if len(w.late) > 0 {
		w.block(blockLate, w.late)
	}
	w.late, w.lateAt, w.lateChain = w.late[:0], 0, chain{}
}

// send writes what there is, so that a killed recording has it. It is called once per Flush.
func (w *Writer) send() {
	w.sendItems()
	w.sendLate()
}

func (w *Writer) block(kind byte, raw []byte) {
	if w.err != nil {
		return
	}
	b := append(w.body[:0], blockMark...)
	b = append(b, kind)
	b = append(b, make([]byte, headSize-len(b))...)
	b = w.z.EncodeAll(raw, b)
	binary.LittleEndian.PutUint32(b[5:], uint32(len(b)-headSize))
	binary.LittleEndian.PutUint32(b[9:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(b[13:], crc32.Checksum(b[headSize:], castagnoli))
	w.body = b
	_, w.err = w.w.Write(b)
	w.written += int64(len(b))
}

// Written returns how many bytes and records were written so far.
func (w *Writer) Written() (bytes, records int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written, w.records
}

// Close writes what is left, and the mark of a whole stream. It does not close the writer below.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush(math.MaxInt64)
	w.send()
	w.block(blockEnd, nil)
	w.z.Close()
	return w.fail()
}
