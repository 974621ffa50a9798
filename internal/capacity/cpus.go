package capacity

import (
	"slices"
	"sort"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

// The capacity ledger of CPUs. Each instant of each allowed CPU is booked to the first of these
// that holds:
//
//  1. A thread of the target is on the CPU: running.
//  2. Nobody knows who is on it: unknown. This is different while the recorder folds the switches
//     of others. A gap between the target's threads then is somebody else or nobody, and it is
//     booked to the first of these: throttled, as in 3; taken by others, if a thread of the target
//     is queued on this very CPU; unknown, if one is queued elsewhere; as in 5 and 6.
//  3. A thread of the target is throttled, so its group is out of quota: throttled.
//  4. Somebody else is on the CPU, and a thread of the target is queued: taken by others.
//  5. Work of the target waited, a request or a queued thread: unused.
//  6. Otherwise: the rest.
//
// So it adds up to CPUs x wall by construction, which the tests hold it to.

// What holds of the target at an instant, whoever is on a CPU. These are bits of a mark, in the
// order of the lists that demand.marks lays over one another.
const (
	outOfQuota = 1 << iota
	someQueued
	inFlight
	folding    // the switches of others were not recorded one by one
	queuedHere // a thread of the target is queued on this very CPU; known only while folding
)

// mark says what holds from a time on, until the next mark.
type mark struct {
	from int64
	bits uint8
}

// marks lays sets of times over one another. While the i-th holds, bit i is set. Spans of one set
// neither overlap nor touch, so each edge turns its bit.
func marks(sets ...Times) []mark {
	type edge struct {
		time int64
		bit  uint8
	}
	var edges []edge
	for i, l := range sets {
		for _, s := range l {
			edges = append(edges, edge{s.Lo, 1 << i}, edge{s.Hi, 1 << i})
		}
	}
	sort.Slice(edges, func(i, j int) bool { return edges[i].time < edges[j].time })
	out := []mark{{from: -1 << 62}}
	for _, e := range edges {
		last := &out[len(out)-1]
		if e.time == last.from {
			last.bits ^= e.bit
			continue
		}
		out = append(out, mark{e.time, last.bits ^ e.bit})
	}
	return out
}

// CPUs makes the ledger: nil where the records cover no time. Requests are the times,
// CLOCK_MONOTONIC, at which requests were under way. Waits is what they waited for, by which the
// unused time is shared out.
func CPUs(k *sched.Timeline, set *evidence.Set, requests Times, waits []account.Instead) *account.CPUs {
	begin, end := k.Span()
	if begin >= end {
		return nil
	}
	cpus := k.CPUs()
	if allowed := allowedCPUs(set); allowed != nil {
		// A CPU that the target might use if it were online is nothing that it lacks.
		cpus = slices.DeleteFunc(cpus, func(n int) bool { _, ok := slices.BinarySearch(allowed, n); return !ok })
	}
	c := &account.CPUs{Allowed: len(cpus), WallNS: end - begin}
	c.TotalNS = int64(len(cpus)) * c.WallNS
	addQuota(c, set)
	d := demandOf(k, requests)
	w := cpuWalk{k: k, c: c, use: newGroupUse(k, c.QuotaAt, d.folded), target: map[uint32]bool{}}
	ran := map[int]int64{}
	var runs []sched.Run
	for _, cpu := range cpus {
		runs = k.Runs(cpu, begin, end, runs[:0])
		before := c.RunningNS
		w.walk(runs, d.marks(cpu))
		ran[cpu] = c.RunningNS - before
	}
	c.Stolen = stolen(set, ran, c.WallNS)
	c.Unused = shareOut(waits, c.UnusedNS)
	w.use.write(k, c, len(d.folded) > 0)
	return c
}

// demand is when the target could have used a CPU that it did not have.
type demand struct {
	throttled, queued, requests, folded Times

	here   map[int32]Times // by CPU: when threads were queued there; only while folding
	common []mark          // what holds for all CPUs; the marks of each where nothing was folded
}

// demandOf looks at all stretches of the target's threads.
func demandOf(k *sched.Timeline, requests Times) *demand {
	begin, end := k.Span()
	d := &demand{requests: requests, folded: foldedTimes(k, begin, end), here: map[int32]Times{}}
	k.Each(begin, end, func(_ uint32, s *sched.Stretch) {
		switch s.Doing {
		case sched.Throttled:
			d.throttled = append(d.throttled, Span{s.Begin, s.End})
		case sched.Queued:
			d.queued = append(d.queued, Span{s.Begin, s.End})
			if len(d.folded) > 0 && s.CPU >= 0 && s.End > d.folded[0].Lo {
				d.here[s.CPU] = append(d.here[s.CPU], Span{s.Begin, s.End})
			}
		}
	})
	d.throttled, d.queued = d.throttled.Merge(), d.queued.Merge()
	d.common = marks(d.throttled, d.queued, d.requests)
	return d
}

// marks are the marks of one CPU.
func (d *demand) marks(cpu int) []mark {
	if len(d.folded) == 0 {
		return d.common
	}
	return marks(d.throttled, d.queued, d.requests, d.folded, d.here[int32(cpu)].Merge())
}

// foldedTimes is when the recorder's detail was lowered so far that the switches of others were not
// recorded one by one.
func foldedTimes(k *sched.Timeline, begin, end int64) (l Times) {
	since := int64(-1)
	for _, v := range k.Levels() {
		switch {
		case v.Folded && since < 0:
			since = max(v.Time, begin)
		case !v.Folded && since >= 0:
			l = append(l, Span{since, v.Time})
			since = -1
		}
	}
	if since >= 0 {
		l = append(l, Span{since, end})
	}
	return l.Merge()
}

// cpuWalk books the runs of one CPU after another.
type cpuWalk struct {
	k      *sched.Timeline
	c      *account.CPUs
	use    groupUse
	target map[uint32]bool // by thread that was asked for: whether it is of the target
}

// walk books the runs of a CPU, each cut where what holds of the target changes. Both lists are in
// order of time.
func (w *cpuWalk) walk(runs []sched.Run, marks []mark) {
	m := 0
	for i := range runs {
		r := &runs[i]
		target := w.isTarget(r)
		w.use.add(w.k, r, target)
		for lo := r.Begin; lo < r.End; {
			for m+1 < len(marks) && marks[m+1].from <= lo {
				m++
			}
			hi := r.End
			if m+1 < len(marks) {
				hi = min(hi, marks[m+1].from)
			}
			book(w.c, hi-lo, r.TID, target, marks[m].bits)
			lo = hi
		}
	}
}

// isTarget reports whether the thread on the CPU is of the target.
func (w *cpuWalk) isTarget(r *sched.Run) bool {
	if r.TID == 0 || r.TID == sched.NobodyKnown {
		return false
	}
	is, ok := w.target[r.TID]
	if !ok {
		t, _ := w.k.Name(r.TID, r.Begin)
		is = t.Target
		w.target[r.TID] = is
	}
	return is
}

// book books ns of one CPU. The cases are the steps at the head of this file.
func book(c *account.CPUs, ns int64, tid uint32, target bool, bits uint8) {
	if tid == 0 {
		c.IdleNS += ns
	}
	switch {
	case target:
		c.RunningNS += ns
	case tid == sched.NobodyKnown && bits&folding != 0 && bits&(outOfQuota|queuedHere) == queuedHere:
		c.OthersNS += ns
	case tid == sched.NobodyKnown && (bits&folding == 0 || bits&(outOfQuota|someQueued) == someQueued):
		c.UnknownNS += ns
	case bits&outOfQuota != 0:
		c.ThrottledNS += ns
	case tid != 0 && bits&someQueued != 0:
		c.OthersNS += ns
	case bits&(someQueued|inFlight) != 0:
		c.UnusedNS += ns
	default:
		c.RestNS += ns
	}
}

// shareOut divides ns as waits is divided. What rounding leaves goes to the first, so it adds up.
func shareOut(waits []account.Instead, ns int64) []account.Instead {
	var total int64
	for _, i := range waits {
		total += i.NS
	}
	if ns <= 0 || total <= 0 {
		return nil
	}
	out := slices.Clone(waits)
	left := ns
	for i := range out {
		out[i].NS = min(left, account.MulDiv(waits[i].NS, ns, total))
		left -= out[i].NS
	}
	out[0].NS += left
	return out
}

// Waited is what the requests of a column waited for, largest first: the time in which they wanted
// something else than a CPU, or got none. What is beyond the list is added up as others.
func Waited(c *account.Column) []account.Instead {
	sums := map[string]int64{}
	for i := range c.Accounts {
		a := &c.Accounts[i]
		switch a.Leaf {
		case account.LeafOnCPU, account.LeafAssist, account.LeafSweep, account.LeafSTWWork, account.LeafPreviousEnd:
			continue
		}
		who := string(a.Leaf) + account.Stand(a.Class, a.Site)
		if a.Class == account.ClassLock && a.Site == "" {
			who += ", for a lock" // else the leaf alone would be taken for the request's own
		}
		sums[who] += a.NS
	}
	l := make([]account.Instead, 0, len(sums))
	for who, ns := range sums {
		l = append(l, account.Instead{Who: who, Kind: account.InsteadWait, NS: ns})
	}
	account.SortInstead(l)
	if len(l) > account.MostInstead {
		rest := account.Instead{Who: "others", Kind: account.InsteadWait}
		for _, i := range l[account.MostInstead:] {
			rest.NS += i.NS
		}
		l = append(l[:account.MostInstead], rest)
	}
	return l
}
