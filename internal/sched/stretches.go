package sched

import (
	"sort"
)

// Stretches appends the stretches of thread tid in [lo,hi) to dst, oldest first. They tile it
// exactly.
func (k *Timeline) Stretches(tid uint32, lo, hi int64, dst []Stretch) []Stretch {
	lo, hi = clampTime(lo), clampTime(hi)
	th := k.find(tid)
	if th == nil {
		if lo < hi {
			dst = append(dst, Stretch{Begin: lo, End: hi, CPU: -1, Syscall: -1, WakerCall: -1, Whole: Span{lo, hi}})
		}
		return dst
	}
	k.each(th, lo, hi, func(s *Stretch) bool {
		dst = append(dst, *s)
		return true
	})
	return dst
}

// At is the stretch of tid that covers t, with its whole in Whole.
func (k *Timeline) At(tid uint32, t int64) Stretch {
	t = clampTime(t)
	s := Stretch{Begin: t, End: t + 1, CPU: -1, Syscall: -1, WakerCall: -1, Whole: Span{t, t + 1}}
	if th := k.find(tid); th != nil {
		k.each(th, t, t+1, func(got *Stretch) bool {
			s = *got
			return false
		})
	}
	return s
}

// Each calls f with every stretch of every thread of the target in [lo,hi), thread by thread,
// oldest first. The next stretch overwrites s.
func (k *Timeline) Each(lo, hi int64, f func(tid uint32, s *Stretch)) {
	lo, hi = clampTime(lo), clampTime(hi)
	for i := range k.threads {
		th := &k.threads[i]
		k.each(th, lo, hi, func(s *Stretch) bool {
			f(th.tid, s)
			return true
		})
	}
}

// each calls f with the stretches of th that tile [lo,hi), until f returns false. A segment becomes
// several stretches where something is laid over it.
func (k *Timeline) each(th *thread, lo, hi int64, f func(*Stretch) bool) {
	if lo >= hi {
		return
	}
	var s Stretch
	blank := func(b, e int64, d Doing) bool {
		s = Stretch{Begin: b, End: e, Doing: d, CPU: -1, Syscall: -1, WakerCall: -1, Whole: Span{b, e}}
		return f(&s)
	}
	at := lo
	if first := k.first(th); at < first {
		to := min(first, hi)
		if !blank(at, to, Unknown) {
			return
		}
		at = to
	}
	over := sort.Search(len(th.overlay), func(i int) bool { return th.overlay[i].end > at })
	for i := th.at(at); i >= 0 && i < len(th.segs) && at < hi; i++ {
		whole := Span{th.segs[i].begin, k.segEnd(th, i)}
		end := min(whole.End, hi)
		if end <= at {
			continue
		}
		k.expand(th, &th.segs[i], &s)
		s.Whole = whole
		cuts := s.Doing == OnCPU || s.Doing == Queued || s.Doing == Blocked
		block := s.Block
		for at < end {
			s.Begin, s.End, s.Block, s.Sampled = at, end, block, false
			if cuts {
				for over < len(th.overlay) && th.overlay[over].end <= at {
					over++
				}
				if over < len(th.overlay) {
					switch o := &th.overlay[over]; {
					case o.begin <= at:
						s.End = min(end, o.end)
						s.Block, s.Sampled = within(block, o.block, s.Doing), o.sampled
					default:
						s.End = min(end, o.begin)
					}
				}
			}
			at = s.End
			if !f(&s) {
				return
			}
		}
	}
	if at < hi {
		d := Unknown
		if s := th.last(); s != nil && s.doing() == Gone {
			d = Gone
		}
		blank(at, hi, d)
	}
}

// within decides between what the stack of a wait says and the record of what is around it. A stack
// that says what in particular is waited for wins.
func within(stack, record Block, d Doing) Block {
	if d != Blocked || stack == BlockUnknown {
		return record
	}
	switch stack {
	case BlockOther, BlockDisk, BlockTimer, BlockKernelLock:
		// These are how other things wait: the record names the thing.
		if record != BlockOther && record != BlockDisk && record != BlockKernelLock {
			return record
		}
	}
	return stack
}

// expand makes a Stretch of a segment, without its times.
func (k *Timeline) expand(th *thread, g *segment, s *Stretch) {
	*s = Stretch{Doing: g.doing(), CPU: int32(g.cpu), Syscall: -1, WakerCall: -1,
		Approx: g.meta&segApprox != 0, Preempted: g.meta&segPreempted != 0,
		Unthrottled: g.meta&segUnthrottled != 0, ByGroup: g.meta&segByGroup != 0}
	switch s.Doing {
	case Queued, Throttled, Blocked:
	default:
		return
	}
	o := th.away(g)
	if o == nil {
		return
	}
	s.Kernel, s.User, s.Syscall, s.Arg = o.kernel, o.user, int32(o.call), o.arg
	if w := &o.waker; w.seen {
		s.Waker, s.WakerKernel, s.WakerUser, s.WakerCall, s.WakerArg = w.tid, w.kernel, w.user, int32(w.call), w.arg
		s.ByInterrupt, s.WakerTarget = w.flags&wakerInterrupt != 0, w.flags&wakerTarget != 0
		s.WakerSignal, s.WakerReads = w.flags&wakerSignal != 0, w.flags&wakerReads != 0
	}
	if s.Doing == Blocked {
		s.Block = o.block
		if s.Block == BlockFutex && o.flags&offFutex != 0 {
			s.Futex = o.arg
		}
	}
}
