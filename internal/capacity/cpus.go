package capacity

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sched"
)

// The capacity ledger of CPUs. For each allowed CPU and instant, the first that holds:
//  1. a thread of the target is on it: running;
//  2. nobody knows who is on it: unknown. While the recorder folds others' switches, who leaves a gap is none of the target's: that
//     is throttled as in 3, taken by others where a thread of the target is queued on that very CPU, unknown where
//     one is queued elsewhere, and as in 5 and 6 where none is;
//  3. the target's group is out of quota, since a thread of it is throttled: throttled;
//  4. somebody else is on it, and a thread of the target is queued: taken by others;
//  5. work of the target waited, a request or a queued thread: unused;
//  6. the rest.
//
// So it adds up to CPUs x wall by construction, which the tests hold it to.

// What holds of the target at an instant, whoever is on a CPU.
const (
	outOfQuota = 1 << iota
	someQueued
	inFlight
	folding  // others' switches were not recorded one by one
	queuedAt // a thread of the target is queued on this very CPU; only while folding
)

// mark is what holds from a time on.
type mark struct {
	at   int64
	bits uint8
}

// marks lays spans over one another.
func marks(lists ...Times) []mark {
	type edge struct {
		at  int64
		bit uint8
	}
	var edges []edge
	for i, l := range lists {
		for _, s := range l {
			edges = append(edges, edge{s.Lo, 1 << i}, edge{s.Hi, 1 << i})
		}
	}
	// each list's spans are disjoint and do not touch, so that every edge turns its bit
	sort.Slice(edges, func(i, j int) bool { return edges[i].at < edges[j].at })
	out := []mark{{at: -1 << 62}}
	for _, e := range edges {
		last := &out[len(out)-1]
		if e.at == last.at {
			last.bits ^= e.bit
			continue
		}
		out = append(out, mark{e.at, last.bits ^ e.bit})
	}
	return out
}

// cpus makes the ledger. Requests are the times, CLOCK_MONOTONIC, at which requests were under way; on is what they waited for, to share the unused
// time out by.
func CPUs(k *sched.Timeline, set *evidence.Set, requests Times, on []account.Instead) *account.CPUs {
	b, e := k.Span()
	if b >= e {
		return nil
	}
	list := k.CPUs()
	if l := allowed(set); l != nil {
		// what the target might use if it were online is nothing it lacks
		list = slices.DeleteFunc(list, func(n int) bool { _, ok := slices.BinarySearch(l, n); return !ok })
	}
	c := &account.CPUs{Allowed: len(list), WallNS: e - b}
	c.TotalNS = int64(len(list)) * c.WallNS
	addQuota(c, set)
	var throttled, queued Times
	folded := foldedSpans(k, b, e)
	used := groupUse{at: c.QuotaAt, known: map[uint32]bool{}, until: e, by: map[uint32]int64{}}
	if len(folded) > 0 {
		used.until = folded[0].Lo
	}
	queues := map[int32]Times{}
	k.Each(b, e, func(tid uint32, s *sched.Stretch) {
		switch s.Doing {
		case sched.Throttled:
			throttled = append(throttled, Span{s.Begin, s.End})
		case sched.Queued:
			queued = append(queued, Span{s.Begin, s.End})
			if len(folded) > 0 && s.CPU >= 0 && s.End > folded[0].Lo {
				queues[s.CPU] = append(queues[s.CPU], Span{s.Begin, s.End})
			}
		}
	})
	throttled, queued = throttled.Merge(), queued.Merge()
	all := marks(throttled, queued, requests)
	ours := map[uint32]bool{}
	var runs []sched.Run
	for _, cpu := range list {
		runs = k.Runs(cpu, b, e, runs[:0])
		l := all
		if len(folded) > 0 {
			l = marks(throttled, queued, requests, folded, queues[int32(cpu)].Merge())
		}
		at := 0
		for _, r := range runs {
			mine, ok := ours[r.TID]
			if !ok && r.TID != 0 && r.TID != sched.NobodyKnown {
				t, _ := k.Name(r.TID, r.Begin)
				mine = t.Target
				ours[r.TID] = mine
			}
			used.add(k, &r, mine)
			for at+1 < len(l) && l[at+1].at <= r.Begin {
				at++
			}
			for lo := r.Begin; lo < r.End; {
				hi := r.End
				for at+1 < len(l) && l[at+1].at <= lo {
					at++
				}
				if at+1 < len(l) {
					hi = min(hi, l[at+1].at)
				}
				addRun(c, hi-lo, r.TID, mine, l[at].bits)
				lo = hi
			}
		}
	}
	c.Unused = shareOut(on, c.UnusedNS)
	if c.UsedNS == 0 && c.QuotaNS > 0 && k.Header().AllTasks && (len(folded) == 0 || !used.others) {
		c.UsedNS = used.ns
	}
	c.GroupOwnNS = used.own
	for tid, ns := range used.by {
		t, _ := k.Name(tid, e)
		c.GroupOthersNS += ns
		c.GroupOthers = account.AddInstead(c.GroupOthers, account.Instead{Who: t.Comm, Kind: account.InsteadNeighbour, NS: ns})
	}
	account.SortInstead(c.GroupOthers)
	c.GroupOthers = c.GroupOthers[:min(len(c.GroupOthers), account.MostInstead)]
	return c
}

// groupUse adds up what the threads of the group that has the quota ran. With cgroup v1 CPU time is counted in another hierarchy, where
// the process may be in another group.
type groupUse struct {
	at     string
	known  map[uint32]bool // by thread not of the target: whether it is in the group
	ns     int64
	others bool // threads beside the target's are

	// Until here the switches of others were recorded one by one: what the target ran, and the others of the group by thread.
	until int64
	own   int64
	by    map[uint32]int64
}

func (u *groupUse) add(k *sched.Timeline, r *sched.Run, mine bool) {
	if u.at == "" || r.TID == 0 || r.TID == sched.NobodyKnown {
		return
	}
	in, ok := mine, mine
	if !mine {
		if in, ok = u.known[r.TID]; !ok {
			t, _ := k.Name(r.TID, r.Begin)
			in = t.Cgroup == u.at || strings.HasPrefix(t.Cgroup, strings.TrimSuffix(u.at, "/")+"/")
			u.known[r.TID] = in
			u.others = u.others || in
		}
	}
	if !in {
		return
	}
	u.ns += r.End - r.Begin
	switch ns := min(r.End, u.until) - r.Begin; {
	case ns <= 0:
	case mine:
		u.own += ns
	default:
		u.by[r.TID] += ns
	}
}

// foldedSpans is when the recorder's detail was lowered so far that others' switches were not recorded one by one.
func foldedSpans(k *sched.Timeline, b, e int64) (l Times) {
	from := int64(-1)
	for _, v := range k.Levels() {
		switch {
		case v.Folded && from < 0:
			from = max(v.Time, b)
		case !v.Folded && from >= 0:
			l = append(l, Span{from, v.Time})
			from = -1
		}
	}
	if from >= 0 {
		l = append(l, Span{from, e})
	}
	return l.Merge()
}

// addRun books ns of one CPU.
func addRun(c *account.CPUs, ns int64, tid uint32, mine bool, bits uint8) {
	if tid == 0 {
		c.IdleNS += ns
	}
	switch {
	case mine:
		c.RunningNS += ns
	case tid == sched.NobodyKnown && bits&folding != 0 && bits&(outOfQuota|queuedAt) == queuedAt:
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

// shareOut divides ns as on is divided, to the last of them.
func shareOut(on []account.Instead, ns int64) []account.Instead {
	var total int64
	for _, i := range on {
		total += i.NS
	}
	if ns <= 0 || total <= 0 {
		return nil
	}
	out := slices.Clone(on)
	left := ns
	for i := range out {
		out[i].NS = min(left, account.MulDiv(on[i].NS, ns, total))
		left -= out[i].NS
	}
	out[0].NS += left
	return out
}

// waited is what the requests of a column waited for: the time in which they wanted something else than a CPU, or got none, largest first.
func Waited(c *account.Column) []account.Instead {
	by := map[string]int64{}
	for i := range c.Accounts {
		a := &c.Accounts[i]
		switch a.Leaf {
		case account.LeafOnCPU, account.LeafAssist, account.LeafSweep, account.LeafSTWWork, account.LeafPreviousEnd:
			continue
		}
		who := string(a.Leaf)
		switch {
		case a.Class == account.ClassLock:
			who += ", for the lock in " + a.Site
		case a.Class != account.ClassOwn && a.Site != "":
			who += ", waited for in " + a.Site
		case a.Site != "":
			who += " in " + a.Site
		}
		by[who] += a.NS
	}
	l := make([]account.Instead, 0, len(by))
	for who, ns := range by {
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

// addQuota fills in what the group's files say, beside the sums.
func addQuota(c *account.CPUs, set *evidence.Set) {
	if set == nil {
		return
	}
	if q, ok := set.Fact("/cgroup/cpu/quota:cpus"); ok && q.Value > 0 && q.Value < 1<<20 {
		c.Quota = q.Value
		c.QuotaNS = int64(q.Value * float64(c.WallNS))
		at, _ := set.Fact("/cgroup/cpu/quota-at:path")
		c.QuotaAt = at.Text
	}
	// The counters were read about when the records begin and end: their rate is what counts.
	rate := func(stream string) int64 {
		grown, ns, ok := set.Delta(stream)
		if !ok || ns <= 0 {
			return 0
		}
		return int64(grown / float64(ns) * float64(c.WallNS))
	}
	c.UsedNS, c.StealNS = rate("/cgroup/cpu/used:ns"), rate("/host/steal:ns")
}

// allowed lists the CPUs that the target may use; nil where that was not read.
func allowed(set *evidence.Set) []int {
	const most = 1 << 13 // as the kernel's NR_CPUS
	if set == nil {
		return nil
	}
	fact, ok := set.Fact("/process/cpus-allowed:list")
	if !ok {
		return nil
	}
	var l []int
	for _, f := range strings.Split(strings.TrimSpace(fact.Text), ",") {
		from, to, isRange := strings.Cut(f, "-")
		lo, err := strconv.Atoi(from)
		hi := lo
		if err == nil && isRange {
			hi, err = strconv.Atoi(to)
		}
		if err != nil || lo < 0 || hi < lo || hi >= most {
			return nil
		}
		for n := lo; n <= hi; n++ {
			l = append(l, n)
		}
	}
	slices.Sort(l)
	return slices.Compact(l)
}
