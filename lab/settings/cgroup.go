package settings

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Limits are those of a cgroup; zero is no limit.
type Limits struct {
	CPU    float64 `json:"cpu,omitempty"`    // CPUs, in periods of 100 ms
	Memory int64   `json:"memory,omitempty"` // bytes
}

// Root is where cgroups are mounted.
var Root = "/sys/fs/cgroup"

// Cgroup makes a cgroup with limits, of the version whose controllers this machine has. It gives
// the files into which a process writes its PID to join.
func (j *Journal) Cgroup(name string, l Limits) (procs []string, err error) {
	name = fmt.Sprintf("whystall-lab-%d-%s", os.Getpid(), name)
	if b, err := os.ReadFile(filepath.Join(Root, "cgroup.controllers")); err == nil &&
		strings.Contains(string(b), "cpu") {
		return j.cgroup2(name, l)
	}
	const period = 100000
	for _, c := range []struct {
		controller string
		on         bool
		files      map[string]string
	}{
		{"cpu", l.CPU > 0, map[string]string{"cpu.cfs_period_us": strconv.Itoa(period),
			"cpu.cfs_quota_us": strconv.Itoa(int(l.CPU * period))}},
		{"memory", l.Memory > 0, map[string]string{"memory.limit_in_bytes": strconv.FormatInt(l.Memory, 10)}},
	} {
		if !c.on {
			continue
		}
		dir := filepath.Join(Root, c.controller, name)
		if err := j.mkdir(dir, c.files); err != nil {
			return nil, err
		}
		procs = append(procs, filepath.Join(dir, "cgroup.procs"))
	}
	return procs, nil
}

func (j *Journal) cgroup2(name string, l Limits) ([]string, error) {
	files := map[string]string{}
	control := filepath.Join(Root, "cgroup.subtree_control")
	have, err := os.ReadFile(control)
	if err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	enable := func(controller string) error {
		if strings.Contains(" "+string(have)+" ", controller) {
			return nil
		}
		if err := j.note(change{kindWrite, control, "-" + controller}); err != nil {
			return err
		}
		return os.WriteFile(control, []byte("+"+controller), 0)
	}
	if l.CPU > 0 {
		err = enable("cpu")
		files["cpu.max"] = fmt.Sprintf("%d 100000", int(l.CPU*100000))
	}
	if l.Memory > 0 && err == nil {
		err = enable("memory")
		files["memory.max"] = strconv.FormatInt(l.Memory, 10)
	}
	if err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	dir := filepath.Join(Root, name)
	return []string{filepath.Join(dir, "cgroup.procs")}, j.mkdir(dir, files)
}

func (j *Journal) mkdir(dir string, files map[string]string) error {
	if err := j.note(change{Kind: kindCgroup, Path: dir}); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return fmt.Errorf("make cgroup: %w", err)
	}
	for name, value := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(value), 0); err != nil {
			return fmt.Errorf("limit cgroup: %w", err)
		}
	}
	return nil
}

// removeCgroup kills the processes of a cgroup, and removes it.
func removeCgroup(dir string) error {
	var err error
	for range 100 {
		b, readErr := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(readErr, fs.ErrNotExist) {
			return nil
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 && pid != os.Getpid() {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if err = os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		time.Sleep(20 * time.Millisecond) // a killed process leaves its group when it is reaped
	}
	return err
}
