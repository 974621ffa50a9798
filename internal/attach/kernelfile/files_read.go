package kernelfile

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// contentKinds are the kinds whose files a list of files may hold.
func contentKinds() []*attach.Kind {
	return []*attach.Kind{cpuStat, memoryStat, memoryEvents, pressure, meminfo, vmstat, buddyinfo}
}

// readFiles reads files by their names: those of one cgroup together, each other one by its kind.
func readFiles(files []file) attach.Reading {
	var readings []attach.Reading
	for _, dir := range groupDirs(files) {
		readings = append(readings, readGroup(dir, files)...)
	}
	var rest, pressures, delays []file
	var named []setting
	for _, f := range files {
		switch b := f.base(); {
		case strings.HasSuffix(b, ".pressure") || strings.HasPrefix(f.path, "/proc/pressure/"):
			pressures = append(pressures, f)
		case scalars(b) || groupFiles(b):
		case b == "schedstat" && len(strings.Fields(f.text())) == 3:
			delays = append(delays, f)
		case isSettingPath(f.path):
			named = append(named, setting{settingName(f.path), f.text()})
		default:
			rest = append(rest, f)
		}
	}
	if len(pressures) > 0 {
		readings = append(readings, readNamedPressure(pressures))
	}
	if len(named) > 0 {
		readings = append(readings, readSettings(named))
	}
	for len(delays) > 0 {
		same := []file{delays[0]}
		var others []file
		for _, f := range delays[1:] {
			if f.path == delays[0].path {
				same = append(same, f)
			} else {
				others = append(others, f)
			}
		}
		readings, delays = append(readings, readSchedstat(same)), others
	}
	for _, f := range rest {
		readings = append(readings, readByKind(f))
	}
	return merged(readings, files)
}

// readNamedPressure reads files of pressure together, each below its name.
func readNamedPressure(files []file) attach.Reading {
	p := &attach.Part{Kind: pressure}
	for _, f := range files {
		p.Lines = append(append(p.Lines, paste.Line{N: f.lines[0].N, Text: f.path + ":"}), f.lines...)
	}
	return readPressure(p)
}

func readByKind(f file) attach.Reading {
	for _, k := range contentKinds() {
		if len(f.lines) > 0 && k.Claim(f.lines) == len(f.lines) {
			return k.Read(&attach.Part{Kind: k, Lines: f.lines, Command: "cat " + f.path})
		}
	}
	return attach.Reading{
		Title: printed(f.path), State: attach.CannotTell,
		Figures: []string{printed(f.base() + ": " + f.text())},
		Means:   "The value of one file; nothing follows from it alone.",
	}
}

// settingName writes a path as sysctl does, or its last elements.
func settingName(p string) string {
	if rest, ok := strings.CutPrefix(p, "/proc/sys/"); ok {
		return strings.ReplaceAll(rest, "/", ".")
	}
	if _, rest, ok := strings.Cut(p, "/transparent_hugepage/"); ok {
		return "transparent_hugepage/" + rest
	}
	return p
}

// groupDirs lists the folders of cgroups. Those of v1's controllers that differ in the controller
// alone are one group.
func groupDirs(files []file) (dirs []string) {
	for _, f := range files {
		if b := f.base(); scalars(b) || groupFiles(b) {
			if d := groupDir(f.path); !slices.Contains(dirs, d) {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}

func groupDir(p string) string {
	d := path.Dir(p)
	if rest, ok := strings.CutPrefix(d, "/sys/fs/cgroup/"); ok {
		controller, below, _ := strings.Cut(rest, "/")
		switch controller {
		case "cpu", "cpuacct", "cpu,cpuacct", "cpuacct,cpu", "memory", "pids", "cpuset", "blkio", "unified":
			return "/" + below
		}
		return "/" + rest
	}
	switch d {
	case ".":
		return ""
	case "/sys/fs/cgroup":
		return "/"
	}
	return d
}

func readGroup(dir string, files []file) (out []attach.Reading) {
	cpu := cpuGroup{path: dir}
	memory := memGroup{path: dir, limit: none}
	var other []string
	var stats, memStats, events []file
	for _, f := range files {
		text := f.text()
		v, isNumber := value(text)
		switch b := f.base(); {
		case groupDir(f.path) != dir:
		case b == "cpu.max":
			if q, period, ok := parseCPUMax(text); ok {
				cpu.quota, cpu.period, cpu.hasQuota = q, period, true
			}
		case b == "cpu.cfs_quota_us" && isNumber:
			cpu.quota, cpu.hasQuota = v*1000, true
		case b == "cpu.cfs_period_us" && isNumber:
			cpu.period = v * 1000
		case (b == "cpu.shares" || b == "cpu.weight") && isNumber:
			cpu.shares = fmt.Sprintf("%s %s: a share where CPUs are contended, and no limit", b, number(v))
		case b == "cpu.stat":
			stats = append(stats, f)
		case b == "memory.stat":
			memStats = append(memStats, f)
		case b == "memory.events":
			events = append(events, f)
		case b == "memory.max" || b == "memory.limit_in_bytes":
			if memory.limit = v; !isNumber || v < 0 || v >= 1<<60 {
				memory.limit = -1
			}
		case (b == "memory.current" || b == "memory.usage_in_bytes") && isNumber:
			memory.used, memory.hasUsed = v, true
		case (b == "memory.peak" || b == "memory.max_usage_in_bytes") && isNumber:
			memory.peak = v
		case b == "memory.failcnt" && isNumber:
			memory.fails = append(memory.fails, v)
		case scalars(b):
			other = append(other, printed(b+" "+text))
		}
	}
	if cpu.hasQuota && cpu.quota < 0 {
		cpu.quota = -1
	}
	cpu.all, cpu.stats = statsOf(stats)
	if cpu.hasQuota || len(cpu.stats) > 0 || cpu.shares != "" {
		out = append(out, cpu.read())
	}
	sampled, m := statsOf(memStats)
	eventSamples, e := statsOf(events)
	memory.stats, memory.events = m, e
	if memory.all = sampled; len(e) > len(m) {
		memory.all = eventSamples
	}
	if len(m) > 0 || len(e) > 0 || memory.hasUsed || len(memory.fails) > 0 || memory.limit != none {
		out = append(out, memory.read())
	}
	if r, ok := readPids(files, dir); ok {
		out = append(out, r)
	}
	if len(out) == 0 && len(other) > 0 {
		out = append(out, attach.Reading{Title: "settings of a cgroup",
			Figures: other[:min(3, len(other))], State: attach.CannotTell,
			Means: "Settings and counts; nothing follows from them alone."})
	}
	return out
}

func value(text string) (float64, bool) {
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && v == v
}

// statsOf reads the samples of files of the same name.
func statsOf(files []file) ([]sample, []pairs) {
	if len(files) == 0 {
		return nil, nil
	}
	p := &attach.Part{}
	for _, f := range files {
		p.Lines = append(p.Lines, f.lines...)
	}
	all, m := pairSamples(p)
	if len(all) == len(files) {
		for i := 1; i < len(all); i++ {
			all[i].after = files[i].slept - files[i-1].slept
		}
	}
	return all, m
}

// readPids says how near a group is to its limit of threads.
func readPids(files []file, dir string) (r attach.Reading, ok bool) {
	limit, used := -1.0, -1.0
	for _, f := range files {
		v, isNumber := value(f.text())
		switch {
		case groupDir(f.path) != dir || !isNumber:
		case f.base() == "pids.max":
			limit = v
		case f.base() == "pids.current":
			used = v
		}
	}
	if used < 0 {
		return r, false
	}
	r = attach.Reading{Title: "pids controller of a cgroup", State: attach.Healthy,
		Figures: []string{number(used) + " threads, no limit"}, Means: "It has fewer threads than it may have."}
	if limit > 0 {
		r.Figures = []string{fmt.Sprintf("%s threads of %s allowed (%s)", number(used),
			number(limit), percent(ratio(used, limit)))}
		if used >= 0.95*limit {
			r.State = attach.CannotTell
			r.Means = "The group is at its limit of threads: no more can be made, which shows as errors of fork and clone and not as latency."
		}
	}
	return r, true
}

// merged puts the readings of several files together: the worst speaks first.
func merged(all []attach.Reading, files []file) attach.Reading {
	if len(all) == 0 {
		return attach.Reading{Title: "kernel files", State: attach.CannotTell, Means: "Nothing in them is known here."}
	}
	rank := map[attach.State]int{attach.Ill: 0, attach.CannotTell: 1, attach.Healthy: 2, attach.Context: 3}
	slices.SortStableFunc(all, func(a, b attach.Reading) int { return cmp.Compare(rank[a.State], rank[b.State]) })
	r := all[0]
	if len(all) == 1 {
		return r
	}
	var titles, figures, calm []string
	for i, o := range all {
		titles = append(titles, o.Title)
		if i > 0 {
			r.Signs = append(r.Signs, o.Signs...)
			r.Facts = append(r.Facts, o.Facts...)
			r.Flaws = append(r.Flaws, o.Flaws...)
			r.Boot = r.Boot || o.Boot
			r.Who.Cgroup = cmp.Or(r.Who.Cgroup, o.Who.Cgroup)
			if o.State == r.State || len(all) == 2 {
				r.Means += " " + o.Means
			}
			switch {
			case len(o.Figures) == 0:
			case o.State == attach.Healthy:
				calm = append(calm, o.Figures[0])
			default:
				figures = append(figures, o.Figures[0])
			}
		}
	}
	// Of each file one figure, before further ones of the first; what is healthy comes last.
	r.Figures = slices.Concat(r.Figures[:min(1, len(r.Figures))], figures, r.Figures[min(1, len(r.Figures)):], calm)
	r.Title = fmt.Sprintf("%s: %s", plural(len(files), "kernel file", "kernel files"),
		strings.Join(titles[:min(3, len(titles))], "; "))
	return r
}
