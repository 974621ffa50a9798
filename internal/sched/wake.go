package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

const (
	// raceNS is how long before a switch a waking may have come that undoes it: the two CPUs are
	// then between two lines of the scheduler.
	raceNS = 1e6
	// signalNS is the most time between a signal and the waking that it causes: both happen in one
	// call.
	signalNS = 50e3
	// placeNS is the most time between a waking and the choice of a CPU: both are lines of one
	// function.
	placeNS = 50e3
)

// waking takes the record of a thread being woken: it is queued from here on, or on a CPU still.
func (b *builder) waking(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	w := wakerOf(th, r, t)
	s := th.last()
	switch {
	case s == nil || s.doing() == Unknown || s.doing() == Gone:
		if s == nil && t > b.begin {
			b.push(th, b.begin, Unknown, -1, 0, segAway)
		}
		o, n := b.addOff(th)
		o.waker = w
		b.push(th, t, Queued, -1, n, 0)
	case s.doing() == Blocked:
		if s.off != 0 {
			th.offs[s.off-1].waker = w
		}
		th.pendingAt = 0
		cpu := int16(-1) // the wakeup that follows says where
		if b.placed {
			cpu = s.cpu
		}
		b.push(th, t, Queued, cpu, s.off, 0)
	default:
		th.pending, th.pendingAt = w, t // it may be about to block
	}
}

// wakerOf is what woke th, by the record of the waking.
func wakerOf(th *thread, r *kernel.Record, t int64) waker {
	w := waker{tid: r.Other, kernel: r.Kernel, user: r.User, call: -1, seen: true}
	if r.Flags&kernel.Interrupt != 0 {
		w.flags |= wakerInterrupt
	}
	if r.Flags&kernel.Reads != 0 {
		w.flags |= wakerReads
	}
	if r.Flags&kernel.OtherTarget != 0 {
		w.flags |= wakerTarget
		if r.Arg[1] != 0 && r.Arg[1] <= 1<<15 {
			w.call, w.arg = int16(r.Arg[1]-1), r.Arg[2]
		}
	}
	if th.signalled != 0 && th.signaller == r.Other && t-th.signalled <= signalNS {
		w.flags |= wakerSignal
		th.signalled = 0
	}
	return w
}

// wakeup takes the record of a thread put into a CPU's run queue: after a waking, at its birth, or
// moved from another queue.
func (b *builder) wakeup(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	if th == nil {
		return
	}
	cpu := cpuOf(uint16(min(r.Arg[0], 1<<16-1)))
	moved := r.Flags&kernel.Migrate != 0
	// Before Linux 6.18 (no PerTask) a thread that is woken while its group has no quota does not
	// run at all until there is some: it is throttled from the start.
	state, meta := Queued, uint16(0)
	if r.Flags&kernel.GroupThrottled != 0 && !moved && !b.header.PerTask {
		state, meta = Throttled, segByGroup
	}
	s := th.last()
	if r.Flags&kernel.New != 0 {
		if l := th.life(); l == nil || l.exit != 0 || l.birth == 0 {
			b.born(th, t, 0, 0)
		}
		if s == nil && t > b.begin {
			b.push(th, b.begin, Gone, -1, 0, 0)
		}
		b.push(th, t, state, cpu, 0, meta)
		return
	}
	if s == nil {
		if t > b.begin {
			b.push(th, b.begin, Unknown, -1, 0, segAway)
		}
		if !moved {
			b.push(th, t, state, cpu, 0, meta)
		}
		return
	}
	switch s.doing() {
	case Queued, Throttled:
		switch {
		case state == Throttled && s.doing() == Queued:
			if s.cpu < 0 {
				s.cpu = cpu
			}
			b.push(th, t, state, cpu, s.off, meta)
		case s.cpu < 0, b.placed && s.meta&segPreempted == 0 && t-s.begin <= placeNS:
			s.cpu = cpu // the CPU chosen for it as it was woken
		case s.cpu != cpu:
			b.push(th, t, s.doing(), cpu, s.off, s.meta&^7) // moved later: it was queued at both
		}
	case Blocked:
		if moved {
			return // asleep: it will be queued there when it is woken
		}
		if th.pendingAt != 0 && s.begin-th.pendingAt <= raceNS {
			b.race(th, s, cpu)
			return
		}
		s.meta |= segApprox // the waking before it is missing
		b.push(th, t, state, cpu, s.off, meta)
	case Unknown, Gone:
		if !moved {
			b.push(th, t, state, cpu, 0, meta)
		}
	}
}

// race undoes s, in which th seemed to block. Its waking had come before the switch, when it was
// about to: the scheduler then leaves it runnable, while the switch records the state that it had
// asked for.
func (b *builder) race(th *thread, s *segment, cpu int16) {
	if s.off != 0 {
		th.offs[s.off-1].waker = th.pending
	}
	s.meta = uint16(Queued)
	s.cpu = cpu
	th.pendingAt = 0
}
