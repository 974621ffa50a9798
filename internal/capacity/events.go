package capacity

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// eventSums adds up the rarer records, each kind into sums of its own.
type eventSums struct {
	k    *sched.Timeline
	r    *account.Kernel
	sums map[*account.Spans]*spanSum

	freeing   Times  // when threads were in reclaim or compaction
	lockWaits []Span // waits for mmap_lock
}

// sumEvents adds up reclaim, compaction, faults, waits for mmap_lock, flushes and migrations.
func sumEvents(k *sched.Timeline, r *account.Kernel) {
	x := &eventSums{k: k, r: r, sums: map[*account.Spans]*spanSum{}}
	k.Events(math.MinInt64, math.MaxInt64, x.add, kernel.Reclaim, kernel.Compaction, kernel.Fault,
		kernel.MmapLock, kernel.TLBFlush, kernel.NUMAMove)
	x.freeing = x.freeing.Merge()
	r.Bands = append(r.Bands, bands(account.BandReclaim, slices.Clone(x.freeing), 0)...)
	for _, s := range x.lockWaits {
		r.MmapReclaimNS += x.freeing.overlap(s)
	}
	for s, sum := range x.sums {
		sum.write()
		if s != &r.MmapLock { // who changes the address space is known by the calls that threads were in: threads.go
			sum.writeThreads()
		}
	}
}

// add adds a record.
func (x *eventSums) add(e *sched.Event) bool {
	r := x.r
	switch e.Kind {
	case kernel.Reclaim:
		s := &r.Reclaim
		if e.Flags&kernel.Memcg != 0 {
			s = &r.Memcg
		}
		x.addFreeing(s, e)
	case kernel.Compaction:
		x.addFreeing(&r.Compact, e)
	case kernel.Fault:
		x.addFault(e)
	case kernel.MmapLock:
		mode := "to read"
		if e.Flags&kernel.Write != 0 {
			mode = "to write"
		}
		x.addSpan(&r.MmapLock, e, mode)
		x.lockWaits = append(x.lockWaits, Span{e.Begin, e.End})
	case kernel.TLBFlush:
		r.TLB.N++
	case kernel.NUMAMove:
		x.addMigration(e)
	}
	return true
}

// addSpan adds a record to the sums of its kind.
func (x *eventSums) addSpan(s *account.Spans, e *sched.Event, flag string) {
	sum := x.sums[s]
	if sum == nil {
		sum = newSpanSum(s)
		x.sums[s] = sum
	}
	sum.add(x.k, e.TID, e.Begin, e.End-e.Begin, e.User, flag)
}

// addFreeing adds reclaim or compaction: its arguments are the order and the flags of the
// allocation.
func (x *eventSums) addFreeing(s *account.Spans, e *sched.Event) {
	s.Order = max(s.Order, int(min(e.Arg[0], 64)))
	x.addSpan(s, e, gfpWords(e.Arg[1]))
	x.freeing = append(x.freeing, Span{e.Begin, e.End})
}

// addFault adds a page fault. Of a short one only the start may have been recorded: it is counted.
func (x *eventSums) addFault(e *sched.Event) {
	x.r.FaultsN++
	if e.End > e.Begin {
		x.addSpan(&x.r.Faults, e, "")
	}
	if e.Flags&kernel.Major != 0 {
		x.addSpan(&x.r.Major, e, fileOf(x.k, e.User))
	}
	if e.Flags&kernel.Huge != 0 {
		x.addSpan(&x.r.Huge, e, "")
	}
}

// addMigration adds faults that NUMA balancing made. Their record stands for several: Arg[1] has
// their number, how many were for memory of another node, and the node. What they took is known
// better from threads' stretches (threadSums.addKernelWork), so the time of the record is not
// added.
func (x *eventSums) addMigration(e *sched.Event) {
	r := x.r
	ns := r.NUMA.NS
	x.addSpan(&r.NUMA, e, fmt.Sprintf("on node %d", e.Arg[1]&0xffff))
	r.NUMA.NS = ns
	if n := int64(e.Arg[1] >> 32); n > 0 {
		r.NUMA.N += n - 1
		r.NUMARemote += min(n, int64(e.Arg[1]>>16&0xffff))
	}
	r.NUMAPages = min(r.NUMAPages+int64(min(e.Arg[0], 1<<32)), 1<<55)
}

// addDiskFiles shares the waits for a disk out among the files that the recorder looked up when the
// waits started.
func addDiskFiles(k *sched.Timeline, disk *spanSum) {
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		file := fileOf(k, e.User)
		if s := k.At(e.TID, e.Begin); s.Doing == sched.Blocked && s.Block == sched.BlockDisk && file != "" {
			disk.flags[file] += s.Whole.End - s.Whole.Begin
		}
		return true
	}, kernel.Disk)
}

// fileOf is the file that a record's stack of one frame stands for, "" where it is none.
func fileOf(k *sched.Timeline, stack uint32) string {
	if frames := k.Stack(stack); len(frames) == 1 && frames[0].Func == "" {
		return frames[0].Module
	}
	return ""
}

// gfpBits are the bits of an allocation's flags that are where they are since 4.x. Others moved
// between releases: see include/linux/gfp_types.h of the kernel.
var gfpBits = []struct {
	bit  uint64
	name string
}{
	{0x40, "IO"}, {0x80, "FS"}, {0x400, "direct reclaim"}, {0x2000, "no warning"},
	{0x4000, "retry"}, {0x8000, "no fail"},
	{0x10000, "no retry"}, {0x40000, "compound"},
}

// gfpWords says what an allocation allowed.
func gfpWords(flags uint64) string {
	var l []string
	for _, f := range gfpBits {
		if flags&f.bit != 0 {
			l = append(l, f.name)
		}
	}
	return strings.Join(l, ", ")
}
