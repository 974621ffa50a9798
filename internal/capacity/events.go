package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// spanSum is a Spans while it is added up.
type spanSum struct {
	out   *account.Spans
	flags map[string]int64
	sites map[string]*account.Site
	by    map[string]int64
}

func newSpanSum(out *account.Spans) *spanSum {
	return &spanSum{out: out, flags: map[string]int64{}, sites: map[string]*account.Site{}, by: map[string]int64{}}
}

func (x *spanSum) add(k *sched.Timeline, tid uint32, at, ns int64, user uint32, flag string) {
	x.out.N++
	x.out.NS += ns
	x.out.Max = max(x.out.Max, ns)
	weight := max(ns, 1) // moments count
	if flag != "" {
		x.flags[flag] += weight
	}
	if p := sched.PlaceOf(k, user); p.Func != "" {
		AddSite(x.sites, account.Site{Func: p.Func, File: p.Module}, ns)
	}
	t, _ := k.Name(tid, at)
	x.by[sched.PlainComm(t.Comm)] += weight
}

// done fills in the lists; by: also that of threads.
func (x *spanSum) done(by bool) {
	x.out.Flags = account.InsteadByName(x.flags, account.InsteadFlag)
	x.out.Sites = SitesOf(x.sites)
	if by {
		x.out.By = account.InsteadByName(x.by, account.InsteadThread)
	}
}

// diskFiles shares the waits for a disk out among the files that were told as they began.
func diskFiles(k *sched.Timeline, x *spanSum) {
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		file := fileOf(k, e.User)
		if s := k.At(e.TID, e.Begin); s.Doing == sched.Blocked && s.Block == sched.BlockDisk && file != "" {
			x.flags[file] += s.Whole.End - s.Whole.Begin
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

// events adds up the rarer records.
func events(k *sched.Timeline, r *account.Kernel) {
	sum := map[*account.Spans]*spanSum{}
	var freeing, waits []lasting // of mmap_lock
	add := func(s *account.Spans, e *sched.Event, flag string) {
		x := sum[s]
		if x == nil {
			x = newSpanSum(s)
			sum[s] = x
		}
		x.add(k, e.TID, e.Begin, e.End-e.Begin, e.User, flag)
	}
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		switch e.Kind {
		case kernel.Reclaim:
			s := &r.Reclaim
			if e.Flags&kernel.Memcg != 0 {
				s = &r.Memcg
			}
			s.Order = max(s.Order, int(min(e.Arg[0], 64)))
			add(s, e, gfpWords(e.Arg[1]))
			freeing = append(freeing, lasting{e.Begin, e.End})
		case kernel.Compaction:
			r.Compact.Order = max(r.Compact.Order, int(min(e.Arg[0], 64)))
			add(&r.Compact, e, gfpWords(e.Arg[1]))
			freeing = append(freeing, lasting{e.Begin, e.End})
		case kernel.Fault:
			r.FaultsN++
			if e.End > e.Begin {
				add(&r.Faults, e, "")
			}
			if e.Flags&kernel.Major != 0 {
				add(&r.Major, e, fileOf(k, e.User))
			}
			if e.Flags&kernel.Huge != 0 {
				add(&r.Huge, e, "")
			}
		case kernel.MmapLock:
			flag := "to read"
			if e.Flags&kernel.Write != 0 {
				flag = "to write"
			}
			add(&r.MmapLock, e, flag)
			waits = append(waits, lasting{e.Begin, e.End})
		case kernel.TLBFlush:
			r.TLB.N++
		case kernel.NUMAMove:
			ns := r.NUMA.NS
			add(&r.NUMA, e, fmt.Sprintf("on node %d", e.Arg[1]&0xffff))
			r.NUMA.NS = ns // see at
			if n := int64(e.Arg[1] >> 32); n > 0 {
				r.NUMA.N += n - 1
				r.NUMARemote += min(n, int64(e.Arg[1]>>16&0xffff))
			}
			r.NUMAPages = min(r.NUMAPages+int64(min(e.Arg[0], 1<<32)), 1<<55)
		}
		return true
	}, kernel.Reclaim, kernel.Compaction, kernel.Fault, kernel.MmapLock, kernel.TLBFlush, kernel.NUMAMove)
	r.MmapReclaimNS = covered(waits, freeing)
	flushCalls(k, &r.TLB)
	samples(k, r)
	for s, x := range sum {
		x.done(s != &r.MmapLock) // who changes the address space is told by the calls they were in
	}
	account.SortInstead(r.MmapLock.By)
	r.MmapLock.By = r.MmapLock.By[:min(len(r.MmapLock.By), account.MostInstead)]
}

// flushCalls says what the target's threads called, and from where, as samples met them flushing TLBs.
func flushCalls(k *sched.Timeline, out *account.Spans) {
	calls := map[uint32]string{} // by kernel stack; "": no flush
	sampled := account.Spans{}
	x := newSpanSum(&sampled)
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		call, ok := calls[e.Kernel]
		if !ok {
			call = flushCall(k.Stack(e.Kernel))
			calls[e.Kernel] = call
		}
		if call != "" {
			x.add(k, e.TID, e.Begin, int64(min(e.Arg[0], math.MaxInt32)), e.User, call)
		}
		return true
	}, kernel.Sample)
	x.done(true)
	out.Flags, out.Sites, out.By = sampled.Flags, sampled.Sites, sampled.By
}

// flushCall is the system call that flushes TLBs with this kernel stack, "" if it flushes none.
func flushCall(frames []kernel.Frame) string {
	if sched.BlockOf(frames) != sched.BlockTLB {
		return ""
	}
	for _, f := range frames {
		if _, name, ok := strings.Cut(f.Func, "_sys_"); ok && strings.HasPrefix(f.Func, "__") {
			return name
		}
	}
	return "no system call"
}

type lasting struct{ begin, end int64 }

// covered is how much of the spans of, each on its own, lies within the union of by.
func covered(of, by []lasting) (ns int64) {
	slices.SortFunc(by, func(a, b lasting) int { return cmp.Compare(a.begin, b.begin) })
	var union []lasting
	for _, s := range by {
		if n := len(union); n > 0 && s.begin <= union[n-1].end {
			union[n-1].end = max(union[n-1].end, s.end)
		} else if s.end > s.begin {
			union = append(union, s)
		}
	}
	for _, s := range of {
		i, _ := slices.BinarySearchFunc(union, s.begin, func(u lasting, t int64) int { return cmp.Compare(u.end, t) })
		for ; i < len(union) && union[i].begin < s.end; i++ {
			ns += max(0, min(s.end, union[i].end)-max(s.begin, union[i].begin))
		}
	}
	return ns
}

// gfpWords says what an allocation allowed. The bits moved between releases; those told apart here are where they are since 4.x: see
// include/linux/gfp_types.h of the kernel.
func gfpWords(flags uint64) string {
	var l []string
	for _, f := range []struct {
		bit  uint64
		name string
	}{{0x40, "IO"}, {0x80, "FS"}, {0x400, "direct reclaim"}, {0x2000, "no warning"}, {0x4000, "retry"}, {0x8000, "no fail"}, {0x10000, "no retry"}, {0x40000, "compound"}} {
		if flags&f.bit != 0 {
			l = append(l, f.name)
		}
	}
	return strings.Join(l, ", ")
}
