package ledger

import (
	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// blockLeaf is the leaf of what a thread is blocked in; false where that is not known, or none that has a leaf.
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
	}
	return books.LeafAsleep, false
}

// slept is the function that a blocked thread sleeps in.
func (j *joiner) slept(s *sched.Stretch) timeline.FuncID { return timeline.FuncID(j.words.Slept(s)) }
