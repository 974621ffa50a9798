package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/need"
	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/toll"
)

// startServer is startService that also returns the pid, with clients that send requests until the
// test ends.
func startServer(t *testing.T, clients int) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=service", "GOGC=150", "SECRET=sesame")
	in, _ := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var asking sync.WaitGroup
	kill = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(func() { close(end); in.Close(); kill(); asking.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for range clients {
		asking.Go(func() {
			for {
				select {
				case <-end:
					return
				case <-time.After(time.Millisecond):
				}
				r, err := http.Get("http://" + strings.TrimSpace(line) + "/nap")
				if err != nil {
					return // it was killed
				}
				io.Copy(io.Discard, r.Body)
				r.Body.Close()
			}
		})
	}
	return cmd.Process.Pid, kill
}

// A Go server is named only by its pid: its pprof pages are found, its trace is joined with
// the kernel's records, and its requests are explained.
func TestDiagnosePid(t *testing.T) {
	need.Kernel(t, "bpf")
	pid, _ := startServer(t, 3)
	name := filepath.Join(t.TempDir(), "x.case")
	status, stdout, stderr := run("diagnose", "--pid", strconv.Itoa(pid), "--for", "2s", "-o", name, "--format", "json")
	if status > 1 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	switch k := r.Kernel; {
	case k == nil:
		t.Fatalf("no kernel records: tiers %v, gaps %v", r.Tiers, r.Gaps)
	case !k.Joined || !k.AllTasks || k.Source != "bpf":
		t.Errorf("kernel: joined %v, all tasks %v, source %s", k.Joined, k.AllTasks, k.Source)
	case k.OnNS <= 0 || k.ThreadsSeen < 3 || k.Switches == 0:
		t.Errorf("kernel: on CPU %d ns, %d threads, %d switches", k.OnNS, k.ThreadsSeen, k.Switches)
	case k.Begin > r.Recording.BeginNS || k.End < r.Recording.EndNS:
		t.Errorf("the kernel's records reach from %d to %d, the trace from %d to %d", k.Begin,
			k.End, r.Recording.BeginNS, r.Recording.EndNS)
	}
	if len(r.Errors) > 0 || r.Requests.Count == 0 || r.Ledger.CPUs == nil || r.Native {
		t.Errorf("errors %v, %d requests (%s), CPUs %v, native %v", r.Errors, r.Requests.Count,
			r.Requests.NoRequestsCause, r.Ledger.CPUs, r.Native)
	}
	if r.Cost.Recording == nil || r.Cost.Recording.CPUNS <= 0 {
		t.Errorf("cost %+v", r.Cost)
	}
	m := openCase(t, name).Manifest
	if m.Target.PID != pid || m.Target.Runtime != "go" || m.Target.GoVersion == "" ||
		m.Target.Started == 0 || m.Target.Env["GOGC"] != "150" || m.Target.Args != nil {
		t.Errorf("target %+v", m.Target)
	}
	var stages []evidence.StageName
	for _, s := range m.Toll.Stages {
		stages = append(stages, s.Name)
	}
	if want := []evidence.StageName{evidence.StageCounters, evidence.StageStart,
		evidence.StageKernel, evidence.StageAll, evidence.StageEnd}; !slices.Equal(stages, want) {
		t.Errorf("stages %v, want %v", stages, want)
	}
	if b := r.Cost.Service; b == nil || len(b.Stages) != 3 || len(b.Effects) != 2*len(toll.Measures) {
		t.Errorf("what it cost the service: %+v", b)
	}
	if b, _ := json.Marshal(m); strings.Contains(string(b), "sesame") {
		t.Error("the environment is in the manifest")
	}
}

// Without the runtime's evidence the requests are those of threads.
func TestDiagnosePidWithoutTrace(t *testing.T) {
	need.Kernel(t, "bpf")
	pid, _ := startServer(t, 3)
	status, stdout, stderr := run("diagnose", "--pid", strconv.Itoa(pid), "--for", "1s",
		"--no-probe", "--format", "json")
	if status == 2 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v, status %d, %s", err, status, stderr)
	}
	if r.Kernel == nil || r.Kernel.Joined || r.Target.URL != "" || len(r.Errors) > 0 {
		t.Errorf("kernel %v, url %q, errors %v", r.Kernel != nil, r.Target.URL, r.Errors)
	}
	if !slices.ContainsFunc(r.Unseen, func(s string) bool { return strings.Contains(s, "--no-probe") }) {
		t.Errorf("the report does not say that its pages were not looked for: %q", r.Unseen)
	}
}

// A process that ends also ends the recording, and what was recorded is explained.
func TestRecordPidEnds(t *testing.T) {
	need.Kernel(t, "bpf")
	pid, kill := startServer(t, 1)
	name := filepath.Join(t.TempDir(), "x.case")
	_, wait := start(t, "record", "--pid", strconv.Itoa(pid), "--for", "60s", "-o", name)
	untilTraced(t, name+".part")
	kill()
	status, stderr := wait()
	if status != 0 {
		t.Fatalf("status %d, %s", status, stderr)
	}
	c := openCase(t, name)
	if !strings.Contains(c.Manifest.Target.Ended, "the process ended at ") || c.Size(kernel.Member) <= 0 {
		t.Errorf("ended %q, members %v", c.Manifest.Target.Ended, c.Names())
	}
}

// A recorder that is killed leaves a folder, which can be explained.
func TestRecordPidKilled(t *testing.T) {
	need.Kernel(t, "bpf")
	pid, _ := startServer(t, 2)
	name := filepath.Join(t.TempDir(), "x.case")
	cmd, wait := start(t, "record", "--pid", strconv.Itoa(pid), "--for", "60s", "-o", name)
	untilTraced(t, name+".part")
	for range 3000 { // until some of the kernel's records are on disk
		if st, err := os.Stat(filepath.Join(name+".part", kernel.Member)); err == nil && st.Size() > 20_000 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cmd.Process.Kill()
	wait()
	status, stdout, stderr := run("explain", name+".part", "--format", "json")
	var r report.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v, status %d, %s", err, status, stderr)
	}
	if r.Kernel == nil || r.Kernel.Switches == 0 || len(r.Errors) > 0 {
		t.Errorf("kernel %v, errors %v", r.Kernel != nil, r.Errors)
	}
	if !slices.ContainsFunc(r.Gaps, func(g report.Gap) bool { return strings.Contains(g.Reason, "was killed") }) {
		t.Errorf("not told that it was killed: %v", r.Gaps)
	}
}

// A watch saves what took too long, with what came before, and leaves nothing else.
func TestWatch(t *testing.T) {
	need.Kernel(t, "bpf")
	pid, _ := startServer(t, 2)
	dir := t.TempDir()
	base := filepath.Join(dir, "shop")
	_, wait := start(t, "record", "--pid", strconv.Itoa(pid), "--for", "2s", "--slow-over", "10s", "-o", base)
	if status, stderr := wait(); status != 0 || !strings.Contains(stderr, "segments of 2s watched: 1, saved: 0") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
	_, wait = start(t, "record", "--pid", strconv.Itoa(pid), "--for", "2s", "--slow-over", "1ms", "-o", base)
	status, stderr := wait()
	if status != 0 || !strings.Contains(stderr, "a request took ") {
		t.Errorf("status %d, %s", status, stderr)
	}
	left, _ := filepath.Glob(base + "-*.case")
	if len(left) != 1 {
		t.Fatalf("left %v", left)
	}
	if c := openCase(t, left[0]); c.Size(evidence.TraceMember) <= 0 || c.Size(kernel.Member) <= 0 {
		t.Errorf("members %v", c.Names())
	}
}
