package unit

import (
	"cmp"

	"github.com/whystall/whystall/internal/request"
	"github.com/whystall/whystall/internal/sched"
)

// role is a group of threads that wait for work in the same way.
type role struct {
	key   roleKey
	entry string // what it is called
	whole bool   // its threads are born, work and die without a wait for work
	tier  tier
	site  site // its wait for work, added up over its members
	lives int

	queues map[uint64]bool // futexes at which its members wait for work besides
	filled int32           // of a role with key.fills: the role whose queue it fills

	loop, start request.GroupID // its groups; NoGroup: none yet
	wallNS      int64           // of its kept units
}

// roleKey says which threads have one role: those with one name that wait for work in the same kind
// of place.
type roleKey struct {
	name  int32
	whole bool
	block sched.Block
	multi multiplex
	sig   uint32
	addr  uint64 // of a futex that several threads wait at: one queue
	fills bool   // they fill a queue of threads that have the same key but for this
	made  bool   // see siteKey
}

// roleTable numbers the roles while they are given.
type roleTable struct {
	f     *finder
	byKey map[roleKey]int32
	// shared counts, by futex word, the lives that wait for work there.
	shared map[uint64]int
	// byName has the roles of lives judged by themselves.
	byName map[int32][]int32
}

// number is the number of the role with a key, which is made if it is new.
func (t *roleTable) number(k roleKey) int32 {
	n, ok := t.byKey[k]
	if !ok {
		n = int32(len(t.f.set.roles))
		t.byKey[k] = n
		name := t.f.nameOf[k.name]
		t.f.set.roles = append(t.f.set.roles, role{key: k, whole: k.whole, loop: request.NoGroup,
			start: request.NoGroup,
			entry: cmp.Or(name.entry, name.comm, "a thread without a name")})
	}
	return n
}

// keyOf is the key of the role of a life whose wait for work is s. A futex that one thread alone
// waits at is its own mailbox: all with such a mailbox have one role.
func (t *roleTable) keyOf(l *life, s *site) roleKey {
	k := roleKey{name: l.name, block: s.key.block, multi: s.key.multi, sig: s.key.sig, made: s.key.made}
	if s.key.block == sched.BlockFutex && t.shared[s.key.arg] > 1 {
		k.addr = s.key.arg
	}
	return k
}

// addQueue adds a futex at which members wait for work, too.
func (r *role) addQueue(addr uint64) {
	if r.queues == nil {
		r.queues = map[uint64]bool{}
	}
	r.queues[addr] = true
}
