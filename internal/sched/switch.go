package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

func cpuOf(n uint16) int16 {
	if n > 1<<15-1 {
		return -1
	}
	return int16(n)
}

// deadState has the bits of task_struct.__state that a thread leaves its CPU with for the last time.
const deadState = 0x10 | 0x20 | 0x80

// deepState has the bit of one that no signal wakes.
const deepState = 0x2

// stoppedState has the bits of one that is stopped by a signal, or for who traces it.
const stoppedState = 0x4 | 0x8

func (b *kbuilder) switched(r *kernel.Record, t int64) {
	c := b.cpu(int(r.CPU))
	since, broken := b.begin, false
	if c != nil && b.header.AllTasks {
		if n := len(c.runs); n > 0 {
			prev := &c.runs[n-1]
			since = prev.begin
			if b.fold && r.Flags&kernel.Target == 0 && b.find(prev.tid) == nil {
				prev.bad = true // others may have come and gone
			} else if prev.tid != r.TID {
				prev.bad = true
				old := b.find(prev.tid)
				broken = true
				if old != nil || r.Flags&kernel.Target != 0 {
					b.totals.Breaks++
				}
				if old != nil {
					if s := old.last(); s != nil && s.doing() == OnCPU && s.cpu == cpuOf(r.CPU) {
						// By now somebody else left that CPU: it is on none.
						b.unknown(old, s.begin)
						b.push(old, t, Unknown, -1, 0, ksegMissing|ksegAway)
					}
				}
			}
		} else {
			c.runs = append(c.runs, run{begin: b.begin, tid: r.TID, bad: b.fold && r.Flags&kernel.Target == 0})
			b.bytes += runBytes
		}
		c.runs = append(c.runs, run{begin: t, tid: r.Other})
		b.bytes += runBytes
	}
	if r.Flags&kernel.Target != 0 {
		if th := b.thread(r.TID); th != nil {
			b.leave(th, r, t, since, broken)
		}
	}
	if r.Flags&kernel.OtherTarget != 0 {
		if th := b.thread(r.Other); th != nil {
			b.come(th, r, t)
		}
	}
}

// leave takes th from its CPU. since is when the one before came to it; broken tells that this was not th.
func (b *kbuilder) leave(th *kthread, r *kernel.Record, t, since int64, broken bool) {
	cpu := cpuOf(r.CPU)
	s := th.last()
	switch {
	case s == nil && !broken:
		b.push(th, since, OnCPU, cpu, 0, 0)
	case s == nil:
		b.unknown(th, since)
	case s.doing() == OnCPU && s.cpu == cpu && !broken:
	case s.doing() == OnCPU:
		b.unknown(th, s.begin)
	case !b.header.AllTasks:
		b.unknown(th, s.begin)
	default:
		if s.doing() == Throttled {
			b.unthrottle(th, s, since)
		}
		b.unknown(th, since)
	}
	b.totals.Switches++
	stacks := [2]uint32{r.Kernel, r.User}
	if th.leaving != [2]uint32{} {
		stacks = th.leaving
		th.leaving = [2]uint32{}
	}
	throttled := r.Flags&kernel.Throttled != 0
	could := r.Arg[0] == 0 || r.Flags&kernel.Preempted != 0
	// Who only lost its CPU has nothing to tell, and there are many of them.
	var o *koff
	n := uint32(0)
	if !could && !throttled || stacks != [2]uint32{} {
		o, n = b.off(th)
		o.kernel, o.user = stacks[0], stacks[1]
	}
	byGroup := !throttled && could && !b.header.PerTask && r.Flags&kernel.GroupThrottled != 0
	switch {
	case throttled:
		b.push(th, t, Throttled, cpu, n, 0)
	case byGroup:
		b.push(th, t, Throttled, cpu, n, ksegByGroup)
	case could:
		b.push(th, t, Queued, cpu, n, ksegPreempted)
	case r.Arg[0]&deadState != 0:
		b.push(th, t, Gone, -1, 0, 0)
		b.ended(th, t)
		return
	default:
		if r.Arg[1] != 0 && r.Arg[1] <= 1<<15 {
			o.call, o.arg = int16(r.Arg[1]-1), r.Arg[2]
			b.callsKnown = true
		}
		if r.Arg[0]&stoppedState != 0 {
			o.flags |= koffStopped
		}
		if r.Arg[0]&deepState != 0 {
			o.flags |= koffDeep
		}
		b.push(th, t, Blocked, cpu, n, 0)
	}
	if could {
		b.totals.Involuntary++
	}
}

// come puts th on its CPU.
func (b *kbuilder) come(th *kthread, r *kernel.Record, t int64) {
	cpu := cpuOf(r.CPU)
	s := th.last()
	if s != nil {
		switch s.doing() {
		case OnCPU:
			b.unknown(th, s.begin)
		case Throttled:
			b.unthrottle(th, s, t)
		case Blocked:
			if s.begin-th.pendingAt <= raceNS && th.pendingAt != 0 {
				b.race(th, s, cpu)
			} else {
				s.meta |= ksegApprox
			}
		case Queued:
			if s.cpu < 0 {
				s.cpu = cpu
			}
		case Gone:
			b.unknown(th, s.begin)
		}
	} else if t > b.begin {
		b.push(th, b.begin, Unknown, -1, 0, ksegAway)
	}
	th.pendingAt = 0
	if l := th.life(); l != nil && l.first == 0 && l.birth != 0 {
		l.first = t
	}
	off := uint32(0)
	if s = th.last(); s != nil {
		off = s.off
	}
	b.push(th, t, OnCPU, cpu, off, 0)
}

// unthrottle ends s, in which th was throttled, at the last mark of its CPU.
func (b *kbuilder) unthrottle(th *kthread, s *kseg, t int64) {
	if s.cpu >= 0 {
		if c := b.cpu(int(s.cpu)); c != nil && c.mark > s.begin && c.mark <= t {
			b.push(th, c.mark, Queued, s.cpu, s.off, ksegUnthrottled)
			return
		}
	}
	s.meta |= ksegApprox
}

// raceNS is how long before a switch a waking may have come that undoes it: both CPUs are between two lines of the scheduler.
const raceNS = 1e6

// race tells that s, in which th seemed to block, was none: the waking had come before the switch, when it was about to.
func (b *kbuilder) race(th *kthread, s *kseg, cpu int16) {
	if s.off != 0 {
		o := &th.offs[s.off-1]
		b.wake(o, &th.pending)
	}
	s.meta = uint16(Queued)
	s.cpu = cpu
	th.pendingAt = 0
}

func (b *kbuilder) wake(o, by *koff) {
	o.waker, o.wkern, o.wuser, o.wcall, o.warg, o.flags, o.asked = by.waker, by.wkern, by.wuser, by.wcall, by.warg, by.flags|o.flags&koffStopped, true
}

// signalNS is how long before a waking the signal that causes it was sent, at most: both happen in one call.
const signalNS = 50e3

func (b *kbuilder) waking(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	by := koff{waker: r.Other, wkern: r.Kernel, wuser: r.User, wcall: -1}
	if r.Flags&kernel.Interrupt != 0 {
		by.flags |= koffInterrupt
	}
	if r.Flags&kernel.OtherTarget != 0 {
		by.flags |= koffTarget
		if r.Arg[1] != 0 && r.Arg[1] <= 1<<15 {
			by.wcall, by.warg = int16(r.Arg[1]-1), r.Arg[2]
		}
	}
	if th.signalled != 0 && th.signaller == r.Other && t-th.signalled <= signalNS {
		by.flags |= koffSignal
		th.signalled = 0
	}
	s := th.last()
	switch {
	case s == nil:
		if t > b.begin {
			b.push(th, b.begin, Unknown, -1, 0, ksegAway)
		}
		o, n := b.off(th)
		b.wake(o, &by)
		b.push(th, t, Queued, -1, n, 0)
	case s.doing() == Blocked:
		if s.off != 0 {
			b.wake(&th.offs[s.off-1], &by)
		}
		th.pendingAt = 0
		cpu := int16(-1)
		if b.placed {
			cpu = s.cpu
		}
		b.push(th, t, Queued, cpu, s.off, 0)
	case s.doing() == Unknown, s.doing() == Gone:
		o, n := b.off(th)
		b.wake(o, &by)
		b.push(th, t, Queued, -1, n, 0)
	default:
		th.pending, th.pendingAt = by, t
	}
}

// placeNS is how long after its waking a thread may still be given its CPU: both are lines of one function.
const placeNS = 50e3

func (b *kbuilder) wakeup(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	cpu := cpuOf(uint16(min(r.Arg[0], 1<<16-1)))
	// Before Linux 6.18 a thread that is woken while its group has no quota does not run at all until there is some.
	waits, meta := Queued, uint16(0)
	if r.Flags&kernel.GroupThrottled != 0 && r.Flags&kernel.Migrate == 0 && !b.header.PerTask {
		waits, meta = Throttled, ksegByGroup
	}
	s := th.last()
	if r.Flags&kernel.New != 0 {
		if l := th.life(); l == nil || l.exit != 0 || l.birth == 0 {
			b.born(th, t, 0, 0)
		}
		if s == nil && t > b.begin {
			b.push(th, b.begin, Gone, -1, 0, 0)
		}
		b.push(th, t, waits, cpu, 0, meta)
		return
	}
	if s == nil {
		if t > b.begin {
			b.push(th, b.begin, Unknown, -1, 0, ksegAway)
		}
		if r.Flags&kernel.Migrate == 0 {
			b.push(th, t, waits, cpu, 0, meta)
		}
		return
	}
	switch s.doing() {
	case Queued, Throttled:
		switch {
		case waits == Throttled && s.doing() == Queued:
			if s.cpu < 0 {
				s.cpu = cpu
			}
			b.push(th, t, waits, cpu, s.off, meta)
		case s.cpu < 0, b.placed && s.meta&ksegPreempted == 0 && t-s.begin <= placeNS:
			s.cpu = cpu
		case s.cpu != cpu:
			b.push(th, t, s.doing(), cpu, s.off, s.meta&^7)
		}
	case Blocked:
		if r.Flags&kernel.Migrate != 0 {
			return // it is moved where it will be woken
		}
		if th.pendingAt != 0 && s.begin-th.pendingAt <= raceNS {
			b.race(th, s, cpu)
			return
		}
		s.meta |= ksegApprox // the waking before it is missing
		b.push(th, t, waits, cpu, s.off, meta)
	case Unknown, Gone:
		if r.Flags&kernel.Migrate == 0 {
			b.push(th, t, waits, cpu, 0, meta)
		}
	}
}
