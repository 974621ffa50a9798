package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts of a cgroup's memory controller.
const (
	FactGroupUsed     attach.FactName = "/cgroup/memory/used:bytes"
	FactGroupLimit    attach.FactName = "/cgroup/memory/limit:bytes" // 0: none at this level
	FactGroupAnonHuge attach.FactName = "/cgroup/memory/anon-huge:bytes"
	FactGroupMaxRate  attach.FactName = "/cgroup/memory/events/max:events/s"
	factGroupFails    attach.FactName = "/cgroup/memory/failcnt:times"
)

var memoryStatSure = hasPrefix("total_cache total_rss total_mapped total_swap total_dirty total_writeback total_pg total_inactive_ total_active_ total_unevictable total_shmem total_workingset hierarchical_mem rss_huge kernel_stack slab_reclaimable slab_unreclaimable anon_thp file_mapped file_dirty file_writeback inactive_anon active_anon " +
	"inactive_file active_file workingset_refault_ mapped_file sock")

// hostOnly are names of /proc/vmstat that no cgroup counts.
var hostOnly = hasPrefix("nr_ allocstall compact_ pgalloc pgskip numa_hit numa_miss kswapd_ drop_ balloon_ htlb_")

var memoryStatKnown = hasPrefix("total_cache total_rss total_mapped total_swap total_dirty total_writeback total_pg total_inactive_ total_active_ total_unevictable total_shmem total_workingset total_kmem total_slab hierarchical_mem anon cache rss mapped_file file kernel sock vmalloc percpu shmem slab swap inactive_ active_ unevictable pg workingset_ thp_ " +
	"dirty writeback pagetables sec_pagetables zswap zswp numa_ hugetlb swapcached recent_ misc hugepages demote promote")

var memoryStat = &attach.Kind{
	Name: "memory.stat", Joins: true,
	Claim: starting("a-z", 80, repeated(func(lines []paste.Line) int {
		// /proc/vmstat has names with nr_ first, and this none.
		if strings.HasPrefix(strings.TrimSpace(lines[0].Text), "nr_") || strings.Contains(lines[0].Text, ":") {
			return 0
		}
		n := claimPairs(lines, memoryStatKnown, memoryStatSure, nil, 1<<20)
		if slices.ContainsFunc(lines[:n], func(l paste.Line) bool { return hostOnly(strings.TrimSpace(l.Text)) }) {
			return 0
		}
		return n
	})),
	Read: func(p *attach.Part) attach.Reading {
		all, m := pairSamples(p)
		return memGroup{all: all, stats: m, limit: none}.read()
	},
}

var memoryEvents = &attach.Kind{
	Name: "memory.events", Joins: true,
	Claim: starting("a-z", 80, repeated(func(lines []paste.Line) int {
		known := oneOf("low high max oom oom_kill oom_group_kill sock_throttled fail")
		n := claimPairs(lines, known, func(n string) bool { return n == "oom_kill" || n == "oom_group_kill" }, nil, 4)
		if name, _, _ := pair(strings.TrimSpace(lines[0].Text)); n < 2 || name == "oom_kill" {
			return 0 // oom_kill stands in /proc/vmstat as well
		}
		return n
	})),
	Read: func(p *attach.Part) attach.Reading {
		all, m := pairSamples(p)
		return memGroup{all: all, events: m, limit: none}.read()
	},
}

// none is what was not read.
const none = -2

// memGroup is what a cgroup's files say of its memory. A limit of -1 is no limit, none not read.
type memGroup struct {
	path          string
	all           []sample
	stats, events []pairs
	used, limit   float64
	peak          float64   // 0: not read
	fails         []float64 // each reading of failcnt
	hasUsed       bool
}

func (g memGroup) read() attach.Reading {
	r := attach.Reading{Title: "memory controller of a cgroup", State: attach.Healthy}
	if g.path != "" {
		r.Title = "memory controller of cgroup " + printed(g.path)
		r.Who.Cgroup = g.path
	}
	if g.hasUsed {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGroupUsed, Value: g.used})
		r.Glance = true
	}
	switch {
	case g.limit > 0 && g.hasUsed:
		r.Figures = append(r.Figures, fmt.Sprintf("%s of %s used (%s), page cache included",
			mem(g.used), mem(g.limit), percent(ratio(g.used, g.limit))))
	case g.hasUsed:
		r.Figures = append(r.Figures, mem(g.used)+" used, page cache included")
	case g.limit > 0:
		r.Figures = append(r.Figures, "limit "+mem(g.limit))
	}
	if g.peak > 0 {
		r.Figures = append(r.Figures, mem(g.peak)+" used at its peak")
	}
	if g.limit > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGroupLimit, Value: g.limit})
	} else if g.limit == -1 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGroupLimit, Value: 0})
		r.Figures = append(r.Figures, "no limit at this level")
	}
	unreclaimable := g.readStat(&r)
	g.readEvents(&r)
	at := max(unreclaimable, 0)
	if !(unreclaimable >= 0) && g.hasUsed {
		at = g.used
	}
	switch {
	case len(r.Signs) > 0 || r.Means != "":
	case g.limit > 0 && ratio(at, g.limit) >= 0.95:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("The group is at %s of its limit; page cache counts there and can be given back, so that alone is no shortage.", percent(ratio(at, g.limit)))
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk,
			Share: ratio(at, g.limit), Proof: r.Figures[:1]}}
	case g.limit > 0 && g.hasUsed:
		r.Means = "The group is below its memory limit."
	case g.limit == -1:
		r.Means = "This level of the cgroup has no memory limit."
	case len(g.stats) > 0 && hasFact(r, FactGroupLimit):
		r.Means = "Anonymous memory leaves room below the limit; page cache may fill that and be given back."
	case len(g.stats) > 0 && g.stats[len(g.stats)-1].get("hierarchical_memory_limit") >= 1<<60:
		r.Means = "Neither this level of the cgroup nor one above it has a memory limit."
		r.Not = cmp.Or(r.Not, "whether the host's memory is short, and what requests waited for")
	case len(g.stats) > 0:
		r.Means = "It says what the memory is; whether it is short only the group's limit and events tell."
		if r.State == attach.Healthy && r.Boot {
			r.State = attach.Context
		}
	default:
		r.State = attach.CannotTell
		r.Means = "It cannot say whether memory is short: limit, use and events tell together."
	}
	if r.Not == "" {
		r.Not = "whether a level above has a lower limit, and what requests waited for"
	}
	if r.State != attach.Healthy && len(r.Next) == 0 {
		r.Next = cpuGroup{path: g.path}.next("cd /sys/fs/cgroup/CGROUP; cat memory.max memory.current memory.events memory.pressure; sleep 10; cat memory.events", "whether the limit is hit now, and for how long tasks wait")
	}
	return r
}

func hasFact(r attach.Reading, name attach.FactName) bool {
	return slices.ContainsFunc(r.Facts, func(f attach.Fact) bool { return f.Name == name && f.Value > 0 })
}

// readStat reads memory.stat, and returns what cannot be given back; -1: not known. v1 has totals
// that include the groups below.
func (g memGroup) readStat(r *attach.Reading) float64 {
	if len(g.stats) == 0 {
		return -1
	}
	m := g.stats[len(g.stats)-1]
	get := func(v1, v2 string) float64 {
		if m.has("total_" + v1) {
			return m.get("total_" + v1)
		}
		return m.get(v2, v1)
	}
	anon, file, huge := get("rss", "anon"), get("cache", "file"), get("rss_huge", "anon_thp")
	r.Title += ": memory.stat"
	r.Flaws = append(r.Flaws, m.flaws...)
	if text := kindsOfMemory(m, anon, huge, file); text != "" {
		r.Figures = append(r.Figures, text)
	}
	r.Figures = append(otherMemory(m, max(anon+file, m.get("inactive_anon")+m.get("active_anon")+
		m.get("inactive_file")+m.get("active_file")), get("swap", "swap")), r.Figures...)
	if m.has("anon_thp") || m.has("rss_huge") || m.has("total_rss_huge") {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGroupAnonHuge, Value: huge})
	}
	hasAnon := m.has("anon") || m.has("rss") || m.has("total_rss")
	if limit := m.get("hierarchical_memory_limit"); limit > 0 && limit < 1<<60 && g.limit <= 0 && hasAnon {
		what, held := "anonymous", anon
		if shared := get("shmem", "shmem"); shared > 0 {
			what, held = "anonymous or tmpfs", anon+shared
		}
		r.Figures = append(r.Figures,
			fmt.Sprintf("limit of this level and those above %s (%s of it %s)", mem(limit), percent(ratio(held, limit)), what))
		r.Facts = append(r.Facts, attach.Fact{Name: FactGroupLimit, Value: limit})
		if ratio(held, limit) >= 0.85 {
			r.State = attach.CannotTell
			r.Means = fmt.Sprintf("What is %s, and cannot be given back without swap, is %s of the limit: little is left for page cache.", what, percent(ratio(held, limit)))
			r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Risk,
				Proof: r.Figures[len(r.Figures)-1:]})
		}
	}
	if grow, ok := growth(g.all, g.stats, "pgfault", "total_pgfault", "pgmajfault", "pgscan"); ok && grow.fell == "" {
		r.Title += fmt.Sprintf(", %d samples%s", len(g.stats), over(grow.seconds))
		readStatGrowth(r, grow)
	} else {
		r.Boot = true
		if len(g.stats) > 1 {
			r.Title += fmt.Sprintf(", the last of %d samples", len(g.stats))
		}
	}
	return anon + get("shmem", "shmem") + m.get("slab_unreclaimable") + m.get("kernel_stack")
}

// refaultRate is how many pages a second, read again after they were evicted, are more than chance:
// 4 MiB/s.
const refaultRate = 1000

// readStatGrowth says how a group's counters grew between two samples.
func readStatGrowth(r *attach.Reading, grow grown) {
	both := func(name string) float64 { return grow.by(name) + grow.by("total_"+name) }
	scan, major := grow.by("pgscan_direct"), both("pgmajfault")
	refault := both("workingset_refault_file") + both("workingset_refault_anon") +
		both("workingset_refault") // one before 5.9
	var said []string
	for _, c := range []struct{ name, text string }{
		{"pgscan_direct", grow.text(scan, "pages") + " scanned by threads that wanted memory"},
		{"pgmajfault", grow.text(major, "major faults")},
		{"workingset_refault", grow.text(refault, "pages") + " read again"},
	} {
		if hasCounter(grow.to, c.name) || hasCounter(grow.to, "total_"+c.name) {
			said = append(said, c.text)
		}
	}
	if len(said) == 0 {
		r.Boot = true // nothing in it is counted twice
		return
	}
	r.Figures = append([]string{strings.Join(said, ", ")}, r.Figures...)
	if enough(scan, grow.seconds, 1000, 1e5) {
		r.State = attach.Ill
		r.Means = "Threads of the group have to free memory themselves before they get any."
		r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found,
			Sure: finding.Possible, Proof: r.Figures[:1]})
		return
	}
	again := enough(refault, grow.seconds, refaultRate, 1e5)
	if !again && !enough(major, grow.seconds, majorRate, stallTotal) {
		return
	}
	r.State = attach.CannotTell
	r.Means = "Pages have to be read from disk or swap when they are touched: programs that start do that as well."
	if again {
		r.Means = "Pages that were evicted are read again: what the group works with does not fit into its memory."
	}
	for _, cause := range []string{"page-fault", "disk-wait"} {
		r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: r.Figures[:1]})
	}
}

// kindsOfMemory says what a group's memory is, as far as the paste has it: what was cut off is
// not 0.
func kindsOfMemory(m pairs, anon, huge, file float64) string {
	has := func(names ...string) bool { return slices.ContainsFunc(names, m.has) }
	var said []string
	if has("anon", "rss", "total_rss") {
		text := mem(anon) + " anonymous"
		if has("anon_thp", "rss_huge", "total_rss_huge") {
			text += fmt.Sprintf(" (%s of it in huge pages)", mem(huge))
		}
		said = append(said, text)
	} else if has("inactive_anon", "active_anon") { // its first lines were cut off
		text := mem(m.get("inactive_anon")+m.get("active_anon")) + " anonymous and tmpfs (inactive_anon and active_anon)"
		if m.has("anon_thp") {
			text += ", " + mem(huge) + " of it in huge pages"
		}
		said = append(said, text)
	}
	if has("file", "cache", "total_cache") {
		said = append(said, mem(file)+" page cache")
	}
	return strings.Join(said, ", ")
}

// otherMemory says what a group has beside anonymous memory and page cache, where that is much: the
// kernel's objects for it, and what was swapped out.
func otherMemory(m pairs, rest, swap float64) (out []string) {
	slab := m.get("slab")
	if slab == 0 {
		slab = m.get("slab_reclaimable") + m.get("slab_unreclaimable")
	}
	if slab > 0.25*(slab+rest) {
		text := mem(slab) + " of the kernel's objects (slab)"
		if m.has("slab_reclaimable") {
			text += ", " + mem(m.get("slab_reclaimable")) + " of which can be given back"
		}
		out = append(out, text)
	}
	if swap > 0.05*(swap+rest) {
		out = append(out, mem(swap)+" swapped out; whether pages still go in and out it does not say")
	}
	return out
}
