package books

import (
	"github.com/whystall/whystall/internal/account"
)

// Leaf is an account.Leaf in one byte, for keys.
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
	LeafOther // a wait that was not followed: in the column of all only

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
	LeafKernelLock
	LeafPipe
	LeafLock
	LeafUnread
	LeafBehindTurn
	LeafMissing
	leaves // how many there are
)

// leafNames joins each code with its leaf by name, so that the order of the codes says nothing.
var leafNames = [leaves]account.Leaf{
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
	LeafKernelLock:    account.LeafKernelLock,
	LeafPipe:          account.LeafPipe,
	LeafLock:          account.LeafLock,
	LeafUnread:        account.LeafUnread,
	LeafBehindTurn:    account.LeafBehindTurn,
	LeafMissing:       account.LeafMissing,
}

// String is the leaf's name.
func (l Leaf) String() string { return string(leafNames[l]) }

// Class is an account.Class in one byte.
type Class uint8

const (
	ClassOwn Class = iota
	ClassMessage
	ClassLock
	ClassOutside
	ClassRuntime
	ClassUnknown
	classes // how many there are
)

// classNames joins each code with its class by name.
var classNames = [classes]account.Class{
	ClassOwn: account.ClassOwn, ClassMessage: account.ClassMessage, ClassLock: account.ClassLock,
	ClassOutside: account.ClassOutside,
	ClassRuntime: account.ClassRuntime, ClassUnknown: account.ClassUnknown,
}

// String is the class' name.
func (c Class) String() string { return string(classNames[c]) }

// Key is what an account is known by. Actor, site and detail are numbers that [Names] knows.
type Key struct {
	Class  Class
	Leaf   Leaf
	Actor  uint32
	Site   uint32
	Detail uint32 // see [Leaf.Named]
}

// Named reports whether the detail of accounts with this leaf is a number of [Names.Func].
// Otherwise it is the kind of a stop-the-world, which is a word of the trace: [Runtime.Word].
func (l Leaf) Named() bool { return l != LeafSTW && l != LeafSTWWork }

// OffCPU reports whether the leaf says that a thread had no CPU. Where it stood in the program then
// has nothing to do with it.
func (l Leaf) OffCPU() bool {
	return l == LeafThrottled || l == LeafNoCPU || l == LeafLatePoll || l == LeafMissing
}

// HasSite reports whether the place is part of the account even for a request's own time: it is
// where the request called the kernel.
func (l Leaf) HasSite() bool {
	switch l {
	case LeafSyscall, LeafDisk, LeafKernelLock, LeafPipe, LeafLock, LeafNetwork, LeafTimer:
		return true
	}
	return false
}
