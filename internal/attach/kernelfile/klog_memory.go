package kernelfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
)

// memSums is the first lines of a Mem-Info dump: sums over the host, in pages.
type memSums struct{ free, anon, file, slab, writeback float64 }

var (
	sumFree = regexp.MustCompile(`\bfree:(\d+) (?:slab_reclaimable|free_pcp|slab:)`)
	sumItem = regexp.MustCompile(`\b((?:in)?active_(?:anon|file)|slab_(?:un)?reclaimable|writeback):(\d+)(?: |$)`)
)

func (m *memSums) read(text string) {
	if strings.Contains(text, "kB ") || !strings.Contains(text, "free:") && !strings.Contains(text, "active_") && !strings.Contains(text, "slab_") && !strings.Contains(text, "writeback:") {
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

// usedUp reports whether next to nothing is free and no page cache is left to give back.
func (m memSums) usedUp() bool {
	all := m.free + m.anon + m.file + m.slab
	return m.anon > 0 && m.free < 0.02*all && m.file < 0.03*all
}

func (m memSums) figure() string {
	text := fmt.Sprintf("%s free, %s anonymous, %s page cache, %s in slabs", mem(m.free*pageSize), mem(m.anon*pageSize), mem(m.file*pageSize), mem(m.slab*pageSize))
	if m.writeback > 0 {
		text += ", " + mem(m.writeback*pageSize) + " being written back"
	}
	return text
}

// inInterrupt knows functions that only an interrupt's stack has: then the task that ran has
// nothing to do with it.
func inInterrupt(f string) bool {
	for _, p := range []string{"do_softirq", "__do_softirq", "irq_exit", "__irq_exit", "net_rx_action", "napi_poll", "__napi_poll", "do_IRQ", "common_interrupt", "handle_irq", "xen_evtchn_do_upcall", "__netif_receive_skb"} {
		if strings.HasPrefix(f, p) {
			return true
		}
	}
	return false
}

// watermark notes a zone that has less free than its min watermark: below it threads free memory
// themselves.
func (r *report) watermark(text string) {
	m := zoneMarks.FindStringSubmatch(text)
	if m == nil || len(r.below) >= 8 {
		return
	}
	if m[2] == "DMA" && r.sums.free*pageSize > 64<<20 {
		return // its few MiB are no matter while other zones have memory
	}
	free := float(m[3])
	least := float(m[4])
	if free < least {
		r.below = append(r.below, fmt.Sprintf("node %s %s: %s free, below its min watermark of %s", cmp.Or(m[1], "0"), m[2], mem(free*1024), mem(least*1024)))
	}
}

func (r *report) readAllocations(out *attach.Reading) {
	if len(r.stalls) > 0 {
		slices.Sort(r.stalls)
		figure := fmt.Sprintf("%s: %s at the median, %s at most", plural(len(r.stalls), "allocation stalled", "allocations stalled"), dur(r.stalls[len(r.stalls)/2]), dur(r.stalls[len(r.stalls)-1]))
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Found, Sure: finding.Supported, Proof: []string{figure}})
		say(out, attach.Ill, "Threads waited for seconds until the kernel had freed memory for them.", figure)
	}
	m := r.first[allocFail]
	if m == nil {
		r.readMemInfo(out)
		return
	}
	order, _ := strconv.Atoi(m[2])
	by := "by " + printed(m[1])
	if r.interrupt {
		by = "in an interrupt while " + printed(m[1]) + " happened to run"
	}
	figures := append([]string{fmt.Sprintf("%s failed, the first for order %d (%s in one piece), %s", plural(r.counts[allocFail], "allocation", "allocations"), order, mem(pageSize*float64(int64(1)<<min(order, 20))), by)}, r.below...)
	if r.sums.anon > 0 {
		figures = append(figures, r.sums.figure())
	}
	if len(r.zones) > 0 {
		var free, fits float64
		for _, z := range r.zones {
			free += z.free(0)
			fits += z.free(order)
		}
		figures = append(figures, fmt.Sprintf("%s free, %s of it in blocks of that order or larger", mem(free), mem(fits)))
	}
	means := "The kernel found no block of that size: memory was free in small pieces, or not at all."
	if order == 0 {
		means = "The kernel found not even one page: that is lack of free memory at that moment, and no fragmentation."
	}
	sign := attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: figures}
	if r.atomic {
		means = "An allocation that may not wait found nothing: the caller, as a rule a network driver, drops a packet or tries again. Nobody waited here for memory."
		if order == 0 {
			means += " At order 0 it is no fragmentation: the reserve for such allocations (vm.min_free_kbytes) was used up."
		}
		sign.Grade = attach.Risk
	}
	out.Signs = append(out.Signs, sign)
	say(out, attach.CannotTell, means, figures...)
	out.Not = cmp.Or(out.Not, "how often threads free or compact memory themselves: /proc/vmstat read twice tells")
	out.Next = append(out.Next, nextStalls)
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
		if r.sums.usedUp() {
			figures = append([]string{r.sums.figure()}, figures...)
			means = "Mem-Info: memory is used up, and no page cache is left to give back: who wants memory waits until something is swapped out."
		}
		say(out, attach.CannotTell, means, figures...)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: figures})
		out.Next = append(out.Next, nextStalls)
	case len(r.zones) > 0:
		z := judgeZones(r.zones)
		out.Signs = append(out.Signs, z.Signs...)
		out.Facts = append(out.Facts, z.Facts...)
		if len(r.below) == 0 {
			say(out, z.State, "Mem-Info: "+z.Means, z.Figures...)
			return
		}
		say(out, attach.CannotTell, "Mem-Info: "+belowMeans, append(r.below, z.Figures...)...)
		out.Signs = append(out.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate, Proof: r.below})
		out.Next = append(out.Next, nextStalls)
	case r.sums.anon > 0:
		say(out, attach.CannotTell, "Mem-Info: the sums of the host's memory at one moment; the kernel prints them where an allocation failed or a process is killed.", r.sums.figure())
	}
}

// belowMeans is what a zone below its min watermark means.
const belowMeans = "A zone has less free than its min watermark: threads that want memory from it have to free some themselves, and those that may not wait get none."

var nextStalls = attach.Next{Command: "sysctl vm.min_free_kbytes; grep -E 'allocstall|compact_stall' /proc/vmstat; sleep 10; grep -E 'allocstall|compact_stall' /proc/vmstat", Why: "whether threads have to free memory themselves now"}
