package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes a machine's files under a folder: name and content.
func tree(t *testing.T, files map[string]string) FS {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return FS{Root: root}
}

const v2mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

func find(t *testing.T, fs FS, controller string) (Group, []string) {
	t.Helper()
	groups, why, err := fs.Groups(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		if g.Controller == controller {
			return g, why
		}
	}
	return Group{}, why
}

// Paths as the kernel writes them to its reader, and what must come of them.
func TestGroups(t *testing.T) {
	enabled := "cpuset cpu io memory pids\n"
	for _, tc := range []struct {
		name, own, hidden, top string
		levels                 int
		files                  map[string]string
	}{
		{"v2 on the host", "/kubepods.slice/pod/web", "", "/sys/fs/cgroup", 4, map[string]string{
			"proc/7/cgroup": "0::/kubepods.slice/pod/web\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/cgroup.controllers":                        enabled,
			"sys/fs/cgroup/kubepods.slice/pod/web/cgroup.type":        "domain\n",
			"sys/fs/cgroup/kubepods.slice/pod/web/cgroup.controllers": enabled,
			"sys/fs/cgroup/kubepods.slice/pod/web/cpu.max":            "max 100000\n",
			"sys/fs/cgroup/kubepods.slice/pod/cpu.max":                "50000 100000\n",
			"sys/fs/cgroup/kubepods.slice/cgroup.subtree_control":     enabled,
		}},
		{"v2 in a container of its own namespace", "/", "only / and", "/sys/fs/cgroup", 1, map[string]string{
			"proc/7/cgroup": "0::/\n", "proc/self/mountinfo": v2mount,
			"sys/fs/cgroup/cgroup.controllers": enabled, "sys/fs/cgroup/cgroup.type": "domain\n",
		}},
		{"v1, the container's folder mounted alone", "/docker/abc", "only /docker/abc",
			"/sys/fs/cgroup/cpu,cpuacct", 1, map[string]string{
				"proc/7/cgroup":                              "4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
				"proc/self/mountinfo":                        "40 39 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup cgroup rw,cpu,cpuacct\n",
				"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "50000\n",
			}},
		{"another container, its own mounts", "/../other", "only /../other",
			"/proc/7/root/sys/fs/cgroup", 1, map[string]string{
				"proc/7/cgroup": "0::/../other\n", "proc/self/mountinfo": v2mount,
				"proc/7/mountinfo":                 strings.Replace(v2mount, "0:26 / ", "0:26 /../other ", 1),
				"sys/fs/cgroup/cgroup.controllers": enabled, "sys/fs/cgroup/cgroup.type": "domain\n",
				"proc/7/root/sys/fs/cgroup/cgroup.controllers": enabled,
				"proc/7/root/sys/fs/cgroup/cgroup.type":        "domain\n",
			}},
		{"another container, the host's mounts through process 1", "/../other", "",
			"/proc/1/root/sys/fs/cgroup", 2, map[string]string{
				"proc/7/cgroup": "0::/../other\n", "proc/self/mountinfo": v2mount,
				"proc/1/mountinfo":                 strings.Replace(v2mount, "0:26 / ", "0:26 /.. ", 1),
				"sys/fs/cgroup/cgroup.controllers": enabled, "sys/fs/cgroup/cgroup.type": "domain\n",
				"proc/1/root/sys/fs/cgroup/cgroup.controllers": enabled,
				"proc/1/root/sys/fs/cgroup/other/cgroup.procs": "7\n",
			}},
		{"a mount whose root has no name that fits: by cgroup.procs", "/x/a/b", "", "/mnt/cg", 3, map[string]string{
			"proc/7/cgroup": "0::/../a/b\n", "proc/self/mountinfo": "30 23 0:26 /x /mnt/cg rw - cgroup2 cgroup2 rw\n",
			"mnt/cg/cgroup.controllers": enabled, "mnt/cg/cgroup.procs": "1\n77\n",
			"mnt/cg/a/b/cgroup.procs": "70\n7\n",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fs := tree(t, tc.files)
			g, why := find(t, fs, "cpu")
			dirs, paths := g.Levels()
			if g.Own != tc.own || g.Top != fs.Path(tc.top) || len(dirs) != tc.levels ||
				!strings.HasPrefix(g.Hidden, tc.hidden) || (tc.hidden == "") != (g.Hidden == "") {
				t.Errorf("own %s, top %s, %d levels %v, hidden %q (%v)", g.Own, g.Top, len(dirs), paths, g.Hidden, why)
			}
			if paths[0] != tc.own || paths[len(paths)-1] != g.Root {
				t.Errorf("levels %v", paths)
			}
			for _, d := range dirs {
				if _, err := os.Stat(d); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestGroupsMissing(t *testing.T) {
	fs := tree(t, map[string]string{"proc/7/cgroup": "0::/a\n", "proc/self/mountinfo": v2mount,
		"sys/fs/cgroup/a/cgroup.controllers": "pids\n", "sys/fs/cgroup/cgroup.controllers": "pids\n"})
	if g, why := find(t, fs, "cpu"); g.Top != "" ||
		!strings.Contains(strings.Join(why, ";"), "cpu: cgroup v2 has not enabled it") {
		t.Errorf("%+v, %v", g, why)
	}
	if _, _, err := (FS{Root: t.TempDir()}).Groups(7); err == nil {
		t.Error("no process, and no error")
	}
}

func FuzzGroups(f *testing.F) {
	f.Add("0::/a\n4:cpu,cpuacct:/docker/abc\n", v2mount+
		"40 39 0:30 /docker/abc /sys/fs/cgroup/cpu\\040x ro - cgroup cgroup rw,cpu\n")
	f.Fuzz(func(t *testing.T, cgroup, mountinfo string) {
		for _, p := range parseMembership([]byte(cgroup)) {
			for _, m := range parseMountinfo([]byte(mountinfo)) {
				g := Group{Top: m.point, Root: m.root, Own: p}
				if within(p, m.root) {
					if dirs, _ := g.Levels(); len(dirs) == 0 || len(dirs) > maxLevels {
						t.Fatalf("%d levels", len(dirs))
					}
				}
			}
		}
	})
}

func TestTaskstatsText(t *testing.T) {
	b := make([]byte, 432)
	b[0] = 16
	copy(b[commAt+48:], "me\x00")
	if n, err := inserted(b, "me"); n != 16 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := inserted(b[:100], "me"); err == nil {
		t.Error("an unknown layout, and no error")
	}
	b[32+16] = 5 // blkio_count where 16 bytes stand behind cpu_delay_total
	text, err := taskstatsText(b, 16)
	if err != nil || !strings.Contains(text, "\nblkio_count 5\n") || strings.Contains(text, "irq_") {
		t.Errorf("%v\n%s", err, text)
	}
}
