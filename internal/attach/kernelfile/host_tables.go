package kernelfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// perCPU is a table of the kernel with a column for each CPU: interrupts and softirqs.
var (
	cpuHeader = pattern.New(`^(?:CPU\d+ *)+$`)
	cpuRow    = pattern.New(`^([\w-]{1,12}):((?: +\d+)+)(?: +(.*))?$`)
)

var softirqNames = oneOf("HI TIMER NET_TX NET_RX BLOCK BLOCK_IOPOLL IRQ_POLL TASKLET SCHED HRTIMER RCU")

func claimTable(lines []paste.Line) int {
	text := strings.TrimLeft(lines[0].Text, " ")
	if colon := strings.IndexByte(text, ':'); (colon < 1 || colon > 12) && !strings.HasPrefix(text, "CPU") {
		return 0
	}
	if !cpuHeader.MatchString(strings.TrimSpace(lines[0].Text)) {
		// A table whose start was cut off is known by its names.
		m := cpuRow.FindStringSubmatch(strings.TrimSpace(lines[0].Text))
		if m == nil || !softirqNames(m[1]) && !strings.Contains(m[3], "-edge") && !strings.Contains(m[3], "-fasteoi") && !strings.HasSuffix(m[3], " interrupts") && !strings.HasSuffix(m[3], " shootdowns") {
			return 0
		}
	}
	rows := 0
	n := run(lines, func(t string) bool {
		if cpuRow.MatchString(t) {
			rows++
			return true
		}
		return cpuHeader.MatchString(t)
	})
	return attach.ClaimIf(rows > 0, n)
}

// tableSample is the sums of rows over CPUs, and the largest CPU's part.
type tableRow struct {
	name, what string
	sum, top   float64
	cpu        int
}

func tableRows(lines []string) (rows []tableRow, cpus int) {
	if !slices.ContainsFunc(lines, cpuHeader.MatchString) {
		cpus = columnsOf(lines)
	}
	for _, t := range lines {
		if cpuHeader.MatchString(t) {
			cpus = len(strings.Fields(t))
			continue
		}
		m := cpuRow.FindStringSubmatch(t)
		if m == nil {
			continue
		}
		r := tableRow{name: m[1], what: m[3]}
		for i, w := range strings.Fields(m[2]) {
			if cpus > 0 && i >= cpus {
				break
			}
			v := float(w)
			r.sum += v
			if v > r.top {
				r.top, r.cpu = v, i
			}
		}
		rows = append(rows, r)
	}
	return rows, cpus
}

// columnsOf is how many CPUs a table has whose names were cut off: all its rows have as many
// figures; 0: they have not.
func columnsOf(lines []string) (n int) {
	for _, t := range lines {
		m := cpuRow.FindStringSubmatch(t)
		if m == nil || m[3] == "" {
			continue // of a row without a text behind, more may be cut off
		}
		c := len(strings.Fields(m[2]))
		if n > 0 && c != n {
			return 0
		}
		n = c
	}
	return n
}

// oneCPU is the share of interrupts from which the others take none to speak of.
const oneCPU = 0.95

// busiestCPU says which CPU takes most of what devices interrupt for, where two devices or more
// share it.
func busiestCPU(lines []string, cpus int) (figure string, share float64) {
	if cpus < 2 {
		return "", 0
	}
	sums, devices, all := make([]float64, cpus), make([]int, cpus), 0.0
	for _, t := range lines {
		m := cpuRow.FindStringSubmatch(t)
		if m == nil || !isDigits(m[1]) {
			continue
		}
		for i, w := range strings.Fields(m[2]) {
			if i < cpus {
				v := float(w)
				sums[i], all = sums[i]+v, all+v
				if v > 0 {
					devices[i]++
				}
			}
		}
	}
	at := 0
	for i := range sums {
		if sums[i] > sums[at] {
			at = i
		}
	}
	if devices[at] < 2 || sums[at] < 0.4*all || sums[at] < 3*all/float64(cpus) {
		return "", 0
	}
	share = sums[at] / all
	return fmt.Sprintf("CPU %d of %d took %s of all interrupts of the devices listed, of several of them", at, cpus, nearly(share)), share
}

var interrupts = &attach.Kind{
	Name: "interrupts", Joins: true, Hints: []string{"CPU", ":"}, Claim: repeated(claimTable),
	Read: func(p *attach.Part) attach.Reading {
		all := samples(p, func(_ []string, line string) bool { return cpuHeader.MatchString(line) })
		rows, cpus := tableRows(all[len(all)-1].lines)
		kind := "/proc/interrupts"
		if len(rows) > 0 && softirqNames(rows[0].name) {
			kind = "/proc/softirqs"
		}
		r := attach.Reading{Title: fmt.Sprintf("%s, %s", kind, plural(cpus, "CPU", "CPUs")), Boot: true, State: attach.Healthy, Time: all[0].at}
		if last := all[len(all)-1].lines; !slices.ContainsFunc(last, cpuHeader.MatchString) {
			r.Title = kind + ", its first line cut off"
			if cpus > 0 {
				r.Title += fmt.Sprintf(", %s by its columns", plural(cpus, "CPU", "CPUs"))
			}
		}
		when, dt := "since boot", 0.0
		if len(all) > 1 {
			if d, ok := tableGrowth(all, rows); ok {
				rows, r.Boot, when, dt = d, false, "between the samples", span(all)
				r.Title += fmt.Sprintf(", %d samples%s", len(all), over(dt))
			}
		}
		slices.SortStableFunc(rows, func(a, b tableRow) int { return cmp.Compare(b.sum, a.sum) })
		shared, share := "", 0.0
		if r.Boot {
			shared, share = busiestCPU(all[len(all)-1].lines, cpus)
		}
		for _, w := range rows[:min(3, len(rows))] {
			text := fmt.Sprintf("%s %s: %s %s", printed(w.name), printed(w.what), number(w.sum), when)
			if dt > 0 {
				text = fmt.Sprintf("%s %s: %s/s", printed(w.name), printed(w.what), number(w.sum/dt))
			}
			if cpus > 1 && w.sum > 0 {
				text += w.spread(cpus)
			}
			r.Figures = append(r.Figures, strings.ReplaceAll(text, " :", ":"))
		}
		if shared != "" {
			r.Figures = slices.Insert(r.Figures, min(2, len(r.Figures)), shared)
		}
		r.Means = "It counts interrupts by kind; how much time they took, and from whom, it does not say."
		if share >= oneCPU && cpus >= 4 {
			r.State = attach.CannotTell
			r.Signs = []attach.Sign{{Cause: "softirq", Grade: attach.Risk, Proof: []string{shared}}}
			r.Means = "One CPU takes the interrupts of all of these devices, and with them the work on their packets or blocks: if it is full, they wait while the other CPUs idle. That it is full, it does not say."
		}
		r.Not = "how often it happens now, nor that time was lost: these are counters since boot"
		if r.Boot && slices.ContainsFunc(rows, func(w tableRow) bool { return w.top >= wrapsAt/4 }) {
			r.Not += ", of 32 bits each, which start again at 4.3 billion"
		}
		if !r.Boot {
			r.Not = "that time was lost: a high rate alone is none"
		}
		r.Next = []attach.Next{{Command: "grep '^cpu ' /proc/stat; sleep 10; grep '^cpu ' /proc/stat", Why: "the share of time in interrupts and softirqs"}}
		if len(r.Signs) > 0 {
			r.Next = []attach.Next{{Command: "mpstat -P ALL 1 5", Why: "%soft and %idle of that CPU: whether it is full"}}
		}
		return r
	},
}

// evenly is how much more than the mean of all CPUs one may have where work is even over them.
const evenly = 1.5

// spread says which share the busiest CPU has.
func (w tableRow) spread(cpus int) string {
	if w.top*float64(cpus) <= evenly*w.sum {
		return fmt.Sprintf(", even over the CPUs (%s at most, on CPU %d)", percent(w.top/w.sum), w.cpu)
	}
	return fmt.Sprintf(", %s of them on CPU %d", percent(w.top/w.sum), w.cpu)
}

// wrapsAt is where the kernel's counters of interrupts start again: they have 32 bits.
const wrapsAt = 1 << 32

// tableGrowth subtracts the first sample from the last.
func tableGrowth(all []sample, last []tableRow) (out []tableRow, ok bool) {
	first, _ := tableRows(all[0].lines)
	for _, w := range last {
		i := slices.IndexFunc(first, func(f tableRow) bool { return f.name == w.name })
		if i < 0 {
			continue
		}
		w.sum -= first[i].sum
		w.top = min(w.top, w.sum)
		if w.sum < 0 {
			return nil, false
		}
		out = append(out, w)
	}
	return out, len(out) > 0
}

var slabLine = pattern.New(`^(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) : tunables +\d+ +\d+ +\d+ : slabdata +(\d+) +(\d+) +\d+`)

var slabinfo = contextKind("/proc/slabinfo", []string{"slabinfo", "# name", ": tunables"}, func(lines []paste.Line) int {
	return run(lines, func(t string) bool {
		return slabLine.MatchString(t) || strings.HasPrefix(t, "slabinfo - version") || strings.HasPrefix(t, "# name") && strings.Contains(t, "<active_objs>")
	})
}, func(lines []string) (figures []string, means string) {
	type slab struct {
		name  string
		bytes float64
		objs  float64
	}
	var all []slab
	var total float64
	for _, t := range lines {
		if m := slabLine.FindStringSubmatch(t); m != nil {
			pages := float(m[6])
			slabs := float(m[8])
			objs := float(m[2])
			all = append(all, slab{m[1], pages * slabs * pageSize, objs})
			total += pages * slabs * pageSize
		}
	}
	slices.SortStableFunc(all, func(a, b slab) int { return cmp.Compare(b.bytes, a.bytes) })
	figures = append(figures, fmt.Sprintf("%s in %s", mem(total), plural(len(all), "cache", "caches")))
	for _, s := range all[:min(3, len(all))] {
		figures = append(figures, fmt.Sprintf("%s: %s, %s objects in use", printed(s.name), mem(s.bytes), number(s.objs)))
	}
	if len(all) > 0 && all[0].bytes >= 1<<30 && all[0].bytes >= total/2 && strings.HasPrefix(all[0].name, "kmalloc-") && !strings.Contains(all[0].name, "-rcl-") {
		return figures, fmt.Sprintf("Most of it is in %s, which the kernel cannot take back: a leak of a driver looks like this. That it grows, a second reading shows.", printed(all[0].name))
	}
	return figures, "It says what the kernel keeps objects in; memory in slabs is no lost time. How much of it can be given back is in /proc/meminfo (SReclaimable)."
})

// zoneinfo starts a zone as buddyinfo does, but has nothing else in that line.
var zoneHead = pattern.New(`^Node (\d+), zone +(\w+)$`)

var zoneinfo = &attach.Kind{
	Name: "/proc/zoneinfo", Hints: []string{"zone", "pages free"},
	Claim: func(lines []paste.Line) int {
		first := strings.TrimSpace(lines[0].Text)
		if !zoneHead.MatchString(first) && !strings.HasPrefix(first, "pages free ") {
			return 0
		}
		n := run(lines, func(t string) bool {
			name, _, _ := strings.Cut(t, " ")
			switch strings.TrimSuffix(name, ":") {
			case "per-node", "pages", "min", "low", "high", "spanned", "present", "managed", "cma", "boost", "protection", "pagesets", "cpu", "count", "batch", "vm", "node_unreclaimable", "start_pfn", "inactive_ratio", "all_unreclaimable", "prev_priority", "scanned", "promo", "free", "high_min", "high_max", "avg_age_inactive_anon", "avg_age_active_anon", "avg_age_inactive_file", "avg_age_active_file", "unaccepted", "free_cma", "kswapd_failures", "classzone_idx", "temp_priority", "high_wmark", "reclaimable":
				return true
			}
			return t == "--" || zoneHead.MatchString(t) || strings.HasPrefix(t, "nr_") || strings.HasPrefix(t, "numa_") || strings.HasPrefix(t, "workingset_") || strings.HasPrefix(t, "pg") || strings.HasPrefix(t, "free ")
		})
		for n > 0 && strings.TrimSpace(lines[n-1].Text) == "--" { // of grep -A
			n--
		}
		if n < 3 {
			return 0
		}
		return n
	},
	Read: readZoneinfo,
}

func readZoneinfo(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "/proc/zoneinfo", State: attach.Healthy, Glance: true}
	name := "a zone"
	type marks struct{ free, min, low, high, managed float64 }
	nodes := map[string]*marks{} // an allocation may fall back to another zone of its node
	zones := map[string]*marks{}
	var order []string
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		if m := zoneHead.FindStringSubmatch(t); m != nil {
			name = "node " + m[1] + " " + m[2]
			continue
		}
		t, _, _ = strings.Cut(t, "#") // a person's remark
		f := strings.Fields(strings.TrimPrefix(t, "pages "))
		if len(f) != 2 {
			continue
		}
		v, err := strconv.ParseFloat(f[1], 64)
		if err != nil {
			continue
		}
		z := zones[name]
		if z == nil {
			z = &marks{}
			zones[name] = z
			order = append(order, name)
		}
		switch v *= pageSize; f[0] {
		case "free":
			z.free = v
		case "min":
			z.min = v
		case "low":
			z.low = v
		case "high":
			z.high = v
		case "managed":
			z.managed = v
		}
	}
	var short []string
	for _, n := range order {
		z := zones[n]
		if z.managed < zoneLeast && len(order) > 1 || z.high == 0 {
			continue
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s free; watermarks min %s, low %s, high %s", n, mem(z.free), mem(z.min), mem(z.low), mem(z.high)))
		node, _, _ := strings.Cut(strings.TrimPrefix(n, "node "), " ")
		if nodes[node] == nil {
			nodes[node] = &marks{}
		}
		nodes[node].free += z.free
		nodes[node].low += z.low
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		if z := nodes[node]; z.free < z.low {
			short = append(short, node)
		}
	}
	r.Means = "Free memory is above the low watermarks: a zone that is below borrows from another of its node."
	r.Not = "what happened before: a zone can run empty and be refilled at once"
	if len(r.Figures) == 0 {
		r.State, r.Means, r.Not = attach.Context, "It names zones, and their free pages and watermarks are not in the paste.", ""
	}
	if len(short) > 0 {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Node %s is below its low watermarks: kswapd frees memory, and below min threads do it themselves.", strings.Join(short, ", "))
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk, Proof: r.Figures[:1]}}
		r.Next = []attach.Next{{Command: "grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free memory themselves now"}}
	}
	return r
}

// typeCut is a row that ends before its counts, and what a book's page puts between tables.
var typeCut = pattern.New(`^Node +\d+, zone +\w+, type *\w*$`)

var typeLine = pattern.New(`^Node +(\d+), zone +(\w+), type +(\w+)((?: +>?\d+)+)$`)

var pagetypeinfo = &attach.Kind{
	Name: "/proc/pagetypeinfo", Hints: []string{"Page block order", "Pages per block", "Free pages count per migrate type", "Number of blocks type", ", type "},
	Claim: func(lines []paste.Line) int {
		table := func(t string) bool {
			return typeLine.MatchString(t) || strings.HasPrefix(t, "Free pages count per") || strings.HasPrefix(t, "Number of blocks type") || typeCut.MatchString(t)
		}
		sure := false
		n := run(lines, func(t string) bool {
			sure = sure || table(t)
			return typeLine.MatchString(t) || typeCut.MatchString(t) || strings.HasPrefix(t, "Page block order:") || strings.HasPrefix(t, "Pages per block:") || strings.HasPrefix(t, "Free pages count per migrate type") ||
				strings.HasPrefix(t, "Number of blocks type") || strings.HasPrefix(t, "Number of mixed blocks") || zoneCounts.MatchString(t)
		})
		if !sure && n < 2 {
			return 0 // a sentence that quotes one
		}
		return n
	},
	Read: readPageTypes,
}

// zoneCounts is a line of the second table: how many blocks there are of each type.
var zoneCounts = pattern.New(`^Node +\d+, zone +\w+(?: +\d+){2,9}$`)

func readPageTypes(p *attach.Part) attach.Reading {
	zones, cut := typeZones(p.Lines)
	r := attach.Reading{Title: "/proc/pagetypeinfo", State: attach.CannotTell, Glance: true, Means: "No free list is in this part, only the kinds of blocks."}
	if len(zones) > 0 {
		r = judgeZones(zones)
		r.Title, r.Glance = fmt.Sprintf("/proc/pagetypeinfo, free memory of %s by size of block, all types of pages together", plural(len(zones), "zone", "zones")), true
	} else if len(cut) > 0 {
		r.Means = "The free lists are cut off: no zone is whole."
	}
	for _, z := range cut {
		r.Flaws = append(r.Flaws, fmt.Sprintf("%s: its rows are cut off", z))
	}
	return r
}

// typeZones sums the free blocks of each zone over the types of pages. A zone with fewer types than
// others, or a row with fewer orders, is where the paste was cut: it is returned as cut.
func typeZones(lines []paste.Line) (zones []zone, cut []string) {
	type rows struct {
		zone
		types int
	}
	byZone := map[string]*rows{}
	var order []string
	types, orders := 0, 0
	for _, l := range lines {
		m := typeLine.FindStringSubmatch(strings.TrimSpace(l.Text))
		if m == nil {
			if head, ok := strings.CutPrefix(strings.TrimSpace(l.Text), "Free pages count per migrate type at order"); ok {
				orders = max(orders, len(strings.Fields(head)))
			}
			continue
		}
		key := m[1] + " " + m[2]
		z := byZone[key]
		if z == nil {
			z = &rows{zone: zone{node: m[1], name: m[2]}}
			byZone[key] = z
			order = append(order, key)
		}
		counts := strings.Fields(m[4])
		if orders = max(orders, min(len(counts), 24)); len(counts) < orders {
			continue
		}
		z.types++
		types = max(types, z.types)
		z.blocks = append(z.blocks, make([]float64, orders-len(z.blocks))...)
		for i, w := range counts[:orders] {
			n := float(strings.TrimPrefix(w, ">"))
			z.blocks[i] += n
		}
	}
	for _, k := range order {
		if z := byZone[k]; z.types == types && types > 0 {
			zones = append(zones, z.zone)
		} else {
			cut = append(cut, z.String())
		}
	}
	return zones, cut
}
