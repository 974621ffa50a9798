package ledger

import (
	"github.com/whystall/whystall/internal/timeline"
)

// Who held the Ps while somebody was runnable, and what their threads did meanwhile. The rule, by which a piece [lo,hi) of n Ps is split:
//  1. At every instant each P has a share of 1/n, whoever holds it.
//  2. A P that nobody holds is idle.
//  3. A P that a goroutine holds is by what the kernel says of that goroutine's thread at that instant: on a CPU, then it is who
//     ran instead; else what the thread lacked: a CPU (and who had it), quota, memory, a lock, a disk. What the thread is in on a CPU (a fault, reclaim)
//     counts as that. Where the records are missing it is not known who ran.
//
// So each nanosecond of the piece is told once, and what is told adds up to it. It divides an account, and books nothing.

// lacked is one thing that threads which held Ps lacked.
type lacked struct {
	leaf   leafCode        // codeOnCPU: nothing
	detail timeline.FuncID // of codeNoCPU behind whom, of codeAsleep in what
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

	// What was added up of whole blocks of the history, by number modulo: pieces of many requests share them.
	blocks [heldBlocks]heldBlock
	block  uint64 // that is told, 0 none
	inside []heldNS
}

const heldBlocks = 1 << 12

type heldBlock struct {
	number uint64
	list   []heldNS
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

// take gives the sums since the last call, and the Ps' whole time. The list is the caller's until then.
func (h *holders) during(lo, hi int64, dst []heldNS) (_ []heldNS, total int64) {
	total = h.j.tl.Holds(lo, hi, h.known, h.hold)
	h.close()
	for _, ref := range h.any {
		dst = append(dst, heldNS{ref, h.sums[ref]})
		h.sums[ref] = 0
	}
	h.any = h.any[:0]
	return dst, total
}

// known adds what a whole block holds, if that was added up before. Else it is being told from now on.
func (h *holders) known(block uint64) bool {
	h.close()
	b := &h.blocks[block%heldBlocks]
	if b.number != block {
		b.number, b.list = block, b.list[:0]
		h.block = block
		return false
	}
	for _, x := range b.list {
		h.add(x.ref, x.ns)
	}
	return true
}

// close ends the block that is being told.
func (h *holders) close() {
	if h.block == 0 {
		return
	}
	b := &h.blocks[h.block%heldBlocks]
	for _, x := range h.inside {
		// few kinds, so that the plain way is enough
		n := 0
		for n < len(b.list) && b.list[n].ref != x.ref {
			n++
		}
		if n == len(b.list) {
			b.list = append(b.list, heldNS{ref: x.ref})
		}
		b.list[n].ns += x.ns
	}
	for _, x := range b.list {
		h.add(x.ref, x.ns)
	}
	h.block, h.inside = 0, h.inside[:0]
}

// hold splits one stretch in which a P was held.
func (h *holders) hold(block uint64, o timeline.Hold) {
	j := h.j
	if block == 0 {
		h.close()
	}
	tid := j.host(o.Thread)
	if tid == 0 && o.Thread != 0 && !j.covered(o.Begin, o.End) || o.Thread == 0 {
		h.put(block, lacked{who: o.Who}, o.End-o.Begin)
		return
	}
	j.held = j.thread(j.held[:0], tid, o.Begin, o.End, codeOnCPU, false)
	for i := range j.held {
		q := &j.held[i]
		l := lacked{leaf: q.leaf, who: o.Who}
		switch q.leaf {
		case codeNoCPU, codeAsleep:
			l = lacked{leaf: q.leaf, detail: q.detail}
		case codeMissing:
			l = lacked{who: whoUnknown}
		}
		h.put(block, l, q.hi-q.lo)
	}
}

func (h *holders) put(block uint64, l lacked, ns int64) {
	if ns <= 0 {
		return
	}
	ref := h.ref(l)
	if block == 0 {
		h.add(ref, ns)
		return
	}
	h.inside = append(h.inside, heldNS{ref, ns})
}

// named is what a share of the Ps' time is called.
func (h *holders) named(p *pass, ref uint32, entries map[string]bool) Instead {
	l := h.list[ref]
	if l.leaf == codeOnCPU {
		return p.name(l.who, entries)
	}
	i := Instead{Kind: string(leafOf[l.leaf])}
	switch {
	case l.detail != 0:
		i.Who = p.tl.Func(l.detail)
	case l.leaf == codeNoCPU:
		i.Who = "unknown"
	case l.leaf != codeAsleep:
		i.Who = p.name(l.who, entries).Who
	}
	return i
}
