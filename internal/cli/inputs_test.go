package cli

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
)

const smallTrace = "../../exectrace/testdata/srv-go1.22.12.trace"

func readFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// events counts the events of an input's trace.
func events(t *testing.T, in *input) (n int64) {
	t.Helper()
	if in.trace == nil {
		t.Fatal("no trace")
	}
	defer in.trace.Close()
	for range in.trace.Blocks() {
	}
	if err := in.trace.Err(); err != nil {
		t.Fatal(err)
	}
	return in.trace.Stats().Events
}

// A trace gives the same events, whichever way it comes.
func TestTraceHoweverItComes(t *testing.T) {
	dir := t.TempDir()
	trace := readFile(t, smallTrace)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(trace)
	z.Close()
	write := func(name string, b []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pack := func(name string, method uint16) string {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		for member, body := range map[string][]byte{"manifest.json": []byte(`{"schema":1}`),
			evidence.TraceMember: trace} {
			m, err := w.CreateHeader(&zip.FileHeader{Name: member, Method: method})
			if err != nil {
				t.Fatal(err)
			}
			m.Write(body)
		}
		w.Close()
		return write(name, b.Bytes())
	}
	os.Mkdir(filepath.Join(dir, "folder"), 0o700)
	write("folder/manifest.json", []byte(`{"schema":1}`))
	write("folder/"+evidence.TraceMember, trace)

	want := int64(0)
	for _, name := range []string{smallTrace, write("x.gz", packed.Bytes()),
		pack("stored.case", zip.Store), pack("packed.case", zip.Deflate), filepath.Join(dir, "folder"), "-"} {
		left := int64(maxItems)
		in, err := openInput(name, bytes.NewReader(trace), &left)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := events(t, in)
		if want == 0 {
			want = got
		}
		if got != want || got == 0 {
			t.Errorf("%s: %d events, want %d", name, got, want)
		}
	}
}

// A member that cannot be read becomes a note, and the others are read.
func TestCaseWithDamage(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.case")
	w, err := evidence.Create(name, false, evidence.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	for member, body := range map[string]string{evidence.TraceMember: "go 1.26 trash\x00\x00\x00",
		"metrics.begin.txt": "go_goroutines 7\n", "vars.begin.json": strings.Repeat(`{"memstats":{"NumGC":1}}`, 1)} {
		f, err := w.Member(member)
		if err != nil {
			t.Fatal(err)
		}
		f.WriteString(body)
		f.Close()
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	b := readFile(t, name)
	// The checksum of a member that is stored compressed no longer fits.
	i := bytes.Index(b, []byte("vars.begin.json"))
	b[i+len("vars.begin.json")+4] ^= 0xff
	os.WriteFile(name, b, 0o600)
	left := int64(maxItems)
	in, err := openInput(name, nil, &left)
	if err != nil {
		t.Fatal(err)
	}
	defer in.c.Close()
	if len(in.notes) != 2 || in.trace != nil {
		t.Errorf("notes %q, trace %v", in.notes, in.trace != nil)
	}
	if len(in.items) != 1 || !strings.HasSuffix(in.items[0].Name, "metrics.begin.txt") {
		t.Errorf("items %v", in.items)
	}
}

// What a case says of the target's environment becomes records like any other.
func TestCaseEnvironment(t *testing.T) {
	var in loaded
	in.addCase("x.case", &evidence.Case{Manifest: &evidence.Manifest{Target: evidence.Target{Service: evidence.Service{PID: 7}, Env: map[string]string{"GOMAXPROCS": "76"}}}})
	in.gather()
	if r, ok := in.set.Fact("/env/GOMAXPROCS:procs"); !ok || r.Value != 76 {
		t.Errorf("%+v, %v", r, ok)
	}
}

func TestItemsAreBounded(t *testing.T) {
	left := int64(1000)
	in, err := openInput("-", strings.NewReader(strings.Repeat("go_goroutines 7\n", 50)), &left)
	if err != nil || left != 200 || in.kind != format.KindMetrics {
		t.Errorf("%v, %d left, %s", err, left, in.kind)
	}
	if _, err := openInput("-", strings.NewReader(strings.Repeat("a_server_up 7\n", 50)), &left); err == nil {
		t.Error("more than the limit was read")
	}
}
