package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts of /proc/vmstat: counters since boot, and rates where it was read twice.
const (
	FactAllocstalls      attach.FactName = "/host/vmstat/allocstall:stalls"
	FactCompactStalls    attach.FactName = "/host/vmstat/compact/stall:stalls"
	FactAllocstallRate   attach.FactName = "/host/vmstat/allocstall:stalls/s"
	FactCompactStallRate attach.FactName = "/host/vmstat/compact/stall:stalls/s"
	FactMajorFaultRate   attach.FactName = "/host/vmstat/faults/major:faults/s"
	FactDirectReclaim    attach.FactName = "/host/vmstat/steal/direct:pages/s"
	FactNUMAMigrations   attach.FactName = "/host/vmstat/numa/migrated:pages/s"
)

var vmstatSure = hasPrefix("allocstall compact_ pgscan_kswapd pgscan_direct pgsteal_kswapd pgsteal_direct pgalloc_ nr_free_pages nr_zone_ nr_dirty_threshold " +
	"nr_dirtied nr_written numa_pte_updates numa_hint_faults numa_pages_migrated thp_split_page thp_zero_page htlb_buddy kswapd_ nr_tlb_ pgskip_ balloon_ zone_reclaim_failed")

var vmstatKnown = hasPrefix("nr_ numa_ pg allocstall compact_ thp_ workingset_ pswpin pswpout kswapd_ unevictable_pgs htlb_ swap_ra drop_ slabs_scanned oom_kill " +
	"zone_ pageoutrun balloon_ direct_map cow_ksm ksm_ zswp zone_reclaim vma_lock nr_unstable swpin swpout kstack_ pageoutrun")

var notVmstat = oneOf("nr_periods nr_throttled nr_bursts nr_switches nr_voluntary_switches nr_involuntary_switches nr_migrations nr_wakeups nr_descendants nr_dying_descendants")

var vmstat = &attach.Kind{
	Name: "/proc/vmstat", Joins: true, Prompted: true,
	Claim: func(lines []paste.Line) int {
		if lines[0].Command == "" {
			return claimVmstat(lines)
		}
		// A command that names the file needs one counter: "grep oom_kill /proc/vmstat".
		if !strings.Contains(lines[0].Command, "/proc/vmstat") || len(lines) < 2 {
			return 0
		}
		if n := claimPairs(lines[1:], counterOfHost, counterOfHost, nil, 1); n > 0 {
			return 1 + n
		}
		return 0
	},
	Read: readVmstat,
}

func counterOfHost(name string) bool { return vmstatKnown(name) && !notVmstat(name) }

var claimVmstat = starting("a-z", 80, repeated(func(lines []paste.Line) int {
	if strings.Contains(lines[0].Text, ":") {
		return 0 // the scheduler's files have some of the names, with a colon
	}
	if kept, at := withoutRemarks(lines, counterOfHost); at != nil {
		if n := claimPairs(kept, counterOfHost, vmstatSure, nil, 8); n > 0 {
			return at[n-1] + 1
		}
	}
	return claimPairs(lines, counterOfHost, vmstatSure, nil, 8)
}))

var vmstatCounters = []string{"pgalloc_normal", "pgfree", "pgfault", "pgmajfault", "pgpgin",
	"allocstall_normal", "compact_stall", "pgscan_direct", "pswpin"}

func readVmstat(p *attach.Part) attach.Reading {
	all, m := pairSamples(p)
	last := m[len(m)-1]
	if g, ok := growth(all, m, vmstatCounters...); ok && g.fell == "" {
		return readVmstatPair(all, g)
	} else if ok {
		return attach.Reading{
			Title: fmt.Sprintf("/proc/vmstat, %d samples", len(m)), State: attach.CannotTell, Boot: true,
			Means:   fmt.Sprintf("The counter %s falls from one sample to the next: they are of two hosts, or of two boots, and no rate follows.", printed(g.fell)),
			Figures: []string{stallsText(m[0]), stallsText(last)},
		}
	}
	r := attach.Reading{
		Title: fmt.Sprintf("/proc/vmstat, %s, %s",
			plural(len(last.order), "counter", "counters"), onceOf(len(m))), Boot: true, Time: all[0].at, Flaws: last.flaws,
		Figures: []string{stallsText(last)},
		Facts: []attach.Fact{{Name: FactAllocstalls, Value: stalls(last)},
			{Name: FactCompactStalls, Value: last.get("compact_stall")}},
		Next: []attach.Next{{Command: "cat /proc/vmstat; sleep 10; date; cat /proc/vmstat",
			Why: "two readings give rates"}},
		Not: "when it happened: counters since boot are no rate",
	}
	if text := reclaimText(last, last.sum); text != "" {
		r.Figures = append(r.Figures, text+" since boot"+inVain(last))
	}
	if n := last.get("oom_kill"); n > 0 {
		r.Figures = append(r.Figures, plural(int(n), "process", "processes")+
			" killed for lack of memory since boot, the host's or a cgroup's")
	}
	if last.has("pgmajfault") || last.has("pswpin") {
		r.Figures = append(r.Figures,
			readsText(last, func(n string) string { return number(last.get(n)) })+" since boot")
	}
	if v := last.get("numa_pages_migrated"); v > 0 {
		r.Figures = append(r.Figures, number(v)+" pages moved between NUMA nodes since boot")
	}
	if v := last.get("nr_slab_unreclaimable") * pageSize; v >= 4<<30 {
		r.Figures = append(r.Figures, slabText(v))
	}
	if v := last.get("nr_free_pages"); v > 0 {
		text := mem(v*pageSize) + " free at this moment, at pages of 4 KiB"
		if last.has("nr_file_pages") && last.has("nr_anon_pages") {
			text += fmt.Sprintf(", %s page cache, %s anonymous",
				mem(last.get("nr_file_pages")*pageSize), mem(last.get("nr_anon_pages")*pageSize))
		}
		r.Figures = append(r.Figures, text)
	}
	asked := stallsKnown(last)
	switch n := stalls(last) + last.get("compact_stall"); {
	case !asked:
		r.State, r.Means = attach.CannotTell,
			"It has none of the counters of allocation stalls, so nothing follows for latency."
		if held, cache := last.get("nr_slab_unreclaimable")*pageSize,
			last.get("nr_file_pages")*pageSize; held >= 4<<30 && last.has("nr_file_pages") && cache < held/20 {
			figure := fmt.Sprintf("%s of the kernel's objects that cannot be given back (nr_slab_unreclaimable), and %s of page cache", mem(held), mem(cache))
			r.Figures = append([]string{figure}, r.Figures[1:]...)
			r.Figures = slices.DeleteFunc(r.Figures, func(s string) bool { return s == slabText(held) })
			r.Means = fmt.Sprintf("The kernel's own objects hold %s, and little is left as page cache: memory may be short by them; the counters of allocation stalls, which would tell, are not in it.", mem(held))
			r.Next = append([]attach.Next{{Command: "slabtop -o -s c | head -20",
				Why: "whose objects they are: a file system's, a driver's, the network's"}}, r.Next...)
		}
	case n < fewStalls && !hasCounter(last, "allocstall") && !hasCounter(last, "pgsteal_direct"):
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Since boot threads had to compact memory %s; whether they had to free any is not in it.", plural(int(n), "time", "times"))
	case n < fewStalls && last.get("pswpin") == 0 && last.sum("pgsteal_direct") == 0:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("Since boot threads had to free or move memory themselves %s: memory was not short.", plural(int(n), "time", "times"))
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Against}}
	default:
		r.State = attach.CannotTell
		r.Means = "Since boot threads had to " + stallsDone(last) + "; whether they still do cannot be told."
	}
	return r
}

// onceOf says which of n readings is read, where they are not before and after.
func onceOf(n int) string {
	if n > 1 {
		return fmt.Sprintf("the last of %d samples", n)
	}
	return "read once"
}

func slabText(bytes float64) string {
	return mem(bytes) + " of the kernel's objects that cannot be given back (nr_slab_unreclaimable)"
}

// stallGrowth says how many stalls there were between two samples, as far as both are counted.
func stallGrowth(g grown, alloc, compact float64) string {
	var said []string
	if hasCounter(g.to, "allocstall") {
		said = append(said, g.text(alloc, "direct reclaims"))
	}
	if hasCounter(g.to, "compact_stall") {
		said = append(said, g.text(compact, "direct compactions"))
	}
	if len(said) == 0 {
		return "how often threads freed memory themselves (allocstall) is not in it"
	}
	return strings.Join(said, ", ")
}

// readsText says how many faults and reads from swap there were, as far as both are counted.
func readsText(m pairs, text func(name string) string) string {
	var said []string
	if m.has("pgmajfault") {
		said = append(said, text("pgmajfault")+" major faults")
	}
	if m.has("pswpin") {
		said = append(said, text("pswpin")+" pages read from swap")
	}
	return strings.Join(said, ", ")
}

// fewStalls cannot be any matter: a stall takes milliseconds, and boot itself has some.
const fewStalls = 100

// stalls counts direct reclaims. Kernels before 4.10 have one counter for all zones.
func stalls(m pairs) float64 { return m.sum("allocstall") }

func stallsKnown(m pairs) bool {
	return hasCounter(m, "allocstall") || hasCounter(m, "compact_stall")
}

func stallsText(m pairs) string {
	var said []string
	if hasCounter(m, "allocstall") {
		said = append(said, number(stalls(m))+" direct reclaims (allocstall)")
	}
	if hasCounter(m, "compact_stall") {
		said = append(said, number(m.get("compact_stall"))+" direct compactions (compact_stall)")
	}
	if len(said) == 0 {
		return "how often threads freed memory themselves (allocstall) is not in it"
	}
	text := strings.Join(said, ", ")
	if fail := m.get("compact_fail"); fail > 0 && m.get("compact_stall") >= fail {
		text += fmt.Sprintf(", of which %s failed (%s)", number(fail), nearly(ratio(fail, m.get("compact_stall"))))
	}
	return text + " since boot"
}

// hasCounter reports whether the paste has a counter: one that was cut off is not 0.
func hasCounter(m pairs, prefix string) bool {
	return slices.ContainsFunc(m.order, func(n string) bool { return strings.HasPrefix(n, prefix) })
}

// stallsDone says which stalls there were since boot, as far as the paste has their counters.
func stallsDone(m pairs) string {
	var done []string
	if hasCounter(m, "allocstall") {
		done = append(done, "free memory themselves "+number(stalls(m))+" times")
	} else if direct := m.sum("pgsteal_direct"); direct > 0 {
		done = append(done, "free "+number(direct)+" pages themselves")
	}
	if hasCounter(m, "compact_stall") {
		done = append(done, "compact memory "+number(m.get("compact_stall"))+" times")
	}
	return strings.Join(done, " and ")
}

// inVain says how little threads got that had to free memory themselves, where it is little: what
// they look at is dirty, in use, or not theirs to free.
func inVain(m pairs) string {
	looked := m.sum("pgscan_direct") - m.get("pgscan_direct_throttle")
	freed := m.sum("pgsteal_direct")
	if !hasCounter(m, "pgsteal_direct") || looked < 1e6 || freed > 0.1*looked {
		return ""
	}
	return fmt.Sprintf("; these threads looked at %s pages and could free %s of them",
		number(looked), nearly(ratio(freed, looked)))
}

// reclaimText says how many pages were reclaimed, as far as m has the counters; by sums those that
// start with a prefix. "": it has none. Before Linux 3.4 they are by zone, whoever reclaims.
func reclaimText(m pairs, by func(prefix string) float64) string {
	direct, kswapd := hasCounter(m, "pgsteal_direct"), hasCounter(m, "pgsteal_kswapd")
	d, k := by("pgsteal_direct"), by("pgsteal_kswapd")
	switch {
	case direct && kswapd && d+k == 0:
		return "no page reclaimed by threads that wanted memory, nor by kswapd,"
	case direct && kswapd:
		return fmt.Sprintf("%s pages reclaimed by threads that wanted memory, %s by kswapd (%s direct)",
			number(d), number(k), percent(ratio(d, d+k)))
	case direct:
		return number(d) + " pages reclaimed by threads that wanted memory"
	case kswapd:
		return number(k) + " pages reclaimed by kswapd"
	case hasCounter(m, "pgsteal_") && m.has("kswapd_steal"):
		return fmt.Sprintf("%s pages reclaimed, %s of them by kswapd,", number(by("pgsteal_")), number(by("kswapd_steal")))
	case hasCounter(m, "pgsteal_"):
		return number(by("pgsteal_")) + " pages reclaimed"
	}
	return ""
}

// What counts per second. One stall takes about a millisecond or more, so ten a second are a
// hundredth of the time of one thread, and it is always a thread that wants memory.
const (
	stallRate   = 10
	stallTotal  = 1000 // where the time between two samples is not known
	majorRate   = 100
	swapRate    = 100 // pages
	migrateRate = 5000
)

func readVmstatPair(all []sample, g grown) attach.Reading {
	alloc, compact := g.byPrefix("allocstall"), g.by("compact_stall")
	direct := g.byPrefix("pgsteal_direct")
	major, swap, moved := g.by("pgmajfault"), g.by("pswpin"), g.by("numa_pages_migrated")
	r := attach.Reading{
		Title: fmt.Sprintf("/proc/vmstat, %d samples%s", len(all), over(g.seconds)),
		Time:  all[0].at, State: attach.Healthy,
		Figures: []string{stallGrowth(g, alloc, compact)},
		Not:     "whose threads stalled, and for how long: these are counters of the host",
	}
	if text := reclaimText(g.to, g.byPrefix); text != "" {
		r.Figures = append(r.Figures, text+" meanwhile")
	}
	var read []string
	if g.to.has("pgmajfault") {
		read = append(read, g.text(major, "major faults"))
	}
	if g.to.has("pswpin") {
		read = append(read, g.text(swap, "pages from swap"))
	}
	refault := g.byPrefix("workingset_refault")
	if hasCounter(g.to, "workingset_refault") {
		read = append(read, g.text(refault, "evicted pages read again"))
	}
	reads := strings.Join(read, ", ")
	if len(read) > 0 {
		r.Figures = append(r.Figures, reads)
	}
	if moved > 0 {
		r.Figures = append(r.Figures, g.text(moved, "pages moved between NUMA nodes"))
	}
	if g.seconds > 0 {
		r.Facts = []attach.Fact{
			{Name: FactAllocstallRate, Value: alloc / g.seconds},
			{Name: FactCompactStallRate, Value: compact / g.seconds},
			{Name: FactMajorFaultRate, Value: major / g.seconds},
			{Name: FactDirectReclaim, Value: direct / g.seconds}, {Name: FactNUMAMigrations, Value: moved / g.seconds},
		}
	}
	if enough(alloc+compact, g.seconds, stallRate, stallTotal) {
		r.State = attach.Ill
		r.Means = "Threads have to free or compact memory themselves before they get any."
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found,
			Sure: finding.Possible, Proof: r.Figures[:min(2, len(r.Figures))]})
		r.Next = append(r.Next, attach.Next{Command: "whystall diagnose --pid PID",
			Why: "whether threads of the service are in reclaim, and how long"})
	} else if stallsKnown(g.to) {
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Against})
	}
	if enough(swap, g.seconds, swapRate, stallTotal) ||
		enough(major, g.seconds, majorRate, stallTotal) || enough(refault, g.seconds, refaultRate, 1e5) {
		r.Signs = append(r.Signs, attach.Sign{Cause: "page-fault", Grade: attach.Candidate,
			Proof: []string{reads}}, attach.Sign{Cause: "disk-wait", Grade: attach.Candidate, Proof: []string{reads}})
		r.Means += " Pages have to be read from disk or swap when they are touched: programs that start do that as well."
	}
	if g.seconds > 0 && moved/g.seconds >= migrateRate {
		r.Signs = append(r.Signs, attach.Sign{Cause: "numa-balancing", Grade: attach.Candidate,
			Proof: r.Figures[len(r.Figures)-1:]})
		r.Means += " The kernel moves many pages between NUMA nodes."
	}
	r.Means = strings.TrimSpace(r.Means)
	switch {
	case r.Means == "" && !stallsKnown(g.to):
		r.State, r.Means = attach.CannotTell,
			"It has none of the counters of allocation stalls, so little follows for latency."
	case r.Means == "" && g.seconds == 0 && alloc+compact >= fewStalls/10:
		r.State, r.Signs = attach.CannotTell, nil
		r.Means = "Threads had to free or compact memory themselves between the samples; without the time between them it is no rate."
	case r.Means == "":
		r.Means = "Between the samples next to no thread had to free or compact memory itself."
	case r.State == attach.Healthy:
		r.State = attach.CannotTell
	}
	return r
}

// enough reports whether a counter grew by a rate that matters, or by a total where no time is
// known.
func enough(v, seconds, rate, total float64) bool {
	if seconds > 0 {
		return v/seconds >= rate
	}
	return v >= total
}

func over(seconds float64) string {
	if seconds <= 0 {
		return ", the time between them not stated"
	}
	return " over " + number(seconds) + " s"
}
