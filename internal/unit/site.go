package unit

import "github.com/whystall/whystall/internal/sched"

// siteKey names a place where a thread waits. The first argument of the wait's system call is part
// of it if it tells places apart: a file descriptor or a futex's address, but not a pointer to the
// stack.
type siteKey struct {
	arg   uint64
	sig   uint32 // of the whole user stack; 0 not known
	call  int32
	block sched.Block
	multi multiplex
	made  bool // at a connection that the program made itself: what comes there are answers
}

// multiplex says how many senders a wait for the network listens to. Its order counts: choose.go
// takes the larger one for the wait for work.
type multiplex uint8

const (
	multiNone   multiplex = iota // one descriptor's bytes, or no wait for the network
	multiAccept                  // connections
	multiMany                    // poll, select and epoll: the events of many descriptors
)

// multiplexesOf has the system calls that take the events of many, or connections, by their
// numbers.
var multiplexesOf = map[string]map[int32]multiplex{
	"amd64": {7: multiMany, 23: multiMany, 232: multiMany, 270: multiMany, 271: multiMany,
		281: multiMany, 441: multiMany,
		43: multiAccept, 288: multiAccept},
	"arm64": {22: multiMany, 72: multiMany, 73: multiMany, 441: multiMany, 202: multiAccept, 242: multiAccept},
}

// site is a place where one thread waits, with counts of what ended those waits.
type site struct {
	key    siteKey
	blocks uint32 // all waits

	net   uint32 // ended from outside: by the network or another process
	timer uint32 // ended because the time was up
	short uint32 // those of timer that took less than shortSleepNS
	other uint32 // ended by another thread of the target
	bad   uint32 // at a lock, or ended by something that never ends a wait for work

	// Of the first mostExamined waits that another thread ended, what those threads were.
	examined uint32
	replies  uint32 // the waiter had woken that thread itself shortly before: an answer
	kin      uint32 // that thread has the waiter's own name

	// The thread that ended most of the waits in other, if one ended more than half, by the
	// majority vote of Boyer and Moore: given counts up for it and down for any other.
	giver uint32
	given int32

	user, kernel uint32 // StackIDs of one wait, for a name
}

// all counts the waits whose end says something.
func (s *site) all() uint32 { return s.net + s.timer + s.other + s.bad }

// good counts the waits that ended as a wait for work does: from outside, by somebody not asked to.
func (s *site) good() uint32 { return s.net + s.other - min(s.other, s.replies) }

// tier says where a role's work comes from. The order is how likely its units are what a user calls
// a request.
type tier uint8

const (
	tierNet    tier = iota // the network, or another process
	tierThread             // another thread of the target, through a queue
	tierLife               // its maker: the thread was made for it
	tierTimer              // nobody: it wakes by itself
)

func (s *site) tier() tier {
	switch {
	case s.good() == 0:
		return tierTimer
	case s.net >= s.other:
		return tierNet
	}
	return tierThread
}

// shortSleepNS is the least sleep that can be a wait for something that takes time. A thread that
// sleeps for less only wants to look again soon.
const shortSleepNS = 1e6

// polls reports whether threads wake here by themselves to look for work, and sleep again.
func (s *site) polls() bool {
	return s.blocks > 0 && s.tier() == tierTimer && s.short*10 >= s.blocks*9
}

// canBeIdle reports whether s can be a wait for work: something may arrive there, and at least half
// of the waits ended from outside or by their own timeout.
func (s *site) canBeIdle() bool {
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

// add adds the counts of o. The giver stays that of s.
func (s *site) add(o *site) {
	s.blocks += o.blocks
	s.net += o.net
	s.timer += o.timer
	s.short += o.short
	s.other += o.other
	s.replies += o.replies
	s.examined += o.examined
	s.kin += o.kin
	s.bad += o.bad
	if s.user == 0 {
		s.user = o.user
	}
	if s.kernel == 0 {
		s.kernel = o.kernel
	}
}

// vaguerThan reports whether k may be the place o, with less known of it.
func (k *siteKey) vaguerThan(o *siteKey) bool {
	if k.arg != o.arg || k.call != o.call {
		return false
	}
	blocks := k.block == o.block || k.block == sched.BlockUnknown
	sigs := k.sig == o.sig || k.sig == 0
	return blocks && sigs && *k != *o
}
