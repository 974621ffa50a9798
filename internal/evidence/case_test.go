package evidence

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func testManifest() Manifest {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Manifest{
		Whystall: "test", Begun: Moment{at, 1000}, Target: Target{Service: Service{URL: "http://h:6060/debug/pprof/"}},
		Requests: []Request{{Member: TraceMember, Path: "/debug/pprof/trace",
			Sent: Moment{at, 1000}, Ended: Moment{at.Add(time.Second), 1000 + 1e9}, Lost: "the service went away"}},
	}
}

func put(t *testing.T, w *Writer, name, body string) {
	t.Helper()
	f, err := w.Member(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(body); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCaseRoundTrip(t *testing.T) {
	name := filepath.Join(t.TempDir(), "slow.case")
	w, err := Create(name, false, testManifest())
	if err != nil {
		t.Fatal(err)
	}
	put(t, w, TraceMember, "go 1.26 trace")
	put(t, w, "metrics.begin.txt", strings.Repeat("go_goroutines 7\n", 100))

	check := func(c *Case, file string) {
		t.Helper()
		defer c.Close()
		if got := strings.Join(c.Names(), " "); got != "metrics.begin.txt trace.out" {
			t.Errorf("members %s", got)
		}
		if got := c.Manifest.Lost(TraceMember); got != "the service went away" {
			t.Errorf("lost %q", got)
		}
		b, err := c.Read("metrics.begin.txt", 1<<20)
		if err != nil || len(b) != 1600 {
			t.Errorf("read %d bytes, %v", len(b), err)
		}
		if _, err := c.Read("metrics.begin.txt", 10); err == nil {
			t.Error("read more than the limit")
		}
		where, off, size, ok := c.Locate(TraceMember)
		if !ok || where != file {
			t.Fatalf("trace lies in %s, %v", where, ok)
		}
		f, err := os.Open(where)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, err := io.ReadAll(io.NewSectionReader(f, off, size))
		if err != nil || string(got) != "go 1.26 trace" {
			t.Errorf("trace is %q, %v", got, err)
		}
	}
	// This is what a killed recording leaves.
	c, err := Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Partial {
		t.Error("a folder is not partial")
	}
	check(c, filepath.Join(name+".part", TraceMember))

	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(w.Dir()); !os.IsNotExist(err) {
		t.Errorf("folder: %v, want it gone", err)
	}
	st, err := os.Stat(name)
	if err != nil || st.Mode() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if c, err = Open(name); err != nil {
		t.Fatal(err)
	}
	if _, _, _, ok := c.Locate("metrics.begin.txt"); ok {
		t.Error("a compressed member was located")
	}
	check(c, name)
}

func TestCreateKeepsWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "slow.case")
	fails := func(want string, force bool) {
		t.Helper()
		_, err := Create(name, force, testManifest())
		if err == nil || strings.ReplaceAll(err.Error(), dir, "DIR") != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	os.WriteFile(name, []byte("precious"), 0o600)
	fails("create DIR/slow.case: exists already: choose another name, or use --force", false)
	w, err := Create(name, true, testManifest())
	if err != nil {
		t.Fatal(err)
	}
	os.Remove(name)
	fails("create DIR/slow.case.part: exists from another recording: explain it or remove it, or use --force", false)
	// A file that appears while recording stays, and so does what was recorded.
	w.force = false
	os.WriteFile(name, []byte("precious"), 0o600)
	if err := w.Finish(); err == nil || !strings.Contains(err.Error(), "what was recorded is in "+w.Dir()) {
		t.Errorf("finish: %v", err)
	}
	if b, _ := os.ReadFile(name); string(b) != "precious" {
		t.Errorf("the file is now %q", b)
	}
	if c, err := Open(w.Dir()); err != nil {
		t.Errorf("after a finish that could not: %v", err)
	} else {
		c.Close()
	}
	w.force = true
	if err := w.Finish(); err != nil {
		t.Error(err)
	}
	os.Remove(name)
	os.Mkdir(name, 0o700)
	fails("create DIR/slow.case: is a folder: choose another name", true)
	os.Remove(name)
	os.Mkdir(name+".part", 0o700)
	fails("create DIR/slow.case.part: exists and is not a case: remove it, or choose another name", true)
	name = filepath.Join(dir, "none", "slow.case")
	fails("create DIR/none/slow.case.part: no such file or directory: make the folder first, or name a file elsewhere", false)
}

// zipOf packs members as a stranger might.
func zipOf(t testing.TB, members ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, members[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const goodManifest = `{"schema":1,"whystall":"x"}`

func TestOpenUntrusted(t *testing.T) {
	good := zipOf(t, manifestMember, goodManifest, "a", strings.Repeat("x", 100))
	many := []string{manifestMember, goodManifest}
	for i := range maxMembers {
		many = append(many, "m"+strings.Repeat("i", i%150)+string(rune('a'+i%26)), "")
	}
	endless := make([]string, 0, 1<<16)
	for range 1 << 15 {
		endless = append(endless, strings.Repeat("n", 150), "")
	}
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {nil, "not a zip file, or cut short: copy it again"},
		"cut":   {good[:len(good)-30], "not a zip file, or cut short: copy it again"},
		"noman": {zipOf(t, "a", "b"), "holds no manifest.json: this is not a case of whystall"},
		"traversal": {zipOf(t, manifestMember, goodManifest, "../../etc/cron.d/x", "b"),
			`member "../../etc/cron.d/x": not a name that a case uses`},
		"absolute": {zipOf(t, manifestMember, goodManifest, "/etc/x", "b"),
			`member "/etc/x": not a name that a case uses`},
		"escape": {zipOf(t, manifestMember, goodManifest, "\x1b]0;x", "b"),
			`member "\x1b]0;x": not a name that a case uses`},
		"twice": {zipOf(t, manifestMember, goodManifest, "a", "1", "a", "2"), `member "a" appears twice`},
		"unpacks": {zipOf(t, manifestMember, goodManifest, "a", strings.Repeat("0", 80<<20)),
			`member "a": 83886080 bytes, packed to less than 1/100: no recording is like that`},
		"many":    {zipOf(t, many...), "holds 4097 members, a case at most 4096"},
		"endless": {zipOf(t, endless...), "its list of members is too long for a case"},
		"bomb": {zipOf(t, manifestMember, strings.Repeat(" ", maxManifest+1)),
			"read manifest.json in FILE: more than 16 MiB"},
		"json":  {zipOf(t, manifestMember, "{"), "read manifest.json: unexpected end of JSON input"},
		"other": {zipOf(t, manifestMember, "{}"), "read manifest.json: no schema version: this is not a case"},
		"lists": {zipOf(t, manifestMember, `{"schema":1,"requests":[`+
			strings.Repeat("{},", 5000)+"{}]}"),
			"read manifest.json: lists 5001 requests and 0 collectors, a case at most 4096"},
		"newer": {zipOf(t, manifestMember, `{"schema":9,"whystall":"v9"}`),
			`read manifest.json: made by whystall "v9" with schema 9, this one reads up to 1: use a newer whystall`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "x.case")
			if err := os.WriteFile(file, tc.data, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Open(file)
			if err == nil {
				t.Fatal("it opened")
			}
			if got := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "open "+file+": "), file,
				"FILE"); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A folder may hold links that lead out of it and pipes that block: they are not members.
func TestOpenFolderLeavesLinksOut(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, manifestMember), []byte(goodManifest), 0o600)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	c, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Names()) != 0 {
		t.Errorf("members %v, want none", c.Names())
	}
}

func TestManifestWordsAreBounded(t *testing.T) {
	m, err := ParseManifest([]byte(`{"schema":1,"collectors":[{"why":"` + strings.Repeat("é", 1000) + `"}]}`))
	if err != nil || len(m.Collectors[0].Why) != 503 {
		t.Errorf("%v, %d bytes", err, len(m.Collectors[0].Why))
	}
}

func TestWallOffset(t *testing.T) {
	m := testManifest()
	at := m.Begun.UTC.UnixNano()
	for _, tc := range []struct {
		begin int64
		mono  bool
		want  int64
		same  bool
	}{
		{1500, true, at - 1000, true},    // our own clock: exact
		{77e12, true, at - 77e12, false}, // another machine's
		{0, false, at, false},            // counts from the trace's start
	} {
		got, same, ok := m.WallOffset(tc.begin, tc.mono)
		if got != tc.want || same != tc.same || !ok {
			t.Errorf("begin %d: %d %v %v, want %d %v", tc.begin, got, same, ok, tc.want, tc.same)
		}
	}
	if _, _, ok := (&Manifest{}).WallOffset(1, true); ok {
		t.Error("an offset out of nothing")
	}
}

// FuzzOpen opens arbitrary bytes as a case and reads all of it, within bounds.
func FuzzOpen(f *testing.F) {
	f.Add(zipOf(f, manifestMember, goodManifest, "trace.out", "go 1.26 trace"))
	f.Add(zipOf(f, manifestMember,
		`{"schema":1,"requests":[{"member":"trace.out","sent":{"utc":"2026-01-02T03:04:05Z"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &Case{Name: "x", sizes: map[string]int64{}}
		if c.index(bytes.NewReader(data), int64(len(data))) != nil {
			return
		}
		for _, n := range c.Names() {
			c.Read(n, 1<<16)
			c.Locate(n)
			c.Size(n)
		}
		if c.sizes[manifestMember] > 0 && c.readManifest() == nil {
			c.Manifest.WallOffset(5, true)
			c.Manifest.Lost(TraceMember)
		}
	})
}

// An error of writing says what to do.
func TestFullDiskAdvises(t *testing.T) {
	if got := advice(fmt.Errorf("write x: %w", syscall.ENOSPC)); got != ": free some space, or name a file elsewhere" {
		t.Error(got)
	}
}
