package sched

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// finish makes what is looked up by.
func (b *builder) finish(src kernel.Source) {
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
func (b *builder) holds(c *cpuLog) {
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
func (b *builder) classify(stacks *stackClasses) {
	calls := b.calls()
	for i := range b.threads {
		offs := b.threads[i].offs
		for j := range offs {
			o := &offs[j]
			o.block = stacks.of(o.kernel).block
			if o.block == BlockUnknown || o.block == BlockOther {
				if c := calls.of(o.call, o.arg); c != BlockUnknown {
					o.block = c
				} else if o.block == BlockUnknown && calls != nil && calls.files[o.call] && o.flags&offDeep == 0 {
					o.block = b.files[o.arg]
				}
			}
			if o.flags&offStopped != 0 {
				o.block = BlockStopped // before it goes back to what its stack tells
				continue
			}
			if calls != nil && o.call >= 0 && calls.futex[o.call] {
				o.flags |= offFutex
			}
			if calls != nil && o.waker.call >= 0 && calls.signals[o.waker.call] || o.waker.seen && stacks.of(o.waker.kernel).signal {
				o.waker.flags |= wakerSignal
			}
		}
	}
}
