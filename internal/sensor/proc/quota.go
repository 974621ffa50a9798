package proc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Quota is a limit of CPU time.
type Quota struct {
	Group string  // the cgroup that has it, as seen from our namespace
	CPUs  float64 // the limit
}

// SharedQuota returns the tightest quota that binds two processes together: what one of them takes,
// the other lacks. ok is false if there is none, or none can be seen.
func (f FS) SharedQuota(pid, other int) (q Quota, ok bool) {
	a, b := f.cpuGroup(pid), f.cpuGroup(other)
	if a == nil || b == nil {
		return q, false
	}
	dirs, paths := a.Levels()
	theirs, _ := b.Levels()
	for i, d := range dirs {
		cpus := quotaOf(d)
		if cpus == 0 || ok && cpus >= q.CPUs || !oneOf(d, theirs) {
			continue
		}
		q, ok = Quota{paths[i], cpus}, true
	}
	return q, ok
}

func (f FS) cpuGroup(pid int) *Group {
	b, err := f.read("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return nil
	}
	g, _ := f.group(pid, "cpu", parseMembership(b))
	if g.Top == "" {
		return nil
	}
	return &g
}

// oneOf reports whether a folder is one of others: two mounts may show the same group.
func oneOf(dir string, others []string) bool {
	st, err := os.Stat(dir)
	if err != nil {
		return false
	}
	for _, o := range others {
		if t, err := os.Stat(o); err == nil && os.SameFile(st, t) {
			return true
		}
	}
	return false
}

// quotaOf is a level's quota in CPUs; 0: it has none. v2 has "50000 100000" or "max 100000", v1 has
// two files, with -1 for none.
func quotaOf(dir string) float64 {
	var w []string
	if b, err := readFile(filepath.Join(dir, "cpu.max")); err == nil {
		w = strings.Fields(string(b))
	} else {
		for _, name := range []string{"cpu.cfs_quota_us", "cpu.cfs_period_us"} {
			b, _ := readFile(filepath.Join(dir, name))
			w = append(w, strings.TrimSpace(string(b)))
		}
	}
	if len(w) != 2 {
		return 0
	}
	quota, err := strconv.ParseFloat(w[0], 64)
	period, err2 := strconv.ParseFloat(w[1], 64)
	if err != nil || err2 != nil || !(quota > 0) || !(period > 0) {
		return 0
	}
	return quota / period
}
