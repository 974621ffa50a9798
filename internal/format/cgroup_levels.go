package format

import (
	"path"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// The cgroups' files say something only together: the effective quota is the least of all levels.
//
// A stream without "level" in its name is about the level that has the effective quota, or the
// effective limit. If there is none, it is about the target's own group. A stream /cgroup/level/...
// has a record for each level, with its path in Text. Set.Delta must not be used on it, because the
// levels' readings alternate. The same holds for streams that have a zone, a CPU or a node in Text;
// their descriptions say so.

// levelKey names one level of one hierarchy; the path is as the kernel writes it in
// /proc/PID/cgroup.
type levelKey struct{ controller, path string }

// level is what was read of one cgroup. -1 means: not read, or not set.
type level struct {
	quota, period, burst float64 // ns; v1 has a file for each
	noQuota              bool    // its file says that there is none
	limit, high          float64
	noLimit              bool
	weight               float64
	weightText           string
	counts               []evidence.Record // their streams lack the place in front
}

// levelOf finds the level that a file belongs to. A file that stands alone is the target's own.
func (s *kernelFiles) levelOf(controller, file string) *level {
	key := levelKey{controller: controller}
	if g := s.groups[controller]; g != nil {
		dir := path.Dir(file)
		if dir != g.top && !strings.HasPrefix(dir, strings.TrimSuffix(g.top, "/")+"/") {
			return nil
		}
		// Not path.Join: a root of another namespace starts with "/..".
		if key.path = g.root; dir != g.top {
			key.path = strings.TrimSuffix(g.root, "/") + "/" + strings.Trim(strings.TrimPrefix(dir, g.top), "/")
		}
	}
	l := s.levels[key]
	if l == nil {
		if len(s.order) >= 1024 {
			return nil
		}
		l = &level{quota: -1, period: -1, burst: -1, limit: -1, high: -1, weight: -1}
		s.levels[key] = l
		s.order = append(s.order, key)
	}
	return l
}

// finishGroups finds the effective quota and limit, and adds the counters of the level that has
// them.
func (s *kernelFiles) finishGroups() {
	cpu, memory := s.groups["cpu"], s.groups["memory"]
	own := func(c string, g *groupView) (string, bool) {
		if g != nil {
			return g.own, true
		}
		if p, ok := s.bareGroups[c]; ok {
			return p, true
		}
		p, ok := s.bareGroups[""]
		return p, ok
	}
	if p, ok := own("cpu", cpu); ok {
		version := "v2"
		if _, bare := s.bareGroups["cpu"]; cpu != nil && !cpu.v2 || cpu == nil && bare {
			version = "v1"
		}
		s.fact("/cgroup/version:text", 0, 0, version)
		s.fact("/cgroup/path:path", 0, 0, p)
		if rest, below := strings.CutPrefix(p,
			strings.TrimSuffix(s.cpuMountRoot, "/")); s.cpuMount != "" && below && s.cpuMountV1 == (version == "v1") {
			s.fact("/cgroup/cpu/files:path", 0, 0, path.Join(s.cpuMount, rest))
		}
	}
	if p, ok := own("memory", memory); ok {
		s.fact("/cgroup/memory/path:path", 0, 0, p)
	}
	for _, g := range []*groupView{cpu, memory} {
		if g != nil && g.hidden != "" {
			s.fact("/cgroup/hidden:text", 0, 0, g.hidden)
		}
	}
	s.finishCPU(cpu)
	s.finishMemory(memory)
}

func (s *kernelFiles) finishCPU(g *groupView) {
	var effective *level
	var at levelKey
	quota, known := 0.0, 0
	for _, key := range s.order {
		l := s.levels[key]
		if key.controller != "cpu" {
			continue
		}
		s.perLevel(key, l)
		if l.noQuota {
			known++
		}
		if l.quota < 0 {
			continue
		}
		period := l.period
		if period <= 0 {
			period = 100e6 // the kernel's default, for a file that was not read
		}
		known++
		cpus := l.quota / period
		s.factFor("/cgroup/level/cpu/quota:cpus", 0, cpus, key.path)
		if effective == nil || cpus < quota {
			effective, at, quota = l, key, cpus
		}
	}
	switch {
	case effective != nil:
		s.fact("/cgroup/cpu/quota:cpus", 0, quota, "")
		if at.path != "" {
			s.fact("/cgroup/cpu/quota-at:path", 0, 0, at.path)
		}
	case g == nil && known > 0, g != nil && g.hidden == "":
		s.fact("/cgroup/cpu/quota:cpus", 0, 0, "no quota")
	}
	own := levelKey{controller: "cpu"}
	if g != nil {
		own.path = g.own
	}
	if l := s.levels[own]; l != nil && l.weight >= 0 {
		s.fact("/cgroup/cpu/weight:weight", 0, l.weight, l.weightText)
	}
	if effective == nil {
		effective, at = s.levels[own], own
	}
	if effective == nil {
		return
	}
	if effective.period > 0 {
		s.fact("/cgroup/cpu/period:ns", 0, effective.period, "")
	}
	if effective.burst > 0 {
		s.fact("/cgroup/cpu/burst:ns", 0, effective.burst, "")
	}
	s.counts(effective.counts)
	// v1 counts CPU time in another controller, most often mounted together with this one. Another
	// path is another group.
	if acct := s.levels[levelKey{"cpuacct", at.path}]; acct != nil {
		s.counts(acct.counts)
	}
}

// perLevel adds the counters of one level, with its path.
func (s *kernelFiles) perLevel(key levelKey, l *level) {
	if key.path == "" {
		return
	}
	for _, c := range l.counts {
		c.Stream, c.Text = "/cgroup/level/"+c.Stream, printable(key.path)
		s.out = append(s.out, c)
	}
}

func (s *kernelFiles) counts(records []evidence.Record) {
	for _, c := range records {
		c.Stream = "/cgroup/" + c.Stream
		s.out = append(s.out, c)
	}
}

func (s *kernelFiles) finishMemory(g *groupView) {
	own := levelKey{controller: "memory"}
	if g != nil {
		own.path = g.own
	}
	effective, at := s.levels[own], own
	limit, high, known := -1.0, -1.0, 0
	for _, key := range s.order {
		l := s.levels[key]
		if key.controller != "memory" {
			continue
		}
		if l.high >= 0 && (high < 0 || l.high < high) {
			high = l.high
		}
		if l.noLimit || l.limit >= 0 {
			known++
		}
		if l.limit < 0 {
			continue
		}
		if key.path != "" {
			s.factFor("/cgroup/level/memory/limit:bytes", 0, l.limit, key.path)
		}
		if limit < 0 || l.limit < limit {
			limit, effective, at = l.limit, l, key
		}
	}
	switch {
	case limit >= 0:
		s.fact("/cgroup/memory/limit:bytes", 0, limit, "")
		if at.path != "" {
			s.fact("/cgroup/memory/limit-at:path", 0, 0, at.path)
		}
	case g == nil && known > 0, g != nil && g.hidden == "":
		s.fact("/cgroup/memory/limit:bytes", 0, 0, "no limit")
	}
	if high >= 0 {
		s.fact("/cgroup/memory/high:bytes", 0, high, "")
	}
	if effective != nil {
		s.counts(effective.counts)
	}
}
