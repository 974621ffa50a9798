package collect

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// cgroupPaths finds a cgroup's path by the inode of its folder, in the hierarchy that has the cpu
// controller.
type cgroupPaths struct {
	mount  string // where it is mounted
	base   string // the part of it that is mounted
	paths  map[uint64]string
	walked time.Time
}

// How many folders are looked at, and how often at most: a host has some hundred, one with leaked
// cgroups tens of thousands.
const (
	maxCgroups = 20000
	cgroupsGap = 2 * time.Second
)

func newCgroupPaths(root string) *cgroupPaths {
	c := &cgroupPaths{paths: map[uint64]string{}}
	c.mount, c.base = cpuHierarchy(root)
	return c
}

// cpuHierarchy reads mountinfo. A v1 mount with the cpu controller wins over v2.
func cpuHierarchy(root string) (mount, base string) {
	f, err := os.Open(filepath.Join(root, "/proc/self/mountinfo"))
	if err != nil {
		return "", ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		w, t := strings.Fields(before), strings.Fields(after)
		if !ok || len(w) < 5 || len(t) < 3 {
			continue
		}
		v1 := t[0] == "cgroup" && slices.Contains(strings.Split(t[2], ","), "cpu")
		if v1 || t[0] == "cgroup2" && mount == "" {
			mount, base = unescapeMount(w[4]), w[3]
		}
		if v1 {
			break
		}
	}
	return mount, base
}

// unescapeMount undoes mountinfo's octal escapes.
func unescapeMount(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// path returns a cgroup's path, "" if it is not known: it may be gone, or not visible from here.
func (c *cgroupPaths) path(id uint64) string {
	if p, ok := c.paths[id]; ok || id == 0 || c.mount == "" {
		return p
	}
	if time.Since(c.walked) > cgroupsGap {
		c.walk()
		c.walked = time.Now()
	}
	return c.paths[id]
}

func (c *cgroupPaths) walk() {
	n := 0
	filepath.WalkDir(c.mount, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil
		}
		if n++; n > maxCgroups {
			return fs.SkipAll
		}
		var st syscall.Stat_t
		if syscall.Lstat(path, &st) == nil {
			rel, _ := filepath.Rel(c.mount, path)
			c.paths[st.Ino] = filepath.Join(c.base, "/", rel)
		}
		return nil
	})
}
