package unit

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// threadRole is a group of threads that wait for work in the same way.
type role struct {
	key   roleKey
	entry string // what it is called
	whole bool   // born, works, dies
	tier  tier
	site  lifeSite // its wait for work, added up over its members
	lives int

	queues map[uint64]bool // futexes at which its members wait for work besides
	gives  int32           // of key.gives: the role whose queue it fills

	loop, start request.GroupID // its groups; NoGroup: none yet
	wallNS      int64           // of its kept units
}

// roleKey: threads with one name that wait for work in the same kind of place.
type roleKey struct {
	name  int32
	whole bool
	block sched.Block
	multi multiplex
	sig   uint32
	addr  uint64 // of a futex that several threads wait on: one queue
	gives bool   // fills a queue of those with the same key
}

// judge gives lives their roles.
func (f *finder) judge() {
	shared := map[uint64]int{} // futex words that are some life's wait for work
	for i := range f.t.lives {
		l := &f.t.lives[i]
		l.best = f.choose(l)
	}
	f.leaders()
	for i := range f.t.lives {
		l := &f.t.lives[i]
		if l.best >= 0 && l.sites[l.best].key.block == sched.BlockFutex {
			shared[l.sites[l.best].key.arg]++
		}
	}
	roles := map[roleKey]int32{}
	role := func(k roleKey) int32 {
		n, ok := roles[k]
		if !ok {
			n = int32(len(f.t.roles))
			roles[k] = n
			name := f.nameOf[k.name]
			f.t.roles = append(f.t.roles, role{key: k, whole: k.whole, entry: cmp.Or(name.entry, name.comm, "a thread without a name"), loop: request.NoGroup, start: request.NoGroup})
		}
		return n
	}
	keyOf := func(l *life, s *lifeSite) roleKey {
		k := roleKey{name: l.name, block: s.key.block, multi: s.key.multi, sig: s.key.sig}
		if s.key.block == sched.BlockFutex && shared[s.key.arg] > 1 {
			k.addr = s.key.arg
		}
		return k
	}
	var rest []int32
	byName := map[int32][]int32{} // roles
	// Those whose stacks are not known come last: they are like the others with the same name and kind of wait.
	known := map[roleKey]roleKey{}
	var order []int32
	for _, whole := range []bool{true, false} {
		for i := range f.t.lives {
			l := &f.t.lives[i]
			if l.best >= 0 && (l.sites[l.best].key.sig != 0) == whole {
				order = append(order, int32(i))
			}
		}
	}
	for i := range f.t.lives {
		if f.t.lives[i].best < 0 {
			rest = append(rest, int32(i))
		}
	}
	for _, i := range order {
		l := &f.t.lives[i]
		k := keyOf(l, &l.sites[l.best])
		if blank := k; blank.sig != 0 {
			blank.sig = 0
			if _, ok := known[blank]; !ok {
				known[blank] = k
			}
		} else if like, ok := known[k]; ok {
			k = like
		}
		l.role = role(k)
		r := &f.t.roles[l.role]
		r.lives++
		r.site.add(&l.sites[l.best])
		r.site.key = l.sites[l.best].key
		if l.follows != 0 {
			if r.queues == nil {
				r.queues = map[uint64]bool{}
			}
			r.queues[l.follows] = true
		}
		if !slices.Contains(byName[l.name], l.role) {
			byName[l.name] = append(byName[l.name], l.role)
		}
	}
	// Lives too short to be told by themselves are like those of the same name that wait in such a place.
	pools := map[int32][]int32{}
	for _, i := range rest {
		l := &f.t.lives[i]
		for _, n := range byName[l.name] {
			r := &f.t.roles[n]
			for j := range l.sites {
				s := &l.sites[j]
				if !l.unsure && s.key.block == r.key.block && s.key.multi == r.key.multi && (s.key.sig == r.key.sig || s.key.sig == 0) && (r.key.addr == 0 || r.key.addr == s.key.arg) && s.bad == 0 {
					l.best, l.role = int32(j), n
				}
			}
		}
		if l.role >= 0 {
			f.t.roles[l.role].lives++
			continue
		}
		if !l.unsure {
			pools[l.name] = append(pools[l.name], i)
		}
	}
	names := make([]int32, 0, len(pools))
	for n := range pools {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		f.judgeTogether(pools[n], role)
	}
	for i := range f.t.roles {
		r := &f.t.roles[i]
		r.tier = r.site.tier()
		if r.whole {
			r.tier = tierLife
		}
	}
	f.queues()
}

// queues looks for a second wait for work of threads that wait for the network: a queue, from which they take their next connection. It is a condition that
// several of them wait at, and that a thread signals which itself waits for the network, not there, and was not asked by them: neither a lock's nor
// an answer's. Who fills the queue is a role of its own.
func (f *finder) queues() {
	type at struct {
		role int32
		addr uint64
	}
	type use struct{ lives, all, answers, given uint32 }
	uses := map[at]*use{}
	givers := map[at]map[uint32]bool{}
	for i := range f.t.lives {
		l := &f.t.lives[i]
		if l.role < 0 || f.t.roles[l.role].tier != tierNet || f.t.roles[l.role].whole {
			continue
		}
		for j := range l.sites {
			s := &l.sites[j]
			if s.key.block != sched.BlockFutex || s.other == 0 {
				continue
			}
			n := at{l.role, s.key.arg}
			u := uses[n]
			if u == nil {
				u = &use{}
				uses[n], givers[n] = u, map[uint32]bool{}
			}
			u.lives++
			u.all += s.all()
			u.answers += s.replies
			if g := f.t.first(s.giver); g != nil && g.role >= 0 && f.t.roles[g.role].tier == tierNet && !g.waitsAt(s.key.arg) {
				u.given += s.other
				givers[n][s.giver] = true
			}
		}
	}
	var fills []int32
	for n, u := range uses {
		if u.lives < 2 || u.given*5 < u.all*4 || u.answers*5 > u.all {
			continue
		}
		r := &f.t.roles[n.role]
		if r.queues == nil {
			r.queues = map[uint64]bool{}
		}
		r.queues[n.addr] = true
		for tid := range givers[n] {
			for _, i := range f.t.byTID[tid] {
				if f.t.lives[i].role == n.role {
					fills = append(fills, i)
				}
			}
		}
	}
	slices.Sort(fills)
	for _, i := range slices.Compact(fills) {
		l := &f.t.lives[i]
		k := f.t.roles[l.role].key
		k.gives = true
		n := slices.IndexFunc(f.t.roles, func(r role) bool { return r.key == k })
		if n < 0 {
			n = len(f.t.roles)
			r := f.t.roles[l.role]
			r.key, r.lives, r.queues, r.gives = k, 0, nil, l.role
			f.t.roles = append(f.t.roles, r)
		}
		f.t.roles[l.role].lives--
		f.t.roles[n].lives++
		l.role = int32(n)
	}
}

// first is tid's first life, nil without one.
func (t *Set) first(tid uint32) *life {
	if l := t.byTID[tid]; len(l) > 0 {
		return &t.lives[l[0]]
	}
	return nil
}

func (l *life) waitsAt(addr uint64) bool {
	for i := range l.sites {
		if s := &l.sites[i]; s.key.block == sched.BlockFutex && s.key.arg == addr {
			return true
		}
	}
	return false
}

// Least numbers of waits by which one life is told by itself, and many are together.
const (
	leastWaits    = 4
	leastReturns  = 8
	leastLives    = 3
	clearlyMore   = 50 // times as many waits decide between two places of one kind whose stacks are not known
	usualMembers  = 10 // nine in ten members have the place
	mostAsMembers = 9
)

// choose picks the wait for work of a life that waited often; -1 none.
func (f *finder) choose(l *life) int32 {
	best := int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		if s.blocks < leastWaits || !canBeIdle(s) {
			continue
		}
		if best < 0 || f.beforeSite(s, &l.sites[best]) {
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
	b := &l.sites[best]
	for i := range l.sites {
		s := &l.sites[i]
		if int32(i) == best || s.blocks < leastWaits || !canBeIdle(s) || s.tier() != b.tier() || s.key.multi != b.key.multi && b.tier() == tierNet {
			continue
		}
		if s.key.sig != 0 && b.key.sig != 0 && f.depthOf(s) != f.depthOf(b) {
			continue
		}
		if b.blocks < clearlyMore*s.blocks && s.blocks < clearlyMore*b.blocks {
			l.unsure = true // which of the two it is nobody can tell
			return -1
		}
	}
	return best
}

// handedBack looks for the wait for work of who gives back what it got, as a connection, when it is done, and then gets the next: those look like
// answers. It can be told where all other waits are ended by threads of the life's own name, which share a lock or a permit with it, and these hardly ever are.
// -1: there is none.
func handedBack(l *life, best *lifeSite) int32 {
	shared := func(s *lifeSite) bool { return s.tier() == tierChan && s.asked > 0 && s.kin*4 >= s.asked*3 }
	if !shared(best) {
		return -1
	}
	found := int32(-1)
	for i := range l.sites {
		s := &l.sites[i]
		switch {
		case s.blocks < leastWaits || s == best || canBeIdle(s) && (shared(s) || s.tier() == tierTimer):
		case s.key.block == sched.BlockFutex && s.kin*4 <= s.asked && s.other*10 >= s.all()*9 && found < 0:
			found = int32(i)
		default:
			return -1
		}
	}
	return found
}

// canBeIdle: what ended it was mostly from outside.
func canBeIdle(s *lifeSite) bool {
	switch s.key.block {
	case sched.BlockNetwork, sched.BlockPipe, sched.BlockFutex, sched.BlockTimer:
	default:
		return false
	}
	if s.tier() == tierTimer {
		return s.timer*2 >= s.all() && s.timer > 0
	}
	return (s.good()+s.timer)*2 >= s.all()
}

func (f *finder) depthOf(s *lifeSite) int { return f.stack(s.user).depth }

// beforeSite: a is the better wait for work: nearer the root where that is known; network before queue before timer; waits
// for many's events before connections before one's bytes.
func (f *finder) beforeSite(a, b *lifeSite) bool {
	if (a.tier() == tierTimer) != (b.tier() == tierTimer) {
		return b.tier() == tierTimer
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
		// A thread that takes a connection and reads from it: bytes come more often where connections live long.
		if a.key.multi == multiAccept && b.key.multi < multiAccept {
			return a.blocks*3 >= b.blocks
		}
		if b.key.multi == multiAccept && a.key.multi < multiAccept {
			return b.blocks*3 < a.blocks
		}
		return a.key.multi > b.key.multi
	}
	return a.blocks > b.blocks
}

// judgeTogether decides on lives of one name none of which waited often: their waits of one kind are added up. Where members
// come back to one it is their wait for work; else, where they are born and die, their whole life is the unit.
func (f *finder) judgeTogether(ids []int32, role func(roleKey) int32) {
	type kind struct {
		block sched.Block
		multi multiplex
		sig   uint32
		addr  uint64
	}
	type many struct {
		lifeSite
		members, returns uint32
	}
	// A place is told apart by its stack only if all have one.
	type blind struct {
		block sched.Block
		multi multiplex
	}
	without := map[blind]bool{}
	for _, i := range ids {
		for j := range f.t.lives[i].sites {
			if k := &f.t.lives[i].sites[j].key; k.sig == 0 {
				without[blind{k.block, k.multi}] = true
			}
		}
	}
	of := func(s *lifeSite) kind {
		k := kind{block: s.key.block, multi: s.key.multi}
		if !without[blind{k.block, k.multi}] {
			k.sig = s.key.sig
		}
		if k.block == sched.BlockFutex {
			k.addr = s.key.arg
		}
		return k
	}
	kinds := map[kind]*many{}
	var order []kind
	whole, alive := 0, 0
	for _, i := range ids {
		l := &f.t.lives[i]
		if l.born && l.died {
			whole++
		} else if !l.died {
			alive++
		}
		seen := map[kind]bool{}
		for j := range l.sites {
			s := &l.sites[j]
			k := of(s)
			m := kinds[k]
			if m == nil {
				m = &many{lifeSite: lifeSite{key: s.key}}
				kinds[k] = m
				order = append(order, k)
			}
			m.add(s)
			if s.blocks > 1 || seen[k] {
				m.returns += s.blocks - 1
				if seen[k] {
					m.returns++
				}
			}
			if !seen[k] {
				m.members++
				seen[k] = true
			}
		}
	}
	var best *many
	var bestKind kind
	for _, k := range order {
		m := kinds[k]
		if m.members*usualMembers < uint32(len(ids))*mostAsMembers || m.returns < leastReturns || m.returns*3 < m.blocks || !canBeIdle(&m.lifeSite) || m.tier() == tierTimer {
			continue
		}
		if best == nil || f.beforeSite(&m.lifeSite, &best.lifeSite) {
			best, bestKind = m, k
		}
	}
	if best != nil {
		n := role(roleKey{name: f.t.lives[ids[0]].name, block: bestKind.block, multi: bestKind.multi, sig: bestKind.sig, addr: bestKind.addr})
		r := &f.t.roles[n]
		r.site.add(&best.lifeSite)
		r.site.key = best.key
		for _, i := range ids {
			l := &f.t.lives[i]
			for j := range l.sites {
				s := &l.sites[j]
				if of(s) == bestKind {
					l.best, l.role = int32(j), n
				}
			}
			if l.role >= 0 {
				r.lives++
			}
		}
		return
	}
	if whole < leastLives || whole < alive {
		return
	}
	n := role(roleKey{name: f.t.lives[ids[0]].name, whole: true})
	for _, i := range ids {
		if l := &f.t.lives[i]; l.born || l.died {
			l.role = n
			f.t.roles[n].lives++
		}
	}
}

// ttier orders roles by how likely their units are what a user calls a request.
type tier uint8

const (
	tierNet tier = iota
	tierChan
	tierLife
	tierTimer
)
