package systool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var numastat = &attach.Kind{
	Name: "numastat",
	Hints: []string{"node", "Node", "numa_", "Numa_", "Token ", "PID ", "nterleave_",
		"----------------  ---------------"},
	Claim: claimNumastat,
	Read:  readNumastat,
}

// numaRows are the counters of numastat, in lower case.
var numaRows = []string{"numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"}

func numaNodes(f []string) bool {
	nodes := 0
	for i, w := range f {
		switch {
		case strings.HasPrefix(w, "node") && len(w) > 4 && w[4] >= '0' && w[4] <= '9':
			nodes++
		case w == "Node" && i+1 < len(f):
			if _, ok := whole(f[i+1]); ok {
				nodes++
			}
		case w == "Total", w == "PID":
		default:
			if _, ok := whole(w); !ok {
				return false
			}
		}
	}
	return nodes > 0
}

func numaTitle(text string) bool {
	return strings.HasPrefix(text, "Per-node ") || strings.HasPrefix(text, "Token ") &&
		strings.HasSuffix(text, "not in hash table.") ||
		strings.HasPrefix(text, "PID ") && len(text) < 20
}

func claimNumastat(lines []paste.Line) int {
	headed := false
	return attach.ClaimWhile(lines, func(at int, text string) bool {
		text = strings.TrimSpace(text)
		f := fields(text)
		switch {
		case len(f) == 0:
			return false
		case numaTitle(text), numaNodes(f):
			next, ok := following(lines, at+1)
			if at == 0 && ok {
				n := fields(next.Text)
				if !(numaTitle(strings.TrimSpace(next.Text)) || numaNodes(n) ||
					strings.HasPrefix(next.Text, " ---") || strings.HasPrefix(strings.TrimSpace(next.Text), "---") ||
					len(n) > 1 && slices.Contains(numaRows, strings.ToLower(n[0]))) {
					return false
				}
			}
			headed = true
			return ok || at > 0
		case strings.Trim(text, "- ") == "":
			headed = headed || at == 0 && tailOfProcess(lines, len(f))
			return headed
		case slices.Contains(numaRows, strings.ToLower(f[0])) && numeric(f[1:]) && (headed && len(f) > 1 || len(f) > 2):
			headed = true // /proc/vmstat has these names with one figure, and no line of nodes
			return true
		}
		last := 0
		for last < len(f) && !numeric(f[len(f)-last-1:len(f)-last]) {
			last++
		}
		return headed && last == 0 && len(f) >= 2 && len(f) <= 64
	})
}

// tailOfProcess knows the end of numastat -p, whose start was cut off: a rule of as many strokes as
// its row of totals has cells.
func tailOfProcess(lines []paste.Line, strokes int) bool {
	next, ok := following(lines, 1)
	if !ok || strokes < 3 {
		return false
	}
	f := fields(next.Text)
	return len(f) == strokes && f[0] == "Total" && numeric(f[1:])
}

func readNumastat(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "numastat"
	counters := map[string]float64{}
	rows := map[string][]float64{}
	nodes := 0
	for _, l := range p.Lines {
		f := fields(l.Text)
		if len(f) < 2 {
			continue
		}
		if numaNodes(f) {
			nodes = max(nodes, strings.Count(strings.ToLower(l.Text), "node"))
			continue
		}
		var values []float64
		for _, c := range f[1:] {
			if n, ok := number(c); ok {
				values = append(values, n)
			}
		}
		name := strings.ToLower(f[0])
		if slices.Contains(numaRows, name) {
			if len(values) > nodes && nodes > 0 {
				values = values[:nodes] // the total stands behind
			}
			counters[name] += attach.Sum(values)
		}
		rows[f[0]] = values
	}
	switch {
	case len(counters) > 0:
		numaCounters(v, counters, nodes)
	case rows["MemTotal"] != nil:
		numaMemory(v, rows, nodes)
	default:
		numaProcess(v, rows, nodes, p)
	}
	return v.done()
}

// numaCounters: they count since boot, so their share says where memory came from in all that time.
func numaCounters(v *verdict, c map[string]float64, nodes int) {
	v.Boot = true
	all := c["local_node"] + c["other_node"]
	share := 0.0
	if all > 0 {
		share = c["other_node"] / all
	}
	missed := c["numa_miss"] / max(1, c["numa_hit"]+c["numa_miss"])
	v.fact(OtherNodeShare, share)
	v.figure("%s %% of the pages were allocated on another node than the one that asked (since boot)", plain(100*share))
	v.figure("%s %% were not on the node that was wanted (numa_miss)", plain(100*missed))
	v.figure("%s", attach.Plural(max(1, nodes), "NUMA node"))
	v.not("these count allocations since boot: they say neither what happens now nor where threads reach to afterwards")
	if nodes <= 1 {
		v.means("there is one NUMA node: no memory is remote")
		return
	}
	if share < 0.05 && missed < 0.05 {
		v.means("nearly all memory was taken from the node that asked")
		return
	}
	v.unsure = true
	v.means("%s %% of the pages since boot came from another node: whether that costs is not in it", plain(100*share))
	v.next("numastat -p PID", "on which nodes the service's memory lies")
	v.next("grep -E 'numa_(hint_faults|pages_migrated|pte_updates)' /proc/vmstat; sleep 10; grep -E 'numa_(hint_faults|pages_migrated|pte_updates)' /proc/vmstat", "whether the kernel moves pages now")
}

func numaMemory(v *verdict, rows map[string][]float64, nodes int) {
	v.Title = "numastat -m"
	v.Glance = true
	total, free := rows["MemTotal"], rows["MemFree"]
	least, most := 1.0, 0.0
	for i := 0; i < min(max(1, nodes), len(total), len(free), 256); i++ {
		if total[i] <= 0 {
			continue
		}
		share := free[i] / total[i]
		least, most = min(least, share), max(most, share)
		if i < 2 {
			v.figure("node %d: %s MiB free of %s MiB (%s %%)", i, plain(free[i]), plain(total[i]), plain(100*share))
		}
	}
	if cache := rows["FilePages"]; len(cache) > 0 {
		v.figure("page cache %s MiB in all", plain(cache[len(cache)-1]))
	}
	gap := numaGap(rows)
	if nodes > 1 && least < 0.02 && most > 0.10 {
		v.risk("direct-reclaim", fmt.Sprintf("one node has %s %% of its memory free, another %s %%",
			plain(100*least), plain(100*most)))
		v.means("memory is uneven: a thread that may only use the full node has to free memory first")
		v.next("sysctl vm.zone_reclaim_mode; grep -E 'allocstall|zone_reclaim' /proc/vmstat",
			"whether allocations reclaim although another node has memory")
		return
	}
	if i := scarceNode(rows, nodes); i >= 0 {
		v.unsure = true
		v.means("node %d has little memory left, and little page cache to give up: whether threads have to free memory first is not in it", i)
		v.next("sar -B 1 10", "pgscand/s: whether threads free memory themselves")
	}
	v.means("no node is out of memory%s", gap)
	v.not("little free memory on a node is no shortage while it holds page cache")
}

// scarceNode is the first node whose free memory and page cache are short; -1: none.
func scarceNode(rows map[string][]float64, nodes int) int {
	total, free, cache := rows["MemTotal"], rows["MemFree"], rows["FilePages"]
	for i := range min(max(1, nodes), len(total), len(free), len(cache)) {
		if total[i] > 0 && free[i]+cache[i] < memoryShort*total[i] {
			return i
		}
	}
	return -1
}

// numaGap says how much is used by neither page cache nor programs: huge pages that were set aside,
// slabs, or what a driver holds.
func numaGap(rows map[string][]float64) string {
	last := func(name string) float64 {
		if r := rows[name]; len(r) > 0 {
			return r[len(r)-1]
		}
		return 0
	}
	used, known := last("MemUsed"), last("FilePages")+last("AnonPages")+last("Slab")+
		last("PageTables")+last("KernelStack")
	if rows["AnonPages"] == nil || rows["FilePages"] == nil || known <= 0 || used-known < 0.25*used {
		return ""
	}
	text := fmt.Sprintf("; %s of %s MiB used are neither page cache nor a program's: ", plain(used-known), plain(used))
	if huge := last("HugePages_Total"); huge > 0 {
		return fmt.Sprintf("%s%s MiB are huge pages set aside", text, plain(huge))
	}
	return text + "huge pages that were set aside, or what a driver holds"
}

// lone is the row of the only process in numastat -c, which prints no sum below it.
func lone(v *verdict, rows map[string][]float64) (total []float64) {
	n := 0
	for name, values := range rows {
		if pid, ok := whole(name); ok {
			n++
			v.Who.PID, total = pid, values
		}
	}
	if n != 1 {
		v.Who.PID, total = 0, nil
	}
	return total
}

// nodeSome is the share of a process' memory from which on it lies on a node as well.
const nodeSome = 0.02

func numaProcess(v *verdict, rows map[string][]float64, nodes int, p *attach.Part) {
	v.Title = "numastat -p"
	v.Glance = true
	total := rows["Total"]
	if total == nil {
		total = lone(v, rows)
	}
	if nodes == 0 && len(total) > 1 {
		nodes = len(total) - 1 // the names were cut off; the sum stands behind
	}
	if len(total) == 0 || nodes == 0 {
		v.unsure = true
		v.means("the total is not in it")
		return
	}
	for _, l := range p.Lines {
		if _, after, ok := strings.Cut(l.Text, "for PID "); ok {
			f := fields(after)
			if len(f) > 0 {
				v.Who.PID, _ = whole(f[0])
			}
			if len(f) > 1 {
				v.Who.Name = strings.Trim(f[1], "()")
			}
		}
	}
	all := total[len(total)-1]
	var order []int
	for i := range min(nodes, len(total), 256) {
		order = append(order, i)
	}
	if len(order) > 3 { // those with most first
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(total[b], total[a]) })
	}
	for _, i := range order[:min(3, len(order))] {
		v.figure("node %d: %s MiB (%s %%)", i, plain(total[i]), plain(100*total[i]/max(all, 1e-9)))
	}
	if nodes == 1 {
		v.means("there is one NUMA node: no memory is remote")
		return
	}
	v.unsure = true
	held, most := 0, 0
	for i, mib := range total[:min(nodes, len(total))] {
		if mib >= nodeSome*all {
			held++
		}
		if mib > total[most] {
			most = i
		}
	}
	if held == 1 {
		v.means("nearly all of the memory lies on node %d: whether its threads run there is not in it", most)
	}
	v.means("the memory lies on %d nodes: whether threads reach across is not in it", held)
	v.not("memory on several nodes is no fault: it depends on where the threads run")
	v.next("ps -L -o tid,psr,comm -p PID", "on which CPUs, and so nodes, its threads run")
}
