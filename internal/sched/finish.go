package sched

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// finish adds what is known only when all records are read. In steps:
//  1. Threads whose last switch is missing end with the record of their exit.
//  2. What threads did on a CPU while its records were lost becomes unknown (gaps.go).
//  3. What is known of other programs' threads on a CPU is put in order.
//  4. Each thread gets the list of its events.
//  5. Its faults, reclaims and the like are laid over its states (overlay.go), and then what its
//     samples say (sampled.go).
//  6. Names are put in order.
//  7. Each wait gets what it was in (block.go). The tables of stacks are whole only now.
func (b *builder) finish(src kernel.Source) {
	for i := range b.threads {
		th := &b.threads[i]
		if s := th.last(); th.exiting && s != nil && s.doing() != Gone {
			if l := th.life(); l != nil && l.exit >= s.begin {
				b.push(th, l.exit, Gone, -1, 0, 0)
			}
		}
	}
	b.cutGaps()
	for i := range b.cpus {
		b.sortHeld(&b.cpus[i])
	}
	b.indexEvents()
	stacks := &stackClasses{src, map[uint32]stackClass{}}
	for i := range b.threads {
		b.overlays(&b.threads[i])
		b.sampled(&b.threads[i], stacks)
	}
	b.indexNames(src.Threads())
	b.findBlocks(stacks)
}

// sortHeld puts in order who held a CPU, each instant once: of two that overlap, the longer of
// those that start first.
func (b *builder) sortHeld(c *cpuLog) {
	if n := len(c.runs); n > 0 && b.fold && b.find(c.runs[n-1].tid) == nil {
		c.runs[n-1].bad = true
	}
	slices.SortFunc(c.held, func(x, y hold) int {
		return cmp.Or(cmp.Compare(x.begin, y.begin), cmp.Compare(y.end, x.end), cmp.Compare(x.tid, y.tid))
	})
	kept := c.held[:0]
	at := int64(-2 * maxTimeNS)
	for _, h := range c.held {
		if h.begin = max(h.begin, at); h.end <= h.begin {
			continue
		}
		kept = append(kept, h)
		at = h.end
	}
	c.held = kept
}

// indexEvents lists events by thread.
func (b *builder) indexEvents() {
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
}

// indexNames lists names by thread, in order of the time from which on they hold.
func (b *builder) indexNames(threads []kernel.Thread) {
	b.names, b.byNS = map[uint32][]kernel.Thread{}, map[uint32]uint32{}
	for _, t := range threads {
		b.names[t.TID] = append(b.names[t.TID], t)
		if t.Target && t.NSTID != 0 {
			b.byNS[t.NSTID] = t.TID
		}
	}
	for _, l := range b.names {
		slices.SortStableFunc(l, func(x, y kernel.Thread) int { return cmp.Compare(x.Since, y.Since) })
	}
}

// findBlocks finds what each wait was in: by its kernel stack, which knows best; else by its system
// call; else by the kind of the file that the call was for.
func (b *builder) findBlocks(stacks *stackClasses) {
	calls := b.calls()
	for i := range b.threads {
		offs := b.threads[i].offs
		for j := range offs {
			o := &offs[j]
			o.block = stacks.of(o.kernel).block
			if o.block == BlockUnknown || o.block == BlockOther || o.block == BlockKernelLock {
				if c := calls.of(o.call, o.arg); c != BlockUnknown {
					o.block = c
				} else if o.block == BlockUnknown && calls != nil && calls.files[o.call] && o.flags&offDeep == 0 {
					o.block = b.files[o.arg]
				}
			}
			if o.flags&offStopped != 0 {
				o.block = BlockStopped // it goes back afterwards to what its stack shows
				continue
			}
			if calls != nil && o.call >= 0 && calls.futex[o.call] {
				o.flags |= offFutex
			}
			if calls != nil && o.waker.call >= 0 && calls.signals[o.waker.call] || o.waker.seen &&
				stacks.of(o.waker.kernel).signal {
				o.waker.flags |= wakerSignal
			}
		}
	}
}
