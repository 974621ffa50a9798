package ledger

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/timeline"
)

// Who is explained. Only at the end is it known who is slow; explaining must happen when an activation ends. So
// those are explained and kept that are among the slowest 2 % (1.25 % when they are very many), at least 600, of their
// group up to then, thinned out as that moves, and a sample of the others: in each octave of own running time those with the smallest hashes.

const (
	maxKept     = 14 << 20 // bytes of facts
	perStratum  = 24
	strata      = 48
	alwaysBelow = 600 // the slowest so many that a group has had are always kept
	maxGroups   = 1 << 14
)

// kept is an explained activation.
type kept struct {
	begin, end int64
	own        int64 // running
	goid       int64
	hash       uint64
	group      *group
	facts      []fact
	name       request.NameID
	limited    bool
	slow       bool
}

func (k *kept) wall() int64 { return k.end - k.begin }

func (k *kept) size() int { return 96 + 16*len(k.facts) }

// slower orders by wall, longest first.
func slower(a, b *kept) int {
	return cmp.Or(cmp.Compare(b.wall(), a.wall()), cmp.Compare(a.begin, b.begin), cmp.Compare(a.goid, b.goid))
}

// group is what is known of the activations of one request.GroupID.
type group struct {
	count  int64
	gone   int64 // whose goroutine was not there any more
	sum    int64 // of wall
	max    int64
	over   int64 // at least Options.SlowOver
	hist   histogram
	thr    int64 // below it nobody is a candidate
	hot    int64 // from it on it is worth asking who ran instead
	cands  []*kept
	walls  []int64         // of cands, so that thinning does not look at each
	others [strata][]*kept // by hash, smallest first
	floor  int64           // raised for lack of room

	all allColumn
}

func (p *pass) group(id request.GroupID) *group {
	if id >= maxGroups {
		return nil
	}
	for int(id) >= len(p.groups) {
		p.groups = append(p.groups, nil)
	}
	if p.groups[id] == nil {
		p.groups[id] = &group{}
	}
	return p.groups[id]
}

func (g *group) tally(wall int64) {
	g.count++
	g.sum += wall
	g.max = max(g.max, wall)
	g.hist.add(wall)
}

// slowest is how many are slow, unless told what is.
func (g *group) slowest() int64 { return (g.count + 50) / 100 }

func (g *group) add(wall int64) {
	g.tally(wall)
	if g.count > alwaysBelow && g.count%64 == 0 {
		n := float64(g.count)
		share := 0.02
		if g.count > 50_000 {
			share = 0.0125 // what it is moves little by then
		}
		q := g.hist.quantiles([3]float64{0.99, 1 - max(0.015, alwaysBelow/2/n), 1 - max(share, alwaysBelow/n)})
		g.hot = min(q[0]*4/5, q[1])
		g.thr = max(g.floor, q[2])
	}
}

// candidate tells whether an activation may turn out to be slow.
func (g *group) candidate(wall, slowOver int64) bool {
	if slowOver > 0 {
		if wall >= slowOver {
			g.over++
		}
		return wall >= max(slowOver, g.floor)
	}
	return wall >= g.thr
}

func (g *group) keep(k *kept) (bytes int) {
	g.cands, g.walls = append(g.cands, k), append(g.walls, k.wall())
	bytes = k.size()
	if n := len(g.cands); n >= 2*alwaysBelow && n%64 == 0 {
		bytes -= g.thin(max(g.thr, 0))
	}
	return bytes
}

// thin drops candidates below thr.
func (g *group) thin(thr int64) (bytes int) {
	n := 0
	for i, wall := range g.walls {
		if wall < thr {
			bytes += g.cands[i].size()
			continue
		}
		if i != n {
			g.cands[n], g.walls[n] = g.cands[i], wall
		}
		n++
	}
	clear(g.cands[n:])
	g.cands, g.walls = g.cands[:n], g.walls[:n]
	return bytes
}

// shrink makes room: the group that takes most keeps the slower half of its candidates. Groups of unknown loops come first
// as long as they take more than a quarter of the room: it is only known at the end which of them are shown.
func (p *pass) shrink() {
	list := p.f.Groups()
	p.bytes = 0
	var unknown int
	sizes := make([]int, len(p.groups))
	for id, g := range p.groups {
		if g == nil {
			continue
		}
		for _, s := range g.others {
			for _, k := range s {
				p.bytes += k.size()
			}
		}
		for _, k := range g.cands {
			sizes[id] += k.size()
		}
		p.bytes += sizes[id]
		if isUnknown(list, id) {
			unknown += sizes[id]
		}
	}
	for p.bytes > maxKept*3/4 {
		most := -1
		for id, size := range sizes {
			if size > 0 && len(p.groups[id].cands) >= 32 && (unknown <= maxKept/4 || isUnknown(list, id)) && (most < 0 || size > sizes[most]) {
				most = id
			}
		}
		if most < 0 {
			break
		}
		freed := p.groups[most].halve()
		p.bytes -= freed
		sizes[most] -= freed
		if isUnknown(list, most) {
			unknown -= freed
		}
	}
	if p.bytes <= maxKept*3/4 {
		return
	}
	for _, g := range p.groups { // very many groups: their samples
		if g == nil {
			continue
		}
		for i := range g.others {
			for len(g.others[i]) > 2 {
				n := len(g.others[i]) - 1
				p.bytes -= g.others[i][n].size()
				g.others[i][n] = nil
				g.others[i] = g.others[i][:n]
			}
		}
	}
}

func isUnknown(list []request.Group, id int) bool {
	return id < len(list) && (list[id].Kind == "loop" || list[id].Kind == "goroutine")
}

// halve drops the faster half of the candidates.
func (g *group) halve() (bytes int) {
	slices.SortFunc(g.cands, slower)
	n := len(g.cands) / 2
	g.floor = max(g.floor, g.cands[n-1].wall())
	g.thr = max(g.thr, g.floor)
	for _, k := range g.cands[n:] {
		bytes += k.size()
	}
	clear(g.cands[n:])
	g.cands, g.walls = g.cands[:n], g.walls[:n]
	for i, k := range g.cands {
		g.walls[i] = k.wall()
	}
	return bytes
}

func stratum(own int64) int { return min(bits.Len64(uint64(max(own, 0))), strata-1) }

// wants tells whether the sample of others has room.
func (g *group) wants(own int64, hash uint64) bool {
	s := g.others[stratum(own)]
	return len(s) < perStratum || hash < s[len(s)-1].hash
}

func (g *group) sample(k *kept) (bytes int) {
	s := &g.others[stratum(k.own)]
	i, _ := slices.BinarySearchFunc(*s, k.hash, func(a *kept, h uint64) int { return cmp.Compare(a.hash, h) })
	*s = slices.Insert(*s, i, k)
	bytes = k.size()
	if len(*s) > perStratum {
		bytes -= (*s)[perStratum].size()
		(*s)[perStratum] = nil
		*s = (*s)[:perStratum]
	}
	return bytes
}

// allColumn adds up every activation of a group by its own states.
type allColumn struct {
	wall int64
	t    table
	ns   []int64
	own  [leafCodes]uint32 // by leaf, of the goroutine's own time without a stack: index in ns, plus one
}

func (c *allColumn) add(class classCode, leaf leafCode, stack uint32, ns int64) {
	c.book(class, leaf, stack, 0, ns)
}

// book adds time of a leaf. Stack is where the request's wait or call stands, detail as in account.
func (c *allColumn) book(class classCode, leaf leafCode, stack, detail uint32, ns int64) {
	plain := class == classOwn && stack == 0 && detail == 0
	if plain && c.own[leaf] != 0 {
		c.ns[c.own[leaf]-1] += ns
		return
	}
	n, isNew := c.t.get(uint64(class)<<8|uint64(leaf), uint64(detail)<<32|uint64(stack))
	if isNew {
		c.ns = append(c.ns, 0)
	}
	c.ns[n] += ns
	if plain {
		c.own[leaf] = n + 1
	}
}

// own adds [b,e) of g to the group's column of all, by g's own states, and returns how long it ran and when the request was there by the
// kernel, which may be before b.
func (p *pass) own(grp *group, g *timeline.G, b, e, prevEnd int64) (running, begin int64) {
	tl, c := p.tl, &grp.all
	cursor := e
	emit := func(lo int64, class classCode, leaf leafCode, stack uint32) {
		if lo < cursor {
			c.add(class, leaf, stack, cursor-lo)
			cursor = lo
		}
	}
	tl.Pin(g)
	at, stale := tl.StaleAt(g)
	if stale {
		emit(max(b, at), classOwn, codeGap, 0)
	}
	seq := uint32(g.Cur)
	for cursor > b {
		s := tl.Seg(seq)
		if s == nil {
			emit(b, classOwn, codeLookback, 0)
			break
		}
		if n := len(p.hops); n > 0 && cursor == p.hops[n-1] && s.State() == timeline.Waiting {
			emit(b, classMessage, codeOther, s.Stack) // others had it until then
			break
		}
		if start := tl.Start(s); start < cursor {
			lo := max(start, b)
			switch state := s.State(); {
			case p.j != nil && (state == timeline.Running || state == timeline.Syscall || state == timeline.Runnable):
				running += p.ownJoined(grp, g, s, seq, lo, &cursor)
			case state == timeline.Running:
				running += cursor - lo
				leaf := codeOnCPU
				switch {
				case s.STW():
					leaf = codeSTWWork
				case s.Sweep():
					leaf = codeSweep
				case s.Assist():
					leaf = codeAssist
				}
				emit(lo, classOwn, leaf, 0)
			case state == timeline.Runnable:
				p.ownStoppable(lo, &cursor, c, classOwn, codeRunnable, 0)
			case state == timeline.Syscall:
				emit(lo, classOwn, codeSyscall, s.Stack)
			case state == timeline.Waiting:
				if prevEnd > lo { // the tail of the request before
					p.ownWait(max(lo, min(prevEnd, cursor)), &cursor, grp, g, s, seq, stale)
					emit(lo, classOwn, codePreviousEnd, 0)
				} else {
					p.ownWait(lo, &cursor, grp, g, s, seq, stale)
				}
			default:
				leaf := codeUnknown
				if s.Gap() {
					leaf = codeGap
				}
				emit(lo, classOwn, leaf, 0)
			}
		}
		if cursor <= b {
			if p.j == nil || s.State() != timeline.Runnable || s.Prev == 0 || tl.Start(s) != b {
				break
			}
			at, ok := p.j.ready.request(g.Ident, s.Prev, b)
			if !ok || at >= b {
				break
			}
			b = at
		}
		switch {
		case len(p.hops) > 0 && s.Why() == timeline.WhyNewborn && s.State() == timeline.Runnable && cursor == p.hops[len(p.hops)-1]:
			emit(b, classMessage, codeOther, 0) // likewise
		case s.First() && s.Gap():
			emit(b, classOwn, codeGap, 0)
		case s.First():
			emit(b, classOwn, codeBeforeTrace, 0)
		case s.Prev == 0:
			// born inside: a goroutine's life is the activation, which does not begin before it
			emit(b, classOwn, codeLookback, 0)
		default:
			seq, stale = s.Prev, false
		}
	}
	c.wall += e - b
	return running, b
}

func (p *pass) ownStoppable(lo int64, cursor *int64, c *allColumn, class classCode, leaf leafCode, stack uint32) {
	for *cursor > lo {
		begin, end, _, ok := p.tl.Stopped(lo, *cursor)
		if !ok {
			begin, end = lo, lo
		}
		if end < *cursor {
			c.add(class, leaf, stack, *cursor-end)
		}
		if begin < end {
			c.add(class, codeSTW, 0, end-begin)
		}
		*cursor = begin
	}
}

func (p *pass) ownWait(lo int64, cursor *int64, grp *group, g *timeline.G, s *timeline.Segment, seq uint32, stale bool) {
	if lo >= *cursor {
		return
	}
	c := &grp.all
	w, by := s.Wait(), s.By()
	class, leaf := classOfWait(w, by), waitLeaf(w)
	if p.j != nil && p.ownJoinedWait(grp, g, s, seq, lo, cursor, class, leaf) {
		return
	}
	if collects(w) {
		p.ownStoppable(lo, cursor, c, class, leaf, s.Stack)
		return
	}
	switch w {
	case timeline.WaitMessage, timeline.WaitLock, timeline.WaitUnknown, timeline.WaitNetwork:
		switch {
		case by == timeline.EnderGoroutine:
			leaf = codeOther
		case by == timeline.EnderNone && w != timeline.WaitNetwork && (stale || s.Gap()):
			leaf = codeGap
		case by == timeline.EnderNone && w != timeline.WaitNetwork:
			leaf = codeNotWoken
		case w == timeline.WaitLock:
			leaf = codeLockUnseen
		case w == timeline.WaitUnknown && s.First():
			leaf = codeBeforeTrace
		}
	}
	c.add(class, leaf, s.Stack, *cursor-lo)
	*cursor = lo
}
