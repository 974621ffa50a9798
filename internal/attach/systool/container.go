package systool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// containers knows what tools print of containers, pods, nodes and groups: docker stats, kubectl
// top, crictl stats, systemd-cgtop.
var containers = &attach.Kind{
	Name:  "container usage",
	Hints: []string{"CPU", "slice", "service", "/ ", "LIMIT"},
	Claim: claimContainers,
	Read:  readContainers,
}

type containerTool int

const (
	noContainerTool containerTool = iota
	dockerStats
	kubectlTop
	crictlStats
	cgtop
)

func containerHeader(text string) containerTool {
	f := fields(strings.TrimSpace(text))
	has := func(n string) bool { return slices.Contains(f, n) }
	switch {
	case has("MEM") && strings.Contains(text, "USAGE") && strings.Contains(text, "LIMIT") && (has("CPU") || has("NAME") || has("CONTAINER")), strings.Contains(text, "CPU %") && strings.Contains(text, "MEM USAGE"):
		return dockerStats
	case strings.Contains(text, "CPU(cores)") && strings.Contains(text, "MEMORY(bytes)"):
		return kubectlTop
	case len(f) >= 4 && f[0] == "CONTAINER" && has("CPU") && has("MEM") && has("DISK"):
		return crictlStats
	case len(f) >= 5 && (f[0] == "Control" || f[0] == "CGroup") && has("%CPU") && has("Memory"):
		return cgtop
	}
	return noContainerTool
}

// cgtopRow: systemd-cgtop -b prints no names.
func cgtopRow(f []string) bool {
	if len(f) != 6 {
		return false
	}
	return cgtopStart(f)
}

// cgtopStart is a row, or the start of one that a terminal broke.
func cgtopStart(f []string) bool {
	if len(f) < 4 || len(f) > 6 || !strings.HasPrefix(f[0], "/") && !strings.HasSuffix(f[0], ".slice") && !strings.HasSuffix(f[0], ".service") {
		return false
	}
	return cgtopCells(f[1:])
}

func cgtopCells(f []string) bool {
	for _, c := range f {
		if _, ok := size(c, 1); !ok && c != "-" {
			return false
		}
	}
	return true
}

func containerRow(tool containerTool, f []string) bool {
	switch tool {
	case dockerStats:
		return dockerUse.MatchString(strings.Join(f, " ")) || f[0] == "Total:" || slices.Contains(f, "/") && slices.ContainsFunc(f, func(c string) bool { return strings.HasSuffix(c, "%") }) || slices.Contains(f, "--")
	case kubectlTop:
		return len(f) >= 2 && slices.ContainsFunc(f, func(c string) bool {
			_, ok := milli(c)
			return ok
		}) && slices.ContainsFunc(f, func(c string) bool { return strings.HasSuffix(c, "i") || c == "<unknown>" })
	case crictlStats:
		if len(f) < 4 {
			return false
		}
		_, ok := number(f[len(f)-4])
		return ok
	}
	return cgtopStart(f) || len(f) > 0 && len(f) <= 2 && cgtopCells(f)
}

func claimContainers(lines []paste.Line) int {
	tool := noContainerTool
	n := attach.ClaimWhile(lines, func(_ int, text string) bool {
		if t := containerHeader(text); t != noContainerTool {
			tool = t
			return true
		}
		f := fields(text)
		if tool == noContainerTool && cgtopRow(f) {
			tool = cgtop
		}
		if tool == noContainerTool && dockerBare.MatchString(strings.Join(f, " ")) {
			tool = dockerStats
		}
		return tool != noContainerTool && containerRow(tool, f)
	})
	if n == 1 && tool != dockerStats && containerHeader(lines[0].Text) == noContainerTool {
		return 0
	}
	return n
}

// milli reads a number of CPUs: 250m, 2.
func milli(s string) (float64, bool) {
	if rest, ok := strings.CutSuffix(s, "m"); ok {
		f, ok := number(rest)
		return f / 1000, ok
	}
	if n, ok := whole(s); ok && n < 1e5 {
		return float64(n), true
	}
	return 0, false
}

// container is one row.
type container struct {
	name      string
	cpu       float64 // CPUs
	hasCPU    bool
	node      bool    // a machine, which has no quota
	used, max float64 // bytes; max is 0 where it is not known
	percent   float64 // of memory, as printed; 0: not printed, or under 1 %
}

func parseContainers(p *attach.Part) (all []container, tool containerTool) {
	var names []string
	for _, l := range p.Lines {
		if t := containerHeader(l.Text); t != noContainerTool {
			tool, names = t, uncommented(fields(l.Text))
			continue
		}
		f := uncommented(fields(l.Text))
		if len(f) < 3 && !(len(f) == 2 && len(names) == 2) {
			continue
		}
		if tool == noContainerTool {
			tool = cgtop
			if m := dockerBare.FindStringSubmatch(strings.Join(f, " ")); m != nil {
				tool = dockerStats
				if m[1] != "" {
					names = []string{"ID", "NAME"}
				}
			}
		}
		switch tool {
		case dockerStats:
			if f[0] != "Total:" {
				all = append(all, dockerRow(f, names))
			}
		case kubectlTop:
			c := kubectlRow(f, names)
			c.node = slices.ContainsFunc(names, func(n string) bool { return n == "CPU%" || n == "CPU(%)" }) && !slices.Contains(names, "POD")
			if c.name == "" {
				c.name = "it" // the one that the command names
			}
			all = append(all, c)
		case crictlStats:
			c := container{name: f[0], hasCPU: true}
			if names[1] == "NAME" && len(f) > 5 {
				c.name = f[1]
			}
			c.cpu, _ = number(f[len(f)-4])
			c.cpu /= 100
			c.used, _ = humanSize(f[len(f)-3])
			all = append(all, c)
		case cgtop:
			c := container{name: f[0]}
			c.cpu, c.hasCPU = number(f[2])
			c.cpu /= 100
			c.used, _ = size(f[3], 1)
			all = append(all, c)
		}
	}
	return all, tool
}

// uncommented leaves out the mark that makes a line a comment of a script: such an output stands in
// many a guide.
func uncommented(f []string) []string {
	if len(f) > 1 && (f[0] == "#" || f[0] == "//") {
		return f[1:]
	}
	return f
}

// dockerUse is what a row has behind the container's names, which a person may have written anew:
// perhaps its CPU use, and its memory.
var dockerUse = pattern.New(`^(.+?) (?:([\d.,]+)% )?([\d.,]+ ?[kKMGT]?i?B) ?/ ?([\d.,]+ ?[kKMGT]?i?B)(?: |$)`)

// dockerBare is a whole row of docker stats, which needs no line of names: an id and a name or one
// of both, shares of CPU and memory, and three pairs of amounts.
var dockerBare = pattern.New(`^(?:([0-9a-f]{12,64}) )?[\w.-]+ [\d.,]+% [\d.]+[kKMGT]?i?B / [\d.]+[kKMGT]?i?B [\d.,]+%(?: [\d.]+[kKMGT]?B / [\d.]+[kKMGT]?B){2}(?: \d+)?$`)

func dockerRow(f, names []string) (c container) {
	if m := dockerUse.FindStringSubmatch(strings.Join(f, " ")); m != nil {
		c.name = m[1]
		if id, name, ok := strings.Cut(m[1], " "); ok && slices.Contains(names, "NAME") && slices.Contains(names, "ID") {
			c.name, _ = name, id
		}
		if m[2] != "" {
			c.cpu, c.hasCPU = number(m[2])
			c.cpu /= 100
		}
		c.used, _ = humanSize(strings.ReplaceAll(m[3], " ", ""))
		c.max, _ = humanSize(strings.ReplaceAll(m[4], " ", ""))
		return c
	}
	c.name = f[0]
	at := slices.IndexFunc(f, func(s string) bool { return strings.HasSuffix(s, "%") })
	if at > 1 && slices.Contains(names, "NAME") {
		c.name = f[1]
	}
	if at >= 0 {
		c.cpu, c.hasCPU = number(f[at])
		c.cpu /= 100
	}
	if slash := slices.Index(f, "/"); slash > 0 && slash+1 < len(f) {
		c.used, _ = humanSize(f[slash-1])
		c.max, _ = humanSize(f[slash+1])
	}
	return c
}

func kubectlRow(f, names []string) (c container) {
	at := slices.Index(names, "CPU(cores)")
	if at < 0 || at >= len(f) {
		at = 1
	}
	c.name = strings.Join(f[:at], "/")
	c.cpu, c.hasCPU = milli(f[at])
	memory := slices.Index(names, "MEMORY(bytes)")
	if memory > 0 && memory < len(f) {
		c.used, _ = size(f[memory], 1)
	}
	if part := slices.Index(names, "MEMORY%"); part > 0 && part < len(f) {
		if p, ok := number(f[part]); ok {
			c.percent = p
		}
	}
	return c
}

// toolNames by tool.
var toolNames = map[containerTool]string{dockerStats: "docker stats", kubectlTop: "kubectl top", crictlStats: "crictl stats", cgtop: "systemd-cgtop"}

func readContainers(p *attach.Part) attach.Reading {
	all, tool := parseContainers(p)
	v := &verdict{}
	v.Title, v.Glance = toolNames[tool]+", "+attach.Plural(len(all), "row"), true
	busiest, largest := -1, -1
	for i, c := range all {
		if i < 256 {
			if c.hasCPU {
				v.factOf(ContainerCPU, c.cpu, c.name)
			}
			if c.max > 0 {
				v.factOf(ContainerMemory, c.used/c.max, c.name)
			}
		}
		if c.hasCPU && c.name != "/" && (busiest < 0 || c.cpu > all[busiest].cpu) {
			busiest = i
		}
		if c.name != "/" && (largest < 0 || nearer(c, all[largest])) {
			largest = i
		}
	}
	if busiest >= 0 {
		v.figure("%s uses %s", all[busiest].name, cpuText(all[busiest].cpu))
	} else if len(all) > 0 && tool == cgtop {
		v.figure("no use of CPUs yet: the first round of systemd-cgtop has none to compare with")
	}
	containerGaps(v, all, tool)
	if largest >= 0 && all[largest].used > 0 {
		c := all[largest]
		if c.max > 0 {
			v.figure("%s uses %s of %s memory (%s %%)", c.name, bytes(c.used), bytes(c.max), plain(100*c.used/c.max))
		} else {
			text := "its limit is not in it"
			if c.percent > 0 {
				text = plain(c.percent) + " % of what it may have"
			}
			v.figure("%s uses %s memory; %s", c.name, bytes(c.used), text)
		}
	}
	if len(all) == 0 {
		v.unsure = true
		v.means("no row of it is whole in the paste")
		return v.done()
	}
	containerJudge(v, all)
	if slices.ContainsFunc(all, func(c container) bool { return c.node }) {
		v.not("usage does not show whether threads wait for CPUs")
	} else {
		v.not("usage does not show what was held back: a container at its quota uses exactly its quota")
	}
	groupsAll(v, all, tool, busiest)
	if slices.ContainsFunc(all, func(c container) bool { return c.node }) {
		v.unsure = true
		v.means("it shows how busy nodes are, and not what waits on them")
		return v.done()
	}
	v.means("no container is at a limit that this shows")
	return v.done()
}

// groupsAll: systemd-cgtop prints the use of the whole host, and not of how many CPUs.
func groupsAll(v *verdict, all []container, tool containerTool, busiest int) {
	if tool != cgtop || busiest < 0 {
		return
	}
	most := all[busiest].cpu
	for _, c := range all {
		if c.name == "/" && c.hasCPU {
			most = max(most, c.cpu)
		}
	}
	if most < 0.9 {
		return
	}
	v.unsure = true
	v.means("the groups use %s CPUs in all; whether those are all that the host has, and threads wait for one, is not in it", fixed(most))
	v.next("nproc; cat /proc/pressure/cpu", "how many CPUs there are, and whether threads wait for one")
}

// nearer reports whether a container is nearer to its limit, or larger where there is none.
func nearer(c, o container) bool {
	if c.max > 0 && o.max > 0 && c.used/c.max != o.used/o.max {
		return c.used/c.max > o.used/o.max
	}
	return c.used > o.used
}

// cpuText writes a use of CPUs: a small one in percent of one, so that it is not taken for none.
func cpuText(cpus float64) string {
	if cpus < 0.095 {
		return plain(100*cpus) + " % of a CPU"
	}
	return fixed(cpus) + " CPUs"
}

// containerGaps says what the table leaves out: memory that is not counted, and the root's.
func containerGaps(v *verdict, all []container, tool containerTool) {
	counted := slices.ContainsFunc(all, func(c container) bool { return c.used > 0 })
	if len(all) > 1 && !counted && tool == dockerStats && slices.ContainsFunc(all, func(c container) bool { return c.max > 0 }) {
		v.figure("0 B of memory in every row: it is not counted here (the memory controller of cgroups is off), and not free")
	}
	for _, c := range all {
		if c.name == "/" && c.used > 0 {
			v.figure("all groups together (/) use %s memory", bytes(c.used))
		}
	}
}

// containerJudge: a use of CPU near a round number may be a quota, and needs the counters of
// throttling; memory near its limit may be reclaimed all the time.
func containerJudge(v *verdict, all []container) {
	for _, c := range all {
		if c.max > 0 && c.used/c.max >= 0.9 && c.max < 1<<50 {
			proof := fmt.Sprintf("%s uses %s of %s memory (%s %%)", c.name, bytes(c.used), bytes(c.max), plain(100*c.used/c.max))
			v.candidate("direct-reclaim", 0, proof)
			v.candidate("page-fault", 0, proof)
			v.means("%s is at its memory limit: whether its threads free memory themselves is not in it", c.name)
			v.next("cat /sys/fs/cgroup/CGROUP/memory.events /sys/fs/cgroup/CGROUP/memory.pressure", "whether the limit is hit: max, and some avg10")
			v.Who.Cgroup = c.name
			break
		}
	}
	root := 0.0
	for _, c := range all {
		if c.name == "/" {
			root = max(root, c.cpu)
		}
	}
	for i, c := range all {
		if !c.hasCPU || c.node || c.cpu < 0.09 || c.name == "/" || hasGroups(c, all) || c.cpu > manyCPUs && c.cpu >= 0.9*root {
			continue
		}
		nearest, ok := nearQuota(c.cpu)
		if !ok {
			continue
		}
		v.next("cat /sys/fs/cgroup/CGROUP/cpu.max /sys/fs/cgroup/CGROUP/cpu.stat", "nr_throttled against nr_periods: whether a quota stops it")
		v.unsure = true
		if !againAt(nearest, c.name, all[i+1:]) {
			continue // one figure is near such a number by chance
		}
		proof := fmt.Sprintf("%s uses %s CPUs, and again as many: near %s, which may be its quota", c.name, fixed(c.cpu), plain(nearest))
		if nearest >= 0.5 {
			v.candidate("cpu-throttled", 0, proof)
		}
		v.means("%s; or it just computes that much, as one busy thread does", proof)
		break
	}
}

// againAt reports whether a later sample of a container is near the same number of CPUs.
func againAt(cpus float64, name string, later []container) bool {
	return slices.ContainsFunc(later, func(o container) bool {
		q, ok := nearQuota(o.cpu)
		return ok && q == cpus && o.name == name && o.hasCPU
	})
}

// manyCPUs is a use of CPUs that is no usual quota of one service. Where nearly all of a host's use
// is one group's, and that much, the CPUs are full as likely as the quota is.
const manyCPUs = 3.5

// hasGroups reports whether groups below one are in the table: what it uses is their sum.
func hasGroups(c container, all []container) bool {
	return slices.ContainsFunc(all, func(o container) bool { return o.hasCPU && o.cpu > 0 && strings.HasPrefix(o.name, c.name+"/") })
}

// nearQuota is the usual quota that a use of CPUs is as good as at: halves, and below one also
// a tenth, a fifth and a quarter.
func nearQuota(cpus float64) (float64, bool) {
	usual := []float64{0.1, 0.2, 0.25}
	for q := 0.5; q <= 16; q += 0.5 {
		usual = append(usual, q)
	}
	for _, q := range usual {
		if cpus >= 0.985*q && cpus <= 1.015*q {
			return q, true
		}
	}
	return 0, false
}
