package proc

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Finding a process' groups:
//
//  1. Read the path in each hierarchy from /proc/PID/cgroup, and from mountinfo which part of the
//     hierarchy is mounted where. The kernel writes both relative to the *reader's* cgroup
//     namespace, whatever that of the target is, so they fit each other. A path starts with "/.." if
//     the target is outside ours.
//  2. Try three tables of mounts: our own; that of process 1, through its root, which is the host's
//     if pid namespaces are shared; the target's own. Take the one that shows most ancestors.
//  3. If none fits, look for the target in the cgroup.procs of the mounted groups.
//
// Files that only the root of a hierarchy has, or lacks, show whether the top of what is mounted is
// that root. A namespace's number proves nothing, as a folder may be mounted alone.

// Group is the process' place in one hierarchy.
type Group struct {
	Controller string // "cpu", "memory", "cpuset", "cpuacct"
	V2         bool
	Top        string // folder of the highest level that can be seen, a path of ours
	Root       string // what cgroup that is, as seen from our namespace
	Own        string // the process' own cgroup, likewise: Root or below it
	Hidden     string // why ancestors of Top cannot be seen; "" Top is the root of the hierarchy
}

// Levels returns the folders from the process' own group up to Top, and the cgroup that each one
// is.
func (g *Group) Levels() (dirs, paths []string) {
	rest := strings.Trim(strings.TrimPrefix(g.Own, g.Root), "/")
	for {
		dirs = append(dirs, filepath.Join(g.Top, rest))
		paths = append(paths, below(g.Root, rest))
		if rest == "" || len(dirs) == maxLevels {
			return dirs, paths
		}
		if rest = path.Dir(rest); rest == "." {
			rest = ""
		}
	}
}

// Bounds: cgroups nest some ten deep; a host has some thousand groups.
const (
	maxLevels = 64
	maxWalk   = 20000
	maxRead   = 4 << 20
)

// controllers lists those that Groups looks for.
var controllers = []string{"cpu", "cpuacct", "cpuset", "memory"}

// Groups finds the process' groups. A controller whose hierarchy is not mounted, or that v2 has not
// enabled at any level, is missing from the answer, and its reason is in why.
func (f FS) Groups(pid int) (groups []Group, why []string, err error) {
	b, err := f.read(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, nil, err
	}
	member := parseMembership(b)
	for _, c := range controllers {
		g, reason := f.group(pid, c, member)
		if reason != "" {
			why = append(why, c+": "+reason)
			continue
		}
		groups = append(groups, g)
	}
	return groups, why, nil
}

// Freezers returns the files that say whether the process' own groups are frozen, for Frozen. There
// may be two: a host may have v1's freezer and v2 beside it.
func (f FS) Freezers(pid int) (files []string) {
	b, err := f.read(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	member := parseMembership(b)
	for _, m := range []membership{{"freezer": member["freezer"]},
		{"": member[""]}} { // v2 freezes without a controller
		g, _ := f.group(pid, "freezer", m)
		if g.Top == "" {
			continue
		}
		dirs, _ := g.Levels()
		files = append(files, filepath.Join(dirs[0],
			map[bool]string{true: "cgroup.events", false: "freezer.state"}[g.V2]))
	}
	return files
}

// Frozen reports whether the content of such a file says that the group is frozen, by itself or by
// one above it.
func Frozen(b []byte) bool {
	for line := range strings.Lines(string(b)) {
		if s := strings.TrimSpace(line); s == "FROZEN" || s == "frozen 1" {
			return true
		}
	}
	return false
}

func (f FS) group(pid int, controller string, member membership) (Group, string) {
	own, v1 := member[controller]
	if !v1 {
		var ok bool
		if own, ok = member[""]; !ok {
			return Group{}, "the process is in no hierarchy that has it"
		}
	}
	best, levels := Group{}, 0
	for _, view := range []struct{ table, prefix string }{
		{"/proc/self/mountinfo", ""},
		{"/proc/1/mountinfo", "/proc/1/root"},
		{fmt.Sprintf("/proc/%d/mountinfo", pid), fmt.Sprintf("/proc/%d/root", pid)},
	} {
		b, err := f.read(view.table)
		if err != nil {
			continue
		}
		for _, m := range parseMountinfo(b) {
			if m.v2 == v1 || v1 && !has(m.controllers, controller) {
				continue
			}
			g := Group{Controller: controller, V2: m.v2, Top: f.Path(view.prefix + m.point), Root: m.root, Own: own}
			if !within(own, m.root) && !f.search(&g, pid) {
				continue
			}
			dirs, _ := g.Levels()
			if _, err := os.Stat(dirs[0]); err != nil {
				continue // something else is mounted over it
			}
			g.Hidden = hidden(&g)
			if n := len(dirs); n > levels || n == levels && best.Hidden != "" && g.Hidden == "" {
				best, levels = g, n
			}
		}
		if levels > 0 && best.Hidden == "" {
			break
		}
	}
	switch {
	case levels == 0:
		return best, fmt.Sprintf("no mount shows the cgroup %s: mount the cgroup file system, or run on the host", own)
	case best.V2 && !enabled(&best):
		return best, "cgroup v2 has not enabled it for the process"
	}
	return best, ""
}

// hidden says why ancestors of Top cannot be seen, "" if Top is the root of its hierarchy: v2 has
// cgroup.type everywhere but there, v1 has release_agent only there.
func hidden(g *Group) string {
	file, want := "release_agent", true
	if g.V2 {
		file, want = "cgroup.type", false
	}
	_, err := os.Stat(filepath.Join(g.Top, file))
	if (err == nil) == want {
		return ""
	}
	return fmt.Sprintf("only %s and what is below it is mounted here: the limits of its ancestors are not known", g.Root)
}

// enabled reports whether a v2 hierarchy has the controller at any of the levels.
func enabled(g *Group) bool {
	if g.Controller == "cpuacct" {
		return false // v1 alone has it: in v2 cpu.stat has its figures
	}
	dirs, _ := g.Levels()
	for _, d := range dirs {
		b, err := readFile(filepath.Join(d, "cgroup.controllers"))
		if err == nil && has(strings.Fields(string(b)), g.Controller) {
			return true
		}
	}
	return false
}

// search looks for pid in the groups below g.Top, and reports whether it is there: then it corrects
// Own. It is for mounts whose root cannot be related to the target's path by name: those of another
// namespace.
func (f FS) search(g *Group, pid int) bool {
	want, seen, found := []byte(strconv.Itoa(pid)), 0, ""
	filepath.WalkDir(g.Top, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if seen++; seen > maxWalk {
			return fs.SkipAll
		}
		b, err := readFile(filepath.Join(name, "cgroup.procs"))
		if err != nil {
			return nil
		}
		for line := range bytes.Lines(b) {
			if bytes.Equal(bytes.TrimSpace(line), want) {
				found = name
				return fs.SkipAll
			}
		}
		return nil
	})
	if found == "" {
		return false
	}
	rel, err := filepath.Rel(g.Top, found)
	if err != nil {
		return false
	}
	if g.Own = g.Root; rel != "." {
		g.Own = below(g.Root, rel)
	}
	return within(g.Own, g.Root)
}

// within reports whether the cgroup p is root or below it. A path that leads out of our namespace
// is only below a root with the same name.
func within(p, root string) bool {
	if strings.Contains("/"+strings.TrimPrefix(p, root)+"/", "/../") {
		return false // but root itself may start with it
	}
	if root == "/" {
		return true
	}
	return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, "/")+"/")
}

// below puts a path under a group. A group that starts with "/.." must stay as it is: path.Join
// would take that for a step up.
func below(root, rest string) string {
	if rest == "" {
		return root
	}
	return strings.TrimSuffix(root, "/") + "/" + rest
}

func has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func (f FS) read(name string) ([]byte, error) { return readFile(f.Path(name)) }

// readFile reads a file of the kernel, cut at 4 MiB.
func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxRead))
}
