package kernelfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// sums24 are the names above the sums with which /proc/meminfo started up to Linux 2.4. The sums
// are in bytes, and the lines below them in kB.
var sums24 = []string{"total:", "used:", "free:", "shared:", "buffers:", "cached:"}

// meminfo24 counts the lines of these sums at the start. Where their names were cut off, the lines
// below must say the same of all memory: free prints such rows as well, in other units.
func meminfo24(lines []paste.Line) int {
	n, named := 0, false
	if slices.Equal(strings.Fields(lines[0].Text), sums24) {
		n, named = 1, true
	}
	if n >= len(lines) {
		return 0
	}
	total, ok := sum24(lines[n].Text, "Mem:", 6)
	if !ok {
		return 0
	}
	if n++; n < len(lines) {
		if _, ok := sum24(lines[n].Text, "Swap:", 3); ok {
			n++
		}
	}
	if n < len(lines) && !named {
		name, v, ok := pair(lines[n].Text)
		named = ok && name == "MemTotal" && v == total
	}
	if !named {
		return 0
	}
	return n
}

// sum24 reads such a row, and gives its first sum.
func sum24(text, label string, sums int) (total float64, ok bool) {
	f := strings.Fields(text)
	if len(f) != sums+1 || f[0] != label || slices.ContainsFunc(f[1:], func(s string) bool { return !isDigits(s) }) {
		return 0, false
	}
	total, err := strconv.ParseFloat(f[1], 64)
	return total, err == nil
}

// pairs24 writes the sums as lines of later versions; none, where those are in the paste as well.
func pairs24(lines []paste.Line) (out []paste.Line) {
	n := 0
	if len(lines) > 0 {
		n = meminfo24(lines)
	}
	if n == 0 || slices.ContainsFunc(lines[n:],
		func(l paste.Line) bool { return strings.HasPrefix(strings.TrimSpace(l.Text), "MemTotal:") }) {
		return lines[n:]
	}
	for _, l := range lines[:n] {
		names := map[string][]string{"Mem:": {"MemTotal", "", "MemFree", "", "Buffers", "Cached"},
			"Swap:": {"SwapTotal", "", "SwapFree"}}
		f := strings.Fields(l.Text)
		for i, name := range names[f[0]] {
			if v, err := strconv.ParseFloat(f[i+1], 64); err == nil && name != "" {
				one := l
				one.Text = fmt.Sprintf("%s: %.3f kB", name, v/1024)
				out = append(out, one)
			}
		}
	}
	return append(out, lines[n:]...)
}

// nodesOf are the NUMA nodes whose files a part has, in order.
func nodesOf(lines []paste.Line) (nodes []string) {
	for _, l := range lines {
		f := strings.Fields(l.Text)
		if withoutNode(l.Text) != l.Text && len(f) > 1 && !slices.Contains(nodes, f[1]) {
			nodes = append(nodes, f[1])
		}
	}
	return nodes
}

// readNodes reads the files of several nodes, which are no readings of one.
func readNodes(lines []paste.Line, nodes []string) attach.Reading {
	r := attach.Reading{Title: fmt.Sprintf("meminfo of %d NUMA nodes", len(nodes)), State: attach.CannotTell, Glance: true}
	for _, n := range nodes {
		var own []string
		for _, l := range lines {
			if f := strings.Fields(l.Text); len(f) > 1 && f[0] == "Node" && f[1] == n {
				own = append(own, withoutNode(l.Text))
			}
		}
		m := parsePairs(own)
		text := "node " + n
		for i, said := range []string{freeAndCache(m), anonText(m)} {
			if said != "" {
				text += map[bool]string{true: ": ", false: ", "}[i == 0 || !strings.Contains(text, ":")] + said
			}
		}
		if m.has("MemTotal") {
			text += ", of " + mem(m.get("MemTotal"))
		}
		r.Figures = append(r.Figures, text)
	}
	r.Means = "It says what each node's memory holds: a node that has little free gives page cache back, or its tasks get memory of another node."
	r.Not = "that a node with little free memory is short: page cache fills it by design"
	r.Next = []attach.Next{{Command: "numastat -m; grep -E 'numa_(miss|foreign)|zone_reclaim' /proc/vmstat", Why: "whether tasks get memory of other nodes"}}
	return r
}

// anonText says how much anonymous memory there is; "": it is not in the paste.
func anonText(m pairs) string {
	if !m.has("AnonPages") {
		return ""
	}
	return mem(m.get("AnonPages")) + " anonymous"
}
