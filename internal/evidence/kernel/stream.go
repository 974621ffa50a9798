package kernel

// Source is a stream in order: a [Reader] or a text twin. Records come in the order of their Time;
// a stretch stands at its start.
type Source interface {
	Header() Header
	// Each calls f with the records in order, in blocks that the next call overwrites. It may be
	// called again.
	Each(f func([]Record) error) error
	// Threads lists the named threads, in the order of Since. It is complete once Each has ended.
	Threads() []Thread
	// Stack returns the frames of a StackID, the innermost first. It is complete once Each has
	// ended.
	Stack(id uint32) []Frame
	// Ended says how the stream ended: "" if it is whole, otherwise what is missing and why. It is
	// complete once Each has ended.
	Ended() string
}

// The layout of a stream. A magic line, then blocks:
//
//	mark   4 bytes "\xffwkb", by which a reader finds the next block after damage
//	kind   1 byte
//	size   4 bytes little endian, of the body
//	raw    4 bytes, of the body once decompressed
//	sum    4 bytes, CRC-32C of the body
//	body   zstd
//
// The header's block is JSON. A block of records is items. Each starts with a byte: a record's
// Kind, or the definition of a thread, a frame or a stack, which stands before any item that refers
// to it. Times are differences within a block, so that each block can be read without the ones
// before. A block of late records has those with a time before what was written already: stretches,
// which are written at their end but stand at their start. A reader fetches these blocks first.
//
// The magic line ends in the version. Version 1 says in its header in sentences what is recorded
// and what is missing (see version1.go), version 2 in sights. All else is the same. A reader
// refuses a version that it does not know: one that knows sentences alone would take what is
// missing for absent.
const (
	magic     = "whystall kernel stream 2\n"
	magic1    = "whystall kernel stream 1\n"
	blockMark = "\xffwkb"
	headSize  = 4 + 1 + 4 + 4 + 4

	blockHeader  = 1
	blockRecords = 2
	blockLate    = 3
	blockEnd     = 4

	itemThread = 0xf1
	itemStack  = 0xf2
	itemFrame  = 0xf3
)

// Bounds of what a stream may make us hold, wherever it comes from.
const (
	maxBody    = 4 << 20
	maxLate    = 1 << 20
	maxThreads = 1 << 20
	maxStacks  = 1 << 20
	maxFrames  = 1 << 21
	maxDepth   = 256
	maxName    = 1 << 12
)

// Bits of a record's second byte: which fields follow.
const (
	hasOther = 1 << iota
	hasKernel
	hasUser
	hasArg0
	hasArg1
	hasArg2
	sameTID // the thread that leaves is the one that came last on that CPU
	hasFlags
)

// chain remembers which thread came last on each CPU: the next to leave need not be named.
type chain struct{ last [256]uint32 }

func (c *chain) at(cpu uint16) uint32 { return c.last[uint8(cpu)] }
func (c *chain) set(r *Record) {
	if r.Kind == Switch {
		c.last[uint8(r.CPU)] = r.Other
	}
}
