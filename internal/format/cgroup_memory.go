package format

import (
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The memory controller's files of more than one value.
const (
	KindMemoryStat Kind = "memory.stat of a cgroup"
	KindEvents     Kind = "memory.events of a cgroup"
)

var _ = registerFile(&row{
	kind: KindMemoryStat, name: "memory-stat",
	looks: looksMemoryStat, at: base("memory.stat"), file: (*kernelFiles).memoryStat,
	streams: []evidence.Stream{
		{Name: "/cgroup/memory/anon:bytes", Doc: "Sample. The anonymous part of it."},
		{Name: "/cgroup/memory/file:bytes", Doc: "Sample. The page cache in it."},
		{Name: "/cgroup/memory/anon-huge:bytes", Doc: "Sample. The anonymous memory in huge pages."},
		{Name: "/cgroup/memory/faults/major:faults", Doc: "Counter. Major faults of the group."},
		{Name: "/cgroup/memory/scan:pages",
			Doc: "Counter. Pages scanned to reclaim from the group; v2 only: late kernels lack it in v1."},
		{Name: "/cgroup/memory/scan/direct:pages",
			Doc: "Counter. The part that was scanned by threads that wanted memory."},
		{Name: "/cgroup/memory/refault:pages", Doc: "Counter. Pages of the working set that had to be read again."},
	},
})

var _ = registerFile(&row{
	kind: KindEvents, name: "memory-events",
	looks: looksEvents, at: base("memory.events"), file: (*kernelFiles).memoryEvents,
	streams: []evidence.Stream{
		{Name: "/cgroup/memory/events/high:events",
			Doc: "Counter. Times a thread had to reclaim because of memory.high."},
		{Name: "/cgroup/memory/events/max:events", Doc: "Counter. Times the limit was hit; memory.failcnt of v1."},
		{Name: "/cgroup/memory/events/oom:events", Doc: "Counter. Times reclaim at the limit failed."},
		{Name: "/cgroup/memory/events/oom-kill:processes",
			Doc: "Counter. Processes of the group that were killed for memory."},
	},
})

func looksMemoryStat(h head) bool {
	return firstKey("anon", "cache")(h) && (strings.Contains(h.start, "\nfile ") || strings.Contains(h.start, "\nrss "))
}

func looksEvents(h head) bool {
	return firstKey("low")(h) && strings.Contains(h.start, "\nhigh ") && strings.Contains(h.start, "\noom_kill ")
}

// memoryStats maps lines to streams. v1 has totals that include the groups below, and those are
// taken.
var memoryStats = map[string]struct {
	stream string
	shape  evidence.Shape
}{
	"anon": {"memory/anon:bytes", evidence.Sample}, "total_rss": {"memory/anon:bytes", evidence.Sample},
	"file": {"memory/file:bytes", evidence.Sample}, "total_cache": {"memory/file:bytes", evidence.Sample},
	"anon_thp":                      {"memory/anon-huge:bytes", evidence.Sample},
	"total_rss_huge":                {"memory/anon-huge:bytes", evidence.Sample},
	"pgmajfault":                    {"memory/faults/major:faults", evidence.Counter},
	"total_pgmajfault":              {"memory/faults/major:faults", evidence.Counter},
	"pgscan":                        {"memory/scan:pages", evidence.Counter},
	"pgscan_direct":                 {"memory/scan/direct:pages", evidence.Counter},
	"workingset_refault_file":       {"memory/refault:pages", evidence.Counter},
	"total_workingset_refault_file": {"memory/refault:pages", evidence.Counter},
}

func (s *kernelFiles) memoryStat(r reading) error {
	l := s.levelOf("memory", r.path)
	if l == nil {
		return nil
	}
	v1 := strings.Contains(r.text, "total_cache ")
	return pairs(r.text, " ", func(name string, v float64) {
		if st, ok := memoryStats[name]; ok && (!v1 || strings.HasPrefix(name, "total_")) {
			l.counts = append(l.counts, evidence.Record{Stream: st.stream, Shape: st.shape, Time: r.time, Value: v})
		}
	})
}

func (s *kernelFiles) memoryEvents(r reading) error {
	l := s.levelOf("memory", r.path)
	if l == nil {
		return nil
	}
	streams := map[string]string{"high": "memory/events/high:events",
		"max": "memory/events/max:events", "oom": "memory/events/oom:events",
		"oom_kill": "memory/events/oom-kill:processes"}
	return pairs(r.text, " ", func(name string, v float64) {
		if st, ok := streams[name]; ok {
			l.counts = append(l.counts, evidence.Record{Stream: st, Shape: evidence.Counter, Time: r.time, Value: v})
		}
	})
}
