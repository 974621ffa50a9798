package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCases(t *testing.T) {
	cases, err := loadCases()
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	for _, c := range cases {
		if c.Title == "" || len(c.Story) == 0 {
			t.Errorf("%s: no title or no story", c.Name)
		}
		names := map[string]bool{}
		for _, v := range c.Variants {
			names[v.Name] = true
			if strings.HasPrefix(v.Name, "ill") != (v.Root == c.Name) {
				t.Errorf("%s, %s: the root is %q", c.Name, v.Name, v.Root)
			}
			for _, never := range v.Never {
				if never == v.Root {
					t.Errorf("%s, %s: %s is both the root and never to be named", c.Name, v.Name, never)
				}
			}
		}
		if !names["ill"] || !names["cured"] {
			t.Errorf("%s: wants variants ill and cured", c.Name)
		}
	}
}

// TestMain lets the test binary be the lab, and its watchdog.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "watchdog" || os.Getenv("LAB_TEST") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A verdict is judged by its first root, and by everything that it names.
func TestJudge(t *testing.T) {
	ill := Variant{Root: "a", May: []string{"b"}, Never: []string{"*"}}
	healthy := Variant{Never: []string{"*"}}
	lax := Variant{Root: "a", Never: []string{"c"}}
	for _, c := range []struct {
		v        *Variant
		findings string // cause<root
		ok       bool
	}{
		{&ill, "a", true}, {&ill, "a b<a", true}, {&ill, "a b", true}, {&ill, "b a", false},
		{&ill, "", false}, {&ill, "a c<a", false},
		{&healthy, "", true}, {&healthy, "a", false}, {&lax, "a d", true}, {&lax, "a c", false},
	} {
		var r report
		for _, f := range strings.Fields(c.findings) {
			cause, root, _ := strings.Cut(f, "<")
			r.Findings = append(r.Findings, found{Cause: cause, BecauseOf: root})
		}
		var got verdict
		if got.read(&r, c.v); got.ok != c.ok {
			t.Errorf("%q for root %q: %s; want ok %v", c.findings, c.v.Root, got.words(), c.ok)
		}
	}
}

// labCPU is the CPU time of this process, and of those of its children which have ended.
func labCPU() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		syscall.Getrusage(who, &r)
		sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	return sum
}

// diagnosed runs a variant. It gives what these tests read of whystall's report, and the share of
// the CPUs which others used.
func diagnosed(t *testing.T, variant string) (causes []string, requests int64, others float64) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	started, all, lab0 := time.Now(), busyCPU()-kernelCPU(), labCPU()
	defer func() {
		others = float64(busyCPU()-kernelCPU()-all-(labCPU()-lab0)) / float64(time.Since(started)) / float64(runtime.NumCPU())
	}()
	if status := lab(t.Context(), []string{"run", "sched-latency", "--variant", variant, "--for",
		"5s", "--format", "json"}, &stdout, &stderr); status != 0 {
		t.Fatalf("status %d\n%s%s", status, &stderr, &stdout)
	}
	t.Logf("%s", &stderr)
	var report struct {
		Requests struct{ Count int64 }
		Findings []struct {
			Cause     string
			BecauseOf string `json:"because_of"`
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	for _, f := range report.Findings {
		if f.BecauseOf == "" && f.Cause != "cpu-contention" { // it is true where others use the machine
			causes = append(causes, f.Cause)
		}
	}
	return causes, report.Requests.Count, 0
}

// needQuiet skips where others used the machine, as that shows in a verdict.
func needQuiet(t *testing.T, others float64, causes []string) {
	t.Helper()
	need(t, "quiet", others <= busyShare,
		fmt.Sprintf("others used %.0f %% of the CPUs, and that shows in a verdict: %v", 100*others, causes))
}

func TestIll(t *testing.T) {
	causes, requests, others := diagnosed(t, "ill")
	if len(causes) == 0 || causes[0] != "sched-latency" {
		needQuiet(t, others, causes)
		t.Errorf("found %v of %d requests, want sched-latency first", causes, requests)
	}
}

func TestCured(t *testing.T) {
	causes, requests, others := diagnosed(t, "cured")
	for _, c := range causes {
		if c == "sched-latency" {
			needQuiet(t, others, causes)
			t.Errorf("found %v of %d requests, want no sched-latency", causes, requests)
		}
	}
}

// TestStopped interrupts a run once its processes serve. It ends, and leaves neither processes nor
// files.
func TestStopped(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &watched{word: "what the clients see", seen: make(chan struct{})}
	go func() {
		<-out.seen
		cancel()
	}()
	var stderr bytes.Buffer
	if status := lab(ctx, []string{"run", "sched-latency"}, out, &stderr); status != exitFailed ||
		!strings.Contains(stderr.String(), "stopped") {
		t.Errorf("status %d, %q; want %d, stopped", status, &stderr, exitFailed)
	}
	if left, _ := filepath.Glob(filepath.Join(tmp, "whystall-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, pid := range out.pids() {
		if exec.Command("kill", "-0", pid).Run() == nil {
			t.Errorf("process %s is left behind", pid)
		}
	}
}

// watched closes seen when a word is written.
type watched struct {
	bytes.Buffer
	word string
	seen chan struct{}
	done bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if !w.done && strings.Contains(w.String(), w.word) {
		w.done = true
		close(w.seen)
	}
	return n, err
}

func (w *watched) pids() (pids []string) {
	f := strings.Fields(w.String())
	for i := range f {
		if f[i] == "pid" && i+1 < len(f) {
			pids = append(pids, f[i+1])
		}
	}
	return pids
}

// TestOrphan: a process of a case ends with its standard input, and so with the lab, however the
// lab ends.
func TestOrphan(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sched-latency")
	if err := goBuild(t.Context(), "go", ".", program, "./sched-latency"); err != nil {
		t.Fatal(err)
	}
	c, err := start(t.Context(), &Process{Name: "job"}, program, []string{"job", "-job", "1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("ended with %v, want 0", err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		nil, {"run"}, {"run", "no-such-case"}, {"run", "sched-latency", "--variant", "no-such"},
		{"run", "sched-latency", "--for", "1ms"}, {"run", "sched-latency", "more"},
		{"list", "more"}, {"verify", "--only", "no-such"}, {"verify", "--times", "0"},
		{"record-cases", "--tries", "0"}, {"record-cases", "no-such"},
	} {
		var stderr bytes.Buffer
		if status := lab(t.Context(), args, &stderr, &stderr); status != exitUsage || stderr.Len() == 0 {
			t.Errorf("%v: status %d, %q; want %d and a word why", args, status, &stderr, exitUsage)
		}
	}
}

func TestStartFails(t *testing.T) {
	begin := time.Now()
	_, err := start(t.Context(), &Process{Name: "store"}, os.Args[0], []string{"-test.run", "^$"}, nil)
	if err == nil || time.Since(begin) > 9*time.Second {
		t.Errorf("a program that never says ready: %v after %v", err, time.Since(begin))
	}
}

// The map in doc.go names every file.
func TestMap(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f != "doc.go" && !strings.HasSuffix(f, "_test.go") && !strings.Contains(string(doc), "//\t"+f+" ") {
			t.Errorf("%s is not in the map", f)
		}
	}
}
