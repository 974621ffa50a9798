package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// cgroupRoot is where cgroups are mounted.
const cgroupRoot = "/sys/fs/cgroup"

// limits are those of a cgroup; zero is none.
type limits struct {
	cpus   float64
	memory int64
}

// cgroup is a group made for one target.
type cgroup struct{ dirs []string }

// groupName starts the names of the groups, so that those of a killed run can be found.
const groupName = "whystall-bench-"

// makeCgroup makes a group with these limits, of the version whose controllers this machine has.
func makeCgroup(l limits) (g *cgroup, err error) {
	g = &cgroup{}
	defer func() {
		if err != nil {
			g.remove()
		}
	}()
	name := groupName + strconv.Itoa(os.Getpid())
	b, err := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.controllers"))
	if v2 := err == nil && strings.Contains(string(b), "cpu"); v2 {
		have, _ := os.ReadFile(filepath.Join(cgroupRoot, "cgroup.subtree_control"))
		if !strings.Contains(string(have), "cpu") || !strings.Contains(string(have), "memory") {
			return g, errors.New("the root cgroup does not give the controllers cpu and memory to its children")
		}
		files := map[string]string{}
		if l.cpus > 0 {
			files["cpu.max"] = fmt.Sprintf("%d 100000", int(l.cpus*100000))
		}
		if l.memory > 0 {
			files["memory.max"] = strconv.FormatInt(l.memory, 10)
		}
		return g, g.make(filepath.Join(cgroupRoot, name), files)
	}
	if l.cpus > 0 {
		files := map[string]string{"cpu.cfs_quota_us": strconv.Itoa(int(l.cpus * 100000))}
		if err := g.make(filepath.Join(cgroupRoot, "cpu", name), files); err != nil {
			return g, err
		}
	}
	if l.memory > 0 {
		files := map[string]string{"memory.limit_in_bytes": strconv.FormatInt(l.memory, 10)}
		if err := g.make(filepath.Join(cgroupRoot, "memory", name), files); err != nil {
			return g, err
		}
	}
	return g, nil
}

func (g *cgroup) make(dir string, files map[string]string) error {
	removeStale(filepath.Dir(dir))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	g.dirs = append(g.dirs, dir)
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			return fmt.Errorf("limit cgroup: %w", err)
		}
	}
	return nil
}

// removeStale removes groups which a killed run left. One with processes in it stays, and so does
// that of a run that lives.
func removeStale(dir string) {
	old, _ := filepath.Glob(filepath.Join(dir, groupName+"*"))
	for _, d := range old {
		_, pid, _ := strings.Cut(filepath.Base(d), groupName)
		if _, err := os.Stat(filepath.Join("/proc", pid)); errors.Is(err, fs.ErrNotExist) {
			os.Remove(d)
		}
	}
}

func (g *cgroup) add(pid int) error {
	for _, d := range g.dirs {
		if err := os.WriteFile(filepath.Join(d, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// remove removes the group, from which its process has just gone.
func (g *cgroup) remove() error {
	var failed error
	for _, d := range g.dirs {
		var err error
		for range 100 {
			if err = os.Remove(d); err == nil || errors.Is(err, fs.ErrNotExist) {
				err = nil
				break
			}
			time.Sleep(20 * time.Millisecond) // a killed process leaves its group a moment later
		}
		failed = errors.Join(failed, err)
	}
	g.dirs = nil
	return failed
}
