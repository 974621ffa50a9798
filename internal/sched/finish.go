package sched

import (
	"cmp"
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// trim gives up what is oldest once the columns are larger than they may be.
func (b *kbuilder) trim() {
	for b.bytes > b.limit && b.begin < b.end {
		b.cut(b.begin + (b.end-b.begin)/2 + 1)
	}
	if b.bytes > b.limit && len(b.events) > 1 {
		b.cut(b.end) // all at one instant: no stream of a kernel
		b.bytes -= len(b.events) * eventBytes
		b.events = b.events[:0]
	}
}

// cut forgets what ended before t.
func (b *kbuilder) cut(t int64) {
	b.bytes = 0
	for i := range b.threads {
		th := &b.threads[i]
		b.bytes += threadBytes + len(th.lives)*40
		if at := th.at(t); at >= 0 {
			th.segs = th.segs[:copy(th.segs, th.segs[at:])]
			th.segs[0].begin = max(th.segs[0].begin, min(t, b.end))
		}
		first := uint32(0)
		for _, s := range th.segs {
			if s.off != 0 && (first == 0 || s.off < first) {
				first = s.off
			}
		}
		if first > 1 {
			th.offs = th.offs[:copy(th.offs, th.offs[first-1:])]
			for j := range th.segs {
				if th.segs[j].off != 0 {
					th.segs[j].off -= first - 1
				}
			}
		} else if first == 0 {
			th.offs = th.offs[:0]
		}
		b.bytes += len(th.segs)*segBytes + len(th.offs)*offBytes
	}
	for i := range b.cpus {
		c := &b.cpus[i]
		if at := c.at(t); at >= 0 {
			c.runs = c.runs[:copy(c.runs, c.runs[at:])]
			c.runs[0].begin = max(c.runs[0].begin, min(t, b.end))
		}
		c.lost = slices.DeleteFunc(c.lost, func(s Span) bool { return s.End <= t })
		c.held = slices.DeleteFunc(c.held, func(h hold) bool { return h.end <= t })
		b.bytes += len(c.runs)*runBytes + len(c.lost)*16 + len(c.held)*24
	}
	b.events = slices.DeleteFunc(b.events, func(e Event) bool { return e.End < t })
	b.bytes += len(b.events) * eventBytes
	b.begin = min(t, b.end)
	b.dropped = b.begin
}

// finish makes what is looked up by.
func (b *kbuilder) finish(src kernel.Source) {
	for i := range b.threads {
		th := &b.threads[i]
		if s := th.last(); th.exiting && s != nil && s.doing() != Gone {
			// Its last switch is missing.
			if l := th.life(); l != nil && l.exit >= s.begin {
				b.push(th, l.exit, Gone, -1, 0, 0)
			}
		}
	}
	b.holes()
	for i := range b.cpus {
		b.holds(&b.cpus[i])
	}
	for i := range b.events {
		e := &b.events[i]
		if th := b.find(e.TID); th != nil {
			th.events = append(th.events, uint32(i))
			until := e.End
			if n := len(th.until); n > 0 {
				until = max(until, th.until[n-1])
			}
			th.until = append(th.until, until)
		}
	}
	stacks := &stackClasses{src, map[uint32]stackClass{}}
	for i := range b.threads {
		b.overlays(&b.threads[i])
		b.sampled(&b.threads[i], stacks)
	}
	b.names, b.byNS = map[uint32][]kernel.Thread{}, map[uint32]uint32{}
	for _, t := range src.Threads() {
		b.names[t.TID] = append(b.names[t.TID], t)
		if t.Target && t.NSTID != 0 {
			b.byNS[t.NSTID] = t.TID
		}
	}
	for _, l := range b.names {
		slices.SortStableFunc(l, func(x, y kernel.Thread) int {
			switch {
			case x.Since < y.Since:
				return -1
			case x.Since > y.Since:
				return 1
			}
			return 0
		})
	}
	b.classify(stacks)
}

// holds puts what was told of a CPU in order, each instant once.
func (b *kbuilder) holds(c *kcpu) {
	if n := len(c.runs); n > 0 && b.fold && b.find(c.runs[n-1].tid) == nil {
		c.runs[n-1].bad = true
	}
	slices.SortFunc(c.held, func(x, y hold) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(y.end, x.end), cmp.Compare(x.tid, y.tid))
	})
	out := c.held[:0]
	at := int64(-2 * maxTimeNS)
	for _, h := range c.held {
		if h.begin = max(h.begin, at); h.end <= h.begin {
			continue
		}
		out = append(out, h)
		at = h.end
	}
	c.held = out
}

// classify tells of each wait what it was in.
func (b *kbuilder) classify(stacks *stackClasses) {
	calls := b.calls()
	for i := range b.threads {
		offs := b.threads[i].offs
		for j := range offs {
			o := &offs[j]
			o.block = stacks.of(o.kernel).block
			if o.block == BlockUnknown || o.block == BlockOther {
				if c := calls.of(o.call, o.arg); c != BlockUnknown {
					o.block = c
				} else if o.block == BlockUnknown && calls != nil && calls.files[o.call] && o.flags&koffDeep == 0 {
					o.block = b.files[o.arg]
				}
			}
			if o.flags&koffStopped != 0 {
				o.block = BlockStopped // before it goes back to what its stack tells
				continue
			}
			if calls != nil && o.call >= 0 && calls.futex[o.call] {
				o.flags |= koffFutex
			}
			if calls != nil && o.wcall >= 0 && calls.signals[o.wcall] || o.asked && stacks.of(o.wkern).signal {
				o.flags |= koffSignal
			}
		}
	}
}

// holes makes unknown what threads did on a CPU while its records were lost: who was on it or in its queue, and who
// came from it or went to it.
func (b *kbuilder) holes() {
	any := false
	for i := range b.cpus {
		if len(b.cpus[i].lost) > 0 {
			any = true
		}
	}
	var out []kseg
	for i := range b.threads {
		th := &b.threads[i]
		if any {
			out = out[:0]
			cut := false
			for j := range th.segs {
				out, cut = b.hole(th, j, out, cut)
			}
			if cut {
				th.segs = append([]kseg(nil), out...)
			}
		}
		for j := range th.segs {
			if s := &th.segs[j]; s.doing() == Unknown && s.meta&ksegMissing != 0 {
				b.totals.BreakNS = min(b.totals.BreakNS+b.segEnd(th, j)-s.begin, maxTimeNS)
			}
		}
	}
}

// hole appends segment j of th to out, cut by the losses of the CPUs that it has to do with.
func (b *kbuilder) hole(th *kthread, j int, out []kseg, cut bool) ([]kseg, bool) {
	s := th.segs[j]
	end := b.segEnd(th, j)
	if d := s.doing(); d == Unknown || d == Gone || end <= s.begin {
		return append(out, s), cut
	}
	cpus := [3]int16{s.cpu, -1, -1}
	if s.doing() != OnCPU {
		for i := j - 1; i >= 0 && i >= j-4; i-- {
			if th.segs[i].doing() == OnCPU {
				cpus[1] = th.segs[i].cpu
				break
			}
		}
		for i := j + 1; i < len(th.segs) && i <= j+4; i++ {
			if th.segs[i].doing() == OnCPU {
				cpus[2] = th.segs[i].cpu
				break
			}
		}
	}
	from := s.begin
	for from < end {
		// the loss that begins first
		var hole Span
		found := false
		for i, c := range cpus {
			if c < 0 || int(c) >= len(b.cpus) || i > 0 && c == cpus[0] || i == 2 && c == cpus[1] {
				continue
			}
			l := b.cpus[c].lost
			n := sort.Search(len(l), func(n int) bool { return l[n].End > from })
			if n < len(l) && l[n].Begin < end && (!found || l[n].Begin < hole.Begin) {
				hole, found = l[n], true
			}
		}
		if !found {
			break
		}
		cut = true
		if hole.Begin > from {
			piece := s
			piece.begin = from
			out = append(out, piece)
		}
		at := max(hole.Begin, from)
		if n := len(out); n == 0 || out[n-1].begin < at {
			out = append(out, kseg{begin: at, cpu: -1, meta: uint16(Unknown) | ksegMissing})
		} else {
			out[n-1] = kseg{begin: out[n-1].begin, cpu: -1, meta: uint16(Unknown) | ksegMissing}
		}
		from = min(hole.End, end)
	}
	if from < end {
		s.begin = from
		out = append(out, s)
	}
	return out, cut
}
