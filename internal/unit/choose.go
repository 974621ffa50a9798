package unit

import "github.com/whystall/whystall/internal/sched"

const (
	// leastWaits is how often a life must have waited at a place to be judged by itself.
	leastWaits = 4
	// clearlyMore decides between two places of one kind whose depth is not known: one was waited
	// at so many times as often.
	clearlyMore = 50
)

// choose picks the site of l that is its wait for work; -1 if there is none, or if nobody can say
// which.
//  1. The best of the sites at which it waited often and where work can arrive.
//  2. Unless that is a shared lock or permit beside which the real one looks like an answer
//     (handedBack).
//  3. If another site is as good, as far as is known, and about as frequent, the life is unsure.
func (f *finder) choose(l *life) int32 {
	best := int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		if s.blocks < leastWaits || !s.canBeIdle() {
			continue
		}
		if best < 0 || f.betterSite(s, &l.sites[best]) {
			best = int32(i)
		}
	}
	if best < 0 {
		return -1
	}
	if n := handedBack(l, &l.sites[best]); n >= 0 {
		l.sites[n].replies = 0
		return n
	}
	for i := range l.sites {
		if int32(i) != best && f.rivals(&l.sites[i], &l.sites[best]) {
			l.unsure = true
			return -1
		}
	}
	return best
}

// rivals reports whether s could be the wait for work just as well as best.
func (f *finder) rivals(s, best *site) bool {
	switch {
	case s.blocks < leastWaits || !s.canBeIdle() || s.tier() != best.tier():
		return false
	case s.key.multi != best.key.multi && best.tier() == tierNet:
		return false // poll, accept and read have an order among themselves
	case s.key.sig != 0 && best.key.sig != 0 && f.depthOf(s) != f.depthOf(best):
		return false // the one nearer the root is the wait for work
	case s.key.made != best.key.made && best.tier() == tierNet, f.isHanded(s) != f.isHanded(best):
		return false
	}
	return best.blocks < clearlyMore*s.blocks && s.blocks < clearlyMore*best.blocks
}

// handedBack looks for the wait for work of threads that hand back what they got, as a connection,
// when they are done, and so wake the thread that then gives them the next. By the rule for answers
// each new piece of work is an answer to that. It can be told from real answers where all other
// waits are at something the threads of one name share, a lock or a permit, and end by threads of
// that name, while the waits looked for hardly ever do. It is -1 if there is none, or more than
// one.
func handedBack(l *life, best *site) int32 {
	shared := func(s *site) bool { return s.tier() == tierThread && s.examined > 0 && s.kin*4 >= s.examined*3 }
	if !shared(best) {
		return -1
	}
	found := int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		switch {
		case s.blocks < leastWaits || s == best || s.canBeIdle() && (shared(s) || s.tier() == tierTimer):
		case s.key.block == sched.BlockFutex && s.kin*4 <= s.examined && s.other*10 >= s.all()*9 && found < 0:
			found = int32(i)
		default:
			return -1
		}
	}
	return found
}

// betterSite reports whether a is more likely the wait for work than b. In this order:
//  1. Something arrives at it; a pure timer is the last resort.
//  2. A wait at a connection that the program made itself is for an answer. Another one for the
//     network, or at a queue, is the wait for work.
//  3. It is nearer the thread's root, if both stacks are whole: a loop calls what handles its
//     requests, so the waits of handling are deeper than the loop's own.
//  4. The network before other threads before a timer.
//  5. The events of many before connections before one descriptor's bytes.
//  6. A connection of its own before one that goes from thread to thread.
//  7. It is the more frequent.
func (f *finder) betterSite(a, b *site) bool {
	if (a.tier() == tierTimer) != (b.tier() == tierTimer) {
		return b.tier() == tierTimer
	}
	if a.key.made != b.key.made &&
		(a.tier() == tierNet && b.tier() == tierNet || f.isQueue(a) || f.isQueue(b)) {
		return b.key.made
	}
	if a.key.sig != 0 && b.key.sig != 0 && a.key.sig != b.key.sig {
		if d, e := f.depthOf(a), f.depthOf(b); d != e {
			return d < e
		}
	}
	if a.tier() != b.tier() {
		return a.tier() < b.tier()
	}
	if a.key.multi != b.key.multi {
		// A thread that takes a connection and then reads from it: where connections live long its
		// requests are the reads, of which there are many for each connection.
		if a.key.multi == multiAccept && b.key.multi == multiNone {
			return a.blocks*3 >= b.blocks
		}
		if b.key.multi == multiAccept && a.key.multi == multiNone {
			return b.blocks*3 < a.blocks
		}
		return a.key.multi > b.key.multi
	}
	if f.isHanded(a) != f.isHanded(b) {
		return f.isHanded(b)
	}
	return a.blocks > b.blocks
}
