package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// Facts about the page allocator's free lists, each of a zone such as "node 0 Normal".
const (
	FactBuddyFree attach.FactName = "/host/buddy/free:bytes"
	FactBuddyHuge attach.FactName = "/host/buddy/huge:bytes" // in blocks of 2 MiB or more
)

var buddyinfo = &attach.Kind{
	Name: "buddyinfo", Hints: []string{"zone", ":", "Node "},
	Claim: starting("N", 300, repeated(func(lines []paste.Line) int {
		first := lines[0].Text
		if dumpHeader(first) && len(lines) > 1 {
			first = lines[1].Text
		}
		if _, ok := parseZone(first); !ok && (cutZone(first) == "" || len(lines) < 2 || !goesOnZone(first, lines[1].Text)) {
			return 0
		}
		before := ""
		return run(lines, func(text string) bool {
			if goesOnZone(before, text) {
				before += " " + text
				return true
			}
			before = text
			return zoneOf(text) != "" || dumpHeader(text)
		})
	})),
	Read: readBuddy,
}

// zone is the free blocks of one zone by order; a block has 2^order pages of 4 KiB, as on nearly
// every machine: the file does not say.
type zone struct {
	node, name string
	blocks     []float64
	page       float64 // bytes of a page, where the text says it; 0: it does not
	cma        float64 // bytes free beside the blocks, which only pages that can be moved may have
}

const (
	pageSize  = 4096
	hugeBlock = 2 << 20
	ordersMin = 10
)

func (z zone) String() string { return "node " + z.node + " " + z.name }

// free is the bytes in blocks of at least this order.
func (z zone) free(order int) (bytes float64) {
	for o := order; o < len(z.blocks); o++ {
		bytes += z.blocks[o] * z.block(o)
	}
	return bytes
}

// block is the bytes of a block of an order.
func (z zone) block(order int) float64 { return cmp.Or(z.page, pageSize) * float64(int64(1)<<order) }

// over is the bytes in blocks of at least so many bytes.
func (z zone) over(least float64) (bytes float64) {
	for o, n := range z.blocks {
		if z.block(o) >= least {
			bytes += n * z.block(o)
		}
	}
	return bytes
}

// largest is the order of the largest free block; -1: nothing is free.
func (z zone) largest() int {
	for o := len(z.blocks) - 1; o >= 0; o-- {
		if z.blocks[o] > 0 {
			return o
		}
	}
	return -1
}

// dumpHeader is the line of names that tools which read a dump of the kernel put above its zones.
func dumpHeader(line string) bool {
	return strings.HasPrefix(strings.Join(strings.Fields(line), " "), "Node ID Zone Order 0 1 2 ")
}

// zoneFields are the words of a zone's row as the kernel prints them. Tools that read a dump leave
// the word zone out.
func zoneFields(line string) []string {
	f := strings.Fields(line)
	if len(f) > 2 && len(f) < 4+20 && f[0] == "Node" && isDigits(f[1]) && zoneNames(f[2]) {
		f = slices.Insert(f, 2, "zone")
	}
	return f
}

var zoneNames = oneOf("DMA DMA32 Normal HighMem Movable Device")

// parseZone reads "Node 0, zone   Normal  0 22 8 10 ...", with a number for each order.
func parseZone(line string) (z zone, ok bool) {
	f := zoneFields(line)
	if len(f) < 4+ordersMin || len(f) > 4+20 || f[0] != "Node" || f[2] != "zone" {
		return z, false
	}
	z.node, z.name = strings.TrimSuffix(f[1], ","), f[3]
	for _, text := range f[4:] {
		n, err := strconv.ParseUint(text, 10, 40)
		if err != nil {
			return z, false
		}
		z.blocks = append(z.blocks, float64(n))
	}
	return z, isDigits(z.node)
}

// cutZone is the zone of a line whose larger blocks are cut off; "": it is none.
func cutZone(line string) string {
	f := zoneFields(line)
	if len(f) < 4 || len(f) >= 4+ordersMin || f[0] != "Node" || f[2] != "zone" ||
		!isDigits(strings.TrimSuffix(f[1], ",")) {
		return ""
	}
	for _, text := range f[4:] {
		if !isDigits(text) {
			return ""
		}
	}
	return zone{node: strings.TrimSuffix(f[1], ","), name: f[3]}.String()
}

// goesOnZone reports whether a line is the rest of a zone's row that a mail wrapped.
func goesOnZone(row, text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && strings.Trim(text, "0123456789 ") == "" && cutZone(row) != "" && zoneOf(row+" "+text) != ""
}

// wholeRows puts rows together that a mail wrapped.
func wholeRows(lines []string) (out []string) {
	for _, l := range lines {
		if n := len(out) - 1; n >= 0 && goesOnZone(out[n], l) {
			out[n] += " " + strings.TrimSpace(l)
			continue
		}
		out = append(out, l)
	}
	return out
}

// zoneOf is the zone of a line, whole or cut off; "": it is of none.
func zoneOf(line string) string {
	if z, ok := parseZone(line); ok {
		return z.String()
	}
	return cutZone(line)
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func readBuddy(p *attach.Part) attach.Reading {
	seen := map[string]bool{}
	all := samples(p, func(sofar []string, line string) bool {
		if len(sofar) == 1 {
			clear(seen)
			seen[zoneOf(sofar[0])] = true
		}
		name := zoneOf(line)
		again := name != "" && seen[name]
		seen[name] = true
		return again
	})
	var zones []zone
	last := wholeRows(all[len(all)-1].lines)
	for _, line := range last {
		if z, ok := parseZone(line); ok {
			zones = append(zones, z)
		}
	}
	r := judgeZones(zones)
	r.Title = fmt.Sprintf("/proc/buddyinfo, free memory of %s by size of block, at pages of 4 KiB", plural(len(zones), "zone", "zones"))
	if len(all) > 1 {
		r.Title += fmt.Sprintf(", the last of %d samples", len(all))
	}
	r.Time, r.Glance = all[0].at, true
	for _, line := range last {
		if name := cutZone(line); name != "" {
			r.Flaws = append(r.Flaws, fmt.Sprintf("zone %s is cut off before its larger blocks", name))
			if r.State == attach.Healthy {
				r.State, r.Means = attach.CannotTell,
					fmt.Sprintf("What is shown has large blocks; %s is cut off, and its larger blocks with it.", name)
			}
		}
	}
	return r
}

// What counts as fragmented. A zone with little free says nothing: page cache fills memory by
// design. A twentieth in large blocks serves some huge pages and then no more.
const (
	zoneLeast = 64 << 20
	hugeLeast = 0.05
)

// old reports whether a zone is the 16 MiB that x86 keeps for old devices. Elsewhere a zone of that
// name may be most of memory.
func (z zone) old() bool { return z.name == "DMA" && z.free(0) <= 16<<20 }

// judgeZones says what the free lists can serve. The zone for old devices is left out.
func judgeZones(zones []zone) (r attach.Reading) {
	var free, huge, pieces, cma, highFree, highHuge float64
	var small []zone // with memory, and next to none of it in large blocks
	for _, z := range zones {
		r.Facts = append(r.Facts, attach.Fact{Name: FactBuddyFree, Value: z.free(0), Of: z.String()},
			attach.Fact{Name: FactBuddyHuge, Value: z.over(hugeBlock), Of: z.String()})
		if z.old() && len(zones) > 1 {
			continue
		}
		r.Figures = append(r.Figures, zoneText(z))
		free += z.free(0)
		huge += z.over(hugeBlock)
		pieces += z.over(costly)
		cma += z.cma
		if z.name == "HighMem" {
			highFree, highHuge = highFree+z.free(0), highHuge+z.over(hugeBlock)
		}
		if z.free(0) >= zoneLeast && z.over(hugeBlock) < hugeLeast*z.free(0) {
			small = append(small, z)
		}
	}
	// An allocation falls back to another zone: a small zone without large blocks is no matter
	// while most of what is free is in large blocks.
	broken := slices.DeleteFunc(small, func(z zone) bool { return huge >= 0.5*free && z.free(0) < 1<<30 })
	coarse := free < coarseMost && pieces >= 0.5*free
	r.Not = "whether anybody waited: free lists are one moment, and allocstall and compact_stall of /proc/vmstat, read twice, tell"
	r.Next = []attach.Next{{Command: "grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free or move memory themselves now"}}
	switch {
	case coarse && free >= zoneLeast && huge < hugeLeast*free:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("%s is free, most of it in blocks of 32 KiB or more, and %s in blocks of 2 MiB or more: larger pieces are there, and hardly a huge page.", mem(free), mem(huge))
	case len(broken) > 0:
		worst := broken[0]
		for _, z := range broken {
			if z.free(0) > worst.free(0) {
				worst = z
			}
		}
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Zone %s is fragmented: %s of its free memory cannot serve a huge page%s.", worst, nearly(1-ratio(worst.over(hugeBlock), worst.free(0))), elsewhere(zones, worst))
		r.Figures = append([]string{zoneText(worst)}, without(r.Figures, zoneText(worst))...)
		if !served(zones, worst) {
			r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk,
				Share: 1 - ratio(worst.over(hugeBlock), worst.free(0)), Proof: []string{zoneText(worst)}}}
		} else {
			r.Means += " Other zones of the node have blocks of 2 MiB or more: they are scarce, and not gone."
		}
	case free < zoneLeast:
		r.State = attach.CannotTell
		aside := ""
		if cma > 0 {
			aside = fmt.Sprintf(" beside %s of CMA, which only pages that can be moved may have", mem(cma))
		}
		of := "the zones listed"
		if len(r.Figures) < len(zones) {
			of += " but DMA, which on x86 is for old devices"
		}
		r.Means = fmt.Sprintf("Only %s is free in %s%s. That is usual where page cache fills memory, and a shortage where it does not: the watermarks and MemAvailable tell.", mem(free), of, aside)
		if most := largestOf(zones); free > 0 && most <= costly {
			r.Means += fmt.Sprintf(" None of it is in a piece larger than %s: what needs a larger one fails, or waits until memory is freed and moved.", mem(most))
			r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk, Share: 1, Proof: r.Figures[:1]}}
		}
		r.Next = append([]attach.Next{{Command: "grep -E 'MemTotal|MemFree|MemAvailable' /proc/meminfo; sysctl vm.min_free_kbytes", Why: "whether memory is short"}}, r.Next...)
	case huge < hugeLeast*free:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("Each zone has little free (%s in all), next to none of it in blocks of 2 MiB or more: what needs a large piece fails, or waits until memory is moved.", mem(free))
		r.Signs = []attach.Sign{{Cause: "direct-reclaim", Grade: attach.Risk,
			Share: 1 - ratio(huge, free), Proof: r.Figures[:1]}}
	case highHuge > 0: // of a kernel of 32 bits
		r.State = attach.CannotTell
		if low := huge - highHuge; low >= hugeLeast*(free-highFree) && low > 0 {
			r.State = attach.Healthy
		}
		r.Means = fmt.Sprintf("%s free is HighMem, which serves programs and page cache, and no buffer of the kernel's own. Of the other %s, %s is in blocks of 2 MiB or more.", mem(highFree), mem(free-highFree), mem(huge-highHuge))
	default:
		r.State = attach.Healthy
		r.Means = fmt.Sprintf("%s of %s free is in blocks of 2 MiB or more: huge pages and large buffers can be served.", mem(huge), mem(free))
	}
	return r
}

// coarseMost is so little free memory that it may well have no large blocks without being
// fragmented, as long as most of it is in pieces of 32 KiB or more.
const coarseMost = 1 << 30

// costly is the largest piece, in bytes, for which the kernel tries on and on (order 3).
const costly = 32 << 10

// largestOf is the bytes of the largest free block of the zones; the zone DMA is left out.
func largestOf(zones []zone) (most float64) {
	for _, z := range zones {
		if n := z.largest(); n >= 0 && (!z.old() || len(zones) == 1) {
			most = max(most, z.block(n))
		}
	}
	return most
}

// nearly writes a share that must not be rounded to all of it.
func nearly(share float64) string {
	if share > 0.99 && share < 1 {
		return fmt.Sprintf("%.1f %%", min(share*100, 99.9))
	}
	return percent(share)
}

func without(list []string, out string) []string {
	var kept []string
	for _, s := range list {
		if s != out {
			kept = append(kept, s)
		}
	}
	return kept
}

// served reports whether another zone of the node has large blocks for what this one cannot serve.
func served(zones []zone, worst zone) bool {
	var free, huge float64
	for _, z := range zones {
		if z.node == worst.node && !z.old() {
			free, huge = free+z.free(0), huge+z.over(hugeBlock)
		}
	}
	return free < 1<<30 && huge >= hugeLeast*free
}

// elsewhere says which other zone still has large blocks.
func elsewhere(zones []zone, worst zone) string {
	var best zone
	for _, z := range zones {
		if !z.old() && z.String() != worst.String() && z.over(hugeBlock) > best.over(hugeBlock) {
			best = z
		}
	}
	if best.over(hugeBlock) < zoneLeast {
		return ""
	}
	if best.name == worst.name || best.node != worst.node {
		return fmt.Sprintf("; %s still has %s in such blocks, which is another node's memory", best,
			mem(best.over(hugeBlock)))
	}
	return fmt.Sprintf("; %s still has %s in such blocks, which the lowmem reserve may withhold",
		best, mem(best.over(hugeBlock)))
}

func zoneText(z zone) string {
	top := ""
	if n := len(z.blocks) - 1; n >= 10 && z.blocks[n] > 0 {
		top = fmt.Sprintf(", %s of order %d", plural(int(z.blocks[n]), "free block", "free blocks"), n)
	}
	if n := z.largest(); n >= 0 && z.block(n) < hugeBlock {
		top = fmt.Sprintf(", none larger than %s", mem(z.block(n)))
	}
	if z.cma > 0 {
		top += fmt.Sprintf("; beside %s free of CMA, which only pages that can be moved may have", mem(z.cma))
	}
	return fmt.Sprintf("%s: %s free, %s of it in blocks of 2 MiB or more (%s), %s in blocks of 32 KiB or more%s", z, mem(z.free(0)), mem(z.over(hugeBlock)), percent(ratio(z.over(hugeBlock), z.free(0))), mem(z.over(32<<10)), top)
}
