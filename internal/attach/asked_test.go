package attach

import (
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// A command does not ask for what another part shows; for what it does not show, it does.
func TestUnasked(t *testing.T) {
	part := func(kind, path, command string, r Reading, lines ...string) *Told {
		p := &Part{Kind: &Kind{Name: kind}, Path: path, Command: command}
		for i, l := range lines {
			p.Lines = append(p.Lines, paste.Line{N: i + 1, Text: l})
		}
		return &Told{Part: p, Reading: r}
	}
	by := part("vmstat N", "", "", Reading{}, "1")
	for _, c := range []struct {
		name          string
		has           *Told
		command, want string
	}{
		{"a file by its kind", part("cpu.stat", "", "", Reading{}, "x"),
			"cat /sys/fs/cgroup/CGROUP/cpu.stat", ""},
		{"one of two files", part("cpu.max", "", "", Reading{}, "x"),
			"cat /sys/fs/cgroup/CGROUP/cpu.max /sys/fs/cgroup/CGROUP/cpu.stat", "cat /sys/fs/cgroup/CGROUP/cpu.stat"},
		{"a file below cd", part("kernel files", "/sys/fs/cgroup/a/io.pressure", "", Reading{}, "x"),
			"cd /sys/fs/cgroup/CGROUP; cat io.pressure io.max", "cd /sys/fs/cgroup/CGROUP; cat io.max"},
		{"a file of the process", part("kernel files", "/proc/7/schedstat", "", Reading{}, "x"), "cat /proc/PID/schedstat", ""},
		{"of another process", part("kernel files", "/proc/7/schedstat", "", Reading{Who: Who{PID: 7}}, "x"),
			"cat /proc/8/schedstat", "cat /proc/8/schedstat"},
		{"two readings, and there is one", part("cpu.stat", "", "", Reading{Boot: true}, "x"),
			"cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat",
			"cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat"},
		{"two readings, and there are two", part("cpu.stat", "", "", Reading{}, "x"),
			"cat /sys/fs/cgroup/CGROUP/cpu.stat; sleep 10; cat /sys/fs/cgroup/CGROUP/cpu.stat", ""},
		{"the rest of a command", part("cpu.stat", "", "", Reading{}, "x"),
			"cat /sys/fs/cgroup/CGROUP/cpu.stat; vmstat 1 10", "vmstat 1 10"},
		{"lines of a file", part("/proc/meminfo", "", "", Reading{}, "MemAvailable: 1 kB", "Slab: 2 kB"),
			"grep -E 'MemAvailable|Slab' /proc/meminfo", ""},
		{"lines that are not there", part("/proc/meminfo", "", "", Reading{}, "MemAvailable: 1 kB"),
			"grep -E 'MemAvailable|Slab' /proc/meminfo", "grep -E 'MemAvailable|Slab' /proc/meminfo"},
		{"what grep left of it", part("/proc/meminfo", "", "grep Mem /proc/meminfo", Reading{}, "MemAvailable: 1 kB"),
			"cat /proc/meminfo", "cat /proc/meminfo"},
		{"itself", by, "vmstat 1 30", "vmstat 1 30"},
		{"what is no file", part("cpu.stat", "", "", Reading{}, "x"),
			"for i in 1 2;  do jstack PID; sleep 5; done", "for i in 1 2;  do jstack PID; sleep 5; done"},
	} {
		a := &Answer{Told: []*Told{by, c.has}}
		if got := a.shown().unasked(c.command, by); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
