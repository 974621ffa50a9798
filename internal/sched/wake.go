package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// raceNS is how long before a switch a waking may have come that undoes it: both CPUs are between two lines of the scheduler.
const raceNS = 1e6

// signalNS is how long before a waking the signal that causes it was sent, at most: both happen in one call.
const signalNS = 50e3

// placeNS is how long after its waking a thread may still be given its CPU: both are lines of one function.
const placeNS = 50e3

func (b *builder) waking(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	by := waker{tid: r.Other, kernel: r.Kernel, user: r.User, call: -1, seen: true}
	if r.Flags&kernel.Interrupt != 0 {
		by.flags |= wakerInterrupt
	}
	if r.Flags&kernel.OtherTarget != 0 {
		by.flags |= wakerTarget
		if r.Arg[1] != 0 && r.Arg[1] <= 1<<15 {
			by.call, by.arg = int16(r.Arg[1]-1), r.Arg[2]
		}
	}
	if th.signalled != 0 && th.signaller == r.Other && t-th.signalled <= signalNS {
		by.flags |= wakerSignal
		th.signalled = 0
	}
	s := th.last()
	switch {
	case s == nil:
		if t > b.begin {
			b.push(th, b.begin, Unknown, -1, 0, segAway)
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

func (b *builder) wakeup(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	cpu := cpuOf(uint16(min(r.Arg[0], 1<<16-1)))
	// Before Linux 6.18 a thread that is woken while its group has no quota does not run at all until there is some.
	waits, meta := Queued, uint16(0)
	if r.Flags&kernel.GroupThrottled != 0 && r.Flags&kernel.Migrate == 0 && !b.header.PerTask {
		waits, meta = Throttled, segByGroup
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
			b.push(th, b.begin, Unknown, -1, 0, segAway)
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
		case s.cpu < 0, b.placed && s.meta&segPreempted == 0 && t-s.begin <= placeNS:
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
		s.meta |= segApprox // the waking before it is missing
		b.push(th, t, waits, cpu, s.off, meta)
	case Unknown, Gone:
		if r.Flags&kernel.Migrate == 0 {
			b.push(th, t, waits, cpu, 0, meta)
		}
	}
}

// race tells that s, in which th seemed to block, was none: the waking had come before the switch, when it was about to.
func (b *builder) race(th *thread, s *segment, cpu int16) {
	if s.off != 0 {
		o := &th.offs[s.off-1]
		b.wake(o, &th.pending)
	}
	s.meta = uint16(Queued)
	s.cpu = cpu
	th.pendingAt = 0
}

func (b *builder) wake(o *offCPU, by *waker) {
	o.waker = *by
	o.flags &= offStopped
}
