package timeline

// occupants is [Timeline.Occupants].
func (p *procs) occupants(s, e, now int64, dst []Occupant) (_ []Occupant, total int64) {
	p.sums.list = dst[:0]
	// What holds a P now is not in the block that is being filled.
	if begin, end := max(s, p.cur.begin), min(e, now); begin < end {
		total += int64(max(p.count(), 1)) * (end - begin)
		p.sums.part(p.cur, begin, end)
		for i := range p.ps {
			if x := &p.ps[i]; x.occupant != holderNobody && x.held < end {
				p.sums.add(x.occupant, end-max(begin, x.held))
			}
		}
	}
	total += p.closed(s, e)
	return p.sums.take(), total
}

// runningBy is [Timeline.RunningBy], without the sweeps.
func (p *procs) runningBy(now int64) []Occupant {
	var sums occupants
	for i, ns := range p.heldNS {
		if ns > 0 {
			sums.add(uint32(i)+holderSpecial, ns) // wraps
		}
	}
	for i := range p.ps {
		if x := &p.ps[i]; x.occupant != holderNobody && now > x.held {
			sums.add(x.occupant, now-x.held)
		}
	}
	return sums.take()
}

// Hold is a stretch in which a goroutine held a P.
type Hold struct {
	Begin, End int64
	Holder     uint32 // as in [Occupant]
	Thread     uint32 // with which it held the P, as the traced process sees it; 0 not known
	P          int32  // its number; -1: not kept
}

// HoldBlock is a piece of the history of who held the Ps. Of the last piece the end moves, and
// holds are added; the others do not change.
type HoldBlock struct {
	Number     uint64 // not 0
	Begin, End int64
	Procs      int64 // how many there were

	b *block
}

// Len is how many holds it has.
func (b *HoldBlock) Len() int { return min(len(b.b.occ), len(b.b.threads)) }

// At is the i-th hold. They are in order of their ends.
func (b *HoldBlock) At(i int) Hold {
	o, number := &b.b.occ[i], int32(-1)
	if i < len(b.b.numbers) {
		number = int32(b.b.numbers[i])
	}
	return Hold{b.Begin + int64(o.begin), b.Begin + int64(o.end), o.holder, knownThread(b.b.threads[i]), number}
}

// holds is [Timeline.Holds].
func (p *procs) holds(s, e, now int64, past func(b *HoldBlock), present func(h Hold)) {
	for n := p.from(s); n < p.next; n++ {
		b := p.at(n)
		if b.begin >= e {
			break
		}
		past(&HoldBlock{n + 1, b.begin, b.end, int64(b.count), b})
	}
	if p.cur.begin >= e || s >= now {
		return
	}
	past(&HoldBlock{p.next + 1, p.cur.begin, now, int64(max(p.count(), 1)), p.cur})
	for i := range p.ps {
		if x := &p.ps[i]; x.occupant != holderNobody && x.held < now {
			present(Hold{max(p.cur.begin, x.held), now, x.occupant, knownThread(x.thread), int32(x.number)})
		}
	}
}

func knownThread(id uint32) uint32 {
	if id == noThread {
		return 0
	}
	return id
}
