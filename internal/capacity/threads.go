package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/sched"
)

const (
	mostThreads  = 40
	pollerRate   = 100 // short sleeps a second that make a thread a poller
	shortSleepNS = 1e6
)

// threadSum is what one thread did.
type threadSum struct {
	account.ThreadSum
	shortSleeps int
	spaceNS     int64 // in calls that change the address space
}

// threadSums adds up what the target's threads did. Besides the states of each thread it collects
// what follows from a single stretch: work of the kernel, waits for mmap_lock and for disks,
// threads made and ended, short sleeps.
type threadSums struct {
	k        *sched.Timeline
	r        *account.Kernel
	calls    calls
	lives    *sched.Lives
	disk     *spanSum
	releases releases
	threads  map[uint32]*threadSum

	throttled Times // when some thread was
}

// sumThreads fills in all that follows from the stretches of the target's threads.
func sumThreads(k *sched.Timeline, r *account.Kernel) {
	x := &threadSums{
		k: k, r: r, calls: callsOf(k.Header().Arch), lives: sched.NewLives(k),
		disk: newSpanSum(&r.Disk), releases: newReleases(k),
		threads: map[uint32]*threadSum{},
	}
	k.Each(r.Begin, r.End, x.add)
	x.write()
	r.Bands = append(r.Bands, bands(account.BandThrottled, x.throttled, 0)...)
	r.Neighbours = neighbours(k, CPUHolders(k), r.End)
	addDiskFiles(k, x.disk)
	x.disk.write()
	x.disk.writeThreads()
	r.MmapLetGo = x.releases.largest()
	sumChurn(k, r)
}

// add adds a stretch of a thread.
func (x *threadSums) add(tid uint32, s *sched.Stretch) {
	t := x.threads[tid]
	if t == nil {
		t = &threadSum{}
		t.TID = tid
		x.threads[tid] = t
	}
	ns := s.End - s.Begin
	switch s.Doing {
	case sched.OnCPU:
		t.OnNS += ns
		x.addKernelWork(s.Block, ns)
	case sched.Queued:
		t.QueuedNS += ns
		if x.lives.Making(tid, s) {
			x.r.Churn.CreateNS += ns
		}
	case sched.Throttled:
		t.ThrottledNS += ns
		x.throttled = x.throttled.and(Span{s.Begin, s.End})
		return // what call the thread was in matters no more
	case sched.Blocked:
		t.BlockedNS += ns
		x.addKernelWork(s.Block, ns)
		x.addWait(t, s, ns)
	default:
		return
	}
	if s.Syscall < 0 {
		return
	}
	c := x.calls.call(s.Syscall)
	switch {
	case c.has(createsThread):
		x.r.Churn.CreateNS += ns
	case c.has(endsThread):
		x.r.Churn.ExitNS += ns
	}
	if c.has(changesSpace) {
		t.spaceNS += ns
	}
}

// addKernelWork adds work that the kernel did for a thread: the time on a CPU or blocked in it.
// That the thread had no CPU meanwhile, or no quota, is no such work.
func (x *threadSums) addKernelWork(b sched.Block, ns int64) {
	switch b {
	case sched.BlockTLB:
		x.r.TLB.NS += ns
	case sched.BlockNUMA:
		x.r.NUMA.NS += ns
	}
}

// addWait adds a blocked stretch by what the thread waited for.
func (x *threadSums) addWait(t *threadSum, s *sched.Stretch, ns int64) {
	ended := s.End == s.Whole.End // the wait ended in this stretch
	switch s.Block {
	case sched.BlockFault:
		x.r.FaultWaitNS += ns
	case sched.BlockMmapLock:
		if ended {
			x.releases.add(s)
		}
	case sched.BlockDisk:
		x.disk.add(x.k, t.TID, s.Begin, ns, s.User, "")
	case sched.BlockTimer:
		if ended && s.ByInterrupt && s.Whole.End-s.Whole.Begin < shortSleepNS {
			t.shortSleeps++
		}
	}
}

// write writes down what the threads did: each, the largest of them, and all together.
func (x *threadSums) write() {
	r := x.r
	wall := float64(r.End-r.Begin) / 1e9
	for tid, t := range x.threads {
		r.OnNS += t.OnNS
		r.QueuedNS += t.QueuedNS
		r.ThrottledNS += t.ThrottledNS
		r.BlockedNS += t.BlockedNS
		name, _ := x.k.Name(tid, r.End)
		t.Comm = sched.PlainComm(name.Comm)
		r.Threads = append(r.Threads, t.ThreadSum)
		r.ShortSleeps += int64(t.shortSleeps)
		if float64(t.shortSleeps) >= pollerRate*max(wall, 1) {
			r.ShortSleepers++
		}
		if t.spaceNS > 0 {
			r.MmapLock.By = account.AddInstead(r.MmapLock.By,
				account.Instead{Who: t.Comm, Kind: account.InsteadThread, NS: t.spaceNS})
		}
	}
	r.ThreadsSeen = int64(len(x.threads))
	account.SortInstead(r.MmapLock.By)
	r.MmapLock.By = r.MmapLock.By[:min(len(r.MmapLock.By), account.MostInstead)]
	slices.SortFunc(r.Threads, func(a, b account.ThreadSum) int {
		return cmp.Or(cmp.Compare(b.OnNS+b.QueuedNS, a.OnNS+a.QueuedNS), cmp.Compare(a.TID, b.TID))
	})
	r.Threads = r.Threads[:min(len(r.Threads), mostThreads)]
}

// sumChurn adds up the threads that were made and that ended.
func sumChurn(k *sched.Timeline, r *account.Kernel) {
	var untilFirst, lives []int64
	makers := Sites{}
	for _, t := range k.Threads() {
		if t.Birth != 0 && t.Birth >= r.Begin {
			r.Churn.Created++
			if t.First >= t.Birth {
				untilFirst = append(untilFirst, t.First-t.Birth)
			}
			if t.Exit > t.Birth {
				lives = append(lives, t.Exit-t.Birth)
			}
			if p := sched.PlaceOf(k, t.User); p.Func != "" {
				makers.Add(account.Site{Func: p.Func, File: p.Module}, 0)
			}
		}
		if t.Exit != 0 {
			r.Churn.Exited++
		}
	}
	r.Churn.FirstP50, r.Churn.FirstP99, r.Churn.FirstMax = quantiles(untilFirst)
	r.Churn.LifeP50, _, _ = quantiles(lives)
	r.Churn.Makers = makers.List()
}

// quantiles are the median, the 99th percentile and the largest; 0 of nothing.
func quantiles(l []int64) (p50, p99, most int64) {
	if len(l) == 0 {
		return 0, 0, 0
	}
	slices.Sort(l)
	quantile := func(q float64) int64 { return l[min(len(l)-1, int(q*float64(len(l))))] }
	return quantile(0.5), quantile(0.99), l[len(l)-1]
}
