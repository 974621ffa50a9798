package sched

import (
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Event is one of the rarer records. End is Begin of what is a moment, or of which only the begin is known.
type Event struct {
	Begin, End int64
	TID, Other uint32
	Kernel     uint32 // StackIDs
	User       uint32
	Arg        [2]uint64 // as the record's Arg[1] and [2]; of Held, Unthrottle and Sample [0] is the record's Arg[0]
	CPU        int16
	Flags      kernel.Flags
	Kind       kernel.Kind
}

// Events calls f with the events that overlap [lo,hi), in the order of their begins, of the kinds asked for: none asks for all. It ends when f
// returns false.
func (k *Timeline) Events(lo, hi int64, f func(*Event) bool, kinds ...kernel.Kind) {
	want := kindSet(kinds)
	for i := range k.events {
		e := &k.events[i]
		if e.Begin >= hi {
			break
		}
		if e.Begin < lo && e.End <= lo || want>>e.Kind&1 == 0 {
			continue
		}
		if !f(e) {
			return
		}
	}
}

// EventsOf is Events of the records about one thread of the target. It looks only where there can be one.
func (k *Timeline) EventsOf(tid uint32, lo, hi int64, f func(*Event) bool, kinds ...kernel.Kind) {
	th := k.find(tid)
	if th == nil {
		return
	}
	want := kindSet(kinds)
	i := sort.Search(len(th.until), func(i int) bool { return th.until[i] >= lo })
	for ; i < len(th.events); i++ {
		e := &k.events[th.events[i]]
		if e.Begin >= hi {
			break
		}
		if e.Begin < lo && e.End <= lo || want>>e.Kind&1 == 0 {
			continue
		}
		if !f(e) {
			return
		}
	}
}

func kindSet(kinds []kernel.Kind) uint64 {
	if len(kinds) == 0 {
		return ^uint64(0)
	}
	s := uint64(0)
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// overlaid is a stretch in which a thread was in the middle of something, whatever its state.
type overlaid struct {
	begin, end int64
	block      Block
	sampled    bool
}

// blockOf is what a stretch's record says its thread was in.
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

// overlays lays th's stretches flat: at every instant the innermost holds, but for disk and kernel locks, which are how the others wait.
func (k *kernelState) overlays(th *kthread) {
	type open struct {
		end   int64
		block Block
	}
	var stack []open
	at := int64(0)
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
	at = -maxTimeNS
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
