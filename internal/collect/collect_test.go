package collect

import (
	"bytes"
	"context"
	_ "expvar"
	"fmt"
	"net/http"
	_ "net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/whystall/whystall/internal/evidence"
)

// secret is in headers, passwords and queries of every test's recording, and must be in nothing
// that is kept or said.
const secret = "hunter2secret"

// recording is what a test's recording came to.
type recording struct {
	err   error
	dir   string // the case's folder; it may have been discarded by a real caller
	notes []string
	c     *evidence.Case
}

// record records from url with short timing. change may set options.
func record(t *testing.T, ctx context.Context, url string, change func(*Options)) recording {
	t.Helper()
	dir := t.TempDir()
	return recordIn(t, ctx, dir, url, change)
}

func recordIn(t *testing.T, ctx context.Context, dir, url string, change func(*Options)) recording {
	t.Helper()
	var r recording
	var mu sync.Mutex
	o := Options{
		URL: url, Headers: []string{"X-Api-Key: " + secret}, For: time.Second, Version: "test",
		Timing: Timing{Connect: 30 * time.Second, Quiet: time.Minute, Busy: 50 * time.Millisecond,
			Retry: 10 * time.Millisecond},
		Progress: func(p Progress) {
			if p.Note != "" {
				mu.Lock()
				r.notes = append(r.notes, p.Note)
				mu.Unlock()
			}
		},
	}
	if change != nil {
		change(&o)
	}
	m, err := Begin(o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := evidence.Create(filepath.Join(dir, "x.case"), false, m)
	if err != nil {
		t.Fatal(err)
	}
	r.err, r.dir = Run(ctx, o, w), w.Dir()
	if r.c, err = evidence.Open(r.dir); err != nil {
		t.Fatalf("the folder does not open: %v", err)
	}
	t.Cleanup(func() { r.c.Close() })
	said := fmt.Sprint(r.err, r.notes)
	for _, n := range append(r.c.Names(), "manifest.json") {
		b, err := os.ReadFile(filepath.Join(r.dir, n))
		if err != nil {
			t.Fatal(err)
		}
		said += string(b)
	}
	if strings.Contains(said, secret) {
		t.Errorf("a secret was kept or said: %v %v", r.err, r.notes)
	}
	if strings.Contains(fmt.Sprint(r.err, strings.Join(r.notes, "")), "\n") {
		t.Errorf("more than a line: %v %q", r.err, r.notes)
	}
	return r
}

// state gives a collector's outcome as one line.
func (r recording) state(name string) string {
	for _, c := range r.c.Manifest.Collectors {
		if c.Name == name {
			return strings.TrimSuffix(fmt.Sprintf("%s: %s", c.State, c.Why), ": ")
		}
	}
	return "not run"
}

func (r recording) has(member string) bool { return r.c.Size(member) > 0 }

// fakeTrace starts like a trace: what follows is for exectrace to judge.
var fakeTrace = append([]byte("go 1.26 trace\x00\x00\x00"), bytes.Repeat([]byte("x"), 10000)...)

// service answers profiles like a real one, and the trace with the given handler.
func service(trace http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/debug/pprof/", http.DefaultServeMux) // the test binary's own profiles
	mux.Handle("/debug/vars", http.DefaultServeMux)
	mux.HandleFunc("/debug/pprof/trace", trace)
	return mux
}

func sendTrace(w http.ResponseWriter, r *http.Request) { w.Write(fakeTrace) }

// The streams of the manifest are those a collector's table promises: each member once.
func TestTable(t *testing.T) {
	members := map[string]bool{}
	for _, c := range All() {
		if c.Name == "" || c.Doc == "" || len(c.Fetches) == 0 {
			t.Errorf("%+v lacks a name, doc or fetch", c)
		}
		for _, f := range c.Fetches {
			if members[f.Member] {
				t.Errorf("two fetches make %s", f.Member)
			}
			members[f.Member] = true
			if strings.Contains(f.Query, "debug=2") || strings.Contains(f.Query, "gc=") {
				t.Errorf("%s asks for what harms: %s", c.Name, f.Query)
			}
			if len(f.Want) == 0 || f.Phase == 0 || f.Max == 0 && f.Member != evidence.TraceMember {
				t.Errorf("%s: unbounded or unchecked", f.Member)
			}
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://127.0.0.1:6060":    "http://127.0.0.1:6060/debug/pprof/ /metrics",
		"127.0.0.1:6060":           "http://127.0.0.1:6060/debug/pprof/ /metrics",
		"localhost:6060/":          "http://localhost:6060/debug/pprof/ /metrics",
		":6060":                    "http://localhost:6060/debug/pprof/ /metrics",
		"[::1]:6060":               "http://[::1]:6060/debug/pprof/ /metrics",
		"https://h/x/debug/pprof/": "https://h/x/debug/pprof/ /x/metrics",
		"http://h/x/debug/pprof/trace?seconds=5&token=" + secret: "http://h/x/debug/pprof/ /x/metrics",
		"http://h/admin":  "http://h/admin/debug/pprof/ /admin/metrics",
		"http://h/pprof/": "http://h/pprof/ /metrics",
		"http://user:" + secret + "@h:6060/a/../debug/pprof?debug=1": "http://h:6060/debug/pprof/ /metrics",
	} {
		a, err := parseAddress(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := a.shown() + " " + a.path(Fetch{Root: true, Path: "metrics"}); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	a, _ := parseAddress("http://h/debug/pprof/trace?seconds=5&token=T")
	if got := a.url(Fetch{Path: "trace"}, "seconds=20"); got != "http://h/debug/pprof/trace?token=T&seconds=20" {
		t.Errorf("the trace's address is %s", got)
	}
	for in, want := range map[string]string{
		"":                            "address: empty; want http://host:port",
		"ftp://h":                     `address: scheme "ftp": want http or https`,
		"http://":                     "address: no host; want http://host:port",
		"http://u:" + secret + "@h:x": `address: invalid port ":x" after host; want http://host:port`,
		"http://h\x7f":                "address: net/url: invalid control character in URL; want http://host:port",
	} {
		if _, err := parseAddress(in); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	h, err := parseHeaders([]string{"Authorization: Bearer a:b", "X-A:1", "X-A: 2"})
	if err != nil || h.Get("Authorization") != "Bearer a:b" || len(h["X-A"]) != 2 {
		t.Errorf("%v %v", h, err)
	}
	for in, want := range map[string]string{
		secret:                           "header 1: want 'Key: value'",
		"a b: " + secret:                 "header 1: want 'Key: value'",
		"A: " + secret + "\r\n" + "B: 1": "header 1: A has a control character in its value",
	} {
		if _, err := parseHeaders([]string{in}); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", in, err, want)
		}
	}
}

func TestKeepMemstats(t *testing.T) {
	b, err := keepMemstats([]byte(`{"cmdline":["/bin/x","-password=` + secret + `"],"memstats":{"NumGC":7}}`))
	if err != nil || string(b) != `{"memstats":{"NumGC":7}}` {
		t.Errorf("kept %s, %v", b, err)
	}
	for _, bad := range []string{"{}", "[", `{"memstats":`} {
		if _, err := keepMemstats([]byte(bad)); err == nil {
			t.Errorf("%s was kept", bad)
		}
	}
}

// Whatever somebody types, what is shown and what is said of an error have no password in them.
func FuzzAddress(f *testing.F) {
	f.Add("http://u:" + secret + "@h:1/x/debug/pprof/trace?seconds=1")
	f.Add(":6060")
	f.Add("u:" + secret + "@h")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAddress(s)
		if err != nil {
			return
		}
		if strings.Contains(a.shown(), "@") && a.origin.User != nil &&
			!strings.Contains(a.prof, "@") && !strings.Contains(a.prof, "%40") {
			t.Errorf("%q is shown as %q", s, a.shown())
		}
		again, err := parseAddress(a.shown())
		if err != nil || again.shown() != a.shown() {
			t.Errorf("%q is shown as %q, which is %q, %v", s, a.shown(), again.shown(), err)
		}
	})
}
