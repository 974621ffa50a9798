package format

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// vmstatCounters: several names of one stream are summed: the kernel splits them by zone, or has renamed them.
var vmstatCounters = map[string]string{
	"allocstall": "allocstall:stalls", "allocstall_dma": "allocstall:stalls", "allocstall_dma32": "allocstall:stalls", "allocstall_normal": "allocstall:stalls",
	"allocstall_movable": "allocstall:stalls", "allocstall_device": "allocstall:stalls",
	"compact_stall": "compact/stall:stalls", "compact_fail": "compact/fail:stalls", "compact_success": "compact/success:stalls", "compact_daemon_wake": "compact/daemon:wakes",
	"pgfault": "faults:faults", "pgmajfault": "faults/major:faults",
	"pgscan_direct": "scan/direct:pages", "pgscan_kswapd": "scan/kswapd:pages", "pgsteal_direct": "steal/direct:pages", "pgsteal_kswapd": "steal/kswapd:pages",
	"workingset_refault_anon": "refault/anon:pages", "workingset_refault_file": "refault/file:pages", "workingset_refault": "refault/file:pages",
	"pswpin": "swap/in:pages", "pswpout": "swap/out:pages", "pgmigrate_success": "migrated:pages", "oom_kill": "oom-kill:processes",
	"numa_pte_updates": "numa/pte-updates:pages", "numa_hint_faults": "numa/hint-faults:faults", "numa_hint_faults_local": "numa/hint-faults/local:faults",
	"numa_pages_migrated": "numa/migrated:pages", "numa_miss": "numa/miss:pages",
	"thp_fault_alloc": "thp/fault:pages", "thp_fault_fallback": "thp/fault-fallback:pages", "thp_collapse_alloc": "thp/collapse:pages",
	"thp_collapse_alloc_failed": "thp/collapse-failed:pages", "thp_split_page": "thp/split:pages", "thp_split": "thp/split:pages",
	"pglazyfreed": "lazyfreed:pages", "nr_tlb_remote_flush": "tlb/remote:flushes",
}

func (s *procState) vmstat(r reading) error {
	sums, order := map[string]float64{}, []string(nil)
	err := pairs(r.text, " ", func(name string, v float64) {
		if stream, ok := vmstatCounters[name]; ok {
			if _, had := sums[stream]; !had {
				order = append(order, stream)
			}
			sums[stream] += v
		}
	})
	for _, stream := range order {
		s.add("/host/vmstat/"+stream, evidence.Counter, r.time, sums[stream])
	}
	return err
}

var meminfoSamples = map[string]string{
	"MemTotal": "total", "MemFree": "free", "MemAvailable": "available", "Cached": "cached", "Buffers": "cached", "Dirty": "dirty", "AnonPages": "anon",
	"AnonHugePages": "anon-huge", "Hugetlb": "hugetlb", "SwapTotal": "swap", "SwapFree": "swap-free",
}

// meminfo is the host's, or one NUMA node's, whose lines begin with "Node 0 ".
func (s *procState) meminfo(r reading) error {
	if node, ok := strings.CutPrefix(path.Base(path.Dir(r.path)), "node"); ok && isNumber(node) {
		return pairs(strings.ReplaceAll(r.text, "Node "+node+" ", ""), ":", func(name string, v float64) {
			switch name {
			case "MemTotal":
				s.addOf("/host/numa/total:bytes", evidence.Sample, r.time, v, node)
			case "MemFree":
				s.addOf("/host/numa/free:bytes", evidence.Sample, r.time, v, node)
			}
		})
	}
	sums, order := map[string]float64{}, []string(nil)
	err := pairs(r.text, ":", func(name string, v float64) {
		if stream, ok := meminfoSamples[name]; ok {
			if _, had := sums[stream]; !had {
				order = append(order, stream)
			}
			sums[stream] += v
		}
	})
	for _, stream := range order {
		s.add("/host/memory/"+stream+":bytes", evidence.Sample, r.time, sums[stream])
	}
	return err
}

// free reads the table of free(1), in KiB or, with -h, in units at each number. The columns are named in the first line.
func (s *procState) free(r reading) error {
	lines := strings.Split(strings.TrimSpace(r.text), "\n")
	names := strings.Fields(lines[0])
	streams := map[string]string{"total": "total", "free": "free", "buff/cache": "cached", "available": "available"}
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "Mem:" {
			continue
		}
		for i, name := range names {
			if i+1 >= len(f) {
				break
			}
			v, err := humanSize(f[i+1])
			if err != nil {
				return err
			}
			if stream := streams[name]; stream != "" {
				s.add("/host/memory/"+stream+":bytes", evidence.Sample, r.time, v)
			}
		}
	}
	return nil
}

// humanSize reads what free prints: "768G", "1.5Gi", "17712" of KiB.
func humanSize(text string) (float64, error) {
	number := strings.TrimRight(text, "BKMGTPi")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v != v || v < 0 || v > 1e15 {
		return 0, fmt.Errorf("want a size, got %.40q", text)
	}
	unit := text[len(number):]
	if unit == "" {
		return v * 1024, nil
	}
	i := strings.IndexByte("BKMGTP", unit[0])
	for ; i > 0; i-- {
		v *= 1024
	}
	return v, nil
}

// zoneName reads "Node 0, zone   Normal".
func zoneName(f []string) (string, bool) {
	if len(f) < 4 || f[0] != "Node" || f[2] != "zone" {
		return "", false
	}
	return "node " + strings.TrimSuffix(f[1], ",") + " " + f[3], true
}

// The file counts free blocks of each order, 2^order pages. The size of a page is not in it: that of nearly every machine is taken, and with it
// the order of a huge page, 9.
func (s *procState) buddyinfo(r reading) error {
	page := float64(4096)
	if s.page > 0 {
		page = float64(s.page)
	}
	n := 0
	for line := range strings.Lines(r.text) {
		n++
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		zone, ok := zoneName(f)
		if !ok {
			return fmt.Errorf("line %d: want Node N, zone NAME ..., got %.40q", n, line)
		}
		var free, order3, huge float64
		for order, text := range f[4:] {
			blocks, err := strconv.ParseUint(text, 10, 48)
			if err != nil || order > 20 {
				return fmt.Errorf("line %d: want a number, got %.40q", n, text)
			}
			size := float64(blocks) * page * float64(int64(1)<<order)
			free += size
			if order >= 3 {
				order3 += size
			}
			if page*float64(int64(1)<<order) >= 2<<20 {
				huge += size
			}
		}
		s.addOf("/host/buddy/free:bytes", evidence.Sample, r.time, free, zone)
		s.addOf("/host/buddy/order3:bytes", evidence.Sample, r.time, order3, zone)
		s.addOf("/host/buddy/huge:bytes", evidence.Sample, r.time, huge, zone)
	}
	return nil
}

func (s *procState) zoneinfo(r reading) error {
	page := float64(4096)
	if s.page > 0 {
		page = float64(s.page)
	}
	zone := ""
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if z, ok := zoneName(f); ok {
			zone = z
			continue
		}
		if len(f) == 3 && f[0] == "pages" {
			f = f[1:]
		}
		if len(f) != 2 || zone == "" {
			continue
		}
		switch f[0] {
		case "free", "min", "low", "high", "managed":
			v, err := strconv.ParseFloat(f[1], 64)
			if err != nil {
				return fmt.Errorf("%s: want a number, got %.40q", f[0], f[1])
			}
			s.addOf("/host/zone/"+f[0]+":bytes", evidence.Sample, r.time, v*page, zone)
		}
	}
	return nil
}

// interruptNames are x86's; arm64 counts IPI0 as rescheduling and IPI1 as function calls.
var interruptNames = map[string]string{"TLB": "tlb", "CAL": "call-function", "RES": "reschedule", "LOC": "timer", "IPI0": "reschedule", "IPI1": "call-function"}

func (s *procState) interrupts(r reading) error {
	for line := range strings.Lines(r.text) {
		name, rest, ok := strings.Cut(line, ":")
		stream := interruptNames[strings.TrimSpace(name)]
		if !ok || stream == "" {
			continue
		}
		sum := 0.0
		for _, f := range strings.Fields(rest) {
			v, err := strconv.ParseUint(f, 10, 64)
			if err != nil {
				break // its description
			}
			sum += float64(v)
		}
		s.add("/host/interrupts/"+stream+":interrupts", evidence.Counter, r.time, sum)
	}
	return nil
}

// hostStat reads /proc/stat. Fields of a cpu: user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice; guest is in user.
func (s *procState) hostStat(r reading) error {
	tick := 1e9 / float64(s.hz)
	cpus := 0
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		v := make([]float64, 10)
		for i := 0; i < 10 && i+1 < len(f); i++ {
			n, err := strconv.ParseFloat(f[i+1], 64)
			if err != nil || n != n || n < 0 || n > 1e18 {
				return fmt.Errorf("%.20s: want a number, got %.40q", f[0], f[i+1])
			}
			v[i] = n
		}
		switch {
		case f[0] == "cpu":
			s.add("/host/cpu/user:ns", evidence.Counter, r.time, (v[0]+v[1])*tick)
			s.add("/host/cpu/system:ns", evidence.Counter, r.time, (v[2]+v[5]+v[6])*tick)
			s.add("/host/cpu/idle:ns", evidence.Counter, r.time, (v[3]+v[4])*tick)
			s.add("/host/cpu/iowait:ns", evidence.Counter, r.time, v[4]*tick)
			s.add("/host/cpu/irq:ns", evidence.Counter, r.time, (v[5]+v[6])*tick)
			s.add("/host/steal:ns", evidence.Counter, r.time, v[7]*tick)
		case strings.HasPrefix(f[0], "cpu") && isNumber(f[0][3:]):
			cpus++
			s.eachCPU("/host/each/idle:ns", f[0][3:], r.time, (v[3]+v[4])*tick)
			s.eachCPU("/host/each/steal:ns", f[0][3:], r.time, v[7]*tick)
		case f[0] == "ctxt":
			s.add("/host/switches:switches", evidence.Counter, r.time, v[0])
		case f[0] == "processes":
			s.add("/host/forks:threads", evidence.Counter, r.time, v[0])
		case f[0] == "procs_running":
			s.add("/host/running:threads", evidence.Sample, r.time, v[0])
		case f[0] == "procs_blocked":
			s.add("/host/blocked:threads", evidence.Sample, r.time, v[0])
		}
	}
	if cpus > 0 {
		s.fact("/host/cpus:cpus", r.time, float64(cpus), "")
	}
	return nil
}

// eachCPU keeps of a CPU's readings the first and the last: there may be hundreds of CPUs and of readings.
func (s *procState) eachCPU(stream, cpu string, t int64, v float64) {
	key := stream + cpu
	pair, ok := s.each[key]
	rec := &evidence.Record{Stream: stream, Shape: evidence.Counter, Time: t, Value: v, Text: cpu}
	if !ok {
		s.eachOrder = append(s.eachOrder, key)
		s.each[key] = [2]*evidence.Record{rec, nil}
		return
	}
	s.each[key] = [2]*evidence.Record{pair[0], rec}
}

// pressureStream tells whose pressure a file is of: by its name alone, which is all that tells it.
func pressureStream(name string) string {
	where := "/host/psi/"
	base := path.Base(name)
	if of, ok := strings.CutSuffix(base, ".pressure"); ok {
		where, base = "/cgroup/psi/", of
	}
	for _, of := range []string{"cpu", "memory", "io"} {
		if base == of || strings.HasPrefix(base, of+".") {
			return where + of
		}
	}
	return ""
}

// pressure reads lines "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", the total in us.
func (s *procState) pressure(r reading) error {
	stream := pressureStream(r.path)
	if stream == "" {
		return fmt.Errorf("which pressure it is, only its name tells: name it cpu.pressure, memory.pressure or io.pressure (of a cgroup), or cpu, memory, io (of the host)")
	}
	for line := range strings.Lines(r.text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		total, ok := strings.CutPrefix(f[len(f)-1], "total=")
		v, err := strconv.ParseUint(total, 10, 64)
		if !ok || err != nil || f[0] != "some" && f[0] != "full" {
			return fmt.Errorf("want some or full ... total=N, got %.60q", line)
		}
		s.add(stream+"/"+f[0]+":ns", evidence.Counter, r.time, float64(v)*1000)
	}
	return nil
}

// settings with a stream of their own: path below /proc/sys, stream, factor of the value.
var settings = map[string]struct {
	stream string
	factor float64
}{
	"vm/min_free_kbytes": {"/host/sysctl/vm.min_free_kbytes:bytes", 1024}, "kernel/numa_balancing": {"/host/sysctl/kernel.numa_balancing:bool", 1},
	"kernel/task_delayacct": {"/host/sysctl/kernel.task_delayacct:bool", 1}, "vm/zone_reclaim_mode": {"/host/sysctl/vm.zone_reclaim_mode:mode", 1},
	"kernel/sched_cfs_bandwidth_slice_us": {"/host/sysctl/kernel.sched_cfs_bandwidth_slice_us:ns", 1000},
}

// scalar reads files of one value, which only their path tells apart; a path that is not known is kept for people.
func (s *procState) scalar(r reading) error {
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
		s.fact("/host/sysctl:value", r.time, v, strings.ReplaceAll(name, "/", ".")+"="+text)
		if st, ok := settings[name]; ok && err == nil {
			s.fact(st.stream, r.time, v*st.factor, "")
		}
		return nil
	}
	if name, ok := strings.CutPrefix(r.path, "/sys/kernel/mm/transparent_hugepage/"); ok {
		return s.thp(r, name, text)
	}
	switch r.path {
	case "groups":
		return s.groupViews(r)
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
	if done, err := s.cgroupScalar(r, text); done {
		return err
	}
	if strings.HasSuffix(r.path, "/task/*/schedstat") {
		return s.threadSums(r)
	}
	if strings.HasSuffix(r.path, "/task/*/stat") {
		return s.glance(r)
	}
	return nil
}

func (s *procState) list(r reading, stream, text string) error {
	n, err := countList(text)
	if err == nil {
		s.fact(stream, r.time, float64(n), "")
	}
	return err
}

// countList counts what a list as "0-3,8" names.
func countList(text string) (n int, err error) {
	for part := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 20)
		b := a
		if err == nil && isRange {
			b, err = strconv.ParseUint(to, 10, 20)
		}
		if err != nil || b < a {
			return 0, fmt.Errorf("want a list as 0-3,8, got %.40q", text)
		}
		n += int(b-a) + 1
	}
	return n, nil
}

// thp reads the settings of huge pages. Of a choice, "always [madvise] never", what is in brackets holds.
func (s *procState) thp(r reading, name, text string) error {
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
