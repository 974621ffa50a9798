package ledger

import (
	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/timeline"
)

// leafCode is a Leaf in one byte, for keys.
type leafCode uint8

const (
	codeOnCPU leafCode = iota
	codeRunnable
	codeSTW
	codeSTWWork
	codeAssist
	codeAssistCredit
	codeSweep
	codeMarkTermQueue
	codeGCStartQueue
	codeSTWQueue
	codeStackScan
	codeNetwork
	codeTimer
	codeSyscall
	codeLockBetween
	codeLockUnseen
	codeRuntimeIdle
	codePreviousEnd
	codeGap
	codeOrder
	codeLookback
	codeLimit
	codeNotWoken
	codeBeforeTrace
	codeBornOutside
	codeUnknown
	codeOther // wait of a request that was not followed: column All

	// by the kernel's records
	codeThrottled
	codeNoCPU
	codeAsleep
	codeLatePoll
	codeFault
	codeReclaim
	codeMemcg
	codeCompaction
	codeMmapLock
	codeTLB
	codeDisk
	codeNUMA
	codePipe
	codeLock
	codeMissing
	leafCodes
)

var leafOf = [leafCodes]account.Leaf{
	account.LeafOnCPU, account.LeafRunnable, account.LeafSTW, account.LeafSTWWork, account.LeafAssist, account.LeafAssistCredit, account.LeafSweep, account.LeafMarkTermQueue, account.LeafGCStartQueue,
	account.LeafSTWQueue, account.LeafStackScan, account.LeafNetwork, account.LeafTimer, account.LeafSyscall, account.LeafLockBetween, account.LeafLockUnseen, account.LeafRuntimeIdle, account.LeafPreviousEnd,
	account.LeafGap, account.LeafOrder, account.LeafLookback, account.LeafLimit, account.LeafNotWoken, account.LeafBeforeTrace, account.LeafBornOutside, account.LeafUnknown, account.LeafOther,
	account.LeafThrottled, account.LeafNoCPU, account.LeafAsleep, account.LeafLatePoll, account.LeafFault, account.LeafReclaim, account.LeafMemcg, account.LeafCompaction, account.LeafMmapLock, account.LeafTLB, account.LeafDisk,
	account.LeafNUMA, account.LeafPipe, account.LeafLock, account.LeafMissing,
}

// classCode is a Class in one byte.
type classCode uint8

const (
	classOwn classCode = iota
	classMessage
	classLock
	classOutside
	classRuntime
	classUnknown
	classCodes
)

var classOf = [classCodes]account.Class{account.ClassOwn, account.ClassMessage, account.ClassLock, account.ClassOutside, account.ClassRuntime, account.ClassUnknown}

// classOfWait is the class a request's own wait has.
func classOfWait(w timeline.Wait, by timeline.Ender) classCode {
	switch w {
	case timeline.WaitNetwork:
		if by == timeline.EnderGoroutine { // a deadline or Close
			return classMessage
		}
		return classOutside
	case timeline.WaitTimer:
		return classOutside
	case timeline.WaitMessage:
		if by == timeline.EnderP || by == timeline.EnderNobody {
			return classOutside
		}
		return classMessage
	case timeline.WaitLock:
		return classLock
	case timeline.WaitUnknown:
		return classUnknown
	}
	return classRuntime
}

// waitLeaf is the leaf of a wait that is not followed.
func waitLeaf(w timeline.Wait) leafCode {
	switch w {
	case timeline.WaitNetwork:
		return codeNetwork
	case timeline.WaitTimer, timeline.WaitMessage:
		return codeTimer // of a message without a goroutine that sent it: a timer's channel
	case timeline.WaitAssistCredit:
		return codeAssistCredit
	case timeline.WaitMarkTerm:
		return codeMarkTermQueue
	case timeline.WaitGCStart:
		return codeGCStartQueue
	case timeline.WaitSTW:
		return codeSTWQueue
	case timeline.WaitScan:
		return codeStackScan
	case timeline.WaitIdle:
		return codeRuntimeIdle
	}
	return codeUnknown
}

// account is the key of an Account.
type accountKey struct {
	class  classCode
	leaf   leafCode
	actor  timeline.FuncID
	site   timeline.FuncID
	detail uint32 // of a stop-the-world its kind, an exectrace.StringID; of what the kernel told a timeline.FuncID in words
}

// named tells that the detail of accounts with this leaf is a name.
func (l leafCode) named() bool { return l != codeSTW && l != codeSTWWork }

// offCPU tells that a thread had no CPU: where it stood has nothing to do with it.
func (l leafCode) offCPU() bool {
	return l == codeThrottled || l == codeNoCPU || l == codeLatePoll || l == codeMissing
}

// hasSite tells that of a request's own time the place is part of the account: where it called the kernel.
func (l leafCode) hasSite() bool {
	switch l {
	case codeSyscall, codeDisk, codePipe, codeLock, codeNetwork, codeTimer:
		return true
	}
	return false
}

// factKind says what a fact adds to an account.
type factKind uint8

const (
	factNS       factKind = iota
	factActor             // ref: low bits of the actor's number
	factStack             // ref: StackID where the actor was
	factStackN            // ref: StackID, ns: how many times
	factThrough           // ref: site of a lock on the path below the first wait
	factLock              // ref: site of the first lock on the path
	factWho               // ref: who held the Ps instead
	factLacked            // ref: what their threads lacked, see holders.list
	factSTW               // ref: number of the stop-the-world
	factSweep             // ref: number of the sweep
	factQueue             // ns: how many waited at once; the largest counts
	factHolder            // ref: entry of who held what a runtime queue waited for
	factSilence           // tags from here on
	factGC                // overlap with the mark phase
	factInSTW             // overlap with a stop-the-world's range
	factInAssist          // while an assist was open
	factInSweep
	factNewborn
	factPreempt
	factSyscall
	factHandoff
	factInferred
	factSlices
	factGCSlices
	factMeasured
	factSocket // ready by the kernel's records, and not yet runnable
	factDue
	factBarrier
	factPermit
	factServing
	factAsked
	factEnough    // every thread of the process that wanted a CPU had one
	factOfBarrier // ref: number of the barrier
	factBehind    // ref: who had the CPU, see joiner.who
	factHold      // ref: a hold of a lock
)

// fact is one number about a part of an activation, 16 bytes.
type fact struct {
	account uint32
	ref     uint32
	w       uint64 // ns << 8 | kind
}

func (f fact) kind() factKind { return factKind(f.w) }
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
	for i := hash2(a, b); ; i++ {
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
		i := hash2(k[0], k[1])
		for t.slots[i&mask] != 0 {
			i++
		}
		t.slots[i&mask] = uint32(n + 1)
	}
}

// hash2 mixes two words (the finalizer of splitmix64).
func hash2(a, b uint64) uint64 {
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
	list []accountKey
	near [64]struct { // those asked for lately
		key accountKey
		n   uint32 // number + 1
	}
}

const maxAccounts = 1 << 15

func (a *accounts) id(k accountKey) uint32 {
	if len(a.list) >= maxAccounts { // names are dropped, time is not
		k.site, k.detail = 0, 0
		if len(a.list) >= 2*maxAccounts {
			k.actor = 0
		}
	}
	near := &a.near[(uint32(k.leaf)*5+uint32(k.class)*11+uint32(k.actor)*3+uint32(k.site)*7)%uint32(len(a.near))]
	if near.n != 0 && near.key == k {
		return near.n - 1
	}
	n, isNew := a.t.get(uint64(k.class)<<40|uint64(k.leaf)<<32|uint64(k.actor), uint64(k.site)<<32|uint64(k.detail))
	if isNew {
		a.list = append(a.list, k)
	}
	near.key, near.n = k, n+1
	return n
}

// scratch collects the facts of one activation: open addressing as in table, with keys of one word.
type scratch struct {
	keys  []uint64
	slots []uint32 // number + 1
	facts []fact
}

func (s *scratch) reset() {
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
func (s *scratch) add(acct uint32, kind factKind, ref uint32, ns int64) {
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
			if kind == factQueue {
				f.w = uint64(max(f.ns(), ns))<<8 | uint64(kind)
			} else {
				f.w += uint64(ns) << 8
			}
			return
		}
	}
}
