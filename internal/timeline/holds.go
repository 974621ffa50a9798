package timeline

// Hold is a stretch in which a goroutine held a P.
type Hold struct {
	Begin, End int64
	Who        uint32 // as in [Occupant]
	Thread     uint32 // with which it did, as the traced process sees it; 0 where that is not known
}

// HoldBlock is a piece of the history of who held the Ps. Of the last one the end moves, and holds are added; else a block does not change.
type HoldBlock struct {
	Number     uint64 // not 0
	Begin, End int64
	Procs      int64 // how many there were

	b *procBlock
}

// Len is how many holds it has.
func (b *HoldBlock) Len() int { return min(len(b.b.occ), len(b.b.by)) }

// At is the i-th hold. They are in order of their ends.
func (b *HoldBlock) At(i int) Hold {
	o := &b.b.occ[i]
	return Hold{b.Begin + int64(o.begin), b.Begin + int64(o.end), o.who, knownThread(b.b.by[i])}
}

// Holds tells of who held the Ps during [s,e), and with which thread, in what is still known of it: of the blocks that touch it, and then, if
// the last one does, of who has held a P until now. It needs [Options.Threads].
func (t *Timeline) Holds(s, e int64, tell func(b *HoldBlock), open func(h Hold)) {
	p := &t.procs
	for n := p.from(s); n < p.next; n++ {
		b := &p.blocks[n%procBlocks]
		if b.begin >= e {
			break
		}
		tell(&HoldBlock{n + 1, b.begin, b.end, int64(b.count), b})
	}
	if p.cur.begin >= e || s >= t.now {
		return
	}
	tell(&HoldBlock{p.next + 1, p.cur.begin, t.now, int64(max(p.count(), 1)), p.cur})
	for i := range p.ps {
		if x := &p.ps[i]; x.who != whoNobody && x.held < t.now {
			open(Hold{max(p.cur.begin, x.held), t.now, x.who, knownThread(x.thread)})
		}
	}
}

func knownThread(id uint32) uint32 {
	if id == noThread {
		return 0
	}
	return id
}
