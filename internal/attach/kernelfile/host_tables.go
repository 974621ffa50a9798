package kernelfile

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// perCPU is a table of the kernel with a column for each CPU: interrupts and softirqs.
var (
	cpuHeader = regexp.MustCompile(`^(?:CPU\d+ *)+$`)
	cpuRow    = regexp.MustCompile(`^([\w-]{1,12}):((?: +\d+)+)(?: +(.*))?$`)
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
		when, dt := "since boot", 0.0
		if len(all) > 1 {
			if d, ok := tableGrowth(all, rows); ok {
				rows, r.Boot, when, dt = d, false, "between the samples", span(all)
				r.Title += fmt.Sprintf(", %d samples%s", len(all), over(dt))
			}
		}
		slices.SortStableFunc(rows, func(a, b tableRow) int { return cmp.Compare(b.sum, a.sum) })
		for _, w := range rows[:min(3, len(rows))] {
			text := fmt.Sprintf("%s %s: %s %s", printed(w.name), printed(w.what), number(w.sum), when)
			if dt > 0 {
				text = fmt.Sprintf("%s %s: %s/s", printed(w.name), printed(w.what), number(w.sum/dt))
			}
			if cpus > 1 && w.sum > 0 {
				text += fmt.Sprintf(", %s of them on CPU %d", percent(w.top/w.sum), w.cpu)
			}
			r.Figures = append(r.Figures, strings.ReplaceAll(text, " :", ":"))
		}
		r.Means = "It counts interrupts by kind; how much time they took, and from whom, it does not say."
		r.Not = "how often it happens now, nor that time was lost: these are counters since boot"
		if !r.Boot {
			r.Not = "that time was lost: a high rate alone is none"
		}
		r.Next = []attach.Next{{Command: "grep '^cpu ' /proc/stat; sleep 10; grep '^cpu ' /proc/stat", Why: "the share of time in interrupts and softirqs"}}
		return r
	},
}

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

// softnet has a line for each CPU, of 9 to 15 hexadecimal counters.
var softnetLine = regexp.MustCompile(`^(?:[0-9a-f]{8} ){8,15}[0-9a-f]{8}$`)

var softnet = &attach.Kind{
	Name: "softnet_stat", Claim: starting("0-9a-f", 160, repeated(func(lines []paste.Line) int { return run(lines, softnetLine.MatchString) })),
	Read: func(p *attach.Part) attach.Reading {
		all := samples(p, nil)
		packets, dropped, squeezed := softnetSums(all[len(all)-1].lines)
		cpus := len(all[len(all)-1].lines)
		r := attach.Reading{Title: fmt.Sprintf("softnet_stat, %s", plural(cpus, "CPU", "CPUs")), Boot: true, State: attach.Healthy, Time: all[0].at}
		when := "since boot"
		if len(all) > 1 && len(all[0].lines) == cpus {
			a, b, c := softnetSums(all[0].lines)
			if packets >= a && dropped >= b && squeezed >= c {
				packets, dropped, squeezed, r.Boot, when = packets-a, dropped-b, squeezed-c, false, "between the samples"+over(span(all))
			}
		}
		r.Figures = []string{
			fmt.Sprintf("%s packets dropped because the backlog was full (%s of %s), %s", number(dropped), percent(ratio(dropped, packets)), number(packets), when),
			fmt.Sprintf("%s times the softirq ran out of its budget (time_squeeze)", number(squeezed)),
		}
		if b := softnetBusiest(all[len(all)-1].lines); b != "" {
			r.Figures = append(r.Figures, b)
		}
		r.Means = "Next to no packet was dropped at this point."
		r.Not = "that a run out of budget is harm: the rest goes to ksoftirqd, which is usual on busy hosts"
		switch {
		case ratio(dropped, packets) <= 1e-5:
		case r.Boot:
			r.State = attach.CannotTell
			r.Means = "Since boot packets were dropped before any socket saw them; whether they still are, two readings tell."
			r.Next = []attach.Next{{Command: "date; cat /proc/net/softnet_stat; sleep 10; date; cat /proc/net/softnet_stat", Why: "whether it happens now"}}
		default:
			r.State = attach.CannotTell
			r.Means = "Packets were dropped before any socket saw them: connections wait for them to be sent again."
			r.Signs = []attach.Sign{{Cause: "softirq", Grade: attach.Candidate, Proof: r.Figures[:1]}}
			r.Next = []attach.Next{{Command: "cat /proc/softirqs; sleep 10; cat /proc/softirqs", Why: "which CPU handles the packets"}}
		}
		return r
	},
}

func softnetSums(lines []string) (packets, dropped, squeezed float64) {
	for _, t := range lines {
		f := strings.Fields(t)
		for i, sum := range []*float64{&packets, &dropped, &squeezed} {
			if i < len(f) {
				v, _ := strconv.ParseUint(f[i], 16, 64)
				*sum += float64(v)
			}
		}
	}
	return packets, dropped, squeezed
}

// softnetBusiest says that one CPU took nearly all packets.
func softnetBusiest(lines []string) string {
	all, most, at := 0.0, 0.0, 0
	for i, t := range lines {
		n, _, _ := softnetSums([]string{t})
		if all += n; n > most {
			most, at = n, i
		}
	}
	if len(lines) < 2 || most < 0.8*all {
		return ""
	}
	return fmt.Sprintf("line %d, one CPU, took %s of all packets since boot", at+1, percent(most/all))
}

var slabLine = regexp.MustCompile(`^(\S+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) : tunables +\d+ +\d+ +\d+ : slabdata +(\d+) +(\d+) +\d+`)

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
var zoneHead = regexp.MustCompile(`^Node (\d+), zone +(\w+)$`)

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
var typeCut = regexp.MustCompile(`^Node +\d+, zone +\w+, type *\w*$`)

var typeLine = regexp.MustCompile(`^Node +(\d+), zone +(\w+), type +(\w+)((?: +>?\d+)+)$`)

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
var zoneCounts = regexp.MustCompile(`^Node +\d+, zone +\w+(?: +\d+){2,9}$`)

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
