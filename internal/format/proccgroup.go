package format

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// groupView is where a controller's groups are, as the recorder found them.
type groupView struct {
	v2             bool
	top, root, own string
	hidden         string
}

// levelKey names one level of one hierarchy; the path is as the kernel writes it in /proc/PID/cgroup.
type levelKey struct{ controller, path string }

// level is what was read of one cgroup. -1 is not read or none.
type level struct {
	quota, period, burst float64 // quota and period in ns, as v1's files have them apart
	noQuota              bool    // its file said so
	limit, high          float64
	noLimit              bool
	weight               float64
	weightText           string
	counts               []evidence.Record // streams of the effective level, without their place
}

// groupViews reads lines `cpu v1 top="..." root="..." own="..." hidden="..."`.
func (s *procState) groupViews(r reading) error {
	for line := range strings.Lines(r.text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		controller, rest, _ := strings.Cut(line, " ")
		version, rest, _ := strings.Cut(rest, " ")
		g := &groupView{v2: version == "v2"}
		for _, part := range []struct {
			name string
			into *string
		}{{"top=", &g.top}, {"root=", &g.root}, {"own=", &g.own}, {"hidden=", &g.hidden}} {
			quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, part.name))
			if err != nil || !strings.HasPrefix(rest, part.name) {
				return fmt.Errorf("want %s\"...\", got %.60q", part.name, rest)
			}
			*part.into, _ = strconv.Unquote(quoted)
			rest = strings.TrimPrefix(rest[len(part.name)+len(quoted):], " ")
		}
		if s.groups[controller] == nil && g.top != "" {
			s.groups[controller] = g
		}
	}
	return nil
}

// levelOf finds which level a file is of. A file that stands alone is of the target's own.
func (s *procState) levelOf(controller, file string) *level {
	key := levelKey{controller: controller}
	if g := s.groups[controller]; g != nil {
		dir := path.Dir(file)
		if dir != g.top && !strings.HasPrefix(dir, strings.TrimSuffix(g.top, "/")+"/") {
			return nil
		}
		// Not path.Join: a root of another namespace begins with "/..".
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

// cgroupScalar reads the files of one value. done tells that it was one of them. The first reading of a setting holds.
func (s *procState) cgroupScalar(r reading, text string) (done bool, err error) {
	base := path.Base(r.path)
	controller, _, _ := strings.Cut(base, ".")
	if controller != "cpu" && controller != "memory" && controller != "cpuacct" || !strings.Contains(base, ".") {
		return false, nil
	}
	l := s.levelOf(controller, r.path)
	if l == nil {
		return true, nil
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
		case text == "max" || text == "-1" || err == nil && v >= 1<<62: // v1 writes no limit as the largest number of pages
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
		return true, set(&l.quota, &l.noQuota, 1000)
	case "cpu.cfs_period_us":
		return true, set(&l.period, nil, 1000)
	case "cpu.cfs_burst_us", "cpu.max.burst":
		return true, set(&l.burst, nil, 1000)
	case "cpu.weight", "cpu.shares":
		if base == "cpu.shares" {
			l.weightText = "shares"
		}
		return true, set(&l.weight, nil, 1)
	case "cpuacct.usage":
		return true, count("cpu/used:ns", evidence.Counter, 1)
	case "memory.max", "memory.limit_in_bytes":
		return true, set(&l.limit, &l.noLimit, 1)
	case "memory.high":
		return true, set(&l.high, nil, 1)
	case "memory.current", "memory.usage_in_bytes":
		return true, count("memory/used:bytes", evidence.Sample, 1)
	case "memory.failcnt":
		return true, count("memory/events/max:events", evidence.Counter, 1)
	case "memory.oom_control":
		return true, pairs(text, " ", func(name string, v float64) {
			if name == "oom_kill" {
				l.counts = append(l.counts, evidence.Record{Stream: "memory/events/oom-kill:processes", Shape: evidence.Counter, Time: r.time, Value: v})
			}
		})
	}
	return false, nil
}

// cpuMax reads v2's "50000 100000" or "max 100000", in us.
func (s *procState) cpuMax(r reading) error {
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
func (s *procState) cpuStat(r reading) error {
	l := s.levelOf("cpu", r.path)
	if l == nil {
		return nil
	}
	streams := map[string]struct {
		stream string
		factor float64
	}{
		"nr_periods": {"cpu/periods:periods", 1}, "nr_throttled": {"cpu/throttled:periods", 1}, "throttled_time": {"cpu/throttled:ns", 1},
		"throttled_usec": {"cpu/throttled:ns", 1000}, "usage_usec": {"cpu/used:ns", 1000},
	}
	return pairs(r.text, " ", func(name string, v float64) {
		if st, ok := streams[name]; ok {
			l.counts = append(l.counts, evidence.Record{Stream: st.stream, Shape: evidence.Counter, Time: r.time, Value: v * st.factor})
		}
	})
}

// memoryStats: of v1 the totals with what is below, where there are any.
var memoryStats = map[string]struct {
	stream string
	shape  evidence.Shape
}{
	"anon": {"memory/anon:bytes", evidence.Sample}, "total_rss": {"memory/anon:bytes", evidence.Sample},
	"file": {"memory/file:bytes", evidence.Sample}, "total_cache": {"memory/file:bytes", evidence.Sample},
	"anon_thp": {"memory/anon-huge:bytes", evidence.Sample}, "total_rss_huge": {"memory/anon-huge:bytes", evidence.Sample},
	"pgmajfault": {"memory/faults/major:faults", evidence.Counter}, "total_pgmajfault": {"memory/faults/major:faults", evidence.Counter},
	"pgscan": {"memory/scan:pages", evidence.Counter}, "pgscan_direct": {"memory/scan/direct:pages", evidence.Counter},
	"workingset_refault_file": {"memory/refault:pages", evidence.Counter}, "total_workingset_refault_file": {"memory/refault:pages", evidence.Counter},
}

func (s *procState) memoryStat(r reading) error {
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

func (s *procState) memoryEvents(r reading) error {
	l := s.levelOf("memory", r.path)
	if l == nil {
		return nil
	}
	streams := map[string]string{"high": "memory/events/high:events", "max": "memory/events/max:events", "oom": "memory/events/oom:events", "oom_kill": "memory/events/oom-kill:processes"}
	return pairs(r.text, " ", func(name string, v float64) {
		if st, ok := streams[name]; ok {
			l.counts = append(l.counts, evidence.Record{Stream: st, Shape: evidence.Counter, Time: r.time, Value: v})
		}
	})
}

// pidCgroup reads /proc/PID/cgroup. Where the recorder has found the groups, their paths are better known.
func (s *procState) pidCgroup(r reading) error {
	for line := range strings.Lines(r.text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			if strings.TrimSpace(line) != "" {
				return fmt.Errorf("want N:controllers:/path, got %.60q", line)
			}
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if (c == "cpu" || c == "memory" || c == "") && s.levels[levelKey{c, ""}] == nil && s.groups[c] == nil {
				if s.bareGroups == nil {
					s.bareGroups = map[string]string{}
				}
				s.bareGroups[c] = f[2]
			}
		}
	}
	return nil
}

// mountinfo tells where a cgroup file system that has the cpu controller is mounted: with /proc/PID/cgroup, where the files are.
func (s *procState) mountinfo(r reading) error {
	for line := range strings.Lines(r.text) {
		before, after, _ := strings.Cut(line, " - ")
		f, tail := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(tail) < 3 {
			return fmt.Errorf("want a mount, got %.60q", line)
		}
		v1 := tail[0] == "cgroup" && strings.Contains(","+tail[2]+",", ",cpu,")
		if v1 || tail[0] == "cgroup2" && s.cpuMount == "" {
			s.cpuMount, s.cpuMountRoot, s.cpuMountV1 = f[4], f[3], v1
		}
	}
	return nil
}

// finishGroups finds the effective quota and limit, and gives the counters of the level that has them.
func (s *procState) finishGroups() {
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
		if rest, below := strings.CutPrefix(p, strings.TrimSuffix(s.cpuMountRoot, "/")); s.cpuMount != "" && below && s.cpuMountV1 == (version == "v1") {
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

func (s *procState) finishCPU(g *groupView) {
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
			period = 100e6 // the kernel's own, where the file was not read
		}
		known++
		cpus := l.quota / period
		s.fact("/cgroup/level/cpu/quota:cpus", 0, cpus, key.path)
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
	// v1 counts CPU time in another controller, most often mounted together with this one. Another path is another group.
	if acct := s.levels[levelKey{"cpuacct", at.path}]; acct != nil {
		s.counts(acct.counts)
	}
}

// perLevel gives what is counted at each level with its path.
func (s *procState) perLevel(key levelKey, l *level) {
	if key.path == "" {
		return
	}
	for _, c := range l.counts {
		c.Stream, c.Text = "/cgroup/level/"+c.Stream, printable(key.path)
		s.out = append(s.out, c)
	}
}

func (s *procState) counts(records []evidence.Record) {
	for _, c := range records {
		c.Stream = "/cgroup/" + c.Stream
		s.out = append(s.out, c)
	}
}

func (s *procState) finishMemory(g *groupView) {
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
			s.fact("/cgroup/level/memory/limit:bytes", 0, l.limit, key.path)
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
