package timeline

// Hold is a stretch in which a goroutine held a P.
type Hold struct {
	Begin, End int64
	Who        uint32 // as in [Occupant]
	Thread     uint32 // with which it did, as the traced process sees it; 0 where that is not known
}

// Holds tells who held the Ps during [s,e) and with which thread, and returns the Ps' whole time in what is still known of it, ns. It goes by blocks of
// the history: one that lies inside as a whole has a number, by which known may say that it was told before. Of others the number is 0,
// and holds are cut to [s,e). It needs [Options.Threads].
func (t *Timeline) Holds(s, e int64, known func(block uint64) bool, tell func(block uint64, h Hold)) (total int64) {
	p := &t.procs
	cur := p.cur
	if b, end := max(s, cur.begin), min(e, t.now); b < end {
		total += int64(max(p.count(), 1)) * (end - b)
		p.holdsIn(cur, b, end, 0, tell)
		for i := range p.ps {
			if x := &p.ps[i]; x.who != whoNobody && x.held < end {
				tell(0, Hold{max(b, x.held), end, x.who, knownThread(x.thread)})
			}
		}
	}
	for n := p.from(s); n < p.next; n++ {
		b := &p.blocks[n%procBlocks]
		if b.begin >= e {
			break
		}
		from, to := max(s, b.begin), min(e, b.end)
		total += int64(b.count) * (to - from)
		number := uint64(0)
		if from == b.begin && to == b.end {
			if number = n + 1; known(number) {
				continue
			}
		}
		p.holdsIn(b, from, to, number, tell)
	}
	return total
}

// holdsIn tells of the block's occupations, which are in order of their ends, what lies in [from,to).
func (p *procs) holdsIn(b *procBlock, from, to int64, number uint64, tell func(uint64, Hold)) {
	for i := min(len(b.occ), len(b.by)) - 1; i >= 0; i-- {
		o := &b.occ[i]
		lo, hi := max(b.begin+int64(o.begin), from), min(b.begin+int64(o.end), to)
		if b.begin+int64(o.end) <= from {
			break
		}
		if lo < hi {
			tell(number, Hold{lo, hi, o.who, knownThread(b.by[i])})
		}
	}
}

func knownThread(id uint32) uint32 {
	if id == noThread {
		return 0
	}
	return id
}
