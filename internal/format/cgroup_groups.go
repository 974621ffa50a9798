package format

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// Which cgroups a process is in, and where their files are.
const (
	KindPIDCgroup Kind = "cgroup of a process"
	KindMountinfo Kind = "mountinfo of a process"
	KindGroups    Kind = "cgroups as the recorder found them"
)

var _ = registerFile(&row{
	kind: KindPIDCgroup, name: "process-cgroup",
	looks: looksCgroup, at: base("cgroup"), file: (*kernelFiles).pidCgroup,
	streams: []evidence.Stream{
		{Name: "/cgroup/version:text", Doc: "Fact. \"v1\" or \"v2\", of the cpu controller."},
		{Name: "/cgroup/path:path",
			Doc: "Fact. The target's own group, of the cpu controller, as seen from our mount."},
		{Name: "/cgroup/memory/path:path", Doc: "Fact. The target's own group, of the memory controller."},
	},
})

// mountinfo says something only beside the cgroup of the same process.
var _ = registerFile(&row{
	kind: KindMountinfo, name: "mountinfo",
	looks: looksMountinfo, at: base("mountinfo"), file: (*kernelFiles).mountinfo,
	streams: []evidence.Stream{
		{Name: "/cgroup/cpu/files:path", Doc: "Fact. Where that group's files are, by mountinfo and /proc/PID/cgroup."},
	},
})

var _ = registerFile(&row{
	kind: KindGroups, name: "groups",
	at: func(p string) bool { return p == "groups" }, file: (*kernelFiles).groupViews,
	streams: []evidence.Stream{
		{Name: "/cgroup/hidden:text",
			Doc: "Fact. The ancestors that could not be seen, so that a quota or a limit there is not known."},
	},
	also: []string{"/cgroup/version:text", "/cgroup/path:path", "/cgroup/memory/path:path"},
})

func looksCgroup(h head) bool {
	line, _, _ := strings.Cut(h.start, "\n")
	f := strings.SplitN(line, ":", 3)
	return len(f) == 3 && f[0] != "" && strings.Trim(f[0], "0123456789") == "" && strings.HasPrefix(f[2], "/")
}

func looksMountinfo(h head) bool {
	line, _, _ := strings.Cut(h.start, "\n")
	f := strings.Fields(line)
	return len(f) >= 9 && isNumber(f[0]) && isNumber(f[1]) && strings.Contains(f[2], ":") &&
		strings.Contains(line, " - ")
}

// groupView is where a controller's groups are, as the recorder found them.
type groupView struct {
	v2             bool
	top, root, own string
	hidden         string
}

// groupViews reads lines `cpu v1 top="..." root="..." own="..." hidden="..."`.
func (s *kernelFiles) groupViews(r reading) error {
	for line := range strings.Lines(r.text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		controller, rest, _ := strings.Cut(line, " ")
		version, rest, _ := strings.Cut(rest, " ")
		g := &groupView{v2: version == "v2"}
		for _, part := range []struct {
			name string
			into *string
		}{{"top=", &g.top}, {"root=", &g.root}, {"own=", &g.own}, {"hidden=", &g.hidden}} {
			quoted, err := strconv.QuotedPrefix(strings.TrimPrefix(rest, part.name))
			if err != nil || !strings.HasPrefix(rest, part.name) {
				return fmt.Errorf("want %s\"...\", got %.60q", part.name, rest)
			}
			*part.into, _ = strconv.Unquote(quoted)
			rest = strings.TrimPrefix(rest[len(part.name)+len(quoted):], " ")
		}
		if s.groups[controller] == nil && g.top != "" {
			s.groups[controller] = g
		}
	}
	return nil
}

// pidCgroup reads /proc/PID/cgroup. If the recorder found the groups itself, its paths are the
// better ones.
func (s *kernelFiles) pidCgroup(r reading) error {
	for line := range strings.Lines(r.text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			if strings.TrimSpace(line) != "" {
				return fmt.Errorf("want N:controllers:/path, got %.60q", line)
			}
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if (c == "cpu" || c == "memory" || c == "") && s.levels[levelKey{c, ""}] == nil && s.groups[c] == nil {
				if s.bareGroups == nil {
					s.bareGroups = map[string]string{}
				}
				s.bareGroups[c] = f[2]
			}
		}
	}
	return nil
}

// mountinfo says where a cgroup file system with the cpu controller is mounted. With
// /proc/PID/cgroup that says where the files are.
func (s *kernelFiles) mountinfo(r reading) error {
	for line := range strings.Lines(r.text) {
		before, after, _ := strings.Cut(line, " - ")
		f, tail := strings.Fields(before), strings.Fields(after)
		if len(f) < 6 || len(tail) < 3 {
			return fmt.Errorf("want a mount, got %.60q", line)
		}
		v1 := tail[0] == "cgroup" && strings.Contains(","+tail[2]+",", ",cpu,")
		if v1 || tail[0] == "cgroup2" && s.cpuMount == "" {
			s.cpuMount, s.cpuMountRoot, s.cpuMountV1 = f[4], f[3], v1
		}
	}
	return nil
}
