package thread

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
)

// LeafOf is what a stretch of a thread is booked to by itself. Only here a thread's state becomes a
// leaf. named reports whether the kernel's records say what a blocked thread waits in.
func LeafOf(s *sched.Stretch) (leaf books.Leaf, named bool) {
	switch s.Doing {
	case sched.OnCPU:
		// In the middle of a fault or a reclaim, the thread works on that.
		if leaf, ok := blockLeaf(s.Block); ok && s.Block.Stalls() {
			return leaf, true
		}
		return books.LeafOnCPU, true
	case sched.Queued:
		return books.LeafNoCPU, true
	case sched.Throttled:
		return books.LeafThrottled, true
	case sched.Blocked:
		return blockLeaf(s.Block)
	case sched.Gone:
		return books.LeafBornOutside, true
	}
	return books.LeafMissing, true
}

// blockLeaf is the leaf of what a thread is blocked in; false where that is not known, or has no
// leaf of its own.
func blockLeaf(b sched.Block) (books.Leaf, bool) {
	switch b {
	case sched.BlockFutex:
		return books.LeafAsleep, true
	case sched.BlockNetwork:
		return books.LeafNetwork, true
	case sched.BlockTimer:
		return books.LeafTimer, true
	case sched.BlockPipe:
		return books.LeafPipe, true
	case sched.BlockDisk:
		return books.LeafDisk, true
	case sched.BlockFault:
		return books.LeafFault, true
	case sched.BlockReclaim:
		return books.LeafReclaim, true
	case sched.BlockMemcg:
		return books.LeafMemcg, true
	case sched.BlockCompaction:
		return books.LeafCompaction, true
	case sched.BlockMmapLock:
		return books.LeafMmapLock, true
	case sched.BlockTLB:
		return books.LeafTLB, true
	case sched.BlockNUMA:
		return books.LeafNUMA, true
	case sched.BlockKernelLock:
		return books.LeafKernelLock, true
	}
	return books.LeafAsleep, false
}

// classOfLeaf is the class of a wait that was not followed.
func classOfLeaf(l books.Leaf) books.Class {
	switch l {
	case books.LeafNetwork, books.LeafTimer, books.LeafUnread, books.LeafBehindTurn:
		return books.ClassOutside
	case books.LeafLock, books.LeafLockBetween:
		return books.ClassLock
	}
	return books.ClassOwn
}
