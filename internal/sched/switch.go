package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// The bits of task_struct.__state with which a thread leaves its CPU.
const (
	deadState    = 0x10 | 0x20 | 0x80 // EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD: it never comes back
	deepState    = 0x2                // TASK_UNINTERRUPTIBLE: no signal wakes it
	stoppedState = 0x4 | 0x8          // __TASK_STOPPED, __TASK_TRACED
)

// turn is what is known of the stay on a CPU that a switch ends.
type turn struct {
	since int64
	// fits: the thread that leaves is the one that came last. If not, records are missing in
	// between.
	fits bool
}

// switched takes a switch: r.TID left a CPU, and r.Other came.
//  1. The CPU's own list says since when the thread that leaves was there, and whether it was at
//     all.
//  2. That thread gets the state in which it left.
//  3. The thread that comes is on the CPU.
//
// Threads of other programs have a place in the CPU's list and no states.
func (b *builder) switched(r *kernel.Record, t int64) {
	last := turn{b.begin, true}
	if c := b.cpu(int(r.CPU)); c != nil && b.header.AllTasks {
		last = b.handOver(c, r, t)
	}
	if r.Flags&kernel.Target != 0 {
		if th := b.thread(r.TID); th != nil {
			b.checkOn(th, cpuOf(r.CPU), last)
			b.leave(th, r, t)
		}
	}
	if r.Flags&kernel.OtherTarget != 0 {
		if th := b.thread(r.Other); th != nil {
			b.come(th, r, t)
		}
	}
}

// handOver enters the switch r in the list of its CPU.
func (b *builder) handOver(c *cpuLog, r *kernel.Record, t int64) turn {
	last := turn{b.begin, true}
	if n := len(c.runs); n > 0 {
		prev := &c.runs[n-1]
		last.since = prev.begin
		if b.fold && r.Flags&kernel.Target == 0 && b.find(prev.tid) == nil {
			prev.bad = true // other programs' threads may have come and gone
		} else if prev.tid != r.TID {
			prev.bad = true
			last.fits = false
			old := b.find(prev.tid)
			if old != nil || r.Flags&kernel.Target != 0 {
				b.totals.Breaks++
			}
			if old != nil {
				if s := old.last(); s != nil && s.doing() == OnCPU && s.cpu == cpuOf(r.CPU) {
					// When it left is not known, but now another thread leaves this CPU: it is on
					// none.
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
	return last
}

// checkOn compares the state of th, which leaves a CPU, with having been there. Where they differ
// records are missing, and th is unknown from where it may have come.
func (b *builder) checkOn(th *thread, cpu int16, last turn) {
	s := th.last()
	switch {
	case s == nil && last.fits:
		b.push(th, last.since, OnCPU, cpu, 0, 0)
	case s == nil:
		b.unknown(th, last.since)
	case s.doing() == OnCPU && s.cpu == cpu && last.fits:
	case s.doing() == OnCPU:
		b.unknown(th, s.begin)
	case !b.header.AllTasks:
		b.unknown(th, s.begin)
	default:
		if s.doing() == Throttled {
			b.unthrottle(th, s, last.since)
		}
		b.unknown(th, last.since)
	}
}

// leave takes th from its CPU.
func (b *builder) leave(th *thread, r *kernel.Record, t int64) {
	cpu := cpuOf(r.CPU)
	b.totals.Switches++
	stacks := [2]uint32{r.Kernel, r.User}
	if th.leaving != [2]uint32{} {
		stacks = th.leaving
		th.leaving = [2]uint32{}
	}
	throttled := r.Flags&kernel.Throttled != 0
	runnable := r.Arg[0] == 0 || r.Flags&kernel.Preempted != 0
	// A thread that only lost its CPU, as most do, waits for nothing: it needs no offCPU.
	var o *offCPU
	n := uint32(0)
	if !runnable && !throttled || stacks != [2]uint32{} {
		o, n = b.addOff(th)
		o.kernel, o.user = stacks[0], stacks[1]
	}
	switch {
	case throttled:
		b.push(th, t, Throttled, cpu, n, 0)
	case runnable && !b.header.PerTask && r.Flags&kernel.GroupThrottled != 0:
		b.push(th, t, Throttled, cpu, n, segByGroup)
	case runnable:
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
	if runnable {
		b.totals.Involuntary++
	}
}

// come puts th on the CPU of r. Its last state shows what is missing before: a blocked thread that
// comes was woken, a thread on a CPU left it, one that is gone was born.
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

// unthrottle ends s, in which th was throttled, at the last mark of its CPU: from there on it was
// queued. The kernel has no event for the single thread. Without a mark the end is not known, and
// part of s may be time in the queue.
func (b *builder) unthrottle(th *thread, s *segment, t int64) {
	if s.cpu >= 0 {
		if c := b.cpu(int(s.cpu)); c != nil && c.mark > s.begin && c.mark <= t {
			b.push(th, c.mark, Queued, s.cpu, s.off, segUnthrottled)
			return
		}
	}
	s.meta |= segApprox
}
