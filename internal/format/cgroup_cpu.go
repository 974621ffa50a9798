package format

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The CPU controller's files of more than one value.
const (
	KindCPUStat Kind = "cpu.stat of a cgroup"
	KindCPUMax  Kind = "cpu.max of a cgroup"
)

var _ = registerFile(&row{
	kind: KindCPUStat, name: "cpu-stat",
	looks: firstKey("nr_periods", "usage_usec"), at: base("cpu.stat"), file: (*kernelFiles).cpuStat,
	streams: []evidence.Stream{
		{Name: "/cgroup/cpu/periods:periods", Doc: "Counter. Periods in which the group had something to run."},
		{Name: "/cgroup/cpu/throttled:periods",
			Doc: "Counter. Periods in which it ran out of quota. Alone it says little: a program at its quota is throttled in nearly all of them."},
		{Name: "/cgroup/cpu/throttled:ns", Doc: "Counter. Time the group had work and no quota, over all CPUs."},
		{Name: "/cgroup/cpu/used:ns", Doc: "Counter. CPU time of the group and all below it."},
		{Name: "/cgroup/level/cpu/periods:periods", Doc: "Counter a level, its path in Text."},
		{Name: "/cgroup/level/cpu/throttled:periods", Doc: "Counter a level, its path in Text."},
		{Name: "/cgroup/level/cpu/throttled:ns", Doc: "Counter a level, its path in Text."},
		{Name: "/cgroup/level/cpu/used:ns", Doc: "Counter a level, its path in Text."},
	},
})

var _ = registerFile(&row{
	kind: KindCPUMax, name: "cpu-max",
	looks: looksCPUMax, at: base("cpu.max"), file: (*kernelFiles).cpuMax,
	streams: []evidence.Stream{
		{Name: "/cgroup/cpu/quota:cpus",
			Doc: "Fact. Effective quota: the least of all levels. 0 with Text \"no quota\": every level seen, none has one. No record: not known."},
		{Name: "/cgroup/cpu/quota-at:path", Doc: "Fact. Text: the level that has the effective quota."},
		{Name: "/cgroup/cpu/period:ns", Doc: "Fact. Length of a period at that level."},
		{Name: "/cgroup/level/cpu/quota:cpus", Doc: "Fact a level, its path in Text. Only levels with a quota."},
	},
})

func looksCPUMax(h head) bool {
	f := strings.Fields(h.start)
	return len(f) == 2 && (f[0] == "max" || isNumber(f[0])) && isNumber(f[1])
}

// cpuMax reads v2's "50000 100000" or "max 100000", in us.
func (s *kernelFiles) cpuMax(r reading) error {
	l := s.levelOf("cpu", r.path)
	f := strings.Fields(r.text)
	if l == nil {
		return nil
	}
	if len(f) != 2 {
		return fmt.Errorf("want a quota and a period, got %.60q", r.text)
	}
	period, err := amount(f[1])
	if err != nil {
		return err
	}
	if l.period < 0 {
		l.period = period * 1000
	}
	if f[0] == "max" {
		l.noQuota = l.quota < 0
		return nil
	}
	quota, err := amount(f[0])
	if err == nil && l.quota < 0 && quota >= 0 {
		l.quota = quota * 1000
	}
	return err
}

// cpuStat: v1 has throttled_time in ns, v2 throttled_usec and usage_usec.
func (s *kernelFiles) cpuStat(r reading) error {
	l := s.levelOf("cpu", r.path)
	if l == nil {
		return nil
	}
	streams := map[string]struct {
		stream string
		factor float64
	}{
		"nr_periods": {"cpu/periods:periods", 1}, "nr_throttled": {"cpu/throttled:periods", 1},
		"throttled_time": {"cpu/throttled:ns", 1},
		"throttled_usec": {"cpu/throttled:ns", 1000}, "usage_usec": {"cpu/used:ns", 1000},
	}
	return pairs(r.text, " ", func(name string, v float64) {
		if st, ok := streams[name]; ok {
			l.counts = append(l.counts, evidence.Record{Stream: st.stream, Shape: evidence.Counter,
				Time: r.time, Value: v * st.factor})
		}
	})
}
