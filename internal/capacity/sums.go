package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

const (
	topThreads    = 40
	topNeighbours = 20
	topSpanSites  = 10
	pollerRate    = 100 // short sleeps a second that make a thread a poller
	shortSleepNS  = 1e6
)

// untold is in which share of [b,e) each extra was not told.
func untold(levels []sched.Level, b, e int64) (share [kernel.Extras]float64) {
	for i, l := range levels {
		end := e
		if i+1 < len(levels) {
			end = levels[i+1].Time
		}
		ns := min(end, e) - max(l.Time, b)
		for x := range kernel.Extras {
			if l.Untold>>x&1 != 0 && ns > 0 {
				share[x] += float64(ns) / float64(e-b)
			}
		}
	}
	return share
}

// kernelSums adds up what the kernel's records tell of the target, whoever its requests are.
func Sums(k *sched.Timeline, set *evidence.Set) *account.Kernel {
	h, tot := k.Header(), k.Totals()
	b, e := k.Span()
	r := &account.Kernel{Source: h.Source, Release: h.Kernel, Begin: b, End: e, PerTask: h.PerTask, AllTasks: h.AllTasks, Missing: slices.Clone(h.Missing),
		Lost: tot.Lost, UnknownNS: tot.BreakNS, Switches: tot.Switches, Involuntary: tot.Involuntary}
	r.Untold = untold(k.Levels(), b, e)
	if s := k.Ended(); s != "" {
		r.Missing = append(r.Missing, kernel.Missing{What: []kernel.Sight{kernel.SightWhole}, Why: s})
	}
	if d := k.Dropped(); d != 0 {
		r.Missing = append(r.Missing, kernel.Missing{What: []kernel.Sight{kernel.SightWhole},
			Why: fmt.Sprintf("records before %.1f s from the end were given up to bound memory", float64(e-d)/1e9)})
	}
	r.RunnableAvg, r.RunnableMax, _ = k.Runnable()
	r.GlanceAvg = glance(k, set)
	for _, t := range k.Process(b, e, nil) {
		if t.State == sched.ProcessThrottled {
			r.StoodNS += t.End - t.Begin
		}
	}
	r.Standstills = Standstills(k, leastStandstill)
	r.Standstills = r.Standstills[:min(len(r.Standstills), account.MostStandstills)]
	threadSums(k, r)
	events(k, r)
	if minor, _, ok := grown(set, "/process/faults/minor:faults"); ok {
		major, _, _ := grown(set, "/process/faults/major:faults")
		r.FaultsN = max(r.FaultsN, minor+major)
	}
	return r
}

// grown is by how much a counter has grown while it was read, and how long that was.
func grown(set *evidence.Set, stream string) (n, ns int64, ok bool) {
	if set == nil {
		return 0, 0, false
	}
	d, ns, ok := set.Delta(stream)
	return whole(d), ns, ok
}

// glance is what a reader that walks the threads one by one found running: as it was read, else as the records say that it would have been.
func glance(k *sched.Timeline, set *evidence.Set) float64 {
	if set != nil {
		var sum float64
		n := 0
		for _, s := range set.All("/process/threads/running:threads") {
			if s.Shape == evidence.Sample {
				sum += s.Value
				n++
			}
		}
		if n > 1 {
			return sum / float64(n)
		}
	}
	avg, _ := k.Glance(1e9, 20e3)
	return avg
}

// makesThreads, endsThreads: system calls by number.
type callSet struct{ clone, end, space []int32 }

func callsOf(arch string) callSet {
	if arch == "arm64" {
		return callSet{clone: []int32{220, 435}, end: []int32{93, 94, 215, 233}, space: []int32{215, 222, 226, 233, 216, 214}}
	}
	return callSet{clone: []int32{56, 435}, end: []int32{60, 231, 11, 28}, space: []int32{9, 10, 11, 12, 25, 28}}
}

// threadSums adds up the threads' states and what follows from them.
func threadSums(k *sched.Timeline, r *account.Kernel) {
	calls := callsOf(k.Header().Arch)
	wall := float64(r.End-r.Begin) / 1e9
	by := map[uint32]*account.ThreadSum{}
	short := map[uint32]int{}
	space := map[uint32]int64{}
	made := sched.NewLives(k)
	disk := newSpanSum(&r.Disk)
	let := letGoes{k: k, by: map[account.LetGo]int64{}}
	k.Each(r.Begin, r.End, func(tid uint32, s *sched.Stretch) {
		t := by[tid]
		if t == nil {
			t = &account.ThreadSum{TID: tid}
			by[tid] = t
		}
		ns := s.End - s.Begin
		switch s.Doing {
		case sched.OnCPU:
			t.OnNS += ns
			addBlock(r, s.Block, ns)
		case sched.Queued:
			t.QueuedNS += ns
			if made.Making(tid, s) {
				r.Churn.CreateNS += ns
			}
		case sched.Throttled:
			t.ThrottledNS += ns
		case sched.Blocked:
			t.BlockedNS += ns
			addBlock(r, s.Block, ns)
			if s.Block == sched.BlockFault {
				r.FaultWaitNS += ns
			}
			if s.Block == sched.BlockMmapLock && s.End == s.Whole.End {
				let.add(s)
			}
			if s.Block == sched.BlockDisk {
				disk.add(k, tid, s.Begin, ns, s.User, "")
			}
			if whole := s.Whole.End - s.Whole.Begin; s.Block == sched.BlockTimer && s.ByInterrupt && whole < shortSleepNS && s.Whole.End == s.End {
				short[tid]++
			}
		default:
			return
		}
		if s.Syscall >= 0 && s.Doing != sched.Throttled {
			switch {
			case slices.Contains(calls.clone, s.Syscall):
				r.Churn.CreateNS += ns
			case slices.Contains(calls.end, s.Syscall):
				r.Churn.ExitNS += ns
			}
			if slices.Contains(calls.space, s.Syscall) {
				space[tid] += ns
			}
		}
	})
	name := func(tid uint32) string {
		t, _ := k.Name(tid, r.End)
		return sched.PlainComm(t.Comm)
	}
	for _, t := range by {
		r.OnNS += t.OnNS
		r.QueuedNS += t.QueuedNS
		r.ThrottledNS += t.ThrottledNS
		r.BlockedNS += t.BlockedNS
		t.Comm = name(t.TID)
		r.Threads = append(r.Threads, *t)
	}
	r.ThreadsSeen = int64(len(by))
	slices.SortFunc(r.Threads, func(a, b account.ThreadSum) int {
		return cmp.Or(cmp.Compare(b.OnNS+b.QueuedNS, a.OnNS+a.QueuedNS), cmp.Compare(a.TID, b.TID))
	})
	r.Threads = r.Threads[:min(len(r.Threads), topThreads)]
	for _, n := range short {
		r.ShortSleeps += int64(n)
		if float64(n) >= pollerRate*max(wall, 1) {
			r.ShortSleepers++
		}
	}
	r.Neighbours = neighbours(k, HeldBy(k), r.End)
	diskFiles(k, disk)
	disk.done(true)
	for tid, ns := range space {
		r.MmapLock.By = account.AddInstead(r.MmapLock.By, account.Instead{Who: name(tid), Kind: account.InsteadThread, NS: ns})
	}
	r.MmapLetGo = let.list()
	churn(k, r)
}

// addBlock adds up what is work of the kernel for a thread: not that it had no CPU for it meanwhile, or no quota.
func addBlock(r *account.Kernel, b sched.Block, ns int64) {
	switch b {
	case sched.BlockTLB:
		r.TLB.NS += ns
	case sched.BlockNUMA:
		r.NUMA.NS += ns
	}
}

// neighbours names who held CPUs. Idle is nobody.
func neighbours(k *sched.Timeline, held map[uint32]int64, at int64) []account.Neighbour {
	by := map[account.Neighbour]int64{}
	for tid, ns := range held {
		if tid == 0 {
			continue
		}
		t, _ := k.Name(tid, at)
		n := account.Neighbour{Comm: sched.PlainComm(t.Comm), PID: t.PID, Cgroup: t.Cgroup, Own: t.Target}
		if t.Target {
			n = account.Neighbour{Comm: account.OwnThreads, PID: t.PID, Own: true}
		}
		if t.Kernel {
			n.PID = 0
		}
		by[n] += ns
	}
	l := make([]account.Neighbour, 0, len(by))
	for n, ns := range by {
		n.NS = ns
		l = append(l, n)
	}
	slices.SortFunc(l, func(a, b account.Neighbour) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.PID, b.PID), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return l[:min(len(l), topNeighbours)]
}

// churn adds up threads made and ended.
func churn(k *sched.Timeline, r *account.Kernel) {
	var first, life []int64
	makers := map[string]*account.Site{}
	for _, t := range k.Threads() {
		if t.Birth != 0 && t.Birth >= r.Begin {
			r.Churn.Created++
			if t.First >= t.Birth {
				first = append(first, t.First-t.Birth)
			}
			if t.Exit > t.Birth {
				life = append(life, t.Exit-t.Birth)
			}
			if s := sched.PlaceOf(k, t.User); s.Func != "" {
				AddSite(makers, account.Site{Func: s.Func, File: s.Module}, 0)
			}
		}
		if t.Exit != 0 {
			r.Churn.Exited++
		}
	}
	r.Churn.FirstP50, r.Churn.FirstP99, r.Churn.FirstMax = quantiles(first)
	r.Churn.LifeP50, _, _ = quantiles(life)
	r.Churn.Makers = SitesOf(makers)
}

// quantiles are the median, the 99th percentile and the largest; 0 of nothing.
func quantiles(l []int64) (p50, p99, most int64) {
	if len(l) == 0 {
		return 0, 0, 0
	}
	slices.Sort(l)
	at := func(q float64) int64 { return l[min(len(l)-1, int(q*float64(len(l))))] }
	return at(0.5), at(0.99), l[len(l)-1]
}

func AddSite(m map[string]*account.Site, s account.Site, ns int64) {
	x := m[s.Func]
	if x == nil {
		if len(m) >= 1<<12 {
			return
		}
		x = &s
		m[s.Func] = x
	}
	x.NS += ns
	x.N++
}

func SitesOf(m map[string]*account.Site) []account.Site {
	l := make([]account.Site, 0, len(m))
	for _, s := range m {
		l = append(l, *s)
	}
	slices.SortFunc(l, func(a, b account.Site) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(b.N, a.N), cmp.Compare(a.Func, b.Func))
	})
	return l[:min(len(l), topSpanSites)]
}
