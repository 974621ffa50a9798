package kernelfile

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

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
			case "per-node", "pages", "min", "low", "high", "spanned", "present", "managed", "cma",
				"boost", "protection", "pagesets", "cpu", "count", "batch", "vm",
				"node_unreclaimable", "start_pfn", "inactive_ratio", "all_unreclaimable",
				"prev_priority", "scanned", "promo", "free", "high_min", "high_max",
				"avg_age_inactive_anon", "avg_age_active_anon", "avg_age_inactive_file",
				"avg_age_active_file", "unaccepted", "free_cma", "kswapd_failures", "classzone_idx",
				"temp_priority", "high_wmark", "reclaimable":
				return true
			}
			return t == "--" || zoneHead.MatchString(t) || strings.HasPrefix(t, "nr_") ||
				strings.HasPrefix(t, "numa_") || strings.HasPrefix(t, "workingset_") ||
				strings.HasPrefix(t, "pg") || strings.HasPrefix(t, "free ")
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

// marks are what a zone has free, and its watermarks, in bytes.
type marks struct {
	free, min, low, high, managed float64
	has                           map[string]bool // grep -A 4 leaves some out
}

// zoneMarksOf reads all zones, in order; again is how many come again, in a later reading.
func zoneMarksOf(lines []paste.Line) (zones map[string]*marks, order []string, again int) {
	name := "a zone"
	zones = map[string]*marks{}
	for _, l := range lines {
		t := strings.TrimSpace(l.Text)
		if m := zoneHead.FindStringSubmatch(t); m != nil {
			if name = "node " + m[1] + " " + m[2]; zones[name] != nil {
				again++
				zones[name].has = map[string]bool{}
			}
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
			z = &marks{has: map[string]bool{}}
			zones[name] = z
			order = append(order, name)
		}
		to := map[string]*float64{"free": &z.free, "min": &z.min, "low": &z.low, "high": &z.high, "managed": &z.managed}[f[0]]
		if to != nil && !z.has[f[0]] {
			*to, z.has[f[0]] = v*pageSize, true
		}
	}
	return zones, order, again
}

func readZoneinfo(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "/proc/zoneinfo", State: attach.Healthy, Glance: true}
	nodes := map[string]*marks{} // an allocation may fall back to another zone of its node
	zones, order, again := zoneMarksOf(p.Lines)
	if again > 0 {
		r.Title += ", the last reading of several"
	}
	var short []string
	for _, n := range order {
		z := zones[n]
		if z.has["managed"] && z.managed < zoneLeast && len(order) > 1 || z.high == 0 || !z.has["free"] || !z.has["low"] {
			continue
		}
		r.Figures = append(r.Figures, fmt.Sprintf("%s: %s free; watermarks min %s, low %s, high %s, at pages of 4 KiB",
			n, mem(z.free), mem(z.min), mem(z.low), mem(z.high)))
		node, _, _ := strings.Cut(strings.TrimPrefix(n, "node "), " ")
		if nodes[node] == nil {
			nodes[node] = &marks{}
		}
		nodes[node].free += z.free
		nodes[node].low += z.low
		nodes[node].min += z.min
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		if z := nodes[node]; z.free < z.low {
			short = append(short, node)
		}
	}
	r.Means = "Free memory is above the low watermarks: a zone that is below borrows from another of its node."
	r.Not = "what happened before: a zone can run empty and be refilled at once"
	if len(r.Figures) == 0 {
		r.State, r.Means, r.Not = attach.Context,
			"It names zones, and their free pages and watermarks are not in the paste.", ""
	}
	if len(short) > 0 {
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Node %s is below its low watermarks: kswapd frees memory, and below min threads do it themselves.", strings.Join(short, ", "))
		if slices.ContainsFunc(short, func(n string) bool { return nodes[n].free < nodes[n].min }) {
			r.Means = fmt.Sprintf("Node %s is below its min watermarks: threads that want memory have to free it themselves first.", strings.Join(short, ", "))
		}
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk, Proof: r.Figures[:1]}}
		r.Next = []attach.Next{{Command: "grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free memory themselves now"}}
	}
	return r
}

// typeCut is a row that ends before its counts, and what a book's page puts between tables.
var typeCut = pattern.New(`^Node +\d+, zone +\w+, type *\w*$`)

var typeLine = pattern.New(`^Node +(\d+), zone +(\w+), type +(\w+)((?: +>?\d+)+)$`)

var pagetypeinfo = &attach.Kind{
	Name: "/proc/pagetypeinfo", Hints: []string{"Page block order", "Pages per block",
		"Free pages count per migrate type", "Number of blocks type", ", type "},
	Claim: func(lines []paste.Line) int {
		table := func(t string) bool {
			return typeLine.MatchString(t) || strings.HasPrefix(t, "Free pages count per") ||
				strings.HasPrefix(t, "Number of blocks type") || typeCut.MatchString(t)
		}
		sure := false
		n := run(lines, func(t string) bool {
			sure = sure || table(t)
			return typeLine.MatchString(t) || typeCut.MatchString(t) ||
				strings.HasPrefix(t, "Page block order:") ||
				strings.HasPrefix(t, "Pages per block:") || strings.HasPrefix(t, "Free pages count per migrate type") ||
				strings.HasPrefix(t, "Number of blocks type") ||
				strings.HasPrefix(t, "Number of mixed blocks") || zoneCounts.MatchString(t)
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
	r := attach.Reading{Title: "/proc/pagetypeinfo", State: attach.CannotTell, Glance: true,
		Means: "No free list is in this part, only the kinds of blocks."}
	byType := pageTypes(p.Lines)
	switch {
	case len(zones) > 0:
		r = judgeZones(zones)
		r.Title, r.Glance = fmt.Sprintf("/proc/pagetypeinfo, free memory of %s by size and type of block, at pages of 4 KiB", plural(len(zones), "zone", "zones")), true
	case len(cut) > 0:
		r.Means = "The free lists are cut off: no zone is whole."
	}
	r.Figures = slices.Insert(r.Figures, min(1, len(r.Figures)), byType...)
	for _, z := range cut {
		r.Flaws = append(r.Flaws, fmt.Sprintf("%s: its rows are cut off", z))
	}
	return r
}

// pageTypes says how much of each type is free, and how many blocks there are of each, the most
// frequent first: blocks that cannot be moved keep huge pages from being made.
func pageTypes(lines []paste.Line) (out []string) {
	free, blocks := map[string]float64{}, map[string]float64{}
	var names []string
	capped := false
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		if head, ok := strings.CutPrefix(text, "Number of blocks type "); ok {
			names = strings.Fields(head)
		}
		if m := typeLine.FindStringSubmatch(text); m != nil {
			for order, w := range strings.Fields(m[4]) {
				capped = capped || strings.HasPrefix(w, ">")
				free[m[3]] += float(strings.TrimPrefix(w, ">")) * pageSize * float64(int64(1)<<min(order, 30))
			}
		}
		if f := strings.Fields(text); names != nil && zoneCounts.MatchString(text) && len(f) == 4+len(names) {
			for i, w := range f[4:] {
				blocks[names[i]] += float(w)
			}
		}
	}
	if text := sharesOf(free, mem); text != "" {
		if capped {
			text += "; the kernel stopped counting at some, so these are the least"
		}
		out = append(out, "free by type: "+text)
	}
	if text := sharesOf(blocks, number); text != "" {
		out = append(out, "blocks by type: "+text)
	}
	return out
}

// sharesOf writes the largest values of a sum, with their shares; "": all are 0.
func sharesOf(of map[string]float64, write func(float64) string) string {
	all := 0.0
	for _, v := range of {
		all += v
	}
	var said []string
	for _, name := range attach.Largest(of) {
		if of[name] > 0 && len(said) < 4 {
			said = append(said, fmt.Sprintf("%s %s (%s)", printed(name), write(of[name]), percent(of[name]/all)))
		}
	}
	return strings.Join(said, ", ")
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
			if head, ok := strings.CutPrefix(strings.TrimSpace(l.Text),
				"Free pages count per migrate type at order"); ok {
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
