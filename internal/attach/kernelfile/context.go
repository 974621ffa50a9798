package kernelfile

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Facts of the machine.
const (
	FactCPUs  attach.FactName = "/host/cpus:cpus"
	FactNodes attach.FactName = "/host/numa/nodes:nodes"
)

// These kinds say what the machine is. No verdict follows from them, but rules ask for its CPUs and
// nodes, and a paste that has them must not be called unknown.

var (
	unameLine   = pattern.New(`^Linux (?:\S+ )?\d+\.\d+\S* #\d+.* (?:x86_64|aarch64|i[3-6]86|armv\S+|ppc64(?:le)?|s390x|riscv64|GNU/Linux)$`)
	versionLine = pattern.New(`^Linux version (\d+\.\d+\S*) \(.+`)
	osLine      = pattern.New(`^(PRETTY_NAME|NAME|VERSION_ID|VERSION|VERSION_CODENAME|ID|ID_LIKE|HOME_URL|SUPPORT_URL|BUG_REPORT_URL|PRIVACY_POLICY_URL|UBUNTU_CODENAME|ANSI_COLOR|CPE_NAME|LOGO|PLATFORM_ID|VARIANT|VARIANT_ID|DOCUMENTATION_URL|DEFAULT_HOSTNAME|BUILD_ID|DEBIAN_VERSION_FULL|REDHAT_\w+|CENTOS_\w+|SUPPORT_END)=\S.*$`)
	cmdlineLine = pattern.New(`^(?:BOOT_IMAGE=\S+ .*\broot=\S+.*|.*\broot=(?:/dev/|UUID=|LABEL=)\S+ .*\b(?:ro|rw|quiet)\b.*|.*\bconsole=tty\S+ .*\S+=\S+.*)$`)
)

var uname = contextKind("kernel release", []string{"Linux "}, func(lines []paste.Line) int {
	return run(lines, func(t string) bool { return unameLine.MatchString(t) || versionLine.MatchString(t) })
}, func(lines []string) ([]string, string) {
	f := strings.Fields(lines[0])
	release := f[2]
	if release[0] == '#' { // uname without the host
		release = f[1]
	}
	return []string{"Linux " + printed(release)}, "It says which kernel runs; nothing of slowness."
})

// fileNR is /proc/sys/fs/file-nr without its name: a limit that is none is the largest number there
// is, and the middle is 0 since Linux 2.6.
var fileNR = pattern.New(`^(\d+)(?:\t0\t(\d+)|\s+0\s+(9223372036854775807))$`)

var openFiles = contextKind("/proc/sys/fs/file-nr", []string{"\t0\t", "9223372036854775807"},
	func(lines []paste.Line) int {
		if !fileNR.MatchString(strings.TrimSpace(lines[0].Text)) {
			return 0
		}
		return 1
	}, func(lines []string) ([]string, string) {
		m := fileNR.FindStringSubmatch(lines[0])
		if m == nil {
			return nil, "It says how many files are open."
		}
		figure := m[1] + " files are open, without a limit of the host"
		if m[2] != "" && m[2] != "9223372036854775807" {
			figure = m[1] + " files are open of at most " + m[2]
		}
		return []string{figure},
			"It says how many files are open on the whole host; a process has a limit of its own (/proc/PID/limits)."
	})

var osRelease = contextKind("os-release", []string{"="}, func(lines []paste.Line) int {
	if text := lines[0].Text; text == "" || text[0] < 'A' || text[0] > 'Z' || strings.IndexByte(text, '=') > 24 {
		return 0
	}
	if n := run(lines, osLine.MatchString); n >= 2 {
		return n
	}
	return 0
}, func(lines []string) ([]string, string) {
	name := lines[0]
	for _, t := range lines {
		if v, ok := strings.CutPrefix(t, "PRETTY_NAME="); ok {
			name = strings.Trim(v, `"`)
		}
	}
	return []string{printed(name)}, "It says which system it is; nothing of slowness."
})

var cmdline = contextKind("command line of the kernel", []string{"root=", "console="}, func(lines []paste.Line) int {
	if text := strings.TrimSpace(lines[0].Text); !strings.Contains(text, `", "`) && cmdlineLine.MatchString(text) {
		return 1
	}
	return 0
}, func(lines []string) (figures []string, means string) {
	for _, w := range strings.Fields(lines[0]) {
		for _, p := range []string{"isolcpus=", "nohz_full=", "rcu_nocbs=", "mitigations=",
			"transparent_hugepage=", "psi=", "numa_balancing=", "clocksource=", "tsc=",
			"hugepages=", "intel_idle.", "processor.max_cstate=", "idle=", "maxcpus=", "nr_cpus="} {
			if strings.HasPrefix(w, p) {
				figures = append(figures, printed(w))
			}
		}
	}
	if len(figures) == 0 {
		figures = []string{"no option in it that is known to matter for latency"}
	}
	return figures, "Settings of the boot; they cost nobody time by themselves."
})

var lscpuKnown = pattern.New(`^(Architecture|CPU op-mode\(s\)|Address sizes|Byte Order|CPU\(s\)|On-line CPU\(s\) list|Off-line CPU\(s\) list|Vendor ID|BIOS Vendor ID|Model name|BIOS Model name|CPU family|Model|Thread\(s\) per core|Core\(s\) per socket|Socket\(s\)|Core\(s\) per cluster|Cluster\(s\)|Socket\(s\) per (?:book|cluster)|Book\(s\) per drawer|Drawer\(s\)|Stepping|CPU(?: max| min| dynamic| static)? MHz|Machine type|Hypervisor|Dispatching mode|Physical (?:sockets|chips|cores/chip)|CPU\(s\) scaling MHz|BogoMIPS|Frequency boost|Flags|Virtualization(?: type| features)?|Hypervisor vendor|L\w+(?: cache)?|Caches \(sum of all\)|NUMA(?: node\(s\)|node\d+ CPU\(s\)| node\d+ CPU\(s\))?|Vulnerabilit(?:y|ies).*|Itlb multihit|Gather data sampling|Indirect target selection|L1tf|Mds|Meltdown|Mmio stale data|Reg file data sampling|Retbleed|Spec rstack overflow|Spec store bypass|Spectre v1|Spectre v2|Srbds|Tsa|Tsx async abort|Ghostwrite|Old microcode|Vmscape):`)

var lscpu = &attach.Kind{
	Name: "lscpu", Hints: []string{":"}, Context: true,
	Claim: func(lines []paste.Line) int {
		if text := lines[0].Text; text == "" || strings.IndexByte(text, ':') > 48 || text[0] > 'Z' {
			return 0
		}
		n := run(lines, lscpuKnown.MatchString)
		for _, l := range lines[:n] {
			if t := strings.TrimSpace(l.Text); n >= 3 &&
				(strings.HasPrefix(t, "CPU(s):") || strings.HasPrefix(t, "Thread(s) per core:") ||
					strings.HasPrefix(t, "CPU op-mode(s):") || strings.HasPrefix(t, "Model name:")) {
				return n
			}
		}
		return 0
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "lscpu", State: attach.Healthy,
			Means: "It says what CPUs there are; nothing of slowness."}
		v := map[string]string{}
		for _, l := range p.Lines {
			name, value, _ := strings.Cut(strings.TrimSpace(l.Text), ":")
			if v[name] == "" {
				v[name] = strings.TrimSpace(value)
			}
		}
		if v["Socket(s)"] != "" && v["Core(s) per socket"] != "" && v["Thread(s) per core"] != "" {
			r.Figures = append(r.Figures, fmt.Sprintf("sockets x cores x threads: %s x %s x %s",
				printed(v["Socket(s)"]), printed(v["Core(s) per socket"]), printed(v["Thread(s) per core"])))
		}
		for _, n := range []string{"CPU(s)", "NUMA node(s)", "Thread(s) per core", "Socket(s)",
			"Model name", "Hypervisor vendor"} {
			if v[n] != "" {
				r.Figures = append(r.Figures, n+": "+printed(v[n]))
			}
		}
		if off := v["Off-line CPU(s) list"]; off != "" {
			r.Figures = append([]string{"CPUs that are off: " + printed(off) + ", of " +
				printed(v["CPU(s)"])}, r.Figures...)
		}
		if now, top := v["CPU MHz"], v["CPU max MHz"]; now != "" && top != "" {
			r.Figures = append(r.Figures, fmt.Sprintf("%s MHz at the reading, %s at most", printed(now), printed(top)))
		}
		if n, err := strconv.ParseFloat(v["CPU(s)"], 64); err == nil {
			r.Facts = append(r.Facts, attach.Fact{Name: FactCPUs, Value: n})
		}
		if n, err := strconv.ParseFloat(v["NUMA node(s)"], 64); err == nil {
			r.Facts = append(r.Facts, attach.Fact{Name: FactNodes, Value: n})
		}
		return r
	},
}

var cpuinfoKnown = oneOf("processor vendor_id cpu|family model model|name stepping microcode cpu|MHz cache|size physical|id siblings core|id cpu|cores apicid initial|apicid fpu fpu_exception cpuid|level wp flags " +
	"vmx|flags bugs bogomips clflush|size cache_alignment address|sizes power|management BogoMIPS Features CPU|implementer CPU|architecture CPU|variant CPU|part CPU|revision TLB|size fdiv_bug hlt_bug f00f_bug coma_bug Hardware Revision Serial")

var cpuinfo = &attach.Kind{
	Name: "/proc/cpuinfo", Hints: []string{":"}, Context: true,
	Claim: func(lines []paste.Line) int {
		if strings.IndexByte(lines[0].Text, ':') > 24 {
			return 0
		}
		known, cpus := 0, 0
		n := run(lines, func(t string) bool {
			name, _, ok := strings.Cut(t, ":")
			name = strings.ReplaceAll(strings.TrimSpace(name), " ", "|")
			if !ok || !cpuinfoKnown(name) {
				return false
			}
			known++
			if name == "processor" || name == "cpu|MHz" || name == "model|name" {
				cpus++
			}
			return true
		})
		if known < 3 && cpus < 2 || cpus == 0 {
			return 0
		}
		return n
	},
	Read: func(p *attach.Part) attach.Reading {
		cpus, siblings, model := 0, 0, ""
		for _, l := range p.Lines {
			name, value, _ := strings.Cut(l.Text, ":")
			switch strings.TrimSpace(name) {
			case "processor":
				cpus++
			case "siblings":
				n, _ := strconv.Atoi(strings.TrimSpace(value))
				siblings = max(siblings, n)
			case "model name":
				model = strings.TrimSpace(value)
			}
		}
		r := attach.Reading{Title: "/proc/cpuinfo", State: attach.Healthy,
			Means: "It says what CPUs there are; nothing of slowness."}
		switch {
		case cpus > 0 && cpus < siblings:
			r.Figures = append(r.Figures, fmt.Sprintf("%s listed, of %d or more", plural(cpus, "CPU", "CPUs"), siblings))
		case cpus > 0:
			r.Figures = append(r.Figures, plural(cpus, "CPU", "CPUs"))
			r.Facts = []attach.Fact{{Name: FactCPUs, Value: float64(cpus)}}
		}
		if model != "" {
			r.Figures = append(r.Figures, printed(model))
		}
		return r
	},
}

var (
	numaAvailable = pattern.New(`^available: (\d+) nodes? \(`)
	numaNode      = pattern.New(`^node (\d+) (cpus|size|free): ?(.*)$`)
	numaDistance  = pattern.New(`^(?:node distances:|node(?: +\d+)+|\d+:(?: +\d+)+)$`)
)

var numactl = &attach.Kind{
	Name: "numactl -H", Hints: []string{"available: ", "node "},
	Claim: func(lines []paste.Line) int {
		nodes := 0
		n := run(lines, func(t string) bool {
			if numaNode.MatchString(t) || numaAvailable.MatchString(t) {
				nodes++
				return true
			}
			return nodes > 0 && numaDistance.MatchString(t)
		})
		return attach.ClaimIf(nodes >= 2, n)
	},
	Read: func(p *attach.Part) attach.Reading {
		size, free, nodes := map[string]float64{}, map[string]float64{}, map[string]bool{}
		var order []string
		r := attach.Reading{Title: "numactl --hardware", State: attach.Healthy, Glance: true}
		for _, l := range p.Lines {
			m := numaNode.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil {
				continue
			}
			nodes[m[1]] = true
			mb, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(m[3]), " MB"), 64)
			switch m[2] {
			case "size":
				size[m[1]] = mb * (1 << 20)
				order = append(order, m[1])
			case "free":
				free[m[1]] = mb * (1 << 20)
			}
		}
		low, high := "", ""
		for _, n := range order {
			if _, has := free[n]; !has {
				r.Figures = append(r.Figures, fmt.Sprintf("node %s: %s", n, mem(size[n])))
				continue
			}
			r.Figures = append(r.Figures, fmt.Sprintf("node %s: %s free of %s (%s)", n,
				mem(free[n]), mem(size[n]), percent(ratio(free[n], size[n]))))
			if ratio(free[n], size[n]) < 0.02 {
				low = n
			} else if ratio(free[n], size[n]) > 0.10 {
				high = n
			}
		}
		r.Facts = []attach.Fact{{Name: FactNodes, Value: float64(max(1, len(nodes)))}}
		r.Means = fmt.Sprintf("The machine has %s of memory.", plural(max(1, len(nodes)), "node", "nodes"))
		r.Not = "how much a node could give back: page cache is not in its free memory"
		if low != "" && high != "" {
			r.State = attach.CannotTell
			r.Means += fmt.Sprintf(" Node %s is nearly empty of free memory while node %s has plenty: who is bound to it may have to free memory.", low, high)
			r.Next = []attach.Next{{Command: "sysctl vm.zone_reclaim_mode; numastat; grep -E 'allocstall|zone_reclaim' /proc/vmstat", Why: "whether a node frees its own memory before it uses another's"}}
		}
		return r
	},
}

var uptimeLine = pattern.New(`^(\d{3,9}\.\d\d) (\d{1,10}\.\d\d)$`)

var uptime = &attach.Kind{
	Name: "/proc/uptime", Hints: []string{"."}, Context: true,
	Claim: func(lines []paste.Line) int {
		if len(lines[0].Text) < 32 && uptimeLine.MatchString(strings.TrimSpace(lines[0].Text)) &&
			(len(lines) == 1 || strings.TrimSpace(lines[1].Text) == "" || lines[1].Command != "") {
			return 1
		}
		return 0
	},
	Read: func(p *attach.Part) attach.Reading {
		m := uptimeLine.FindStringSubmatch(strings.TrimSpace(p.Lines[0].Text))
		up := float(m[1])
		idle := float(m[2])
		return attach.Reading{
			Title: "/proc/uptime", State: attach.Healthy, Boot: true,
			Figures: []string{fmt.Sprintf("up for %s days, %s s of idle CPU time for each second of it", number(up/86400), number(ratio(idle, up)))},
			Means:   "An average since boot; nothing follows for now.",
		}
	},
}
