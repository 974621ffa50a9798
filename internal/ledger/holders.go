package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/timeline"
)

// Who held the Ps while a goroutine was runnable, and what their threads did meanwhile. A piece
// [lo,hi) of n Ps is split by these rules:
//   1. At every instant each P has a share of 1/n, whoever holds it.
//   2. A P that nobody holds is idle.
//   3. A P that a goroutine holds is split by what the kernel's records say of that goroutine's
//      thread at that instant. If the thread was on a CPU, the goroutine ran instead. Otherwise the
//      share is what the thread lacked: a CPU (and who had it), quota, memory, a lock, a disk. A
//      fault or a reclaim on a CPU counts as that. Where records are missing, it is not known who
//      ran.
//
// So each nanosecond of the piece is split once, and the shares add up to it. The split divides an
// account and books nothing.

// lacked is one thing that threads which held Ps lacked.
type lacked struct {
	leaf   books.Leaf      // LeafOnCPU: nothing
	detail timeline.FuncID // of LeafNoCPU who had the CPU, of LeafAsleep the function slept in
	who    uint32          // as in [timeline.Occupant]; 0 with a detail
}

// heldNS is a share of the Ps' time.
type heldNS struct {
	ref uint32 // in holders.list
	ns  int64
}

// holders adds up who held the Ps.
type holders struct {
	j    *joiner
	list []lacked
	refs map[lacked]uint32
	sums []int64  // by ref
	any  []uint32 // refs whose sum is not 0

	// The shares of whole holds, by the number of their block, modulo. Pieces of many requests
	// share them, and most pieces start and end within a block.
	blocks [heldBlocks]heldBlock
}

const heldBlocks = 1 << 10

// heldBlock is what became of one block of the history, a [timeline.HoldBlock]: each hold in it,
// split by what the thread that held the P did meanwhile.
type heldBlock struct {
	number uint64     // of the block; 0: none yet
	done   int        // how many of its holds are split
	parts  []heldPart // of all holds, one after another
	sums   []heldNS   // the parts' time, by ref
}

type heldPart struct {
	begin, end uint32 // ns from the block's start
	ref        uint32
	// The thread that waited for a CPU: the records say how long each other one had it, not when.
	queued uint32
}

func (h *holders) ref(l lacked) uint32 {
	ref, ok := h.refs[l]
	if !ok {
		if h.refs == nil {
			h.refs = map[lacked]uint32{}
		}
		ref = uint32(len(h.list))
		h.refs[l] = ref
		h.list = append(h.list, l)
		h.sums = append(h.sums, 0)
	}
	return ref
}

func (h *holders) add(ref uint32, ns int64) {
	if h.sums[ref] == 0 {
		h.any = append(h.any, ref)
	}
	h.sums[ref] += ns
}

// during appends what held the Ps in [lo,hi), and returns the Ps' whole time.
func (h *holders) during(lo, hi int64, dst []heldNS) (_ []heldNS, total int64) {
	h.j.tl.Holds(lo, hi, func(b *timeline.HoldBlock) {
		from, to := max(lo, b.Begin), min(hi, b.End)
		total += b.Procs * (to - from)
		h.inside(b, from, to)
	}, func(o timeline.Hold) {
		o.Begin, o.End = max(lo, o.Begin), min(hi, o.End)
		if o.Begin < o.End {
			h.split(o, func(ref uint32, q *part, _ uint32) { h.add(ref, q.hi-q.lo) })
		}
	})
	for _, ref := range h.any {
		dst = append(dst, heldNS{ref, h.sums[ref]})
		h.sums[ref] = 0
	}
	h.any = h.any[:0]
	return dst, total
}

// inside adds what the block holds in [lo,hi).
func (h *holders) inside(b *timeline.HoldBlock, lo, hi int64) {
	x := h.of(b)
	if lo == b.Begin && hi == b.End {
		for _, s := range x.sums {
			h.add(s.ref, s.ns)
		}
		return
	}
	from, to := uint32(lo-b.Begin), uint32(hi-b.Begin)
	for i := 0; i < len(x.parts); i++ {
		q := &x.parts[i]
		if q.queued != 0 {
			i = h.queuedIn(b, x.parts, i, from, to)
		} else if q.begin < to && q.end > from {
			h.add(q.ref, int64(min(q.end, to)-max(q.begin, from)))
		}
	}
}

// queuedIn adds the part within [from,to) of the wait for a CPU that starts with parts[i], and
// returns the wait's last part.
func (h *holders) queuedIn(b *timeline.HoldBlock, parts []heldPart, i int, from, to uint32) int {
	last := i
	for last+1 < len(parts) && parts[last+1].queued == parts[i].queued && parts[last+1].begin == parts[last].end {
		last++
	}
	begin, end := parts[i].begin, parts[last].end
	switch lo, hi := max(begin, from), min(end, to); {
	case lo >= hi:
	case lo == begin && hi == end:
		for _, q := range parts[i : last+1] {
			h.add(q.ref, int64(q.end-q.begin))
		}
	default:
		h.threads(parts[i].queued, 0, b.Begin+int64(lo), b.Begin+int64(hi),
			func(ref uint32, q *part, _ uint32) { h.add(ref, q.hi-q.lo) })
	}
	return last
}

// of splits the holds of a block that are not split yet.
func (h *holders) of(b *timeline.HoldBlock) *heldBlock {
	x := &h.blocks[b.Number%heldBlocks]
	if x.number != b.Number {
		x.number, x.done, x.parts, x.sums = b.Number, 0, x.parts[:0], x.sums[:0]
	}
	for n := b.Len(); x.done < n; x.done++ {
		h.split(b.At(x.done), func(ref uint32, q *part, tid uint32) {
			if q.leaf != books.LeafNoCPU {
				tid = 0
			}
			x.parts = append(x.parts, heldPart{uint32(q.lo - b.Begin), uint32(q.hi - b.Begin), ref, tid})
			// They are of few kinds, so the plain way is enough.
			i := 0
			for i < len(x.sums) && x.sums[i].ref != ref {
				i++
			}
			if i == len(x.sums) {
				x.sums = append(x.sums, heldNS{ref: ref})
			}
			x.sums[i].ns += q.hi - q.lo
		})
	}
	return x
}

// split passes on what the thread did during one stretch in which it held a P.
func (h *holders) split(o timeline.Hold, tell func(ref uint32, q *part, tid uint32)) {
	tid := h.j.host(o.Thread)
	if tid == 0 && (o.Thread == 0 || !h.j.covered(o.Begin, o.End)) {
		tell(h.ref(lacked{who: o.Holder}), &part{lo: o.Begin, hi: o.End}, 0)
		return
	}
	h.threads(tid, o.Holder, o.Begin, o.End, tell)
}

func (h *holders) threads(tid, who uint32, lo, hi int64, tell func(ref uint32, q *part, tid uint32)) {
	j := h.j
	j.held = j.thread(j.held[:0], tid, lo, hi, books.LeafOnCPU, false)
	for i := range j.held {
		q := &j.held[i]
		l := lacked{leaf: q.leaf, who: who}
		switch q.leaf {
		case books.LeafNoCPU, books.LeafAsleep:
			l = lacked{leaf: q.leaf, detail: q.detail}
		case books.LeafMissing:
			l = lacked{who: whoUnknown}
		}
		if q.lo < q.hi {
			tell(h.ref(l), q, tid)
		}
	}
}

// named is what a share of the Ps' time is called.
func (h *holders) named(p *pass, ref uint32, entries map[string]bool) account.Instead {
	l := h.list[ref]
	if l.leaf == books.LeafOnCPU {
		return p.Occupant(l.who, entries)
	}
	i := account.Instead{Kind: account.InsteadKind(l.leaf.String())}
	switch {
	case l.detail != 0:
		i.Who = p.tl.Func(l.detail)
	case l.leaf == books.LeafNoCPU:
		i.Who = "unknown"
	case l.leaf != books.LeafAsleep:
		i.Who = p.Occupant(l.who, entries).Who
	}
	return i
}
