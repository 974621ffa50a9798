package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// deadState has the bits of task_struct.__state that a thread leaves its CPU with for the last time.
const deadState = 0x10 | 0x20 | 0x80

// deepState has the bit of one that no signal wakes.
const deepState = 0x2

// stoppedState has the bits of one that is stopped by a signal, or for who traces it.
const stoppedState = 0x4 | 0x8

func (b *builder) switched(r *kernel.Record, t int64) {
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
						b.push(old, t, Unknown, -1, 0, segMissing|segAway)
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
func (b *builder) leave(th *thread, r *kernel.Record, t, since int64, broken bool) {
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
	var o *offCPU
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
		b.push(th, t, Throttled, cpu, n, segByGroup)
	case could:
		b.push(th, t, Queued, cpu, n, segPreempted)
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
			o.flags |= offStopped
		}
		if r.Arg[0]&deepState != 0 {
			o.flags |= offDeep
		}
		b.push(th, t, Blocked, cpu, n, 0)
	}
	if could {
		b.totals.Involuntary++
	}
}

// come puts th on its CPU.
func (b *builder) come(th *thread, r *kernel.Record, t int64) {
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
				s.meta |= segApprox
			}
		case Queued:
			if s.cpu < 0 {
				s.cpu = cpu
			}
		case Gone:
			b.unknown(th, s.begin)
		}
	} else if t > b.begin {
		b.push(th, b.begin, Unknown, -1, 0, segAway)
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
func (b *builder) unthrottle(th *thread, s *segment, t int64) {
	if s.cpu >= 0 {
		if c := b.cpu(int(s.cpu)); c != nil && c.mark > s.begin && c.mark <= t {
			b.push(th, c.mark, Queued, s.cpu, s.off, segUnthrottled)
			return
		}
	}
	s.meta |= segApprox
}
