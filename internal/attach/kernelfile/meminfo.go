package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts of /proc/meminfo.
const (
	FactMemTotal     attach.FactName = "/host/memory/total:bytes"
	FactMemAvailable attach.FactName = "/host/memory/available:bytes"
	factPageCache    attach.FactName = "/host/memory/page-cache:bytes" // buffers included
	FactHostAnonHuge attach.FactName = "/host/memory/anon-huge:bytes"
)

var meminfoSure = oneOf("MemTotal MemFree MemAvailable SwapCached Active(anon) Inactive(anon) Active(file) Inactive(file) SwapTotal SwapFree AnonPages SReclaimable SUnreclaim " +
	"KReclaimable CommitLimit Committed_AS VmallocTotal VmallocUsed VmallocChunk AnonHugePages HugePages_Total HugePages_Free Hugepagesize DirectMap4k DirectMap2M WritebackTmp PageTables KernelStack NFS_Unstable")

var meminfoKnown = oneOf("MemTotal MemFree MemUsed MemAvailable Buffers Cached SwapCached Active Inactive Active(anon) Inactive(anon) Active(file) Inactive(file) Unevictable Mlocked " +
	"HighTotal HighFree LowTotal LowFree SwapTotal SwapFree Zswap Zswapped Dirty Writeback AnonPages Mapped Shmem KReclaimable Slab SReclaimable SUnreclaim KernelStack ShadowCallStack PageTables " +
	"SecPageTables NFS_Unstable Bounce WritebackTmp CommitLimit Committed_AS VmallocTotal VmallocUsed VmallocChunk Percpu HardwareCorrupted FilePages AnonHugePages ShmemHugePages ShmemPmdMapped FileHugePages " +
	"FilePmdMapped CmaTotal CmaFree MemShared BigTotal BigFree Inact_dirty Inact_laundry Inact_clean Inact_target Unaccepted Balloon HugePages_Total HugePages_Free HugePages_Rsvd HugePages_Surp Hugepagesize Hugetlb DirectMap4k DirectMap2M DirectMap4M DirectMap1G EarlyMemtestBad Quicklists")

var meminfo = &attach.Kind{
	Name: "/proc/meminfo", Hints: []string{":", "Mem", "Swap"},
	Claim: starting("tA-Z", 200, repeated(func(lines []paste.Line) int {
		if n := meminfo24(lines); n > 0 {
			return n + claimMeminfo(lines[n:])
		}
		return claimMeminfo(lines)
	})),
	Read: readMeminfo,
}

func claimMeminfo(lines []paste.Line) int {
	if len(lines) == 0 {
		return 0
	}
	// Most lines of a log are refused here, before anything is copied.
	//
	// Remarks behind a few lines are no matter here: a view of the paste is without them. Where
	// each line has one, so have the first two.
	first := withoutNode(lines[0].Text)
	remarked := len(lines) > 1 && withoutRemark(first) != first && withoutRemark(lines[1].Text) != lines[1].Text
	if remarked {
		first = withoutRemark(first)
	}
	if name, _, ok := pair(strings.TrimSpace(first)); !ok ||
		!meminfoKnown(name) || !strings.Contains(first, ":") && len(strings.Fields(first)) != 3 {
		return 0
	}
	stripped := make([]paste.Line, 0, min(len(lines), 512))
	for _, l := range lines[:min(len(lines), 512)] {
		l.Text = withoutNode(l.Text)
		if remarked {
			l.Text = withoutRemark(l.Text)
		}
		stripped = append(stripped, l)
	}
	return claimPairs(stripped, meminfoKnown, meminfoSure, nil, 2)
}

// unitless reports whether a line of a size lacks its unit.
func unitless(text string) bool {
	name, rest, ok := strings.Cut(text, ":")
	return ok && meminfoSure(strings.TrimSpace(name)) &&
		!strings.HasPrefix(strings.TrimSpace(name), "HugePages_") &&
		len(strings.Fields(rest)) == 1 && strings.Trim(strings.TrimSpace(rest), "0") != ""
}

// withoutRemark takes off what somebody wrote behind a value: "7447460 kB  # free".
func withoutRemark(text string) string {
	for _, mark := range []string{"#", "//"} {
		if at := strings.Index(text, mark); at > 0 && (text[at-1] == ' ' || text[at-1] == '\t') {
			return strings.TrimRight(text[:at], " \t")
		}
	}
	return text
}

// withoutNode takes "Node 0 " off the lines of a node's meminfo.
func withoutNode(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "Node ")
	node, tail, cut := strings.Cut(rest, " ")
	if ok && cut && isDigits(node) {
		return tail
	}
	return text
}

func readMeminfo(p *attach.Part) attach.Reading {
	if nodes := nodesOf(p.Lines); len(nodes) > 1 {
		return readNodes(p.Lines, nodes)
	}
	q := *p
	q.Lines = nil
	node := ""
	lines := pairs24(p.Lines)
	for i, l := range lines {
		l.Text = withoutRemark(l.Text)
		if t := withoutNode(l.Text); t != l.Text {
			node = strings.Fields(l.Text)[1]
			l.Text = t
		}
		if i == len(lines)-1 && unitless(l.Text) {
			if i == 0 {
				return attach.Reading{Title: "/proc/meminfo, cut off in its first line",
					State: attach.CannotTell, Means: "nothing of it is left that says how much memory there is"}
			}
			break // its end is cut off, and perhaps figures of its value
		}
		q.Lines = append(q.Lines, l)
	}
	all, samples := pairSamples(&q)
	m := samples[len(samples)-1]
	total, available := m.get("MemTotal"), m.get("MemAvailable")
	r := attach.Reading{Title: "/proc/meminfo", Time: all[0].at, Glance: true, Flaws: m.flaws, State: attach.CannotTell}
	if node != "" {
		r.Title = "meminfo of NUMA node " + node
	}
	if len(samples) > 1 {
		r.Title += fmt.Sprintf(", the last of %d samples", len(samples))
	}
	if total > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactMemTotal, Value: total})
	}
	if m.has("Cached") {
		r.Facts = append(r.Facts, attach.Fact{Name: factPageCache, Value: m.get("Cached") + m.get("Buffers")})
	}
	if m.has("AnonHugePages") {
		r.Facts = append(r.Facts, attach.Fact{Name: FactHostAnonHuge, Value: m.get("AnonHugePages")})
	}
	r.Figures = memFigures(m)
	switch {
	case !m.has("MemAvailable") || total == 0:
		r.Means = "MemAvailable is not in it, nor what it could be counted from: whether memory is short cannot be told."
		if total == 0 {
			r.Means = "MemTotal is not in it: whether memory is short cannot be told."
		}
		if m.has("MemFree") && m.has("Cached") && total > 0 {
			available = max(0, m.get("MemFree")+m.get("Cached")+m.get("Buffers")-m.get("Shmem"))
			r.Means = fmt.Sprintf("MemAvailable is not in it; free memory and page cache together are about %s of %s.", mem(available), mem(total))
			if slab := m.get("SReclaimable"); slab > 0.2*total {
				r.Means += fmt.Sprintf(" %s of the kernel's objects can be given back as well: mostly names and inodes of files.", mem(slab))
			}
			if ratio(available, total) >= 0.1 {
				r.State = attach.Healthy
			}
		}
	case available < shortMemory*total:
		r.Facts = append(r.Facts, attach.Fact{Name: FactMemAvailable, Value: available})
		r.Means = fmt.Sprintf("Only %s of memory is available (%s of %s): threads may have to free memory themselves.", percent(available/total), mem(available), mem(total))
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk, Proof: r.Figures[:1]}}
	case available < littleMemory*total && available < amplyFree:
		r.Facts = append(r.Facts, attach.Fact{Name: FactMemAvailable, Value: available})
		r.Means = fmt.Sprintf("%s of %s can be had without swapping (%s): that is little, and by itself no shortage.",
			mem(available), mem(total), percent(available/total))
	default:
		r.Facts = append(r.Facts, attach.Fact{Name: FactMemAvailable, Value: available})
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("%s of %s can be had without swapping (%s): memory is not short.",
			mem(available), mem(total), percent(available/total))
	}
	r.Not = "that low MemFree is a shortage, since page cache fills memory by design; nor that nobody stalls for large blocks (buddyinfo) or at a cgroup's limit"
	r.Next = []attach.Next{{Command: "cat /proc/pressure/memory; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether anybody waits for memory"}}
	if used := m.get("SwapTotal") - m.get("SwapFree"); m.has("SwapFree") && m.get("SwapTotal") > 0 && used > 0.5*m.get("SwapTotal") {
		r.State = attach.CannotTell
		r.Means += fmt.Sprintf(" %s of swap is in use; whether pages still go in and out, vmstat's si and so tell.", percent(used/m.get("SwapTotal")))
	}
	return r
}

// shortMemory is the part of memory below which what is available is little on any host.
const shortMemory = 0.03

// Below so much memory is little, unless it is amply enough for any burst.
const (
	littleMemory = 0.10
	amplyFree    = 8 << 30
)

func memFigures(m pairs) (out []string) {
	total := m.get("MemTotal")
	if m.has("MemAvailable") {
		text := mem(m.get("MemAvailable")) + " available"
		if total > 0 {
			text += fmt.Sprintf(" of %s (%s)", mem(total), percent(ratio(m.get("MemAvailable"), total)))
		}
		out = append(out, text)
	}
	if text := freeAndCache(m); text != "" {
		out = append(out, text)
	}
	swap := swapText(m)
	if m.has("AnonPages") {
		if swap != "" {
			swap = ", " + swap
		}
		if m.has("AnonHugePages") {
			swap = fmt.Sprintf(", %s of it in huge pages%s", mem(m.get("AnonHugePages")), swap)
		}
		swap = mem(m.get("AnonPages")) + " anonymous" + swap
	}
	if swap != "" {
		out = append(out, swap)
	}
	if held := m.get("HugePages_Total") * m.get("Hugepagesize"); held > 0.2*total && held > 0 {
		text := mem(held) + " set aside as huge pages (HugePages_Total)"
		if m.has("HugePages_Free") {
			text += fmt.Sprintf(", %s of it unused", mem(m.get("HugePages_Free")*m.get("Hugepagesize")))
		}
		out = slices.Insert(out, min(1, len(out)), text)
	}
	if m.has("Dirty") {
		text := mem(m.get("Dirty")) + " dirty"
		if m.has("Writeback") {
			text += ", " + mem(m.get("Writeback")) + " being written"
		}
		out = append(out, text)
	}
	if slab := m.get("Slab"); slab > 0.2*total && slab > 0 {
		text := mem(slab) + " of the kernel's objects (slab)"
		if total > 0 {
			text = fmt.Sprintf("%s of the kernel's objects (slab, %s of the memory)", mem(slab), percent(slab/total))
		}
		if m.has("SReclaimable") {
			text += fmt.Sprintf(", %s of which can be given back", mem(m.get("SReclaimable")))
		}
		out = slices.Insert(out, min(1, len(out)), text)
		if total == 0 && m.has("Cached") {
			out = append(out, mem(m.get("Cached"))+" page cache")
		}
	}
	if rest := uncounted(m); rest > 0.15*total {
		out = append(out, fmt.Sprintf("%s (%s) is in no count here: it is neither free, page cache nor anonymous", mem(rest), percent(rest/total)))
	}
	if len(out) == 0 {
		for _, n := range m.order {
			out = append(out, printed(n)+" "+mem(m.get(n)))
		}
		out = out[:min(len(out), 3)]
	}
	return out
}

// freeAndCache says what is free and what page cache has, as far as the paste has either: what was
// not asked for is not 0.
func freeAndCache(m pairs) string {
	var said []string
	if m.has("MemFree") {
		said = append(said, mem(m.get("MemFree"))+" free")
	}
	switch cache := m.get("Cached") + m.get("Buffers"); {
	case m.has("Cached") && m.has("Buffers"):
		said = append(said, mem(cache)+" page cache and buffers")
	case m.has("Cached"):
		said = append(said, mem(cache)+" page cache")
	case m.has("FilePages"): // of a node
		said = append(said, mem(m.get("FilePages"))+" page cache and buffers")
	}
	return strings.Join(said, ", ")
}

// swapText says how full swap is; "": it is not in the paste.
func swapText(m pairs) string {
	total := m.get("SwapTotal")
	switch {
	case !m.has("SwapTotal"):
		return ""
	case total == 0:
		return "no swap"
	case !m.has("SwapFree"):
		return mem(total) + " swap; how much of it is used is not in it"
	}
	return fmt.Sprintf("%s of %s swap used", mem(total-m.get("SwapFree")), mem(total))
}

// uncounted is how much of all memory is in none of the counts; 0: the great ones are not all here.
// It may be of drivers, of a balloon, or of counts that were cut off.
func uncounted(m pairs) float64 {
	rest := m.get("MemTotal")
	for _, n := range []string{"MemFree", "Buffers", "Cached", "AnonPages"} {
		if !m.has(n) {
			return 0
		}
		rest -= m.get(n)
	}
	for _, n := range []string{"SwapCached", "Slab", "PageTables", "SecPageTables", "KernelStack",
		"Percpu", "Zswap", "Bounce", "HardwareCorrupted"} {
		rest -= m.get(n)
	}
	if m.has("Hugetlb") {
		return max(0, rest-m.get("Hugetlb"))
	}
	return max(0, rest-m.get("HugePages_Total")*m.get("Hugepagesize"))
}
