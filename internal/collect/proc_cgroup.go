package collect

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/sensor/proc"
)

var _ = registerLocal(&Local{
	Name:   "cgroup",
	Doc:    "Reads quota, limits and counters of the process' cgroup and all its ancestors, v1 and v2; cpu.stat ten times a second.",
	Order:  22,
	Tier:   TierSystem,
	Member: "cgroup.txt",
	Probe: func(p Process) error {
		groups, why, err := proc.FS{Root: p.Root}.Groups(p.PID)
		if err != nil {
			return err
		}
		if len(groups) == 0 {
			return fmt.Errorf("find the cgroups of %d: %s", p.PID, strings.Join(why, "; "))
		}
		return nil
	},
	Record: recordCgroup,
})

// The files that are read at each level, for both versions: a file that does not exist is passed
// over.
var (
	cpuSettings = []string{"cpu.max", "cpu.max.burst", "cpu.weight", "cpu.cfs_quota_us",
		"cpu.cfs_period_us", "cpu.cfs_burst_us", "cpu.shares"}
	memorySettings = []string{"memory.max", "memory.high", "memory.limit_in_bytes"}
	memoryCounts   = []string{"memory.current", "memory.stat", "memory.events",
		"memory.usage_in_bytes", "memory.failcnt", "memory.oom_control"}
	pressureFiles = []string{"cpu.pressure", "memory.pressure", "io.pressure"}
)

// maxOften is how many levels are read ten times a second, from the process' own one upwards.
const maxOften = 6

func recordCgroup(ctx context.Context, p Process, w io.Writer) (*evidence.Cost, error) {
	r := newReadings(p, w)
	var often []string // files
	edge := func() {
		groups, why, err := r.fs.Groups(p.PID)
		if err != nil {
			return // the process has ended
		}
		often = often[:0]
		r.file(pidFile(p.PID, "cgroup"), nil)
		r.groups(groups, why)
		for _, g := range groups {
			dirs, _ := g.Levels()
			for i, d := range dirs {
				r.level(g, r.bare(d), i == 0)
				if g.Controller == "cpu" && len(often) < maxOften {
					often = append(often, filepath.Join(r.bare(d), "cpu.stat"))
				}
			}
			if g.Controller == "cpuacct" {
				often = append(often, filepath.Join(r.bare(dirs[0]), "cpuacct.usage"))
			}
		}
	}
	if r.do(edge) {
		r.every(ctx, 100*time.Millisecond, func(int) {
			for _, f := range often {
				r.file(f, nil)
			}
		})
	}
	// The process may have ended, but its cgroup may still be there.
	if last := slices.Clone(often); r.do(edge) && len(often) == 0 {
		r.do(func() {
			for _, f := range last {
				r.file(f, nil)
			}
		})
	}
	return r.end()
}

// bare takes the root off a path: readings name a file as the target's machine does.
func (r *readings) bare(name string) string {
	if r.fs.Root == "" {
		return name
	}
	return strings.TrimPrefix(name, strings.TrimSuffix(r.fs.Root, "/"))
}

// groups writes where the process' cgroups are, which the paths of the other readings alone do not
// show.
func (r *readings) groups(groups []proc.Group, why []string) {
	var text strings.Builder
	for _, g := range groups {
		version := "v1"
		if g.V2 {
			version = "v2"
		}
		fmt.Fprintf(&text, "%s %s top=%q root=%q own=%q hidden=%q\n", g.Controller, version,
			r.bare(g.Top), g.Root, g.Own, g.Hidden)
	}
	for _, w := range why {
		fmt.Fprintf(&text, "# %s\n", w)
	}
	r.text("groups", text.String())
}

func (r *readings) level(g proc.Group, dir string, lowest bool) {
	var names []string
	switch g.Controller {
	case "cpu":
		names = append(slices.Clone(cpuSettings), "cpu.stat")
		if lowest {
			names = append(names, pressureFiles...)
		}
	case "cpuacct":
		names = []string{"cpuacct.usage"}
	case "memory":
		names = slices.Clone(memorySettings)
		names = append(names, memoryCounts...)
	}
	for _, n := range names {
		r.file(filepath.Join(dir, n), nil)
	}
}
