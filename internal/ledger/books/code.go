package books

import (
	"github.com/whystall/whystall/internal/account"
)

// leafCode is a Leaf in one byte, for keys.
type Leaf uint8

const (
	LeafOnCPU Leaf = iota
	LeafRunnable
	LeafSTW
	LeafSTWWork
	LeafAssist
	LeafAssistCredit
	LeafSweep
	LeafMarkTermQueue
	LeafGCStartQueue
	LeafSTWQueue
	LeafStackScan
	LeafNetwork
	LeafTimer
	LeafSyscall
	LeafLockBetween
	LeafLockUnseen
	LeafRuntimeIdle
	LeafPreviousEnd
	LeafGap
	LeafOrder
	LeafLookback
	LeafLimit
	LeafNotWoken
	LeafBeforeTrace
	LeafBornOutside
	LeafUnknown
	LeafOther // wait of a request that was not followed: column All

	// by the kernel's records
	LeafThrottled
	LeafNoCPU
	LeafAsleep
	LeafLatePoll
	LeafFault
	LeafReclaim
	LeafMemcg
	LeafCompaction
	LeafMmapLock
	LeafTLB
	LeafDisk
	LeafNUMA
	LeafPipe
	LeafLock
	LeafMissing
	leaves
)

// leafOf joins each code with its leaf by name.
var leafOf = [leaves]account.Leaf{
	LeafOnCPU:         account.LeafOnCPU,
	LeafRunnable:      account.LeafRunnable,
	LeafSTW:           account.LeafSTW,
	LeafSTWWork:       account.LeafSTWWork,
	LeafAssist:        account.LeafAssist,
	LeafAssistCredit:  account.LeafAssistCredit,
	LeafSweep:         account.LeafSweep,
	LeafMarkTermQueue: account.LeafMarkTermQueue,
	LeafGCStartQueue:  account.LeafGCStartQueue,
	LeafSTWQueue:      account.LeafSTWQueue,
	LeafStackScan:     account.LeafStackScan,
	LeafNetwork:       account.LeafNetwork,
	LeafTimer:         account.LeafTimer,
	LeafSyscall:       account.LeafSyscall,
	LeafLockBetween:   account.LeafLockBetween,
	LeafLockUnseen:    account.LeafLockUnseen,
	LeafRuntimeIdle:   account.LeafRuntimeIdle,
	LeafPreviousEnd:   account.LeafPreviousEnd,
	LeafGap:           account.LeafGap,
	LeafOrder:         account.LeafOrder,
	LeafLookback:      account.LeafLookback,
	LeafLimit:         account.LeafLimit,
	LeafNotWoken:      account.LeafNotWoken,
	LeafBeforeTrace:   account.LeafBeforeTrace,
	LeafBornOutside:   account.LeafBornOutside,
	LeafUnknown:       account.LeafUnknown,
	LeafOther:         account.LeafOther,
	LeafThrottled:     account.LeafThrottled,
	LeafNoCPU:         account.LeafNoCPU,
	LeafAsleep:        account.LeafAsleep,
	LeafLatePoll:      account.LeafLatePoll,
	LeafFault:         account.LeafFault,
	LeafReclaim:       account.LeafReclaim,
	LeafMemcg:         account.LeafMemcg,
	LeafCompaction:    account.LeafCompaction,
	LeafMmapLock:      account.LeafMmapLock,
	LeafTLB:           account.LeafTLB,
	LeafDisk:          account.LeafDisk,
	LeafNUMA:          account.LeafNUMA,
	LeafPipe:          account.LeafPipe,
	LeafLock:          account.LeafLock,
	LeafMissing:       account.LeafMissing,
}

// String is the leaf's name.
func (l Leaf) String() string { return string(leafOf[l]) }

// classCode is a Class in one byte.
type Class uint8

const (
	ClassOwn Class = iota
	ClassMessage
	ClassLock
	ClassOutside
	ClassRuntime
	ClassUnknown
	classes
)

var classOf = [classes]account.Class{
	ClassOwn: account.ClassOwn, ClassMessage: account.ClassMessage, ClassLock: account.ClassLock, ClassOutside: account.ClassOutside,
	ClassRuntime: account.ClassRuntime, ClassUnknown: account.ClassUnknown,
}

// String is the class' name.
func (c Class) String() string { return string(classOf[c]) }

// accountKey is the key of an Account. Actor, site and detail are numbers that [Names] knows.
type Key struct {
	Class  Class
	Leaf   Leaf
	Actor  uint32
	Site   uint32
	Detail uint32 // of a stop-the-world its kind, which is a word of the trace; else a name
}

// named tells that the detail of accounts with this leaf is a name.
func (l Leaf) Named() bool { return l != LeafSTW && l != LeafSTWWork }

// offCPU tells that a thread had no CPU: where it stood has nothing to do with it.
func (l Leaf) OffCPU() bool {
	return l == LeafThrottled || l == LeafNoCPU || l == LeafLatePoll || l == LeafMissing
}

// hasSite tells that of a request's own time the place is part of the account: where it called the kernel.
func (l Leaf) HasSite() bool {
	switch l {
	case LeafSyscall, LeafDisk, LeafPipe, LeafLock, LeafNetwork, LeafTimer:
		return true
	}
	return false
}

// factKind says what a fact adds to an account.
type FactKind uint8

const (
	FactNS       FactKind = iota
	FactActor             // ref: low bits of the actor's number
	FactStack             // ref: StackID where the actor was
	FactStackN            // ref: StackID, ns: how many times
	FactThrough           // ref: site of a lock on the path below the first wait
	FactLock              // ref: site of the first lock on the path
	FactOccupant          // ref: who held the Ps instead
	FactLacked            // ref: what their threads lacked, see holders.list
	FactSTW               // ref: number of the stop-the-world
	FactSweep             // ref: number of the sweep
	FactQueue             // ns: how many waited at once; the largest counts
	FactHolder            // ref: entry of who held what a runtime queue waited for
	FactSilence           // tags from here on
	FactGC                // overlap with the mark phase
	FactInSTW             // overlap with a stop-the-world's range
	FactInAssist          // while an assist was open
	FactInSweep
	FactNewborn
	FactPreempt
	FactSyscall
	FactHandoff
	FactInferred
	FactSlices
	FactGCSlices
	FactMeasured
	FactSocket // ready by the kernel's records, and not yet runnable
	FactDue
	FactInBarrier
	FactPermit
	FactServing
	FactAsked
	FactEnough  // every thread of the process that wanted a CPU had one
	FactBarrier // ref: number of the barrier
	FactBehind  // ref: who had the CPU, see joiner.who
	FactHold    // ref: a hold of a lock
)

// fact is one number about a part of an activation, 16 bytes.
type fact struct {
	account uint32
	ref     uint32
	w       uint64 // ns << 8 | kind
}

func (f fact) kind() FactKind { return FactKind(f.w) }
func (f fact) ns() int64      { return int64(f.w >> 8) }

// table maps pairs of words to small dense numbers: open addressing, no deletion but all at once.
type table struct {
	keys  [][2]uint64
	slots []uint32 // number + 1
}

// get gives the number of the key, a new one if it was not there.
func (t *table) get(a, b uint64) (n uint32, isNew bool) {
	if len(t.keys)*2 >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := Hash(a, b); ; i++ {
		s := t.slots[i&mask]
		if s == 0 {
			t.keys = append(t.keys, [2]uint64{a, b})
			t.slots[i&mask] = uint32(len(t.keys))
			return uint32(len(t.keys) - 1), true
		}
		if t.keys[s-1] == [2]uint64{a, b} {
			return s - 1, false
		}
	}
}

func (t *table) grow() {
	t.slots = make([]uint32, max(256, 2*len(t.slots)))
	mask := uint64(len(t.slots) - 1)
	for n, k := range t.keys {
		i := Hash(k[0], k[1])
		for t.slots[i&mask] != 0 {
			i++
		}
		t.slots[i&mask] = uint32(n + 1)
	}
}

// hash2 mixes two words (the finalizer of splitmix64).
func Hash(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// accounts numbers the keys.
type accounts struct {
	t    table
	list []Key
	near [64]struct { // those asked for lately
		key Key
		N   uint32 // number + 1
	}
}

const maxAccounts = 1 << 15

func (a *accounts) id(k Key) uint32 {
	if len(a.list) >= maxAccounts { // names are dropped, time is not
		k.Site, k.Detail = 0, 0
		if len(a.list) >= 2*maxAccounts {
			k.Actor = 0
		}
	}
	near := &a.near[(uint32(k.Leaf)*5+uint32(k.Class)*11+uint32(k.Actor)*3+uint32(k.Site)*7)%uint32(len(a.near))]
	if near.N != 0 && near.key == k {
		return near.N - 1
	}
	n, isNew := a.t.get(uint64(k.Class)<<40|uint64(k.Leaf)<<32|uint64(k.Actor), uint64(k.Site)<<32|uint64(k.Detail))
	if isNew {
		a.list = append(a.list, k)
	}
	near.key, near.N = k, n+1
	return n
}

// scratch collects the facts of one activation: open addressing as in table, with keys of one word.
type Facts struct {
	keys  []uint64
	slots []uint32 // number + 1
	facts []fact
}

func (s *Facts) Reset() {
	mask := uint64(len(s.slots) - 1)
	if len(s.facts)*4 > len(s.slots) {
		clear(s.slots)
	} else { // from the last to the first: each then is at the end of its run
		for n := len(s.keys); n > 0; n-- {
			i := hash1(s.keys[n-1])
			for s.slots[i&mask] != uint32(n) {
				i++
			}
			s.slots[i&mask] = 0
		}
	}
	s.keys, s.facts = s.keys[:0], s.facts[:0]
}

func hash1(x uint64) uint64 {
	x *= 0x9e3779b97f4a7c15
	return x ^ x>>29
}

// add needs accounts below 2^25 and kinds below 2^7, which they are.
func (s *Facts) Add(acct uint32, kind FactKind, ref uint32, ns int64) {
	if len(s.facts)*2 >= len(s.slots) {
		s.slots = make([]uint32, max(512, 2*len(s.slots)))
		mask := uint64(len(s.slots) - 1)
		for n, k := range s.keys {
			i := hash1(k)
			for s.slots[i&mask] != 0 {
				i++
			}
			s.slots[i&mask] = uint32(n + 1)
		}
	}
	key := uint64(acct)<<39 | uint64(kind)<<32 | uint64(ref)
	mask := uint64(len(s.slots) - 1)
	for i := hash1(key); ; i++ {
		n := s.slots[i&mask]
		if n == 0 {
			s.keys = append(s.keys, key)
			s.facts = append(s.facts, fact{acct, ref, uint64(ns)<<8 | uint64(kind)})
			s.slots[i&mask] = uint32(len(s.facts))
			return
		}
		if s.keys[n-1] == key {
			f := &s.facts[n-1]
			if kind == FactQueue {
				f.w = uint64(max(f.ns(), ns))<<8 | uint64(kind)
			} else {
				f.w += uint64(ns) << 8
			}
			return
		}
	}
}
