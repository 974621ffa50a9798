package kernelfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var limitsLine = pattern.New(`^(Max [a-z ]+?|Max (?:cpu|file|data|stack|core|resident|processes|open|locked|address|pending|msgqueue|nice|realtime)[a-z ]*?)\s{2,}(\d+|unlimited)\s+(\d+|unlimited)(?:\s+\w+)?$`)

var limits = &attach.Kind{
	Name: "/proc/PID/limits", Hints: []string{"Limit", "Max "},
	Claim: func(lines []paste.Line) int {
		return run(lines, func(t string) bool {
			return limitsLine.MatchString(t) || strings.HasPrefix(t, "Limit ") && strings.Contains(t, "Soft Limit")
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "limits of a process", State: attach.Context,
			Means: "Limits show as errors where they are reached (EMFILE, EAGAIN), and not as slowness.", Not: "how much of each is in use, and so whether one was reached"}
		r.Who.PID = p.PID
		files := false // their limit stands first
		for _, l := range p.Lines {
			m := limitsLine.FindStringSubmatch(strings.TrimSpace(l.Text))
			if m == nil {
				continue
			}
			text := strings.ToLower(m[1][:1]) + m[1][1:] + ": " + m[2]
			if m[3] != m[2] {
				text += " (hard limit " + m[3] + ")"
			} else if m[2] != "unlimited" {
				text += ", soft and hard"
			}
			if m[1] == "Max open files" || m[1] == "Max processes" {
				at := 0
				if m[1] == "Max processes" && files {
					at = 1
				}
				files = files || m[1] == "Max open files"
				r.Figures = slices.Insert(r.Figures, at, text)
			} else {
				r.Figures = append(r.Figures, text)
			}
		}
		return r
	},
}

var (
	ioKnown = oneOf(strings.Join(ioNames, " "))
	// ioOwn are names that nothing else has; logs of databases have amounts of bytes as well.
	ioOwn   = oneOf("rchar wchar syscr syscw cancelled_write_bytes")
	ioNames = []string{"rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes"}
)

// claimIO claims the names in the kernel's order, from whichever on.
func claimIO(lines []paste.Line) int {
	n, first, last := 0, -1, -1
	for n < len(lines) {
		name, _, ok := pair(strings.TrimSpace(lines[n].Text))
		at := slices.Index(ioNames, name)
		if !ok || at < 0 || at <= last && at != first || n > 0 && lines[n].Command != "" {
			break
		}
		if n == 0 {
			first = at
		}
		n, last = n+1, at
	}
	if n == 0 {
		return 0
	}
	return claimPairs(lines[:n], ioKnown, ioOwn, nil, 3)
}

var procIO = &attach.Kind{
	Name: "/proc/PID/io", Joins: true, Hints: []string{"char:", "syscr:", "syscw:", "_bytes:"},
	Claim: starting("a-z", 80, repeated(claimIO)),
	Read: func(p *attach.Part) attach.Reading {
		all, m := pairSamples(p)
		last := m[len(m)-1]
		r := attach.Reading{Title: "/proc/PID/io, what a process read and wrote",
			State: attach.Context, Boot: true, Time: all[0].at}
		r.Who.PID = p.PID
		r.Means = "Amounts since the process started: they say nothing of how long it waited for them."
		get, when := func(n string) float64 { return last.get(n) }, "since its start"
		if g, ok := growth(all, m, "rchar", "wchar", "read_bytes", "write_bytes"); ok && g.fell == "" {
			get, when, r.Boot, r.State = g.by, "between the samples", false, attach.Healthy
			r.Title += fmt.Sprintf(", %d samples%s", len(m), over(g.seconds))
			r.Means = "Amounts between two readings: they say nothing of how long it waited for them."
		}
		r.Figures = []string{
			fmt.Sprintf("%s read from disks, %s written to them, %s", mem(get("read_bytes")),
				mem(get("write_bytes")), when),
			fmt.Sprintf("%s read and %s written by system calls, page cache and sockets included",
				mem(get("rchar")), mem(get("wchar"))),
			fmt.Sprintf("%s calls to read, %s to write", number(get("syscr")), number(get("syscw"))),
		}
		r.Next = []attach.Next{{Command: "pidstat -d -p PID 1 10", Why: "rates, and iodelay"}}
		return r
	},
}

// cgroupLine is a line of /proc/PID/cgroup; mountLine one of mountinfo; mountOut one of mount.
var (
	cgroupLine = pattern.New(`^(\d{1,3}):([\w,=.-]*):(/\S*)$`)
	mountLine  = pattern.New(`^\d+ \d+ \d+:\d+ \S+ (\S+) \S+ (?:\S+ )*?- (\S+) (\S+)(?: (\S+))?$`)
	mountOut   = pattern.New(`^(\S+) on (/.*) type (\S+) \((\S+)\)(?: \[.*\])?$`)
	mountsTab  = pattern.New(`^(\S+) (/\S*) (\w[\w.]*) (r[ow]\S*) \d \d$`)
)

var procCgroup = &attach.Kind{
	Name: "/proc/PID/cgroup", Hints: []string{":/"}, Context: true,
	Claim: func(lines []paste.Line) int { return run(lines, cgroupLine.MatchString) },
	Read: func(p *attach.Part) attach.Reading {
		r := attach.Reading{Title: "cgroups of a process", State: attach.Healthy}
		v1 := false
		r.Who.PID = p.PID
		for _, l := range p.Lines {
			m := cgroupLine.FindStringSubmatch(strings.TrimSpace(l.Text))
			controllers := strings.Split(m[2], ",")
			has := func(c string) bool { return strings.Contains(","+strings.Join(controllers, ",")+",", ","+c+",") }
			switch {
			case m[1] == "0" && m[2] == "":
				r.Figures = append(r.Figures, "cgroup v2: "+printed(m[3]))
				if r.Who.Cgroup == "" {
					r.Who.Cgroup = m[3]
				}
			case has("cpu"):
				r.Who.Cgroup, v1 = m[3], true
				r.Figures = append([]string{"cpu controller (v1): " + printed(m[3])}, r.Figures...)
			case has("memory"):
				r.Figures = append(r.Figures, "memory controller (v1): "+printed(m[3]))
			}
		}
		if len(r.Figures) == 0 {
			r.Figures = []string{plural(len(p.Lines), "controller", "controllers") +
				", neither cpu nor memory among them"}
		}
		r.Means = "It says where the quota and the limits of the process are to be found; nothing of slowness."
		r.Next = []attach.Next{{Command: nextQuota(r.Who.Cgroup, v1),
			Why: "the quota, and how often it stopped the group"}}
		return r
	},
}

// nextQuota is the command that shows the quota of a group.
func nextQuota(path string, v1 bool) string {
	g := groupName(path)
	if v1 {
		return "cd /sys/fs/cgroup/cpu/" + g + "; cat cpu.cfs_quota_us cpu.cfs_period_us cpu.stat"
	}
	return "cd /sys/fs/cgroup/" + g + "; cat cpu.max cpu.stat"
}

var mounts = &attach.Kind{
	Name: "mounts", Hints: []string{" - ", " on /", " 0 0"}, Context: true,
	Claim: func(lines []paste.Line) int {
		return run(lines, func(t string) bool {
			return mountLine.MatchString(t) || mountOut.MatchString(t) || mountsTab.MatchString(t)
		})
	},
	Read: readMounts,
}

func readMounts(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: plural(len(p.Lines), "mount", "mounts"), State: attach.Healthy}
	r.Who.PID = p.PID
	kinds := map[string]int{}
	var remote, groups []string
	root := ""
	for _, l := range p.Lines {
		t := strings.TrimSpace(l.Text)
		var where, kind, options string
		if m := mountLine.FindStringSubmatch(t); m != nil {
			where, kind, options = m[1], m[2], m[4]
		} else if m := mountOut.FindStringSubmatch(t); m != nil {
			where, kind, options = m[2], m[3], m[4]
		} else if m := mountsTab.FindStringSubmatch(t); m != nil {
			where, kind, options = m[2], m[3], m[4]
		}
		kinds[kind]++
		if where == "/" && root == "" {
			root = kind
		}
		switch kind {
		case "nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.glusterfs", "9p", "lustre",
			"fuse.s3fs", "gfs2", "ocfs2":
			remote = append(remote, printed(where)+" ("+kind+")")
		case "cgroup":
			for _, o := range strings.Split(options, ",") {
				if o == "cpu" {
					groups = append(groups, "cgroup v1: the cpu controller is at "+printed(where))
				}
			}
		case "cgroup2":
			text := "cgroup v2 at " + printed(where)
			if strings.HasSuffix(where, "/unified") {
				text += ", beside v1 (hybrid)"
			}
			groups = append(groups, text)
		}
	}
	r.Figures = append(r.Figures, groups...)
	if len(remote) > 0 {
		r.Figures = append([]string{"over the network: " +
			strings.Join(remote[:min(3, len(remote))], ", ")}, r.Figures...)
	}
	if root != "" {
		r.Figures = append([]string{"the root is " + printed(root)}, r.Figures...)
	}
	r.Figures = append(r.Figures, fmt.Sprintf("%s of file systems", plural(len(kinds), "kind", "kinds")))
	r.Means = "It says where files and cgroups are; nothing of slowness."
	return r
}
