package proc

import (
	"strings"
)

// mount is a line of /proc/PID/mountinfo that mounts a cgroup file system.
type mount struct {
	root        string // the mounted part, as seen from our cgroup namespace; "/": all that it has
	point       string
	v2          bool
	controllers []string // of v1
}

// parseMountinfo returns the cgroup mounts. The fields (proc(5)) are: id, parent, major:minor,
// root, mount point, options, any number of optional ones, "-", type, source, options of the file
// system. It leaves out lines of other forms: newer kernels may have some.
func parseMountinfo(b []byte) (mounts []mount) {
	for line := range strings.Lines(string(b)) {
		before, after, ok := strings.Cut(line, " - ")
		f, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(tail) < 3 || tail[0] != "cgroup" && tail[0] != "cgroup2" {
			continue
		}
		m := mount{root: unescape(f[3]), point: unescape(f[4]), v2: tail[0] == "cgroup2"}
		if !m.v2 {
			m.controllers = strings.Split(tail[2], ",")
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes \040 and the like, as which the kernel writes spaces, tabs, newlines and
// backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && octal(s[i+1]) && octal(s[i+2]) && octal(s[i+3]) {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func octal(c byte) bool { return c >= '0' && c <= '7' }

// membership is where a process is in each hierarchy: controller to path. "" is the one of v2.
type membership map[string]string

// parseMembership reads /proc/PID/cgroup: "4:memory:/a/b", "1:name=systemd:/", "0::/a/b". Paths may
// hold colons.
func parseMembership(b []byte) membership {
	m := membership{}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			continue
		}
		// The kernel marks a group that was removed while the process lives on.
		path := strings.TrimSuffix(f[2], " (deleted)")
		for controller := range strings.SplitSeq(f[1], ",") {
			m[controller] = path
		}
	}
	return m
}
