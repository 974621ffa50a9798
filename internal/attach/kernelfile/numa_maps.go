package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var numaMapsLine = pattern.New(`^[0-9a-f]{6,16} (default|local|bind|prefer|prefer_many|interleave|weighted[_ ]interleave)\S*(?: |$)`)

var numaMaps = &attach.Kind{
	Name: "numa_maps", Hints: []string{" default", " bind", " prefer", " interleave", " local", " weighted"},
	Claim: func(lines []paste.Line) int { return run(lines, numaMapsLine.MatchString) },
	Read:  readNUMAMaps,
}

func readNUMAMaps(p *attach.Part) attach.Reading {
	nodes := map[int]float64{}
	policies := map[string]int{}
	var total float64
	mappings := 0
	for _, l := range p.Lines {
		f := strings.Fields(l.Text)
		if len(f) < 2 { // a blank line inside
			continue
		}
		policy, _, _ := strings.Cut(f[1], ":")
		policies[policy]++
		mappings++
		page, pages := 4096.0, map[int]float64{}
		for _, w := range f[2:] {
			key, v, ok := strings.Cut(w, "=")
			n, err := strconv.ParseUint(v, 10, 48)
			switch {
			case w == "huge": // before Linux 3.8 nothing says how large these are: mostly 2 MiB
				page = hugeBlock
			case !ok || err != nil:
			case key == "kernelpagesize_kB":
				page = float64(n) * 1024
			case len(key) > 1 && key[0] == 'N' && isDigits(key[1:]) && len(key) < 6:
				node, _ := strconv.Atoi(key[1:])
				pages[node] += float64(n)
			}
		}
		for node, n := range pages {
			nodes[node] += n * page
			total += n * page
		}
	}
	var ids []int
	for n := range nodes {
		ids = append(ids, n)
	}
	slices.SortFunc(ids, func(a, b int) int { return int(nodes[b]/1024) - int(nodes[a]/1024) })
	r := attach.Reading{Title: fmt.Sprintf("numa_maps, %s",
		plural(mappings, "mapping", "mappings")), State: attach.Healthy, Glance: true}
	r.Who.PID = p.PID
	for _, n := range ids {
		r.Figures = append(r.Figures, fmt.Sprintf("%s on node %d (%s)", mem(nodes[n]), n,
			percent(ratio(nodes[n], total))))
	}
	r.Not = "from which node the memory is used, nor how often"
	switch {
	case len(ids) == 0:
		r.State, r.Means = attach.CannotTell, "None of the mappings listed has a page in memory."
	case len(ids) == 1:
		r.Means = "All memory of the mappings listed is on one NUMA node."
	case ratio(nodes[ids[0]], total) > 0.9:
		r.Means = fmt.Sprintf("Nearly all memory of the mappings listed is on node %d.", ids[0])
	default:
		r.State = attach.CannotTell
		r.Means = "Its memory lies on several NUMA nodes: threads may use memory of another node; whether that costs time it does not say."
		r.Next = []attach.Next{{Command: "grep -E 'numa_(hint_faults|pages_migrated)' /proc/vmstat; sleep 10; grep -E 'numa_(hint_faults|pages_migrated)' /proc/vmstat", Why: "whether the kernel moves pages between nodes now"}}
	}
	return r
}
