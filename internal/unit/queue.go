package unit

import (
	"slices"

	"github.com/whystall/whystall/internal/sched"
)

// queuePlace is a futex as a possible queue of a role.
type queuePlace struct {
	role int32
	addr uint64
}

// isQueue reports whether s is a queue of work by itself: who ends most waits there never waits
// there. A lock, an interpreter's too, is released by those that also wait for it.
func (f *finder) isQueue(s *site) bool {
	if s.key.block != sched.BlockFutex || s.other == 0 || s.replies*5 > s.all() {
		return false
	}
	g := f.set.first(s.giver)
	return g != nil && !g.waitsAt(s.key.arg)
}

// queueUse is what the members of a role did at a futex.
type queueUse struct {
	lives   uint32 // members that waited there
	all     uint32 // their waits
	answers uint32 // waits that ended with an answer
	given   uint32 // waits ended by threads of the network that never wait there themselves
	givers  map[uint32]bool
}

// queues looks for a second wait for work of threads that wait for the network: a queue from which
// they take their next connection. Who fills such a queue gets a role of its own, since its units
// are short.
//  1. It is a futex at which at least two members wait.
//  2. Four in five waits there are ended by threads that wait for the network, too, but never
//     there. A lock is released by those that also wait for it.
//  3. At most one in five is ended by a thread that a waiter had woken itself: those are answers.
func (f *finder) queues() {
	var fillers []int32
	for at, u := range f.queueUses() {
		if u.lives < 2 || u.given*5 < u.all*4 || u.answers*5 > u.all {
			continue
		}
		f.set.roles[at.role].addQueue(at.addr)
		for tid := range u.givers {
			for _, i := range f.set.byTID[tid] {
				if f.set.lives[i].role == at.role {
					fillers = append(fillers, i)
				}
			}
		}
	}
	slices.Sort(fillers) // the order of a map is random, that of roles must not be
	for _, i := range slices.Compact(fillers) {
		f.makeFiller(&f.set.lives[i])
	}
}

// queueUses adds up the waits at futexes of threads that wait for the network.
func (f *finder) queueUses() map[queuePlace]*queueUse {
	ofNetwork := func(l *life) bool { return l.role >= 0 && f.set.roles[l.role].tier == tierNet }
	uses := map[queuePlace]*queueUse{}
	for i := range f.set.lives {
		l := &f.set.lives[i]
		if !ofNetwork(l) || f.set.roles[l.role].whole {
			continue
		}
		for j := range l.sites {
			s := &l.sites[j]
			if s.key.block != sched.BlockFutex || s.other == 0 {
				continue
			}
			at := queuePlace{l.role, s.key.arg}
			u := uses[at]
			if u == nil {
				u = &queueUse{givers: map[uint32]bool{}}
				uses[at] = u
			}
			u.lives++
			u.all += s.all()
			u.answers += s.replies
			if g := f.set.first(s.giver); g != nil && ofNetwork(g) && !g.waitsAt(s.key.arg) {
				u.given += s.other
				u.givers[s.giver] = true
			}
		}
	}
	return uses
}

// makeFiller gives a life that fills its own role's queue a role besides.
func (f *finder) makeFiller(l *life) {
	k := f.set.roles[l.role].key
	k.fills = true
	n := slices.IndexFunc(f.set.roles, func(r role) bool { return r.key == k })
	if n < 0 {
		n = len(f.set.roles)
		r := f.set.roles[l.role]
		r.key, r.lives, r.queues, r.filled = k, 0, nil, l.role
		f.set.roles = append(f.set.roles, r)
	}
	f.set.roles[l.role].lives--
	f.set.roles[n].lives++
	l.role = int32(n)
}
