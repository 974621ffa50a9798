package collect

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A process whose cgroup's memory limit leaves no room for a trace's buffers is recorded without
// one.
func TestNoRoomForTrace(t *testing.T) {
	dir := fmt.Sprintf("/sys/fs/cgroup/memory/whystall-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("no memory cgroup can be made here: ", err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	// Only what is allocated within the group is on its bill: a shell's variable of 8 MB.
	cmd := exec.Command("sh", "-c", `echo $$ >"$0/cgroup.procs" && x=$(head -c 8000000 /dev/zero | tr '\0' x) && echo ready && read y`, dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0); err != nil {
			t.Skip(err)
		}
	}
	write("memory.limit_in_bytes", "640M")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Skipf("the shell did not get there: %q, %v", line, err)
	}
	used := oneNumber(dir, "memory.usage_in_bytes")
	for _, c := range []struct {
		name string
		of   float64 // the limit, of what is in use
		want bool
	}{{"much is left", 10, false}, {"a twentieth is left", 1.05, true}} {
		write("memory.limit_in_bytes", fmt.Sprintf("%.0f", c.of*used))
		left, limit := groupMemoryLeft(cmd.Process.Pid)
		if got := left < min(traceRoom, roomOfLimit*limit); got != c.want {
			t.Errorf("%s: %.0f of %.0f bytes are left", c.name, left, limit)
		}
	}
}
