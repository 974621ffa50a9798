package sched

import "github.com/whystall/whystall/internal/evidence/kernel"

func (b *builder) clone(r *kernel.Record, t int64) {
	th := b.thread(r.TID)
	b.event(r, t)
	if th == nil {
		return
	}
	if l := th.life(); l != nil && l.exit == 0 && l.maker == 0 && l.birth != 0 {
		l.maker, l.user = r.Other, r.User // it was seen before who made it
		return
	}
	s := th.last()
	if s == nil {
		b.push(th, b.begin, Gone, -1, 0, 0)
	} else if s.doing() != Gone {
		b.push(th, t, Gone, -1, 0, 0) // the number was used again, and the exit is missing
	}
	b.born(th, t, r.Other, r.User)
}

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
	if l := th.life(); l != nil && l.exit == 0 {
		l.exit = t
	} else if len(th.lives) < maxLives {
		th.lives = append(th.lives, life{exit: t})
		b.bytes += 40
	}
	b.totals.Exited++
}

func (b *builder) born(th *thread, t int64, maker, user uint32) {
	b.totals.Created++
	if len(th.lives) < maxLives {
		th.lives = append(th.lives, life{birth: t, maker: maker, user: user})
		b.bytes += 40
	}
	th.exiting = false
}

// ended notes the end of th's life unless its exit was seen.
func (b *builder) ended(th *thread, t int64) {
	l := th.life()
	switch {
	case th.exiting:
	case l != nil && l.exit == 0:
		l.exit = t
		b.totals.Exited++
	case len(th.lives) < maxLives:
		th.lives = append(th.lives, life{exit: t})
		b.totals.Exited++
	}
	th.exiting = false
}
