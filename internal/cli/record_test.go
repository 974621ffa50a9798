package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "expvar"

	"github.com/whystall/whystall/exectrace"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

// child makes this test binary another program: a real service to be recorded, or whystall where it
// has to die.
const child = "WHYSTALL_TEST_CHILD"

func init() {
	switch os.Getenv(child) {
	case "service":
		beService()
	case "whystall":
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
	}
}

// beService serves pprof on a port of its own, with goroutines that wait for a mutex, until its
// standard input ends.
func beService() {
	runtime.SetMutexProfileFraction(5)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	for range 3 {
		go func() {
			for {
				mu.Lock()
				time.Sleep(time.Millisecond)
				mu.Unlock()
			}
		}()
	}
	http.HandleFunc("/nap", func(http.ResponseWriter, *http.Request) { time.Sleep(5 * time.Millisecond) })
	fmt.Println(l.Addr())
	go http.Serve(l, nil)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// startService returns a real service's address, and a function that kills it.
func startService(t *testing.T) (addr string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), child+"=service")
	in, _ := cmd.StdinPipe()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() { cmd.Process.Kill(); cmd.Wait() })
	t.Cleanup(func() { in.Close(); kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

// run runs a command in this process.
func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(args, strings.NewReader(""), &out, &errs, func(string) string { return "" })
	return status, out.String(), errs.String()
}

// start runs whystall as a process of its own, to be stopped or killed. wait returns its status and
// stderr.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, wait func() (int, string)) {
	t.Helper()
	cmd = exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), child+"=whystall")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := sync.OnceFunc(func() { cmd.Wait() })
	t.Cleanup(func() { cmd.Process.Kill(); done() })
	return cmd, func() (int, string) { done(); return cmd.ProcessState.ExitCode(), errs.String() }
}

// untilTraced waits until the recording has some of the trace on disk.
func untilTraced(t *testing.T, part string) {
	t.Helper()
	for range 3000 {
		if st, err := os.Stat(filepath.Join(part, evidence.TraceMember)); err == nil && st.Size() > 16 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no trace came")
}

// readTrace reads the case's trace where it lies.
func readTrace(t *testing.T, c *evidence.Case) (events int64, first exectrace.Time, gaps []exectrace.Gap) {
	t.Helper()
	file, offset, size, ok := c.Locate(evidence.TraceMember)
	if !ok {
		t.Fatal("the trace cannot be mapped")
	}
	tr, err := exectrace.OpenSection(file, offset, size, exectrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	for b := range tr.Blocks() {
		if events == 0 && len(b) > 0 {
			first = b[0].Time
		}
		events += int64(len(b))
	}
	if err := tr.Err(); err != nil {
		t.Fatal(err)
	}
	return events, first, tr.Gaps()
}

func openCase(t *testing.T, name string) *evidence.Case {
	t.Helper()
	c, err := evidence.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRecordRealService(t *testing.T) {
	addr, _ := startService(t)
	name := filepath.Join(t.TempDir(), "slow.case")
	args := []string{"record", "--pprof", "http://" + addr + "/debug/pprof/trace?seconds=9", "--for", "2s", "-o", name}
	status, stdout, stderr := run(args...)
	if status != 0 || stdout != "" {
		t.Fatalf("status %d, stdout %q, stderr %s", status, stdout, stderr)
	}
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) != 2 ||
		lines[0] != "whystall: recording for 2s; Ctrl-C ends it early and keeps what was recorded" ||
		!strings.HasPrefix(lines[1], "whystall: "+name+" written, ") ||
		!strings.HasSuffix(lines[1], "; next: whystall explain "+name) {
		t.Errorf("said\n%s", stderr)
	}
	if st, err := os.Stat(name); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, mode %v", err, st.Mode())
	}
	c := openCase(t, name)
	m := c.Manifest
	if m.Target.URL != "http://"+addr+"/debug/pprof/" || m.Schema != evidence.Schema || m.AskedNS != 2e9 {
		b, _ := json.Marshal(m)
		t.Errorf("manifest %s", b)
	}
	for _, col := range m.Collectors {
		want := evidence.Ready
		if col.Name == "metrics" {
			want = evidence.Unavailable
		}
		if col.State != want {
			t.Errorf("%s: %s %s", col.Name, col.State, col.Why)
		}
	}
	events, first, gaps := readTrace(t, c)
	if events < 100 || len(gaps) > 0 {
		t.Errorf("%d events, gaps %v", events, gaps)
	}
	if runtime.GOOS == "linux" {
		if _, same, ok := m.WallOffset(int64(first), true); !same || !ok {
			t.Errorf("the trace begins at %d, which is not in its request's time", first)
		}
	}
	// Our own requests do not overlap the trace, so the pauses that they cause are not in it.
	tr, _ := m.RequestFor(evidence.TraceMember)
	for _, r := range m.Requests {
		if r.Member != evidence.TraceMember && r.Ended.MonoNS > tr.Sent.MonoNS && r.Sent.MonoNS < tr.Ended.MonoNS {
			t.Errorf("%s was fetched while the trace ran", r.Member)
		}
	}
	var items []format.Item
	for _, n := range c.Names() {
		if n == evidence.TraceMember {
			continue
		}
		b, err := c.Read(n, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := m.RequestFor(n)
		items = append(items, format.Item{Name: n, Data: b, Time: r.Sent.MonoNS})
	}
	set, _, problems := format.Gather(items)
	for i, p := range problems {
		if p != nil {
			t.Errorf("%s: %v", items[i].Name, p)
		}
	}
	if f, ok := set.Fact("/pprof/mutex/fraction:events"); !ok || f.Value != 5 {
		t.Errorf("mutex fraction %v", f)
	}
	if d := set.All("/pprof/mutex/delay:ns"); len(d) == 0 || d[0].Stack[0] != "sync.(*Mutex).Unlock" {
		t.Errorf("mutex delay %v", d)
	}
	if n, ns, ok := set.Delta("/go/gc/cycles:gc-cycles"); !ok || n < 0 || ns < 2e9 {
		t.Errorf("%v cycles in %d ns, %v", n, ns, ok)
	}

	// A second recording does not overwrite the first.
	before, _ := os.ReadFile(name)
	status, _, stderr = run(args...)
	if want := "whystall: create " + name +
		": exists already: choose another name, or use --force\n"; status != 3 || stderr != want {
		t.Errorf("status %d, %s", status, stderr)
	}
	if after, _ := os.ReadFile(name); !bytes.Equal(before, after) {
		t.Error("the case changed")
	}
}

func TestRecordKilled(t *testing.T) {
	addr, _ := startService(t)
	name := filepath.Join(t.TempDir(), "slow.case")
	cmd, wait := start(t, "record", "--pprof", addr, "--for", "60s", "-o", name)
	untilTraced(t, name+".part")
	cmd.Process.Kill()
	wait()
	c := openCase(t, name+".part")
	if !c.Partial || !c.Manifest.Ended.UTC.IsZero() {
		t.Error("it does not look killed")
	}
	if events, _, _ := readTrace(t, c); events == 0 {
		t.Error("no event can be read")
	}
	status, _, stderr := run("record", "--pprof", addr, "--for", "1s", "-o", name)
	if want := "whystall: create " + name +
		".part: exists from another recording: explain it or remove it, or use --force\n"; status != 3 || stderr != want {
		t.Errorf("status %d, %s", status, stderr)
	}
	if status, _, stderr = run("record", "--pprof", addr, "--for", "1s", "-o", name, "--force"); status != 0 {
		t.Errorf("with --force: status %d, %s", status, stderr)
	}
}

func TestRecordInterrupted(t *testing.T) {
	addr, _ := startService(t)
	name := filepath.Join(t.TempDir(), "slow.case")
	cmd, wait := start(t, "record", "--pprof", addr, "--for", "60s", "-o", name)
	untilTraced(t, name+".part")
	// timeout(1) signals the process and its group in the same way: it counts as one Ctrl-C.
	for range 50 {
		cmd.Process.Signal(os.Interrupt)
	}
	status, stderr := wait()
	if status != 0 || !strings.Contains(stderr, name+" written, ") {
		t.Fatalf("status %d, %s", status, stderr)
	}
	c := openCase(t, name)
	if c.Manifest.Stopped != "by the user" || c.Size("mutex.end.pb.gz") <= 0 {
		t.Errorf("stopped %q, members %v", c.Manifest.Stopped, c.Names())
	}
	if events, _, _ := readTrace(t, c); events == 0 {
		t.Error("no event can be read")
	}
}

func TestRecordServiceDies(t *testing.T) {
	addr, kill := startService(t)
	name := filepath.Join(t.TempDir(), "slow.case")
	_, wait := start(t, "record", "--pprof", addr, "--for", "60s", "-o", name)
	untilTraced(t, name+".part")
	kill()
	status, stderr := wait()
	if status != 0 || !strings.Contains(stderr, "whystall: trace: the service ") ||
		!strings.Contains(stderr, " received so far are kept\n") {
		t.Errorf("status %d, %s", status, stderr)
	}
	if events, _, _ := readTrace(t, openCase(t, name)); events == 0 {
		t.Error("no event can be read")
	}
}

func TestRecordUsage(t *testing.T) {
	const url = "http://127.0.0.1:1"
	for want, args := range map[string][]string{
		"--for 0s: want whole seconds from 1s to 1h":     {"--pprof", url, "--for", "0s"},
		"--for 1.5s: want whole seconds from 1s to 1h":   {"--pprof", url, "--for", "1500ms"},
		"--for 2h0m0s: want whole seconds from 1s to 1h": {"--pprof", url, "--for", "2h"},
		"--max-size 10B: want at least 64KiB":            {"--pprof", url, "--max-size", "10"},
		"header 2: want 'Key: value'":                    {"--pprof", url, "--header", "A: x, y", "--header", "sesame"},
		`address: scheme "unix": want http or https`:     {"--pprof", "unix:///run/x"},
		"want what to record: a pid":                     {},
		`--pid: "-1": want the number of a process`:      {"--pid=-1"},
		`--pid: "-3": want the number of a process`:      {"--pid", "-3"},
		`--for: "5": want a number with its unit`:        {"--for", "5", url},
		"--budget 0: want a percentage":                  {"--pid", "1", "--budget", "0"},
		"concern a process":                              {"--pprof", url, "--no-stacks"},
	} {
		for _, command := range []string{"record", "diagnose"} {
			status, stdout, stderr := run(append([]string{command}, args...)...)
			if status != 2 || stdout != "" || !strings.Contains(stderr, want) ||
				strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "sesame") {
				t.Errorf("%s %v: status %d, stdout %q, stderr %q, want %q", command, args, status, stdout, stderr, want)
			}
		}
	}
}

// diagnose leaves its case and nothing else, and with --no-case nothing at all, whether it could
// record or not.
func TestDiagnoseCleansUp(t *testing.T) {
	temp, here := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Chdir(here)
	addr, kill := startService(t)
	run("diagnose", "http://"+addr, "--for", "1s", "--no-case")
	_, _, stderr := run("diagnose", "http://"+addr, "--for", "1s")
	kept, _ := filepath.Glob("*")
	if len(kept) != 1 || !ownName.MatchString(kept[0]) ||
		!strings.Contains(stderr, kept[0]+" written, ") || !strings.HasSuffix(stderr, "--no-case keeps none\n") {
		t.Errorf("kept %v; %s", kept, stderr)
	} else if st, err := os.Stat(kept[0]); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	kill()
	status, _, stderr := run("diagnose", "--pprof", addr, "--for", "1s")
	if want := "whystall: record http://" + addr +
		"/debug/pprof/: connection refused: nothing listens there; check host and port\n"; status != 3 || stderr != want {
		t.Errorf("status %d, %s", status, stderr)
	}
	left, err := os.ReadDir(temp)
	if now, _ := filepath.Glob("*"); err != nil || len(left) != 0 || len(now) != 1 {
		t.Errorf("left %v and %v, %v", left, now, err)
	}
}

// Only cases that nobody asked for are pushed out by newer ones.
func TestThinOut(t *testing.T) {
	t.Chdir(t.TempDir())
	make := func(name string, unasked bool) {
		w, err := evidence.Create(name, false, evidence.Manifest{Whystall: "test", Unasked: unasked})
		if err == nil {
			err = w.Finish()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 13 {
		make(fmt.Sprintf("whystall-202611220000%02dZ.case", i), i != 1)
		make(fmt.Sprintf("mine-%02d.case", i), true)
	}
	for i := range 13 {
		old := fmt.Sprintf("whystall-202611220000%02dZ.case", i)
		if err := os.Rename(old, fmt.Sprintf("whystall-20261122T0000%02dZ.case", i)); err != nil {
			t.Fatal(err)
		}
	}
	thinOut(".")
	left, _ := filepath.Glob("whystall-*")
	mine, _ := filepath.Glob("mine-*")
	if len(left) != mostKept+1 || len(mine) != 13 || left[0] != "whystall-20261122T000001Z.case" ||
		left[1] != "whystall-20261122T000003Z.case" {
		t.Errorf("left %v and %d", left, len(mine))
	}
	now := time.Date(2026, 11, 22, 0, 0, 12, 0, time.UTC)
	if name := caseName(now); name != "whystall-20261122T000012Z-2.case" {
		t.Error(name)
	}
}

func TestByteSize(t *testing.T) {
	for in, want := range map[string]int64{"65536": 65536, "1GiB": 1 << 30, "200MB": 200e6,
		"1.5 MiB": 3 << 19, "7k": -1, "12kB": 12000, "-1": -1, "": -1, "NaN": -1, "1e99GiB": -1} {
		var b byteSize
		err := b.UnmarshalText([]byte(in))
		if (err != nil) != (want < 0) || err == nil && int64(b) != want {
			t.Errorf("%q: %d, %v", in, b, err)
		}
	}
}

func TestShellWord(t *testing.T) {
	for in, want := range map[string]string{"slow.case": "slow.case", "a b": "'a b'",
		"it's": `'it'\''s'`, "-x": "./-x", "": "''", "$(x)": "'$(x)'"} {
		if got := shellWord(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
