package kernelfile

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// What a prompt's cat prints is divided by the files that it names.
func TestSession(t *testing.T) {
	lines := linesOf([]string{"", "20000", "100000", "nr_periods 100", "nr_throttled 60",
		"throttled_time 3000000000", "ls"})
	lines[0].Command = "cat /sys/fs/cgroup/cpu/a/cpu.cfs_quota_us /sys/fs/cgroup/cpu/a/cpu.cfs_period_us /sys/fs/cgroup/cpu/a/cpu.stat"
	parts, unknown := attach.Cut("", lines, attach.NewKinds(Kinds()))
	if len(parts) != 1 || len(unknown) != 1 || parts[0].Last() != 6 {
		t.Fatalf("got %d parts, %v unknown", len(parts), unknown)
	}
	r := parts[0].Kind.Read(parts[0])
	if r.Who.Cgroup != "/a" || r.State != attach.Ill || len(r.Figures) < 3 || !hasFact(r, FactQuota) {
		t.Errorf("got %+v", r)
	}
	other := []paste.Line{{N: 1, Command: "cat /etc/motd"}, {N: 2, Text: "100000"}}
	if n := namedFiles.Claim(other); n != 0 {
		t.Errorf("claims %d lines of another file", n)
	}
}

// Two prompts of one paste are before and after; the second says how long it slept.
func TestJoinedByPrompts(t *testing.T) {
	data, err := os.ReadFile("testdata/vmstat-file-two-prompts.txtar")
	if err != nil {
		t.Fatal(err)
	}
	parts, _ := attach.Cut("", paste.Lines(txtar.Parse(data).Files[0].Data), attach.NewKinds(Kinds()))
	a := attach.Explain(parts, nil)
	if len(a.Told) != 1 || a.State != attach.Ill {
		t.Fatalf("%d parts, %s", len(a.Told), a.State)
	}
	for _, f := range a.Told[0].Facts {
		if f.Name == FactAllocstallRate && f.Value != 60 {
			t.Errorf("%v stalls a second", f.Value)
		}
	}
}

// linesOf makes lines of a text, for a kind.
func linesOf(texts []string) (out []paste.Line) {
	for i, t := range texts {
		out = append(out, paste.Line{N: i + 1, Text: t})
	}
	return out
}

// Two readings of one group that a script above them took are before and after. More ran between
// them than a sleep, so the time is not known. A loop over groups reads another one each time.
func TestReadTwiceByScript(t *testing.T) {
	for _, c := range []struct {
		script string
		parts  int
	}{
		{"grep -E 'nr_|throttled' $G/cpu.stat\n./load start; sleep 10\ngrep -E 'nr_|throttled' $G/cpu.stat", 1},
		{"for g in a b; do\ngrep . /sys/fs/cgroup/$g/cpu.stat\nsleep 1\ndone", 2},
		{"./load start", 2},
	} {
		text := "```\n" + c.script + "\n```\n\n```\nnr_periods 31\nnr_throttled 0\nthrottled_usec 0\nload started\n" +
			"nr_periods 171\nnr_throttled 120\nthrottled_usec 6203001\n```\n"
		parts, _ := attach.Cut("", paste.Lines([]byte(text)), attach.NewKinds(Kinds()))
		a := attach.Explain(parts, nil)
		if len(a.Told) != c.parts {
			t.Fatalf("%q: %d parts, want %d", c.script, len(a.Told), c.parts)
		}
		if c.parts == 1 && (a.State != attach.Ill || !strings.Contains(a.Told[0].Figures[0], "(120 of 140)")) {
			t.Errorf("%q: %s %q", c.script, a.State, a.Told[0].Figures)
		}
	}
}
