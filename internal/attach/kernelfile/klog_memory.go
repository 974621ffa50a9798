package kernelfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// memSums is the first and the last lines of a Mem-Info dump: sums over the host, in pages; of swap
// in bytes.
type memSums struct {
	free, anon, file, slab, writeback float64
	cache, ram, swapFree, swap        float64
	head                              bool               // its first line is there
	dumps                             int                // which one of the text's it is
	page                              float64            // bytes; 0: the dump does not say it
	counted                           map[string]float64 // pages, by the names that nodes have as well
	kB                                map[string]float64 // of the nodes
}

var (
	sumFree = pattern.New(`\bfree:(\d+) (?:slab_reclaimable|free_pcp|slab:)`)
	sumItem = pattern.New(`\b((?:in)?active_(?:anon|file)|slab_(?:un)?reclaimable|writeback):(\d+)(?: |$)`)
)

// dumpTail is what ends such a dump.
var dumpTail = pattern.New(`^(?:(\d+) (?:total )?pagecache pages|(\d+) pages (?:of )?RAM|Free swap\s*[=:] *(\d+)kB|Total swap\s*[=:] *(\d+)kB)$`)

func (m *memSums) readTail(text string) {
	f := dumpTail.FindStringSubmatch(text)
	if f == nil {
		return
	}
	for i, to := range []*float64{&m.cache, &m.ram, &m.swapFree, &m.swap} {
		if v := float(f[i+1]); f[i+1] != "" {
			*to = v * map[bool]float64{true: 1024, false: 1}[i >= 2]
		}
	}
}

// nodeItem is a count of a node, in kB; the sums have the same name, and count pages.
var nodeItem = pattern.New(`\b((?:in)?active_(?:anon|file)|unevictable):(\d+)(kB)?(?: |$)`)

// pages notes counts of which the sums say the pages and the nodes the kB: so the dump says how
// large a page is. Most machines have pages of 4 KiB, and some of 16 or 64.
func (m *memSums) pages(text string) {
	if m.counted == nil {
		m.counted, m.kB = map[string]float64{}, map[string]float64{}
	}
	node := strings.HasPrefix(text, "Node ")
	if strings.Contains(text, " free:") && strings.Contains(text, "kB min:") || strings.Contains(text, "boost:") {
		return // a zone's line
	}
	for _, i := range nodeItem.FindAllStringSubmatch(text, 8) {
		switch {
		case node && i[3] != "":
			m.kB[i[1]] += float(i[2])
		case !node && i[3] == "":
			m.counted[i[1]] = float(i[2])
		}
	}
}

// pageBytes is the size of a page by the dump, and otherwise the usual one.
func (m memSums) pageBytes() float64 {
	if m.page > 0 {
		return m.page
	}
	for name, pages := range m.counted {
		if kB := m.kB[name]; pages > 0 && (kB == 8*pages || kB == 16*pages || kB == 64*pages) {
			return kB / pages * 1024
		}
	}
	return pageSize
}

// tail says how large the host is, and what of it is page cache and swap.
func (m memSums) tail() (figures []string) {
	if m.ram > 0 && m.cache > 0 {
		figures = append(figures, fmt.Sprintf("%s of %s RAM is page cache",
			mem(m.cache*m.pageBytes()), mem(m.ram*m.pageBytes())))
	}
	if m.swap > 0 {
		figures = append(figures, fmt.Sprintf("%s of %s swap is free", mem(m.swapFree), mem(m.swap)))
	}
	return figures
}

func (m *memSums) read(text string) {
	if strings.HasPrefix(text, "Mem-Info:") || strings.HasPrefix(text, "Mem-info:") {
		*m = memSums{head: true, dumps: m.dumps + 1} // of several dumps the last
	}
	m.readTail(text)
	if strings.Contains(text, "active_") || strings.Contains(text, "unevictable:") {
		m.pages(text)
	}
	if strings.Contains(text, "kB ") || !strings.Contains(text, "free:") &&
		!strings.Contains(text, "active_") && !strings.Contains(text, "slab_") &&
		!strings.Contains(text, "writeback:") {
		return // the line of a zone or of a node
	}
	if f := sumFree.FindStringSubmatch(text); f != nil {
		m.free = float(f[1])
	}
	for _, i := range sumItem.FindAllStringSubmatch(text, 8) {
		v := float(i[2])
		switch {
		case strings.HasSuffix(i[1], "_anon"):
			m.anon += v
		case strings.HasSuffix(i[1], "_file"):
			m.file += v
		case strings.HasPrefix(i[1], "slab"):
			m.slab += v
		default:
			m.writeback = v
		}
	}
}

// counts reports whether the sums say what memory holds.
func (m memSums) counts() bool { return m.free > 0 && m.anon+m.file+m.slab > 0 }

// usedUp reports whether next to nothing is free and no page cache is left to give back.
func (m memSums) usedUp() bool {
	all := m.free + m.anon + m.file + m.slab
	return m.anon > 0 && m.free < 0.02*all && m.file < 0.03*all
}

// cached reports whether page cache is most of memory: then processes do not hold it.
func (m memSums) cached() bool {
	return m.free > 0 && m.file > 0.5*(m.free+m.anon+m.file+m.slab)
}

func (m memSums) figure() string {
	page := m.pageBytes()
	text := fmt.Sprintf("%s free, %s anonymous, %s page cache, %s in slabs", mem(m.free*page),
		mem(m.anon*page), mem(m.file*page), mem(m.slab*page))
	if m.writeback > 0 {
		text += ", " + mem(m.writeback*page) + " being written back"
	}
	return text
}

// Bits of an allocation's mode by which it may wait. Names stand beside the mode since Linux 4.6;
// before 4.4 one bit meant both reclaim by the caller and a wake-up of kswapd.
const (
	gfpWait    = 0x10      // before 4.4
	gfpDirect  = 0x400000  // 4.4 and 4.5
	gfpKswapd  = 0x2000000 // likewise: no older kernel has a bit there
	gfpSleeper = "GFP_KERNEL GFP_KERNEL_ACCOUNT GFP_USER GFP_HIGHUSER GFP_HIGHUSER_MOVABLE GFP_TEMPORARY GFP_NOFS GFP_NOIO GFP_TRANSHUGE __GFP_WAIT __GFP_DIRECT_RECLAIM __GFP_RECLAIM"
)

// maySleep reports whether the mode of an allocation lets it free memory and wait: any other fails
// at once. A mode that cannot be read may.
func maySleep(mode string) bool {
	hex, names, named := strings.Cut(mode, "(")
	if named {
		list, _, whole := strings.Cut(names, ")")
		for name := range strings.SplitSeq(list, "|") {
			switch {
			case slices.Contains(strings.Fields(gfpSleeper), name):
				return true
			case name == "GFP_ATOMIC" || name == "GFP_NOWAIT" || name == "GFP_TRANSHUGE_LIGHT":
				return false
			}
		}
		return !whole
	}
	bits, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimRight(hex, ",."), "0x"), 16, 64)
	switch {
	case err != nil:
		return true
	case bits&gfpKswapd != 0:
		return bits&gfpDirect != 0
	}
	return bits&(gfpWait|gfpDirect) != 0
}

// inInterrupt knows functions that only an interrupt's stack has: then the task that ran has
// nothing to do with it.
func inInterrupt(f string) bool {
	for _, p := range []string{"do_softirq", "__do_softirq", "irq_exit", "__irq_exit",
		"net_rx_action", "napi_poll", "__napi_poll", "do_IRQ", "common_interrupt", "handle_irq",
		"xen_evtchn_do_upcall", "__netif_receive_skb"} {
		if strings.HasPrefix(f, p) {
			return true
		}
	}
	return false
}

var (
	zoneOrder = pattern.New(`^(?:Node (\d+) )?(DMA|DMA32|Normal|HighMem|Movable): ((?:\d+\*\d+kB (?:\([A-Z]*\) )?)+)= \d+kB`)
	orderItem = pattern.New(`(\d+)\*(\d+)kB(?: \(([A-Z]*)\))?`)
	zoneMarks = pattern.New(`^(?:Node (\d+) )?(DMA|DMA32|Normal|HighMem|Movable) free:(\d+)kB (?:boost:\d+kB )?min:(\d+)kB `)
)

// blocks notes the free blocks of a zone by their size.
func (r *report) blocks(text string) {
	if m := zoneOrder.FindStringSubmatch(text); m != nil {
		z := zone{node: cmp.Or(m[1], "0"), name: m[2]}
		for i, o := range orderItem.FindAllStringSubmatch(m[3], 24) {
			n, size := float(o[1]), 1024*float(o[2])
			if i == 0 {
				z.page, r.sums.page = size, size
			}
			if o[3] == "C" { // all of this size are of CMA
				z.cma, n = z.cma+n*size, 0
			}
			z.blocks = append(z.blocks, n)
		}
		if i := slices.IndexFunc(r.zones, func(o zone) bool { return o.String() == z.String() }); i >= 0 {
			r.zones[i] = z
		} else if len(r.zones) < 64 {
			r.zones = append(r.zones, z)
		}
	}
}

// watermark notes a zone that has less free than its min watermark: below it threads free memory
// themselves.
func (r *report) watermark(text string) {
	m := zoneMarks.FindStringSubmatch(text)
	if m == nil || len(r.below) >= 8 {
		return
	}
	if m[2] == "DMA" && r.sums.free*r.sums.pageBytes() > 64<<20 {
		return // its few MiB are no matter while other zones have memory
	}
	free := float(m[3])
	least := float(m[4])
	if free < least {
		r.below = append(r.below, fmt.Sprintf("node %s %s: %s free, below its min watermark of %s",
			cmp.Or(m[1], "0"), m[2], mem(free*1024), mem(least*1024)))
	}
}

func (r *report) readAllocations(out *attach.Reading) {
	if len(r.stalls) > 0 {
		figure := stallsFigure(r.stalls)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found,
			Sure: finding.Supported, Proof: []string{figure}})
		say(out, attach.Ill, "Threads waited for seconds until the kernel had freed memory for them.", figure)
	}
	if len(r.background) > 0 {
		say(out, attach.CannotTell, "A thread of the kernel that works in the background waited for memory, or for a CPU at its low priority: no program waits for its allocation, and it alone shows no lack of memory.",
			stallsFigure(r.background)+", of "+r.worker)
	}
	r.readVmallocs(out)
	m := r.first[allocFail]
	if m == nil && r.counts[vmallocFail] == 0 {
		r.readMemInfo(out)
	}
	if m == nil {
		return
	}
	order, _ := strconv.Atoi(m[2])
	by := "by " + printed(m[1])
	if r.interrupt {
		by = "in an interrupt while " + printed(m[1]) + " happened to run"
	}
	figures := append([]string{fmt.Sprintf("%s failed, the first for order %d (%s in one piece), %s", plural(r.counts[allocFail], "allocation", "allocations"), order, mem(r.sums.pageBytes()*float64(int64(1)<<min(order, 20))), by)}, r.below...)
	if r.sums.counts() {
		of := ""
		if r.sums.dumps > 1 {
			of = "at the last of them: "
		}
		figures = append(figures, of+r.sums.figure())
	}
	free := r.sums.free * r.sums.pageBytes()
	if len(r.zones) > 0 {
		fits := 0.0
		free = 0
		for _, z := range r.zones {
			free += z.free(0)
			fits += z.free(order)
		}
		figures = append(figures, fmt.Sprintf("%s free, %s of it in blocks of that order or larger",
			mem(free), mem(fits)))
	}
	means := "The kernel found no block of that size: memory was free in small pieces, or not at all."
	had := order == 0 && free >= beyondReserve && len(r.below) == 0
	switch {
	case had:
		means = "The kernel did not get even one page, which is no fragmentation. " + unlacked(free)
	case order == 0:
		means = "The kernel found not even one page: that is lack of free memory at that moment, and no fragmentation."
	}
	sign := attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: figures}
	if !r.sleeps {
		means = "An allocation that may not wait found nothing: the caller does without, as a driver that drops a packet, or fails. Nobody waited here for memory."
		if order == 0 {
			means += " At order 0 it is no fragmentation: " + lacked(free, len(r.below) > 0)
		}
		sign.Grade = attach.Risk
	}
	say(out, attach.CannotTell, means, figures...)
	if had && r.sleeps {
		return
	}
	out.Signs = append(out.Signs, sign)
	out.Not = cmp.Or(out.Not, "how often threads free or compact memory themselves: /proc/vmstat read twice tells")
	out.Next = append(out.Next, nextStalls)
}

// reportedAgain is when, in ns, the kernel reports an allocation a second time that still waits.
const reportedAgain = 20e9

// stallsFigure says how long allocations stalled. One that goes on is reported each 10 s, so only
// short ones can be counted.
func stallsFigure(ns []float64) string {
	slices.Sort(ns)
	most := ns[len(ns)-1]
	if len(ns) == 1 {
		return "1 allocation stalled for " + dur(most)
	}
	if most >= reportedAgain {
		return fmt.Sprintf("%d messages of allocations that stalled, %s at most", len(ns), dur(most))
	}
	return fmt.Sprintf("%d allocations stalled: %s at the median, %s at most",
		len(ns), dur(ns[len(ns)/2]), dur(most))
}

// inBackground reports whether a thread is one of the kernel's that makes room, for which no
// program waits.
func inBackground(name string) bool {
	name = strings.TrimRight(name, "0123456789")
	return name == "khugepaged" || name == "kcompactd" || name == "kswapd"
}

// beyondReserve is more than the kernel keeps in reserve of itself, in bytes: so much free memory
// was not used up.
const beyondReserve = 64 << 20

// lacked says what an allocation of one page lacked that may not wait. The zones that are below
// their watermark tell; free memory elsewhere was none of it.
func lacked(free float64, below bool) string {
	if free < beyondReserve || below {
		return "the reserve for such allocations (vm.min_free_kbytes) was used up."
	}
	return unlacked(free)
}

// unlacked says why an allocation may have failed beside so much free memory.
func unlacked(free float64) string {
	return fmt.Sprintf("%s were free, which it could not have (another zone's, or kept for other uses as CMA is), or which were freed meanwhile: the lines do not say which.", mem(free))
}

// readMemInfo reads a dump of memory that no failed allocation or kill explains.
func (r *report) readMemInfo(out *attach.Reading) {
	if r.counts[oomKill]+r.counts[oomGroup]+len(r.stalls) > 0 {
		return
	}
	switch {
	case r.sums.usedUp() || len(r.zones) == 0 && len(r.below) > 0:
		figures := slices.Clone(r.below)
		means := "Mem-Info: " + belowMeans
		if r.sums.counts() {
			figures = append([]string{r.sums.figure()}, figures...)
		}
		if r.sums.usedUp() {
			means = "Mem-Info: memory is used up, and no page cache is left to give back: who wants memory waits until something is swapped out."
		}
		say(out, attach.CannotTell, means, figures...)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: figures})
		out.Next = append(out.Next, nextStalls)
	case len(r.zones) > 0:
		z := judgeZones(r.zones)
		z.Figures = append(r.sums.tail(), z.Figures...)
		head := "Mem-Info: "
		if !r.sums.head {
			head = "The end of a report of memory, whose head says what it is of: "
		}
		out.Signs = append(out.Signs, z.Signs...)
		out.Facts = append(out.Facts, z.Facts...)
		if len(r.below) == 0 {
			say(out, z.State, head+z.Means, z.Figures...)
			return
		}
		say(out, attach.CannotTell, head+belowMeans, append(r.below, z.Figures...)...)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: r.below})
		out.Next = append(out.Next, nextStalls)
	case r.sums.counts():
		say(out, attach.CannotTell,
			"Mem-Info: the sums of the host's memory at one moment; the kernel prints them where an allocation failed or a process is killed.", r.sums.figure())
	}
}

// belowMeans is what a zone below its min watermark means.
const belowMeans = "A zone has less free than its min watermark: what is left is for those that may not wait, and other threads free memory themselves unless another zone serves them."

var nextStalls = attach.Next{Command: "sysctl vm.min_free_kbytes; grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free memory themselves now"}
