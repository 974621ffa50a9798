package sched

import (
	"cmp"
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// Header is the stream's.
func (k *Timeline) Header() kernel.Header { return k.header }

// SeesThrottling tells whether the records tell throttled from queued. Without it a thread that its quota keeps from running
// is queued like any other.
func (k *Timeline) SeesThrottling() bool { return k.header.Source != "perf" }

// Span is what the records cover. Outside of it every thread is unknown.
func (k *Timeline) Span() (begin, end int64) { return k.begin, k.end }

// Dropped is the time before which records were given up to bound memory; 0 none were.
func (k *Timeline) Dropped() int64 { return k.dropped }

// Levels are the recorder's levels of detail by time.
func (k *Timeline) Levels() []Level { return k.levels }

// Totals are sums over all threads of the target.
func (k *Timeline) Totals() Totals { return k.totals }

// Stack gives the frames of a StackID, innermost first.
func (k *Timeline) Stack(id uint32) []kernel.Frame {
	if id == 0 {
		return nil
	}
	return k.src.Stack(id)
}

// Ended tells how the stream ended: "" whole.
func (k *Timeline) Ended() string { return k.src.Ended() }

// Stretches appends what thread tid did in [lo,hi) to dst, oldest first. They tile it exactly.
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

// At is the stretch of tid that covers t, not cut.
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

// Each calls f with every stretch of every thread of the target in [lo,hi), thread by thread, oldest first. s is overwritten by the next.
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

// each calls f with the stretches of th that tile [lo,hi).
func (k *Timeline) each(th *kthread, lo, hi int64, f func(*Stretch) bool) {
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

// first is from when on th's segments tell.
func (k *kernelState) first(th *kthread) int64 {
	if len(th.segs) == 0 {
		return maxTimeNS
	}
	return th.segs[0].begin
}

// within joins what the stack of a wait says with a record of a stretch around it.
func within(stack, record Block, d Doing) Block {
	if d != Blocked || stack == BlockUnknown {
		return record
	}
	switch stack {
	case BlockOther, BlockDisk, BlockTimer:
		// How something waits that has a name of its own.
		if record != BlockOther && record != BlockDisk {
			return record
		}
	}
	return stack
}

// expand makes a segment a Stretch, without its times.
func (k *Timeline) expand(th *kthread, g *kseg, s *Stretch) {
	*s = Stretch{Doing: g.doing(), CPU: int32(g.cpu), Syscall: -1, WakerCall: -1,
		Approx: g.meta&ksegApprox != 0, Preempted: g.meta&ksegPreempted != 0, Unthrottled: g.meta&ksegUnthrottled != 0, ByGroup: g.meta&ksegByGroup != 0}
	switch s.Doing {
	case Queued, Throttled, Blocked:
	default:
		return
	}
	if g.off == 0 || int(g.off) > len(th.offs) {
		return
	}
	o := &th.offs[g.off-1]
	s.Kernel, s.User, s.Syscall, s.Arg = o.kernel, o.user, int32(o.call), o.arg
	if o.asked {
		s.Waker, s.WakerKernel, s.WakerUser, s.WakerCall, s.WakerArg = o.waker, o.wkern, o.wuser, int32(o.wcall), o.warg
		s.ByInterrupt, s.WakerTarget = o.flags&koffInterrupt != 0, o.flags&koffTarget != 0
		s.WakerSignal = o.flags&koffSignal != 0
	}
	if s.Doing == Blocked {
		s.Block = o.block
		if s.Block == BlockFutex && o.flags&koffFutex != 0 {
			s.Futex = o.arg
		}
	}
}

// Name tells who tid was at a time; false: it was never named.
func (k *Timeline) Name(tid uint32, at int64) (kernel.Thread, bool) {
	l := k.names[tid]
	if len(l) == 0 {
		return kernel.Thread{TID: tid}, false
	}
	i := sort.Search(len(l), func(i int) bool { return l[i].Since > at })
	return l[max(i-1, 0)], true
}

// Named is from when to when tid is who it is at a time: before and after its number may be another's, or it runs another program.
func (k *Timeline) Named(tid uint32, at int64) Span {
	l := k.names[tid]
	i := sort.Search(len(l), func(i int) bool { return l[i].Since > at })
	s := Span{-maxTimeNS, maxTimeNS}
	if i > 1 {
		s.Begin = l[i-1].Since // before its first name it was as well
	}
	if i = max(i, 1); i < len(l) {
		s.End = l[i].Since
	}
	return s
}

// FromNS is the thread of the target that its own trace calls nstid; 0: none is known. Where no thread has a second
// number they are the same.
func (k *Timeline) FromNS(nstid uint32) uint32 {
	if len(k.byNS) > 0 {
		return k.byNS[nstid]
	}
	if k.find(nstid) != nil {
		return nstid
	}
	return 0
}

// ThreadLife is one life of a thread of the target.
type Life struct {
	TID                uint32
	Birth, First, Exit int64  // creation, first on a CPU after it, exit; 0 not seen
	Maker              uint32 // TID; 0 not seen
	User               uint32 // StackID of the maker
}

// Threads lists the threads of the target that were seen, one entry for each life.
func (k *Timeline) Threads() []Life {
	l := make([]Life, 0, len(k.threads))
	for i := range k.threads {
		th := &k.threads[i]
		if len(th.lives) == 0 {
			l = append(l, Life{TID: th.tid})
		}
		for _, x := range th.lives {
			l = append(l, Life{th.tid, x.birth, x.first, x.exit, x.maker, x.user})
		}
	}
	return l
}

// Waking is one end of a wait.
type Waking struct {
	TID       uint32 // who was woken
	Time      int64
	Begin     int64 // of the wait
	Waker     uint32
	Interrupt bool // Waker is a bystander
	Target    bool // Waker is of the target
	Signal    bool
	Kernel    uint32 // StackIDs of the waker
	User      uint32
	Call      int32
	Arg       uint64
}

// Woken appends the wakings of tid in [lo,hi), oldest first.
func (k *Timeline) Woken(tid uint32, lo, hi int64, dst []Waking) []Waking {
	th := k.find(tid)
	if th == nil {
		return dst
	}
	for i := max(th.at(lo), 1); i < len(th.segs) && th.segs[i].begin < hi; i++ {
		if w, ok := k.wokenAt(th, i); ok && w.Time >= lo {
			dst = append(dst, w)
		}
	}
	return dst
}

// wokenAt is the waking with which segment i of th begins.
func (k *Timeline) wokenAt(th *kthread, i int) (w Waking, ok bool) {
	g, prev := &th.segs[i], &th.segs[i-1]
	if g.doing() != Queued || g.off == 0 || g.meta&(ksegPreempted|ksegUnthrottled) != 0 || prev.doing() == Queued || prev.doing() == Throttled {
		return w, false
	}
	o := &th.offs[g.off-1]
	if !o.asked {
		return w, false
	}
	begin := prev.begin
	if prev.doing() == OnCPU {
		begin = g.begin // it was about to sleep
	}
	return Waking{th.tid, g.begin, begin, o.waker, o.flags&koffInterrupt != 0, o.flags&koffTarget != 0, o.flags&koffSignal != 0,
		o.wkern, o.wuser, int32(o.wcall), o.warg}, true
}

// WakesBy appends the wakings of threads of the target by thread tid of the target in [lo,hi), oldest first.
func (k *Timeline) WakesBy(tid uint32, lo, hi int64, dst []Waking) []Waking {
	k.wakersOnce.Do(func() {
		k.wakers = map[uint32][]wakeRef{}
		for i := range k.threads {
			th := &k.threads[i]
			for j := 1; j < len(th.segs); j++ {
				if w, ok := k.wokenAt(th, j); ok && w.Target && !w.Interrupt {
					k.wakers[w.Waker] = append(k.wakers[w.Waker], wakeRef{int32(i), int32(j)})
				}
			}
		}
		for _, l := range k.wakers {
			slices.SortFunc(l, func(a, b wakeRef) int {
				return cmp.Or(cmp.Compare(k.threads[a.th].segs[a.seg].begin, k.threads[b.th].segs[b.seg].begin), cmp.Compare(a.th, b.th))
			})
		}
	})
	l := k.wakers[tid]
	for i := sort.Search(len(l), func(i int) bool { return k.threads[l[i].th].segs[l[i].seg].begin >= lo }); i < len(l); i++ {
		w, ok := k.wokenAt(&k.threads[l[i].th], int(l[i].seg))
		if !ok || w.Time >= hi {
			break
		}
		dst = append(dst, w)
	}
	return dst
}

// FutexWakes appends the calls by threads of the target to wake who waits at addr, in [lo,hi), oldest first.
func (k *Timeline) FutexWakes(addr uint64, lo, hi int64, dst []Event) []Event {
	k.futexOnce.Do(func() {
		k.futexes = map[uint64][]uint32{}
		for i := range k.events {
			if e := &k.events[i]; e.Kind == kernel.FutexWake {
				k.futexes[e.Arg[0]] = append(k.futexes[e.Arg[0]], uint32(i))
			}
		}
	})
	l := k.futexes[addr]
	for i := sort.Search(len(l), func(i int) bool { return k.events[l[i]].Begin >= lo }); i < len(l); i++ {
		e := &k.events[l[i]]
		if e.Begin >= hi {
			break
		}
		dst = append(dst, *e)
	}
	return dst
}
