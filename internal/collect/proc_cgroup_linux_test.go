package collect

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/need"
)

// nested makes groups of v1's cpu controller below each other and removes them in the end.
func nested(t *testing.T, levels int) (dirs []string) {
	t.Helper()
	need.Kernel(t, "cgroup")
	dir := fmt.Sprintf("/sys/fs/cgroup/cpu/whystall-test-%d", os.Getpid())
	for i := range levels {
		if i > 0 {
			dir = filepath.Join(dir, "level"+strconv.Itoa(i))
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
		made := dir
		t.Cleanup(func() {
			// A group whose last process was just reaped may be busy for a moment.
			for range 3000 {
				if os.Remove(made) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%s is left behind", made)
		})
	}
	return dirs
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
}

// throttles is how often the kernel throttled a group.
func throttles(t *testing.T, group string) (n int) {
	t.Helper()
	b, err := os.ReadFile(group + "/cpu.stat")
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(b)) {
		fmt.Sscanf(line, "nr_throttled %d", &n)
	}
	return n
}

// A process deep in a tree, in a cgroup namespace of its own, where an ancestor has the quota.
func TestCgroupAncestor(t *testing.T) {
	dirs := nested(t, 3)
	write(t, dirs[0]+"/cpu.cfs_quota_us", "5000")
	write(t, dirs[0]+"/cpu.cfs_period_us", "50000")
	// It joins the group, makes the namespace, says so and burns CPU until its input ends.
	cmd := exec.Command("sh", "-c", `echo $$ > `+dirs[2]+
		`/cgroup.procs && exec unshare -C sh -c 'echo ready; while :; do :; done'`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if _, err := io.ReadFull(out, make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	c := Locals()[slices.IndexFunc(Locals(), func(c *Local) bool { return c.Name == "cgroup" })]
	p := Process{PID: cmd.Process.Pid}
	if err := c.Probe(p); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var b bytes.Buffer
	ended := make(chan error, 1)
	before, counted := throttles(t, dirs[0]), 0
	go func() {
		_, err := c.Record(ctx, p, &b)
		ended <- err
	}()
	// A machine that gives less than the quota does not throttle: the kernel's own count shows it.
	// Some of it may be of before the first reading.
	for n := 0; n < 100 && (n < 5 || counted < 3); n++ {
		time.Sleep(100 * time.Millisecond)
		counted = throttles(t, dirs[0]) - before
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if name := os.Getenv("WHYSTALL_KEEP"); name != "" {
		os.WriteFile(filepath.Join(name, "nested.txt"), b.Bytes(), 0o600)
	}
	set, _, problems := format.Gather([]format.Item{{Name: "cgroup.txt", Data: b.Bytes()}})
	if problems[0] != nil {
		t.Error(problems[0])
	}
	at, own := "/"+filepath.Base(dirs[0]), "/"+filepath.Base(dirs[0])+"/level1/level2"
	for stream, want := range map[string]evidence.Record{
		"/cgroup/version:text":      {Text: "v1"},
		"/cgroup/path:path":         {Text: own},
		"/cgroup/cpu/quota:cpus":    {Value: 0.1},
		"/cgroup/cpu/quota-at:path": {Text: at},
		"/cgroup/cpu/period:ns":     {Value: 50e6},
	} {
		got, ok := set.Fact(stream)
		if !ok || got.Value != want.Value || got.Text != want.Text {
			t.Errorf("%s: %v, want %v %q", stream, got, want.Value, want.Text)
		}
	}
	if growth, _, ok := set.Delta("/cgroup/cpu/throttled:ns"); !ok || growth <= 0 && counted >= 3 {
		t.Errorf("a loop at a quota of 0.1 CPUs was throttled for %v ns", growth)
	}
	if len(set.All("/cgroup/level/cpu/throttled:ns")) == 0 {
		t.Error("nothing of each level")
	}
}
