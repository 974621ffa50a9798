package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// overlaid is a stretch in which a thread was in the middle of something, whatever its state: a
// thread in the middle of a page fault may be on a CPU, wait for one, or be blocked.
type overlaid struct {
	begin, end int64
	block      Block
	sampled    bool // as samples say, not a record
}

// blockOf is what the thread of an event was in the middle of; BlockUnknown for an event that is a
// moment.
func (e *Event) blockOf() Block {
	switch e.Kind {
	case kernel.Fault:
		return BlockFault
	case kernel.Reclaim:
		if e.Flags&kernel.Memcg != 0 {
			return BlockMemcg
		}
		return BlockReclaim
	case kernel.Compaction:
		return BlockCompaction
	case kernel.MmapLock:
		return BlockMmapLock
	case kernel.NUMAMove:
		return BlockNUMA
	case kernel.KernelLock:
		return BlockOther
	case kernel.Disk:
		return BlockDisk
	}
	return BlockUnknown
}

// overlays lays the events of th flat, which may lie within each other: at every instant the
// innermost counts, as a reclaim within a fault. Disks and kernel locks are the exception: they are
// how the others wait, and are taken for what is around them. A stack of open events is kept; each
// time that its top changes, what passed since the last change is written.
func (k *columns) overlays(th *thread) {
	type open struct {
		end   int64
		block Block
	}
	var stack []open
	at := int64(-maxTimeNS) // up to here all is written
	emit := func(to int64) {
		if to > at && len(stack) > 0 {
			top := stack[len(stack)-1].block
			if n := len(th.overlay); n > 0 && th.overlay[n-1].end == at && th.overlay[n-1].block == top {
				th.overlay[n-1].end = to
			} else {
				th.overlay = append(th.overlay, overlaid{begin: at, end: to, block: top})
			}
		}
		at = max(at, to)
	}
	closeTo := func(t int64) {
		for len(stack) > 0 && stack[len(stack)-1].end <= t {
			emit(stack[len(stack)-1].end)
			stack = stack[:len(stack)-1]
		}
	}
	for _, n := range th.events {
		e := &k.events[n]
		block := e.blockOf()
		if block == BlockUnknown || e.End <= e.Begin {
			continue
		}
		closeTo(e.Begin)
		emit(e.Begin)
		if len(stack) >= 64 {
			continue
		}
		if m := len(stack); m > 0 && (block == BlockDisk || block == BlockOther) {
			block = stack[m-1].block
		}
		stack = append(stack, open{e.End, block})
	}
	closeTo(maxTimeNS * 2)
}
