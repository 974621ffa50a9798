package collect

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

var _ = registerLocal(&Local{
	Name:   "host",
	Doc:    "Reads the host's CPU times, pressure, vmstat and meminfo once a second; zones, buddyinfo, interrupts, softirqs and settings at the start and the end.",
	Order:  23,
	Tier:   TierSystem,
	Member: "host.txt",
	Probe:  func(p Process) error { return canRead(p, "/proc/stat") },
	Record: recordHost,
})

// sysctls are the settings that are known to matter; package format says what each means.
var sysctls = []string{
	"vm/min_free_kbytes", "vm/watermark_scale_factor", "vm/watermark_boost_factor",
	"vm/zone_reclaim_mode", "vm/overcommit_memory", "vm/overcommit_ratio", "vm/swappiness",
	"vm/max_map_count", "vm/dirty_ratio", "vm/dirty_background_ratio",
	"vm/compaction_proactiveness", "vm/vfs_cache_pressure", "kernel/numa_balancing", "kernel/task_delayacct",
	"kernel/sched_schedstats", "kernel/sched_cfs_bandwidth_slice_us",
	"kernel/sched_autogroup_enabled", "kernel/perf_event_paranoid", "kernel/threads-max", "kernel/pid_max",
	"net/core/somaxconn", "fs/file-max",
}

var thpFiles = []string{
	"enabled", "defrag", "shmem_enabled", "khugepaged/defrag", "khugepaged/max_ptes_none",
	"khugepaged/scan_sleep_millisecs", "khugepaged/alloc_sleep_millisecs",
	"khugepaged/pages_to_scan", "khugepaged/pages_collapsed", "khugepaged/full_scans",
}

const thpDir = "/sys/kernel/mm/transparent_hugepage"

func recordHost(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	r := newReadings(p, w)
	often := func() {
		r.file("/proc/stat", keepStat)
		r.file("/proc/vmstat", nil)
		r.file("/proc/meminfo", nil)
		for _, f := range []string{"cpu", "memory", "io"} {
			r.pressure("/proc/pressure/" + f)
		}
	}
	edge := func() {
		often()
		r.file("/proc/loadavg", nil)
		r.file("/proc/buddyinfo", nil)
		r.file("/proc/zoneinfo", keepZones)
		r.file("/proc/interrupts", keepInterrupts)
		r.file("/proc/softirqs", nil)
		for _, f := range []string{"pages_collapsed", "full_scans"} {
			r.file(thpDir+"/khugepaged/"+f, nil)
		}
	}
	settings := func() {
		r.file("/proc/sys/kernel/osrelease", nil)
		r.file("/sys/devices/system/cpu/online", nil)
		r.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", nil)
		r.file("/sys/devices/system/node/online", nil)
		for _, s := range sysctls {
			r.file("/proc/sys/"+s, nil)
		}
		for _, f := range thpFiles {
			r.file(thpDir+"/"+f, nil)
		}
		r.nodes()
	}
	if r.do(func() { settings(); edge() }) {
		r.every(ctx, time.Second, func(int) { often() })
	}
	r.do(edge)
	return r.end()
}

// pressure reads a file that does not exist if the kernel does not count pressure.
func (r *readings) pressure(name string) {
	if _, err := os.Stat(r.fs.Path(name)); err != nil {
		r.unread(name, "the kernel does not count it: it was built without PSI, or booted without psi=1")
		return
	}
	r.file(name, nil)
}

// nodes reads each NUMA node's memory, at most 64 of them.
func (r *readings) nodes() {
	names, _ := filepath.Glob(r.fs.Path("/sys/devices/system/node") + "/node[0-9]*")
	for _, n := range names[:min(len(names), 64)] {
		r.file(r.bare(n)+"/meminfo", nil)
	}
}

// keepStat leaves out the counts of each interrupt, which are most of the file on a large machine.
var keepStat = keepLines(func(first string) bool { return first != "intr" && first != "softirq" })

// keepInterrupts keeps the interrupts that have names, which are the processors' own.
func keepInterrupts(b []byte) []byte {
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	kept := keepLines(func(first string) bool { return strings.Trim(first, "0123456789") != "" })(rest)
	return append(append(append([]byte{}, head...), '\n'), kept...)
}

// keepZones leaves out each CPU's own lists.
var keepZones = func() func([]byte) []byte {
	keep := map[string]bool{"Node": true, "pages": true, "boost": true, "min": true, "low": true,
		"high": true, "promo": true, "spanned": true, "present": true, "managed": true}
	lines := keepLines(func(first string) bool { return keep[first] })
	return func(b []byte) []byte {
		// "high:" with a colon is a word of a CPU's list; the zone's own line has none.
		var out []byte
		for line := range bytes.Lines(lines(b)) {
			if !bytes.Contains(line, []byte("high:")) {
				out = append(out, line...)
			}
		}
		return out
	}
}()
