package ledger

import (
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/timeline"
)

// blockLeaf is the leaf of what a thread is blocked in; false where that is not known, or none that has a leaf.
func blockLeaf(b sched.Block) (leafCode, bool) {
	switch b {
	case sched.BlockFutex:
		return codeAsleep, true
	case sched.BlockNetwork:
		return codeNetwork, true
	case sched.BlockTimer:
		return codeTimer, true
	case sched.BlockPipe:
		return codePipe, true
	case sched.BlockDisk:
		return codeDisk, true
	case sched.BlockFault:
		return codeFault, true
	case sched.BlockReclaim:
		return codeReclaim, true
	case sched.BlockMemcg:
		return codeMemcg, true
	case sched.BlockCompaction:
		return codeCompaction, true
	case sched.BlockMmapLock:
		return codeMmapLock, true
	case sched.BlockTLB:
		return codeTLB, true
	case sched.BlockNUMA:
		return codeNUMA, true
	}
	return codeAsleep, false
}

// sleep is the function that a blocked thread sleeps in: the innermost of the user stack that is no plumbing, else of the kernel's.
func (j *joiner) sleep(s *sched.Stretch) timeline.FuncID {
	if s.Block == sched.BlockStopped {
		return j.detail(sched.Stopped)
	}
	key := [2]uint32{s.User, s.Kernel}
	id, ok := j.sleeps[key]
	if ok {
		return id
	}
	if name := sched.SleptFunc(j.k, s); name != "" {
		id = j.detail(name)
	}
	j.sleeps[key] = id
	return id
}
