package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

// clone takes the record of a thread's creation by another thread of the target.
func (b *builder) clone(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	b.event(r, t)
	if th == nil {
		return
	}
	if l := th.life(); l != nil && l.exit == 0 && l.maker == 0 && l.birth != 0 {
		// Its first wake-up, which does not name the maker, came before.
		l.maker, l.user = r.Other, r.User
		return
	}
	s := th.last()
	if s == nil {
		b.push(th, b.begin, Gone, -1, 0, 0)
	} else if s.doing() != Gone {
		b.push(th, t, Gone, -1, 0, 0) // the number is used again, and the record of the exit is missing
	}
	b.born(th, t, r.Other, r.User)
}

// exit takes the record of a thread's exit. The thread still runs for a moment and then leaves its
// CPU for the last time, which is the end of its time line. Without privilege that switch cannot be
// distinguished from any other.
func (b *builder) exit(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	b.event(r, t)
	if th == nil {
		return
	}
	if !b.header.AllTasks {
		b.push(th, t, Gone, -1, 0, 0)
		b.ended(th, t)
		return
	}
	th.exiting = true
	b.endLife(th, t)
}
