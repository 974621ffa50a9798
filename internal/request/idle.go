package request

import "math/bits"

// The wait for work of an entry function that is not known is learned. What its goroutines wait
// for, and where, is counted by place until one place proves to be it.

// busyLeast is how many answers are looked at before one is taken for a worker that never waits.
const busyLeast = 16

// decide picks the idle wait of an unknown group:
//  1. A place qualifies if nearly every member waits there, members return to it, and most of its
//     waits are ended from outside the group. A reply to the waiter's own question does not count.
//  2. Of two that read from the network, the one is it that stands first in the loop: a request is
//     read before others are asked on its behalf. Else the shallowest is it; at one depth network
//     goes before channel before timer.
//  3. Members must have returned to it at least returns times. If a better place has not had so
//     many yet, nothing is decided.
//  4. Where nothing qualifies, or only a sleep, the group may be one that never waits for work.
func (p *program) decide(id uint32, returns uint32) {
	e := &p.entries[id]
	if e.role != roleUnknown || e.idleSite != 0 || e.accepts || e.marked || e.busy {
		return
	}
	var best, soon uint32 // soon: would be better, but has not been returned to often enough
	for _, sid := range e.sites {
		s := &p.sites[sid]
		good, all := s.net+s.timer+s.other-min(s.other, s.replies), s.net+s.timer+s.other+s.unfit
		share := s.share(e)
		switch {
		case s.tier() == tierTimer && p.shallower(e, s): // sleeps in the middle of its work
		case s.returns == 0, s.returns*3 < s.blocks, good == 0, good*2 < all, share < 0.5, share < 0.9 && !p.learning:
		case s.returns < returns, share < 0.9: // most members may come yet
			if soon == 0 || e.prefers(s, &p.sites[soon]) {
				soon = sid
			}
		case best == 0 || e.prefers(s, &p.sites[best]):
			best = sid
		}
	}
	if best == 0 || p.sites[best].tier() == tierTimer {
		if p.learning {
			return // what others wait for says more, and is known at the end of the look ahead
		}
		if e.busy = p.neverWaits(e, best); e.busy {
			return
		}
	}
	if best != 0 && (soon == 0 || e.prefers(&p.sites[best], &p.sites[soon])) {
		e.idleSite = best
	}
}

// share is that of e's members that waited at s.
func (s *site) share(e *entry) float64 {
	return float64(bits.OnesCount64(s.members)) / float64(max(bits.OnesCount64(e.members), 1))
}

// neverWaits reports whether the members of e never wait for work, but sleep between their answers,
// while what is read is given to nobody who waits. Best is the sleep, or 0. A sync.Cond is how
// others give work to one who writes it [nats-server: 8 ms of its wait for the next message were
// each message's].
func (p *program) neverWaits(e *entry, best uint32) bool {
	n := e.gives + e.sends
	return e.repeats >= busyLeast && e.repeats*4 >= n*3 &&
		(best == 0 || n*8 >= int64(p.sites[best].blocks)) && e.conds*8 < n &&
		p.neverAsked(e) && p.unseenReads() >= busyLeast
}

// shallower reports whether the group also waits for messages nearer its root than s.
func (p *program) shallower(e *entry, s *site) bool {
	for _, id := range e.sites {
		if o := &p.sites[id]; o.depth < s.depth && o.net+o.other > 0 {
			return true
		}
	}
	return false
}

// unseenReads counts the reads that gave work to nobody who waited for some.
func (p *program) unseenReads() (n int64) {
	for i := range p.entries {
		n += p.entries[i].unseen
	}
	return n
}

// neverAsked reports whether the members of e wait for no messages, as far as anybody returned to
// the wait.
func (p *program) neverAsked(e *entry) bool {
	for _, id := range e.sites {
		if s := &p.sites[id]; s.returns > 0 && s.net+s.other > s.replies {
			return false
		}
	}
	return true
}

// prefers reports whether a is a better idle wait for e than b.
func (e *entry) prefers(a, b *site) bool {
	// A goroutine that was created with a connection waits for that, however deep its reader lies.
	if e.accepted && (a.tier() == tierNet) != (b.tier() == tierNet) {
		return a.tier() == tierNet
	}
	if a.tier() == tierNet && b.tier() == tierNet {
		if earlier, known := a.before(b); known {
			return earlier
		}
	}
	if a.depth != b.depth {
		return a.depth < b.depth
	}
	if a.tier() != b.tier() {
		return a.tier() < b.tier()
	}
	return a.blocks > b.blocks
}

// readsNet reports whether goroutines of e get their work from the network.
func (p *program) readsNet(e *entry) bool {
	return e.idleSite != 0 && p.sites[e.idleSite].tier() == tierNet
}
