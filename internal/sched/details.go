package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// Records that add to what switches and wakings say, of a wait, a descriptor or a CPU.

// stack gives a wait its stacks. They come at its end, when the recorder knows that it was long
// enough to be worth them; or, with the flag Leaving, right before it starts.
func (b *builder) stack(r *kernel.Record) {
	th := b.find(r.TID)
	if th == nil {
		return
	}
	s := th.last()
	if s == nil {
		return
	}
	if r.Flags&kernel.Leaving != 0 && s.doing() == OnCPU {
		th.leaving = [2]uint32{r.Kernel, r.User}
		return
	}
	if s.doing() == Unknown || s.doing() == Gone {
		return
	}
	if s.off == 0 {
		// The stacks are those of the whole time off a CPU, so all of its segments share them.
		_, n := b.addOff(th)
		s.off = n
		for i := len(th.segs) - 2; i >= 0 && th.segs[i].off == 0; i-- {
			if d := th.segs[i].doing(); d != Queued && d != Throttled && d != Blocked {
				break
			}
			th.segs[i].off = n
		}
	}
	o := &th.offs[s.off-1]
	if r.Kernel != 0 {
		o.kernel = r.Kernel
	}
	if r.User != 0 {
		o.user = r.User
	}
}

// mostDescriptors bounds the descriptors whose kind is kept.
const mostDescriptors = 1 << 16

// file notes what a descriptor is. One that was closed and used again for another kind of file says
// nothing.
func (b *builder) file(r *kernel.Record) {
	kind := BlockUnknown
	switch r.Arg[1] {
	case kernel.FileSocket, kernel.FileMade:
		kind = BlockNetwork
	case kernel.FilePipe:
		kind = BlockPipe
	}
	before, ok := b.files[r.Arg[0]]
	switch {
	case ok && before != kind:
		kind = BlockUnknown
	case !ok && len(b.files) >= mostDescriptors:
		return
	case b.files == nil:
		b.files = map[uint64]Block{}
	}
	b.files[r.Arg[0]] = kind
	if made := r.Arg[1] == kernel.FileMade; made && !ok {
		if b.made == nil {
			b.made = map[uint64]bool{}
		}
		b.made[r.Arg[0]] = true
	} else if !made {
		delete(b.made, r.Arg[0])
	}
}

// held notes that a thread of another program had a CPU, where its switches are folded. The
// recorder says it for each thread of the target that was queued there, so the same stay can come
// several times.
func (b *builder) held(r *kernel.Record, t int64) {
	c := b.cpu(int(r.CPU))
	ns := int64(min(r.Arg[0], maxTimeNS))
	if c == nil || ns == 0 || b.find(r.Other) != nil {
		return // the switches of the target's own threads are all recorded
	}
	h := hold{t - ns, t, r.Other}
	if n := len(c.held); n > 0 && c.held[n-1].end == h.end && c.held[n-1].tid == h.tid {
		c.held[n-1].begin = min(c.held[n-1].begin, h.begin)
		return
	}
	c.held = append(c.held, h)
	b.bytes += holdBytes
}

// lost notes that a CPU's records are missing for a while. Lost stacks cost no knowledge of states.
func (b *builder) lost(r *kernel.Record, t int64) {
	stacks := int64(min(r.Arg[1], r.Arg[0], maxTimeNS))
	n := int64(min(r.Arg[0], maxTimeNS)) - stacks
	b.totals.Lost = min(b.totals.Lost+n, maxTimeNS)
	b.totals.LostStacks = min(b.totals.LostStacks+stacks, maxTimeNS)
	if n == 0 {
		return
	}
	c := b.cpu(int(r.CPU))
	if c == nil {
		return
	}
	s := Span{t, t + int64(min(r.Arg[2], maxTimeNS))}
	if m := len(c.lost); m > 0 && s.Begin <= c.lost[m-1].End {
		c.lost[m-1].End = max(c.lost[m-1].End, s.End)
		return
	}
	c.lost = append(c.lost, s)
	b.bytes += spanBytes
}
