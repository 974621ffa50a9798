package timeline

import (
	"math"
	"sort"
)

// Holders of a P, besides goroutines by their entry functions ([FuncID]).
const (
	HolderUnknown uint32 = 0 // a goroutine whose entry is not known, or nothing known

	HolderGCDedicated = ^uint32(0) - iota // GC workers, by mode
	HolderGCIdle
	HolderGCFractional
	HolderSweep // a goroutine whose allocation sweeps
	holderNobody
)

const holderSpecial = holderNobody // from here up it is no FuncID

// Occupant is the share of the Ps' time that one holder has.
type Occupant struct {
	Holder uint32
	NS     int64
}

// occupants are sums by occupant while they are made.
type occupants struct {
	list []Occupant // without the sums
	ns   []int64    // by occupant, the special ones first; 0: not in the list
}

func (o *occupants) add(holder uint32, ns int64) {
	i := holder - holderSpecial // wraps
	for uint(i) >= uint(len(o.ns)) {
		o.ns = append(o.ns, make([]int64, max(64, len(o.ns)))...)
	}
	if o.ns[i] == 0 {
		o.list = append(o.list, Occupant{Holder: holder})
	}
	o.ns[i] += ns
}

func (o *occupants) take() []Occupant {
	for i := range o.list {
		x := &o.list[i]
		n := &o.ns[x.Holder-holderSpecial]
		x.NS, *n = *n, 0
	}
	l := o.list
	o.list = o.list[:0]
	return l
}

// history is the past of who held the Ps, as a ring of blocks.
//
// A block is a stretch of time with every occupation in it. Long occupations are cut at the borders
// of blocks, so the sums of a block are exact. A question about a long stretch adds up blocks
// instead of occupations.
type history struct {
	threads bool    // each occupation's thread is kept
	numbers bool    // and the number of its P
	heldNS  []int64 // since the start, by occupant, as in occupants

	blocks   []block // ring
	cur      *block  // the one that is filled
	room     int     // occupations that the blocks before cur have room for
	first    uint64  // number of the oldest kept
	next     uint64  // number of the one that is filled
	rotateAt int64   // when it must be closed for its length
	near     uint64  // see from

	sums    occupants // scratch of a question
	ofBlock occupants // scratch of a block's sums
}

type block struct {
	begin, end int64
	count      int32 // of Ps
	occ        []occupation
	threads    []uint32 // of the occupations, if they are kept
	numbers    []uint16 // likewise, of their Ps
	sum        []Occupant
}

type occupation struct{ begin, end, holder uint32 } // relative to the block

const (
	maxBlocks = 4096 // about 4 MB
	blockOcc  = 48
	blockNS   = 1 << 30

	// historyOcc bounds all occupations: 48 MB, 64 with threads, 72 with Ps. That is room for all
	// blocks of some 340 Ps. With more Ps, real or made up by damage, the history is shorter.
	historyOcc = 1 << 22
)

func (h *history) init() {
	h.blocks = make([]block, 1, maxBlocks)
	h.cur = &h.blocks[0]
	h.rotateAt = math.MinInt64
}

// at is the block with the number.
func (h *history) at(n uint64) *block { return &h.blocks[n%maxBlocks] }

// full reports whether the current block should be closed. It has room for what count Ps hold.
func (h *history) full(count int) bool {
	return len(h.cur.occ) >= blockOcc && len(h.cur.occ) >= 2*count
}

// add writes down that x's occupant held it until end.
func (h *history) add(x *proc, end int64) {
	i := x.occupant - holderSpecial // wraps
	for uint(i) >= uint(len(h.heldNS)) {
		h.heldNS = append(h.heldNS, make([]int64, max(64, len(h.heldNS)))...)
	}
	h.heldNS[i] += end - x.held
	b := h.cur
	b.occ = append(b.occ, occupation{uint32(x.held - b.begin), uint32(end - b.begin), x.occupant})
	if h.threads {
		b.threads = append(b.threads, x.thread)
	}
	if h.numbers {
		b.numbers = append(b.numbers, x.number)
	}
}

// rotate closes the block at now, after a stretch of count Ps, and starts the next. Known is how
// many Ps have been seen.
func (h *history) rotate(now int64, count int32, known int) {
	b := h.cur
	h.rotateAt = min(now+blockNS, maxTime+1)
	b.end, b.count, b.sum = now, count, b.sum[:0]
	h.room += cap(b.occ)
	for h.room > historyOcc {
		old := h.at(h.first)
		h.room -= cap(old.occ)
		old.occ, old.threads, old.numbers = nil, nil, nil
		h.first++
	}
	h.next++
	if len(h.blocks) < maxBlocks {
		n := min(known, 1<<10) // numbers of Ps in a damaged trace may be any
		h.blocks = append(h.blocks, block{begin: now, occ: make([]occupation, 0, max(blockOcc, 2*n)+n)})
		h.cur = &h.blocks[len(h.blocks)-1]
		return
	}
	h.cur = h.at(h.next)
	h.room -= cap(h.cur.occ)
	*h.cur = block{begin: now, occ: h.cur.occ[:0], threads: h.cur.threads[:0],
		numbers: h.cur.numbers[:0], sum: h.cur.sum[:0]}
	h.first = max(h.first, h.next-maxBlocks+1)
}

// from is the number of the first closed block that ends after s. Whoever explains asks for ever
// earlier times, so the search starts from the last answer.
func (h *history) from(s int64) uint64 {
	n := min(max(h.near, h.first), h.next)
	for steps := 0; ; steps++ {
		switch {
		case steps > 32:
			n = h.first + uint64(sort.Search(int(h.next-h.first),
				func(i int) bool { return h.at(h.first+uint64(i)).end > s }))
		case n > h.first && h.at(n-1).end > s:
			n--
			continue
		case n < h.next && h.at(n).end <= s:
			n++
			continue
		}
		h.near = n
		return n
	}
}

// closed adds up who held the Ps during [s,e) in the closed blocks, and returns those blocks' time
// in [s,e) over all Ps.
func (h *history) closed(s, e int64) (total int64) {
	for n := h.from(s); n < h.next; n++ {
		b := h.at(n)
		if b.begin >= e {
			break
		}
		begin, end := max(s, b.begin), min(e, b.end)
		total += int64(b.count) * (end - begin)
		if begin != b.begin || end != b.end {
			h.sums.part(b, begin, end)
			continue
		}
		if len(b.sum) == 0 { // the first question about it
			for _, o := range b.occ {
				h.ofBlock.add(o.holder, int64(o.end-o.begin))
			}
			b.sum = append(b.sum, h.ofBlock.take()...)
		}
		for _, o := range b.sum {
			h.sums.add(o.Holder, o.NS)
		}
	}
	return total
}

// part adds up the part of b's occupations in [s,e). They are in order of their ends.
func (o *occupants) part(b *block, s, e int64) {
	lo, hi := uint32(max(s-b.begin, 0)), uint32(min(e-b.begin, 1<<32-1))
	for i := len(b.occ) - 1; i >= 0; i-- {
		x := &b.occ[i]
		if x.end <= lo {
			break
		}
		if x.begin < hi {
			o.add(x.holder, int64(min(x.end, hi)-max(x.begin, lo)))
		}
	}
}
