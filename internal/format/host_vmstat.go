package format

import (
	"github.com/whystall/whystall/internal/evidence"
)

// KindVmstat is what the kernel counts of the memory of the whole host.
const KindVmstat Kind = "/proc/vmstat"

var _ = registerFile(&row{
	kind: KindVmstat, name: "vmstat",
	looks: firstKey("nr_free_pages", "nr_dirty"), at: base("vmstat"), file: (*kernelFiles).vmstat,
	streams: []evidence.Stream{
		{Name: "/host/vmstat/allocstall:stalls",
			Doc: "Counter. Direct reclaims of the host, all zones. Reclaim at a memory cgroup's limit does not count here."},
		{Name: "/host/vmstat/compact/stall:stalls", Doc: "Counter. Direct compactions."},
		{Name: "/host/vmstat/compact/fail:stalls", Doc: "Counter. Those that failed."},
		{Name: "/host/vmstat/compact/success:stalls", Doc: "Counter."},
		{Name: "/host/vmstat/compact/daemon:wakes", Doc: "Counter. Times kcompactd was woken."},
		{Name: "/host/vmstat/faults:faults", Doc: "Counter. All page faults of the host."},
		{Name: "/host/vmstat/faults/major:faults", Doc: "Counter."},
		{Name: "/host/vmstat/scan/direct:pages", Doc: "Counter. Pages scanned by threads that wanted memory."},
		{Name: "/host/vmstat/scan/kswapd:pages", Doc: "Counter. Pages scanned by kswapd."},
		{Name: "/host/vmstat/steal/direct:pages", Doc: "Counter. Pages reclaimed by threads that wanted memory."},
		{Name: "/host/vmstat/steal/kswapd:pages", Doc: "Counter."},
		{Name: "/host/vmstat/refault/anon:pages", Doc: "Counter. Working set read again."},
		{Name: "/host/vmstat/refault/file:pages", Doc: "Counter."},
		{Name: "/host/vmstat/swap/in:pages", Doc: "Counter."},
		{Name: "/host/vmstat/swap/out:pages", Doc: "Counter."},
		{Name: "/host/vmstat/migrated:pages", Doc: "Counter. Pages moved, by compaction and NUMA balancing alike."},
		{Name: "/host/vmstat/oom-kill:processes", Doc: "Counter."},
		{Name: "/host/vmstat/numa/pte-updates:pages", Doc: "Counter. Pages that NUMA balancing made fault."},
		{Name: "/host/vmstat/numa/hint-faults:faults", Doc: "Counter. Such faults."},
		{Name: "/host/vmstat/numa/hint-faults/local:faults", Doc: "Counter. Those on pages of the CPU's own node."},
		{Name: "/host/vmstat/numa/migrated:pages", Doc: "Counter. Pages it moved between nodes."},
		{Name: "/host/vmstat/numa/miss:pages", Doc: "Counter. Pages allocated on a node other than the wanted one."},
		{Name: "/host/vmstat/thp/fault:pages", Doc: "Counter. Huge pages allocated at a fault."},
		{Name: "/host/vmstat/thp/fault-fallback:pages",
			Doc: "Counter. Faults that should have had one and got small pages."},
		{Name: "/host/vmstat/thp/collapse:pages", Doc: "Counter. Huge pages that khugepaged made of small ones."},
		{Name: "/host/vmstat/thp/collapse-failed:pages", Doc: "Counter. Times it found no free huge page."},
		{Name: "/host/vmstat/thp/split:pages", Doc: "Counter. Huge pages split."},
		{Name: "/host/vmstat/lazyfreed:pages", Doc: "Counter. Pages of MADV_FREE that were taken."},
		{Name: "/host/vmstat/tlb/remote:flushes",
			Doc: "Counter. Flushes sent to other CPUs; only kernels built with CONFIG_DEBUG_TLBFLUSH."},
	},
})

// vmstatCounters: several names of one stream are summed. The kernel splits them by zone, or has
// renamed them.
var vmstatCounters = map[string]string{
	"allocstall": "allocstall:stalls", "allocstall_dma": "allocstall:stalls",
	"allocstall_dma32": "allocstall:stalls", "allocstall_normal": "allocstall:stalls",
	"allocstall_movable": "allocstall:stalls", "allocstall_device": "allocstall:stalls",
	"compact_stall": "compact/stall:stalls", "compact_fail": "compact/fail:stalls",
	"compact_success": "compact/success:stalls", "compact_daemon_wake": "compact/daemon:wakes",
	"pgfault": "faults:faults", "pgmajfault": "faults/major:faults",
	"pgscan_direct": "scan/direct:pages", "pgscan_kswapd": "scan/kswapd:pages",
	"pgsteal_direct": "steal/direct:pages", "pgsteal_kswapd": "steal/kswapd:pages",
	"workingset_refault_anon": "refault/anon:pages",
	"workingset_refault_file": "refault/file:pages", "workingset_refault": "refault/file:pages",
	"pswpin": "swap/in:pages", "pswpout": "swap/out:pages", "pgmigrate_success": "migrated:pages",
	"oom_kill":         "oom-kill:processes",
	"numa_pte_updates": "numa/pte-updates:pages", "numa_hint_faults": "numa/hint-faults:faults",
	"numa_hint_faults_local": "numa/hint-faults/local:faults",
	"numa_pages_migrated":    "numa/migrated:pages", "numa_miss": "numa/miss:pages",
	"thp_fault_alloc": "thp/fault:pages", "thp_fault_fallback": "thp/fault-fallback:pages",
	"thp_collapse_alloc":        "thp/collapse:pages",
	"thp_collapse_alloc_failed": "thp/collapse-failed:pages", "thp_split_page": "thp/split:pages",
	"thp_split":   "thp/split:pages",
	"pglazyfreed": "lazyfreed:pages", "nr_tlb_remote_flush": "tlb/remote:flushes",
}

func (s *kernelFiles) vmstat(r reading) error {
	return sums(r.text, " ", vmstatCounters, func(stream string, v float64) {
		s.add("/host/vmstat/"+stream, evidence.Counter, r.time, v)
	})
}
