package format

import (
	"path"
	"strings"
)

// Kinds of the kernel's files, each alone as people attach them or as a reading in a member.
const (
	KindReadings   Kind = "readings of the kernel's files"
	KindCPUStat    Kind = "cpu.stat of a cgroup"
	KindCPUMax     Kind = "cpu.max of a cgroup"
	KindMemoryStat Kind = "memory.stat of a cgroup"
	KindEvents     Kind = "memory.events of a cgroup"
	KindVmstat     Kind = "/proc/vmstat"
	KindBuddyinfo  Kind = "/proc/buddyinfo"
	KindZoneinfo   Kind = "/proc/zoneinfo"
	KindMeminfo    Kind = "/proc/meminfo"
	KindFree       Kind = "output of free"
	KindStatus     Kind = "status of a process"
	KindLimits     Kind = "limits of a process"
	KindSmaps      Kind = "smaps of a process"
	KindRollup     Kind = "smaps_rollup of a process"
	KindIO         Kind = "io of a process"
	KindPIDStat    Kind = "stat of a process"
	KindPIDCgroup  Kind = "cgroup of a process"
	KindMountinfo  Kind = "mountinfo of a process"
	KindInterrupts Kind = "/proc/interrupts"
	KindPressure   Kind = "a file of pressure (PSI)"
	KindStat       Kind = "/proc/stat"
	KindTaskstats  Kind = "delay accounting"
)

// procFile is one kind of the kernel's files.
type procFile struct {
	kind  Kind
	name  string                 // base name of its path, in a member
	looks func(text string) bool // knows it by its first lines, where it stands alone; nil: it cannot be told
	parse func(*procState, reading) error
	gap   string // stream that lacks where it could not be read
}

// procFiles is what is parsed of readings; files that are kept for people to read are not in it. The order matters to looks: the more
// particular ones first.
var procFiles []procFile

func init() {
	procFiles = []procFile{
		{KindRollup, "smaps_rollup", looksRollup, (*procState).smaps, "/process/anon-huge:bytes"},
		{KindSmaps, "smaps", looksSmaps, (*procState).smaps, "/process/anon-huge:bytes"},
		{KindStatus, "status", looksStatus, (*procState).status, ""},
		{KindLimits, "limits", prefixed("Limit "), (*procState).limits, ""},
		{KindIO, "io", prefixed("rchar:"), (*procState).io, "/process/io/read:bytes"},
		{KindCPUStat, "cpu.stat", firstKey("nr_periods", "usage_usec"), (*procState).cpuStat, ""},
		{KindMemoryStat, "memory.stat", looksMemoryStat, (*procState).memoryStat, ""},
		{KindEvents, "memory.events", looksEvents, (*procState).memoryEvents, ""},
		{KindVmstat, "vmstat", firstKey("nr_free_pages", "nr_dirty"), (*procState).vmstat, ""},
		{KindTaskstats, "taskstats", nil, (*procState).taskstats, "/process/delay/blkio:ns"},
		{KindBuddyinfo, "buddyinfo", looksBuddy, (*procState).buddyinfo, ""},
		{KindZoneinfo, "zoneinfo", prefixed("Node 0, zone"), (*procState).zoneinfo, ""},
		{KindMeminfo, "meminfo", prefixed("MemTotal:"), (*procState).meminfo, ""},
		{KindFree, "free", looksFree, (*procState).free, ""},
		{KindInterrupts, "interrupts", prefixed("CPU0"), (*procState).interrupts, ""},
		{KindStat, "stat", looksStat, (*procState).hostStat, ""},
		{KindPIDStat, "stat", looksPIDStat, (*procState).pidStat, ""},
		{KindPIDCgroup, "cgroup", looksCgroup, (*procState).pidCgroup, ""},
		{KindMountinfo, "mountinfo", looksMountinfo, (*procState).mountinfo, ""},
		{KindPressure, "pressure", prefixed("some avg10="), (*procState).pressure, ""},
		{KindScalar, "", nil, (*procState).scalar, ""},
		{KindCPUMax, "cpu.max", looksCPUMax, (*procState).cpuMax, ""},
	}
}

// byPath finds the kind of a reading in a member.
func byPath(p string) *procFile {
	base := path.Base(p)
	switch {
	case strings.Contains(p, "/task/*/"):
		return nil // a line for each thread
	case p == "/proc/stat":
		return procFileOf(KindStat)
	case base == "stat":
		return procFileOf(KindPIDStat)
	case strings.HasSuffix(base, ".pressure"), strings.HasPrefix(p, "/proc/pressure/"):
		return procFileOf(KindPressure)
	}
	for i := range procFiles {
		if procFiles[i].name == base && base != "" {
			return &procFiles[i]
		}
	}
	return nil
}

func procFileOf(k Kind) *procFile {
	for i := range procFiles {
		if procFiles[i].kind == k {
			return &procFiles[i]
		}
	}
	return nil
}

// identifyProc knows one of the kernel's files by its first lines.
func identifyProc(text string) Kind {
	if strings.HasPrefix(text, readingsHead) {
		return KindReadings
	}
	text = strings.TrimLeft(text, " \t\r\n")
	for i := range procFiles {
		if f := &procFiles[i]; f.looks != nil && f.looks(text) {
			return f.kind
		}
	}
	return KindUnknown
}

func prefixed(with string) func(string) bool {
	return func(text string) bool { return strings.HasPrefix(text, with) }
}

// firstKey is for files of lines "name value".
func firstKey(names ...string) func(string) bool {
	return func(text string) bool {
		for _, n := range names {
			if rest, ok := strings.CutPrefix(text, n+" "); ok && rest != "" && rest[0] >= '0' && rest[0] <= '9' {
				return true
			}
		}
		return false
	}
}

func looksMemoryStat(text string) bool {
	return firstKey("anon", "cache")(text) && (strings.Contains(text, "\nfile ") || strings.Contains(text, "\nrss "))
}

func looksEvents(text string) bool {
	return firstKey("low")(text) && strings.Contains(text, "\nhigh ") && strings.Contains(text, "\noom_kill ")
}

func looksStatus(text string) bool {
	return strings.HasPrefix(text, "Name:") && (strings.Contains(text, "\nTgid:") || strings.Contains(text, "\nPid:"))
}

func looksRollup(text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasSuffix(strings.TrimSpace(first), "[rollup]")
}

// looksSmaps wants a mapping's line and a size under it; a line of flags of the mapping before may be above.
func looksSmaps(text string) bool {
	for n := 0; n < 3; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if _, ok := mappingStart(line); ok {
			return strings.HasPrefix(text, "Size:") || strings.HasPrefix(text, "Rss:")
		}
		if n == 0 && strings.HasPrefix(strings.ToLower(line), "vmflags:") {
			continue
		}
		return false
	}
	return false
}

func looksBuddy(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	return len(f) >= 10 && f[0] == "Node" && f[2] == "zone"
}

func looksFree(text string) bool {
	line, rest, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	return len(f) >= 3 && f[0] == "total" && f[1] == "used" && f[2] == "free" && strings.HasPrefix(strings.TrimSpace(rest), "Mem:")
}

func looksStat(text string) bool {
	return strings.HasPrefix(text, "cpu ") && strings.Contains(text, "\ncpu0 ")
}

func looksPIDStat(text string) bool {
	end := strings.LastIndexByte(text, ')')
	open := strings.IndexByte(text, '(')
	return open > 1 && end > open && strings.Trim(text[:open-1], "0123456789") == "" && len(strings.Fields(text[end+1:])) >= 40 && !strings.Contains(text[:open], "\n")
}

func looksCgroup(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.SplitN(line, ":", 3)
	return len(f) == 3 && f[0] != "" && strings.Trim(f[0], "0123456789") == "" && strings.HasPrefix(f[2], "/")
}

func looksMountinfo(text string) bool {
	line, _, _ := strings.Cut(text, "\n")
	f := strings.Fields(line)
	return len(f) >= 9 && isNumber(f[0]) && isNumber(f[1]) && strings.Contains(f[2], ":") && strings.Contains(line, " - ")
}

func looksCPUMax(text string) bool {
	f := strings.Fields(text)
	return len(f) == 2 && (f[0] == "max" || isNumber(f[0])) && isNumber(f[1])
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// KindScalar is a cgroup's file of one number, which only its name tells.
const KindScalar Kind = "a setting of a cgroup"

// byName knows files of one number by their names: their content tells nothing.
func byName(name string, data []byte) Kind {
	base := path.Base(name)
	f := strings.Fields(string(data[:min(len(data), 64)]))
	if len(f) == 1 && len(data) < 64 && (isNumber(strings.TrimPrefix(f[0], "-")) || f[0] == "max") {
		switch base {
		case "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares", "cpu.weight", "cpuacct.usage", "memory.max", "memory.high", "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.failcnt":
			return KindScalar
		}
	}
	return KindUnknown
}
