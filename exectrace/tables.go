package exectrace

import (
	"hash/maphash"
	"math/bits"
)

// Bounds of what is kept by content, together under 40 MB. Real traces have some thousand stacks; a
// hostile one could have as many as it has bytes.
const (
	maxStringBytes = 12 << 20
	maxStrings     = 128 << 10
	maxFrames      = 256 << 10
	maxStacks      = 256 << 10
	maxStackWords  = 3 << 20
	maxDepth       = 128 // of one stack: the runtime's own limit
)

// tables interns strings, frames and stacks over the whole trace. Its ids are dense, and 0 is
// nothing.
type tables struct {
	strings   []string // by StringID
	stringIDs map[string]StringID
	bytes     int

	frames   []frame // by frame number
	frameIDs index

	stacks   []stackRef // by StackID
	stackIDs index
	words    chunks // frame numbers of all stacks

	seed maphash.Seed
	full string // which of them went over its bound first
}

type frame struct {
	pc       uint64
	fn, file StringID
	line     uint32
}

type stackRef struct {
	off uint32 // in words
	n   uint32
}

func (t *tables) init() {
	if t.stringIDs != nil {
		return
	}
	t.strings = []string{""}
	t.stringIDs = map[string]StringID{"": 0}
	t.frames = make([]frame, 1)
	t.stacks = make([]stackRef, 1)
	t.seed = maphash.MakeSeed()
}

// internString gives the id of b. It copies b: the mapping may go away.
func (t *tables) internString(b []byte) StringID {
	if id, ok := t.stringIDs[string(b)]; ok {
		return id
	}
	if len(t.strings) >= maxStrings || t.bytes+len(b) > maxStringBytes {
		t.over("strings")
		return 0
	}
	s := string(b)
	id := StringID(len(t.strings))
	t.strings = append(t.strings, s)
	t.stringIDs[s] = id
	t.bytes += len(b)
	return id
}

// internFrame gives a number for internStack, 0 when there are too many.
func (t *tables) internFrame(pc uint64, fn, file StringID, line uint64) uint32 {
	f := frame{pc, fn, file, uint32(min(line, 1<<32-1))}
	h := mix(mix(f.pc, uint64(f.fn)<<32|uint64(f.file)), uint64(f.line))
	if id := t.frameIDs.find(h, func(id uint32) bool { return t.frames[id] == f }); id != 0 {
		return id
	}
	if len(t.frames) >= maxFrames {
		t.over("frames")
		return 0
	}
	id := uint32(len(t.frames))
	t.frames = append(t.frames, f)
	t.frameIDs.insert(h, id)
	return id
}

// internStack gives the id of the stack of these frame numbers, innermost first.
func (t *tables) internStack(frames []uint32) StackID {
	if len(frames) == 0 {
		return 0
	}
	if len(frames) > maxDepth {
		frames = frames[:maxDepth]
	}
	h := uint64(len(frames))
	for _, f := range frames {
		h = mix(h, uint64(f))
	}
	id := t.stackIDs.find(h, func(id uint32) bool {
		s := t.stacks[id]
		if int(s.n) != len(frames) {
			return false
		}
		for i, w := range t.words.get(s.off, s.n) {
			if w != frames[i] {
				return false
			}
		}
		return true
	})
	if id != 0 {
		return StackID(id)
	}
	if len(t.stacks) >= maxStacks || t.words.len()+len(frames) > maxStackWords {
		t.over("stacks")
		return 0
	}
	id = uint32(len(t.stacks))
	t.stacks = append(t.stacks, stackRef{t.words.put(frames), uint32(len(frames))})
	t.stackIDs.insert(h, id)
	return StackID(id)
}

func (t *tables) over(what string) {
	if t.full == "" {
		t.full = what
	}
}

func (t *tables) string(id StringID) string {
	if int64(id) >= int64(len(t.strings)) {
		return ""
	}
	return t.strings[id]
}

func (t *tables) appendFrames(dst []Frame, id StackID) []Frame {
	if id == 0 || int64(id) >= int64(len(t.stacks)) {
		return dst
	}
	s := t.stacks[id]
	for _, n := range t.words.get(s.off, s.n) {
		f := t.frames[n]
		dst = append(dst, Frame{PC: f.pc, Func: t.string(f.fn), File: t.string(f.file), Line: int(f.line)})
	}
	return dst
}

// index is an open-addressed set of ids by hash. It holds 32 bits of each hash beside the id: so
// growing reads no content, and a lookup compares content once.
type index struct {
	slot []uint64 // hash<<32 | id; id 0 is free
	n    int
}

func (x *index) find(h uint64, same func(uint32) bool) uint32 {
	if x.n == 0 {
		return 0
	}
	mask := len(x.slot) - 1
	for i := int(h>>32) & mask; ; i = (i + 1) & mask {
		s := x.slot[i]
		if uint32(s) == 0 {
			return 0
		}
		if s>>32 == h>>32 && same(uint32(s)) {
			return uint32(s)
		}
	}
}

func (x *index) insert(h uint64, id uint32) {
	if 2*(x.n+1) > len(x.slot) {
		old := x.slot
		x.slot = make([]uint64, max(256, 2*len(old)))
		for _, s := range old {
			if uint32(s) != 0 {
				x.place(s)
			}
		}
	}
	x.place(h>>32<<32 | uint64(id))
	x.n++
}

func (x *index) place(s uint64) {
	mask := len(x.slot) - 1
	i := int(s>>32) & mask
	for uint32(x.slot[i]) != 0 {
		i = (i + 1) & mask
	}
	x.slot[i] = s
}

// mix is one round of a multiplicative hash (the folded 64x64 product of wyhash).
func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^v^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93+v<<1)
	return hi ^ lo
}

// chunks is a growing array of words that never moves what it holds: doubling a slice of 12 MB
// would need 36.
type chunks struct {
	c [][]uint32
}

const chunkWords = 32 << 10 // a multiple of maxDepth is not needed: a stack never straddles

func (c *chunks) len() int { return len(c.c) * chunkWords }

func (c *chunks) put(w []uint32) uint32 {
	n := len(c.c)
	if n == 0 || len(c.c[n-1])+len(w) > chunkWords {
		c.c = append(c.c, make([]uint32, 0, chunkWords))
		n++
	}
	last := &c.c[n-1]
	at := (n-1)*chunkWords + len(*last)
	*last = append(*last, w...)
	return uint32(at)
}

func (c *chunks) get(off, n uint32) []uint32 {
	if n == 0 {
		return nil
	}
	o := off % chunkWords
	return c.c[off/chunkWords][o : o+n]
}
