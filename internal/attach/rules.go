package attach

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// Rules over several parts. Each reads facts and signs, never a sentence. None finds more than
// supported.

// rules looks at the parts of one group. It adds, lifts and lowers verdicts.
func rules(told []*Told, all []*Verdict) []*Verdict {
	all = quotaOrContention(told, all)
	all = queueOnCPUs(told, all)
	all = quotaExplains(told, all)
	all = reclaim(told, all)
	all = lockName(told, all)
	all = smallReserve(told, all)
	all = full(told, all)
	return all
}

func of(all []*Verdict, cause string) *Verdict {
	for _, v := range all {
		if v.Cause == cause && v.Grade != Against {
			return v
		}
	}
	return nil
}

func without(all []*Verdict, causes ...string) []*Verdict {
	return slices.DeleteFunc(all, func(v *Verdict) bool { return v.Grade != Against && slices.Contains(causes, v.Cause) })
}

// find makes a verdict found, or adds it.
func find(all []*Verdict, s Sign, from ...*Told) []*Verdict {
	s.Grade = Found
	v := of(all, s.Cause)
	if v == nil {
		return append(all, &Verdict{Sign: s, Group: from[0].Group, From: from})
	}
	v.Grade, v.Where, v.BecauseOf = Found, "", s.BecauseOf
	if sureness(s.Sure) > sureness(v.Sure) || v.Sure == "" {
		v.Sure = s.Sure
	}
	v.Share = max(v.Share, s.Share)
	v.Proof = append(slices.Clone(s.Proof), v.Proof...)
	for _, t := range from {
		if !slices.Contains(v.From, t) {
			v.From = append(v.From, t)
		}
	}
	return all
}

// What counts as throttled: a group that runs out of its quota in a quarter of its periods is
// stopped; one in a hundred is not why anything is slow.
const (
	ThrottledMany = 0.25
	ThrottledFew  = 0.01
)

const (
	stealSmall = 0.02
	hostIdle   = 0.20
)

// quotaOrContention decides why GC's cycles are long by the clock and short by CPU time: cpu.stat
// says whether the quota stopped the group.
func quotaOrContention(told []*Told, all []*Verdict) []*Verdict {
	_, gc := fact(told, GCStretched)
	throttled, stat := fact(told, ThrottledShare)
	if gc == nil || stat == nil {
		return all
	}
	proof := fmt.Sprintf("the quota stopped the group in %.0f %% of its periods", 100*throttled.Value)
	switch {
	case throttled.Value >= ThrottledMany:
		all = without(all, "cpu-contention", "stw-pause")
		procs, _ := fact(told, GOMAXPROCS)
		quota, ofQuota := fact(told, Quota)
		root := ""
		if ofQuota != nil && quota.Value > 0 && procs.Value > 2*max(1, quota.Value) {
			root = "gomaxprocs-over-quota"
			all = find(all, Sign{Cause: root, Sure: finding.Supported, Share: throttled.Value,
				Proof: []string{fmt.Sprintf("GOMAXPROCS is %.0f and the quota %.3g CPUs; %s", procs.Value, quota.Value, proof)}}, gc, stat, ofQuota)
		}
		return find(all, Sign{Cause: "cpu-throttled", Sure: finding.Supported, Share: throttled.Value, BecauseOf: root, Proof: []string{proof}}, gc, stat)
	case throttled.Value < ThrottledFew:
		all = without(all, "cpu-throttled", "gomaxprocs-over-quota")
		steal, host := fact(told, StealShare)
		idle, _ := fact(told, IdleShare)
		// The quota is out. Neighbours are left only where the host shows that its CPUs are
		// full, and that they are its own.
		if v := of(all, "cpu-contention"); v != nil && host != nil && !stat.Boot && steal.Value < stealSmall && idle.Value < hostIdle {
			return find(all, Sign{Cause: "cpu-contention", Sure: finding.Possible, Share: v.Share,
				Proof: []string{fmt.Sprintf("%s; the host's CPUs are %.0f %% idle and %.0f %% stolen", proof, 100*idle.Value, 100*steal.Value)}}, gc, stat, host)
		}
		if v := of(all, "cpu-contention"); v != nil {
			v.Proof = append([]string{"not the quota: " + proof}, v.Proof...)
		}
	}
	return all
}

// fragmented is the share of free memory in blocks of 2 MiB or more below which a large allocation
// has to compact.
const fragmented = 0.02

// reclaim puts together that memory is in pieces, that allocations wait, and that time is lost. The
// three have no clock in common, so they support each other and prove nothing.
func reclaim(told []*Told, all []*Verdict) []*Verdict {
	stalls, direct := fact(told, AllocstallRate)
	compacts, compact := fact(told, CompactStallRate)
	lost, client := fact(told, LostMS)
	pieces, buddy := inPieces(told)
	if client == nil || direct == nil && compact == nil || stalls.Value+compacts.Value < 1 {
		return all
	}
	from := []*Told{client, direct}
	if direct == nil {
		from[1] = compact
	}
	s := Sign{Cause: "direct-reclaim", Sure: finding.Possible, Proof: []string{
		fmt.Sprintf("threads freed memory themselves %.3g times a second and moved pages %.3g times a second, while %.4g ms were lost outside the server's execution", stalls.Value, compacts.Value, lost.Value)}}
	if buddy != nil && compacts.Value >= 1 {
		s.Sure = finding.Supported
		s.Proof = append(s.Proof, fmt.Sprintf("%.1f %% of the free memory of zone %s is in blocks of 2 MiB or more", 100*pieces, buddyZone(buddy)))
		from = append(from, buddy)
	}
	return find(all, s, from...)
}

// inPieces is the share of free memory in large blocks, of the zone with most free memory. The part
// is nil where it is not little.
func inPieces(told []*Told) (share float64, from *Told) {
	free, t := fact(told, BuddyFree)
	if t == nil || free.Value <= 0 {
		return 0, nil
	}
	for _, f := range t.Facts {
		if f.Name == BuddyHuge && f.Of == free.Of && f.Value < fragmented*free.Value {
			return f.Value / free.Value, t
		}
	}
	return 0, nil
}

func buddyZone(t *Told) string {
	f, _ := fact([]*Told{t}, BuddyFree)
	return f.Of
}

// What is kept free for a moment's need, as a share of memory: below it, and on a large host, a
// burst of allocations is over before kswapd has woken.
const (
	reserveShare = 0.0005
	largeHost    = 32 << 30
)

// smallReserve holds vm.min_free_kbytes against the host's memory, where the paste has both.
func smallReserve(told []*Told, all []*Verdict) []*Verdict {
	reserve, setting := fact(told, MinFree)
	total, memory := fact(told, MemoryTotal)
	if setting == nil || memory == nil || total.Value < largeHost || reserve.Value >= reserveShare*total.Value || of(all, "direct-reclaim") != nil {
		return all
	}
	return append(all, &Verdict{Group: setting.Group, From: []*Told{setting, memory}, Sign: Sign{Cause: "direct-reclaim", Grade: Risk, Proof: []string{
		fmt.Sprintf("vm.min_free_kbytes keeps %s of %s free; 0.5 %% for each NUMA node is a usual rule", finding.Bytes(int64(reserve.Value)), finding.Bytes(int64(total.Value)))}}})
}

// leastWaiters is how many goroutines must want a lock for the dump to show a queue.
const leastWaiters = 3

// lockName names the lock that a goroutine dump and a mutex profile both show: the dump shows
// who waits now, the profile where time was lost. They show one lock where the waiters' function
// and the unlocking one are the same, or are methods of one type.
func lockName(told []*Told, all []*Verdict) []*Verdict {
	for _, t := range told {
		for _, site := range t.Facts {
			if site.Name != LockSite || site.Value < leastWaiters {
				continue
			}
			for _, o := range told {
				for _, delay := range o.Facts {
					if delay.Name != MutexDelay || o == t || !sameLock(site.Of, delay.Of) {
						continue
					}
					return find(all, Sign{Cause: "lock-contention", Sure: finding.Supported, Proof: []string{
						fmt.Sprintf("%.0f goroutines wait for a lock in %s, and the mutex profile has %s of waiting for %s", site.Value, site.Of, finding.Duration(int64(delay.Value)), delay.Of)}}, t, o)
				}
			}
		}
	}
	return all
}

// sameLock reports whether two functions are the same or methods of one type.
func sameLock(a, b string) bool {
	a, b = plainFunc(a), plainFunc(b)
	if a == b {
		return a != ""
	}
	ta, tb := receiver(a), receiver(b)
	return ta != "" && ta == tb
}

// plainFunc is a function's name without offsets and the names of its closures.
func plainFunc(name string) string {
	name, _, _ = strings.Cut(name, "+0x")
	name, _, _ = strings.Cut(strings.TrimSpace(name), ".func")
	return strings.TrimSuffix(name, "(...)")
}

// receiver is the type of a method as Go prints it: "pkg.(*T)" of "pkg.(*T).M".
func receiver(name string) string {
	i := strings.LastIndex(name, ").")
	if i < 0 || strings.HasPrefix(name, "sync.") || strings.HasPrefix(name, "runtime.") {
		return ""
	}
	return name[:i+1]
}

// What two processes' memory must differ by for the difference to have a reason.
const (
	leastDiffer  = 256 << 20
	shareDiffer  = 0.2
	mostlyHuge   = 0.5
	clearlyHuge  = 0.75
	sameRSSParts = 2
)

// twoMemories compares two processes, or one at two times: the larger one's memory in huge pages
// may be why it is larger.
func (a *Answer) twoMemories() {
	var told []*Told
	for _, t := range a.Told {
		if _, from := fact([]*Told{t}, ProcessRSS); from != nil {
			told = append(told, t)
		}
	}
	if len(told) != sameRSSParts || told[0].Part.Kind != told[1].Part.Kind {
		return
	}
	big, small := told[0], told[1]
	value := func(t *Told, name FactName) float64 { f, _ := fact([]*Told{t}, name); return f.Value }
	if value(big, ProcessRSS) < value(small, ProcessRSS) {
		big, small = small, big
	}
	more := value(big, ProcessRSS) - value(small, ProcessRSS)
	huge := value(big, ProcessAnonHuge) - value(small, ProcessAnonHuge)
	if more < leastDiffer || more < shareDiffer*value(small, ProcessRSS) || huge < mostlyHuge*more {
		return
	}
	sure := finding.Possible
	if huge >= clearlyHuge*more {
		sure = finding.Supported
	}
	var own []*Verdict
	for i := range a.Causes {
		if a.Causes[i].Cause == "thp-bloat" {
			own = append(own, &a.Causes[i])
		}
	}
	s := Sign{Cause: "thp-bloat", Grade: Found, Sure: sure, Share: min(1, huge/value(big, ProcessRSS)), Proof: []string{
		fmt.Sprintf("%s resident against %s; %s more of it in huge pages, %.0f %% of the difference",
			finding.Bytes(int64(value(big, ProcessRSS))), finding.Bytes(int64(value(small, ProcessRSS))), finding.Bytes(int64(huge)), 100*min(1, huge/more))}}
	if len(own) > 0 {
		find(own[:1], s, big, small)
		return
	}
	a.Causes = append(a.Causes, Verdict{Sign: s, Group: big.Group, From: []*Told{big, small}})
}

// twoRuns compares what two commands cost, each counted once: whoever attaches two wants to know.
func (a *Answer) twoRuns() {
	var told []*Told
	for _, t := range a.Told {
		if _, from := fact([]*Told{t}, RunCPU); from != nil {
			told = append(told, t)
		}
	}
	if len(told) != 2 {
		return
	}
	cpu0, _ := fact(told[:1], RunCPU)
	cpu1, _ := fact(told[1:], RunCPU)
	took0, _ := fact(told[:1], RunElapsed)
	took1, _ := fact(told[1:], RunElapsed)
	if cpu0.Of == cpu1.Of || cpu0.Value <= 0 || took0.Value <= 0 {
		return
	}
	a.Notes = append(a.Notes, fmt.Sprintf("%s took %s of CPU time in %s, and %s took %s in %s: %.2g times as much CPU time, and %.2g times as long; single runs, which vary",
		cpu0.Of, finding.Duration(int64(cpu0.Value)), finding.Duration(int64(took0.Value)),
		cpu1.Of, finding.Duration(int64(cpu1.Value)), finding.Duration(int64(took1.Value)), cpu1.Value/cpu0.Value, took1.Value/took0.Value))
}
