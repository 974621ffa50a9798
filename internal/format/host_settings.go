package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindSetting is a file of one value in /proc/sys and /sys, which only its path distinguishes.
const KindSetting Kind = "a setting of the host"

var _ = registerFile(&row{
	kind: KindSetting, name: "setting",
	at: isHostSetting, file: (*kernelFiles).hostSetting,
	streams: []evidence.Stream{
		{Name: "/host/kernel:text", Doc: "Fact. Release of the kernel."},
		{Name: "/host/clocksource:text",
			Doc: "Fact. The clock that time is read from. One other than tsc, kvm-clock and arch_sys_counter costs a system call."},
		{Name: "/host/load:threads", Doc: "Sample. Load average of the last minute."},
		{Name: "/host/thp/enabled:text", Doc: "Fact. always, madvise or never."},
		{Name: "/host/thp/defrag:text", Doc: "Fact. When a fault compacts for a huge page."},
		{Name: "/host/thp/khugepaged/defrag:bool", Doc: "Fact."},
		{Name: "/host/thp/khugepaged/max-ptes-none:pages",
			Doc: "Fact. How many of 512 pages may be empty when khugepaged makes a huge one."},
		{Name: "/host/thp/khugepaged/scan-sleep:ns", Doc: "Fact. Pause between two scans."},
		{Name: "/host/thp/khugepaged/pages-to-scan:pages", Doc: "Fact. Pages in each scan."},
		{Name: "/host/thp/khugepaged/collapsed:pages", Doc: "Counter. Huge pages made."},
		{Name: "/host/thp/khugepaged/scans:scans", Doc: "Counter. Whole rounds."},
		{Name: "/host/sysctl:value",
			Doc: "Fact for each of a list of settings: Text \"vm.swappiness=60\", Value if it is one number."},
		{Name: "/host/sysctl/vm.min_free_kbytes:bytes", Doc: "Fact. In bytes, though the setting is not."},
		{Name: "/host/sysctl/kernel.numa_balancing:bool", Doc: "Fact. 1: on."},
		{Name: "/host/sysctl/kernel.task_delayacct:bool", Doc: "Fact. 0: delays of the process are not counted."},
		{Name: "/host/sysctl/vm.zone_reclaim_mode:mode",
			Doc: "Fact. Not 0: a node reclaims its own memory before it uses another node's."},
		{Name: "/host/sysctl/kernel.sched_cfs_bandwidth_slice_us:ns",
			Doc: "Fact. What a CPU takes of the quota at a time."},
		{Name: "/host/numa/nodes:nodes", Doc: "Fact. NUMA nodes online."},
	},
	also: []string{"/host/cpus:cpus"},
})

func isHostSetting(p string) bool {
	switch p {
	case "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		"/sys/devices/system/cpu/online", "/sys/devices/system/node/online", "/proc/loadavg":
		return true
	}
	return strings.HasPrefix(p, "/proc/sys/") || strings.HasPrefix(p, "/sys/kernel/mm/transparent_hugepage/")
}

// settings are those with a stream of their own, by their path below /proc/sys.
var settings = map[string]struct {
	stream string
	factor float64
}{
	"vm/min_free_kbytes":                  {"/host/sysctl/vm.min_free_kbytes:bytes", 1024},
	"kernel/numa_balancing":               {"/host/sysctl/kernel.numa_balancing:bool", 1},
	"kernel/task_delayacct":               {"/host/sysctl/kernel.task_delayacct:bool", 1},
	"vm/zone_reclaim_mode":                {"/host/sysctl/vm.zone_reclaim_mode:mode", 1},
	"kernel/sched_cfs_bandwidth_slice_us": {"/host/sysctl/kernel.sched_cfs_bandwidth_slice_us:ns", 1000},
}

// hostSetting reads a file of one value, which only its path distinguishes.
func (s *kernelFiles) hostSetting(r reading) error {
	text := strings.TrimSpace(r.text)
	if name, ok := strings.CutPrefix(r.path, "/proc/sys/"); ok {
		if name == "kernel/osrelease" {
			s.fact("/host/kernel:text", r.time, 0, text)
			return nil
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || v != v {
			v = 0 // some have several numbers
		}
		if name == "kernel/task_delayacct" {
			s.delayOff = s.delayOff || text == "0"
		}
		s.factFor("/host/sysctl:value", r.time, v, strings.ReplaceAll(name, "/", ".")+"="+text)
		if st, ok := settings[name]; ok && err == nil {
			s.fact(st.stream, r.time, v*st.factor, "")
		}
		return nil
	}
	if name, ok := strings.CutPrefix(r.path, "/sys/kernel/mm/transparent_hugepage/"); ok {
		return s.thp(r, name, text)
	}
	switch r.path {
	case "/sys/devices/system/clocksource/clocksource0/current_clocksource":
		s.fact("/host/clocksource:text", r.time, 0, text)
		return nil
	case "/sys/devices/system/cpu/online":
		return s.list(r, "/host/cpus:cpus", text)
	case "/sys/devices/system/node/online":
		return s.list(r, "/host/numa/nodes:nodes", text)
	case "/proc/loadavg":
		v, err := amount(text)
		if err == nil {
			s.add("/host/load:threads", evidence.Sample, r.time, v)
		}
		return err
	}
	return nil
}

func (s *kernelFiles) list(r reading, stream, text string) error {
	n, err := countList(text)
	if err == nil {
		s.fact(stream, r.time, float64(n), "")
	}
	return err
}

// countList counts the numbers in a list such as "0-3,8".
func countList(text string) (n int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 20)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(to, 10, 20)
		}
		if err != nil || b < a {
			return 0, fmt.Errorf("want a list such as 0-3,8, got %.40q", text)
		}
		n += int(b-a) + 1
	}
	return n, nil
}

// thp reads the settings of huge pages. In a choice such as "always [madvise] never", the brackets
// mark the value.
func (s *kernelFiles) thp(r reading, name, text string) error {
	chosen := text
	if _, after, ok := strings.Cut(text, "["); ok {
		chosen, _, _ = strings.Cut(after, "]")
	}
	switch name {
	case "enabled", "defrag":
		s.fact("/host/thp/"+name+":text", r.time, 0, chosen)
		return nil
	}
	streams := map[string]struct {
		stream string
		factor float64
		shape  evidence.Shape
	}{
		"khugepaged/defrag":               {"defrag:bool", 1, evidence.Fact},
		"khugepaged/max_ptes_none":        {"max-ptes-none:pages", 1, evidence.Fact},
		"khugepaged/scan_sleep_millisecs": {"scan-sleep:ns", 1e6, evidence.Fact},
		"khugepaged/pages_to_scan":        {"pages-to-scan:pages", 1, evidence.Fact},
		"khugepaged/pages_collapsed":      {"collapsed:pages", 1, evidence.Counter},
		"khugepaged/full_scans":           {"scans:scans", 1, evidence.Counter},
	}
	st, ok := streams[name]
	if !ok {
		return nil
	}
	v, err := amount(text)
	if err != nil {
		return err
	}
	if st.shape == evidence.Fact {
		s.fact("/host/thp/khugepaged/"+st.stream, r.time, v*st.factor, "")
	} else {
		s.add("/host/thp/khugepaged/"+st.stream, st.shape, r.time, v*st.factor)
	}
	return nil
}
