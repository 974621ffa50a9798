package attach

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// Kinds of this test: "N numbers" is a line "h" and lines of digits; "word" is scattered lines
// "@x".
var testKinds = []*Kind{
	{Name: "numbers", Claim: func(lines []paste.Line) int {
		if lines[0].Text != "h" {
			return 0
		}
		n := 1
		for n < len(lines) && strings.Trim(lines[n].Text, "0123456789") == "" {
			n++
		}
		return n
	}},
	{Name: "word", Scattered: true, Hints: []string{"@"}, Claim: func(lines []paste.Line) int {
		if strings.HasPrefix(lines[0].Text, "@") {
			return 1
		}
		return 0
	}},
	{Name: "stamped", Claim: func(lines []paste.Line) int {
		n := 0
		for n < len(lines) && strings.HasPrefix(lines[n].Text, "2026-11-22T") {
			n++
		}
		return n
	}},
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"a prompt ends a part", "root@a:~# cat /proc/7/x\nh\n1\nroot@b:~# cat y\nh\n2\n",
			[]string{"numbers 2-3 a /proc/7/x 7", "numbers 5-6 b  0"}},
		{"a fence ends a part", "```\nh\n1\n```\n2\n", []string{"numbers 2-3   0", "? 5-5"}},
		{"a title", "before the restart:\nh\n1\n\nafter it\n\n```\nh\n3\n```\n",
			[]string{"numbers 2-3   0 before the restart:", "numbers 8-9   0 after it"}},
		{"scattered", "@a\nother\n@b\n", []string{"word 1-3   0", "? 2-2"}},
		{"scattered in two containers", "web-1 | @a\ndb-1  | @b\nweb-1 | @c\n",
			[]string{"word 1-3   0", "word 2-2   0"}},
		{"scattered after two prompts", "$ ./a\n@a\n$ ./a\n@b\n", []string{"word 2-2   0", "word 4-4   0"}},
		{"left out", "h\n1\n...\nh\n2\n", []string{"numbers 1-5   0"}},
		{"a logger's prefix that is none", "2026-11-22T22:28:49Z a\n2026-11-22T22:28:50Z b\n",
			[]string{"stamped 1-2   0"}},
		{"grep", "/proc/7/x:h\n/proc/7/x:1\n/proc/8/x:h\n/proc/8/x:2\n",
			[]string{"numbers 1-2  /proc/7/x 7", "numbers 3-4  /proc/8/x 8"}},
	} {
		parts, unknown := Cut("", paste.Lines([]byte(c.in)), NewKinds(testKinds))
		var got []string
		for _, p := range parts {
			got = append(got, strings.TrimRight(fmt.Sprintf("%s %d-%d %s %s %d %s", p.Kind.Name,
				p.First(), p.Last(), p.Host, p.Path, p.PID, p.Title), " "))
		}
		for _, r := range unknown {
			got = append(got, fmt.Sprintf("? %d-%d", r.First, r.Last))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// A command says which quota those below it have, if it is one that gives a quota.
func TestQuotaOf(t *testing.T) {
	for command, want := range map[string]float64{
		"systemd-run --scope -p CPUQuota=150% ./a":                           1.5,
		"sudo systemd-run --unit=a --property=CPUQuota=20% ./a":              0.2,
		"systemctl set-property a.service CPUQuota=400%":                     4,
		"systemd-run -p CPUQuota= ./a":                                       0,
		"docker run -d --cpus=2 --name a a:1":                                2,
		"docker update --cpus 0.5 a":                                         0.5,
		"podman run --cpu-period=50000 --cpu-quota=25000 a":                  0.5,
		"docker run --cpu-quota=150000 a":                                    1.5,
		"docker run --cpuset-cpus=0-3 a":                                     0,
		"docker run --cpus a":                                                0,
		"mpirun --cpus 4 ./a":                                                0,
		"echo \"50000 100000\" | sudo tee /sys/fs/cgroup/a/cpu.max":          0,
		"echo '50000 100000' > /sys/fs/cgroup/a/cpu.max":                     0.5,
		"echo max > /sys/fs/cgroup/a/cpu.max":                                0,
		"cat /sys/fs/cgroup/a/cpu.max":                                       0,
		"docker run --cpus=1e308 a; docker run --cpus=NaN a; systemd-run -p": 0,
	} {
		if got := quotaOf(command); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
	parts, _ := Cut("", paste.Lines([]byte("root@a:~# docker run --cpus=2 x\nabc\nroot@a:~# cat x\nh\n1\nroot@b:~# cat y\nh\n2\n")), NewKinds(testKinds))
	if len(parts) != 2 || parts[0].Quota != 2 || parts[1].Quota != 0 {
		t.Errorf("got %+v", parts)
	}
}
