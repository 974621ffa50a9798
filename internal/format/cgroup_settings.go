package format

import (
	"path"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindScalar is a cgroup's file of one number, which only its name distinguishes.
const KindScalar Kind = "a setting of a cgroup"

var _ = registerFile(&row{
	kind: KindScalar, name: "cgroup-setting",
	at: isCgroupSetting, named: namesCgroupSetting, file: (*kernelFiles).cgroupSetting,
	streams: []evidence.Stream{
		{Name: "/cgroup/cpu/burst:ns", Doc: "Fact. What may be saved up at that level."},
		{Name: "/cgroup/cpu/weight:weight",
			Doc: "Fact. cpu.weight of the target's own group; Text \"shares\": cpu.shares of v1."},
		{Name: "/cgroup/memory/limit:bytes",
			Doc: "Fact. Effective limit, memory.max or limit_in_bytes: the least of all levels. 0 with Text \"no limit\"."},
		{Name: "/cgroup/memory/limit-at:path", Doc: "Fact. Text: the level that has the effective limit."},
		{Name: "/cgroup/memory/high:bytes", Doc: "Fact. Effective memory.high; no record: none, or v1."},
		{Name: "/cgroup/memory/used:bytes",
			Doc: "Sample. Memory charged to the level with the effective limit, page cache included; of the target's own group where there is none."},
		{Name: "/cgroup/level/memory/limit:bytes", Doc: "Fact a level, its path in Text. Only levels with a limit."},
	},
	also: []string{"/cgroup/cpu/quota:cpus", "/cgroup/level/cpu/quota:cpus",
		"/cgroup/cpu/period:ns", "/cgroup/cpu/used:ns", "/cgroup/memory/events/max:events",
		"/cgroup/memory/events/oom-kill:processes"},
})

// cgroupSettings are the files of one value, by their base name. memory.oom_control has a few, and
// is not known by its name alone.
var cgroupSettings = []string{
	"cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.max.burst", "cpu.shares",
	"cpu.weight", "cpuacct.usage",
	"memory.max", "memory.high", "memory.current", "memory.limit_in_bytes", "memory.usage_in_bytes",
	"memory.failcnt", "memory.oom_control",
}

func isCgroupSetting(p string) bool { return slices.Contains(cgroupSettings, path.Base(p)) }

// namesCgroupSetting knows a file of one number by its name: its content says nothing.
func namesCgroupSetting(base string, content []byte) bool {
	f := strings.Fields(string(content[:min(len(content), 64)]))
	return len(f) == 1 && len(content) < 64 && (isNumber(strings.TrimPrefix(f[0], "-")) ||
		f[0] == "max") && slices.Contains(cgroupSettings, base)
}

// cgroupSetting reads the files of one value. The first reading of a setting holds.
func (s *kernelFiles) cgroupSetting(r reading) error {
	text := strings.TrimSpace(r.text)
	base := path.Base(r.path)
	controller, _, _ := strings.Cut(base, ".")
	l := s.levelOf(controller, r.path)
	if l == nil {
		return nil
	}
	count := func(stream string, shape evidence.Shape, factor float64) error {
		v, err := amount(text)
		if err == nil {
			l.counts = append(l.counts, evidence.Record{Stream: stream, Shape: shape, Time: r.time, Value: v * factor})
		}
		return err
	}
	set := func(into *float64, none *bool, factor float64) error {
		v, err := amount(text)
		switch {
		case text == "max" || text == "-1" || err == nil &&
			v >= 1<<62: // v1 writes no limit as the largest number of pages
			if none != nil && *into < 0 {
				*none = true
			}
			return nil
		case err == nil && *into < 0 && v >= 0:
			*into = v * factor
		}
		return err
	}
	switch base {
	case "cpu.cfs_quota_us":
		return set(&l.quota, &l.noQuota, 1000)
	case "cpu.cfs_period_us":
		return set(&l.period, nil, 1000)
	case "cpu.cfs_burst_us", "cpu.max.burst":
		return set(&l.burst, nil, 1000)
	case "cpu.weight", "cpu.shares":
		if base == "cpu.shares" {
			l.weightText = "shares"
		}
		return set(&l.weight, nil, 1)
	case "cpuacct.usage":
		return count("cpu/used:ns", evidence.Counter, 1)
	case "memory.max", "memory.limit_in_bytes":
		return set(&l.limit, &l.noLimit, 1)
	case "memory.high":
		return set(&l.high, nil, 1)
	case "memory.current", "memory.usage_in_bytes":
		return count("memory/used:bytes", evidence.Sample, 1)
	case "memory.failcnt":
		return count("memory/events/max:events", evidence.Counter, 1)
	case "memory.oom_control":
		return pairs(text, " ", func(name string, v float64) {
			if name == "oom_kill" {
				l.counts = append(l.counts,
					evidence.Record{Stream: "memory/events/oom-kill:processes",
						Shape: evidence.Counter, Time: r.time, Value: v})
			}
		})
	}
	return nil
}
