package main

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md")

// elsewhere is the README's commands that this test does not run, and the file that shows who does.
var elsewhere = map[string]struct{ file, has string }{
	"./check":                           {".ci/run", "./check"}, // it runs this test
	"go run -C lab . run sched-latency": {"lab/lab_test.go", `"run", "sched-latency"`},
	"go run -C lab . list":              {"lab/lab_test.go", "loadCases()"},
	"go run -C bench .":                 {"bench/bench_test.go", "bench(t.Context()"},
}

// elided is the line that stands for the rest of an output, from restBegins on.
const (
	elided     = "..."
	restBegins = "\nSLOWEST REQUESTS"
)

// TestReadme runs what the README shows after a $. Where it shows an output, that is what comes out.
func TestReadme(t *testing.T) {
	t.Chdir("../..")
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	service := newService(t)
	ran := 0
	var out strings.Builder
	lines := strings.Split(string(readme), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		out.WriteString(line + "\n")
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		var want []string
		for i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "$ ") && !strings.HasPrefix(lines[i+1], "```") {
			i++
			want = append(want, lines[i])
		}
		ran++
		got := runExample(t, command, service)
		if len(want) == 0 {
			continue
		}
		if want[len(want)-1] == elided {
			head, _, found := strings.Cut(got, restBegins)
			if !found {
				t.Errorf("$ %s: no %q in its output", command, restBegins)
			}
			got = head + "\n" + elided
		}
		if got = strings.TrimRight(got, "\n"); *update {
			want = strings.Split(got, "\n")
		} else if shown := strings.TrimRight(strings.Join(want, "\n"), "\n"); shown != got {
			t.Errorf("$ %s\nthe README shows:\n%s\n\nit is:\n%s", command, shown, got)
		}
		out.WriteString(strings.Join(want, "\n") + "\n")
	}
	if ran < 5 {
		t.Errorf("only %d commands seen", ran)
	}
	if *update {
		if err := os.WriteFile("README.md", []byte(strings.TrimSuffix(out.String(), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runExample gives the command's standard output.
func runExample(t *testing.T, command, service string) string {
	t.Helper()
	if e, ok := elsewhere[command]; ok {
		b, err := os.ReadFile(e.file)
		if err != nil || !bytes.Contains(b, []byte(e.has)) {
			t.Errorf("$ %s: %s does not run it (%v)", command, e.file, err)
		}
		return ""
	}
	command, _, _ = strings.Cut(command, "  #")
	args := strings.Fields(command)
	if args[0] != "whystall" {
		t.Errorf("$ %s: this test does not know how to run it", command)
		return ""
	}
	for i, a := range args {
		switch {
		case strings.HasPrefix(a, "http://localhost:6060"):
			args[i] = service + strings.TrimPrefix(a, "http://localhost:6060")
		case i > 0 && args[i-1] == "--for":
			args[i] = "1s"
		case strings.HasSuffix(a, ".case"):
			args[i] = filepath.Join(cases(t), a)
		}
	}
	var stdout, stderr bytes.Buffer
	if status := cli.Main(args[1:], strings.NewReader(""), &stdout, &stderr, func(string) string { return "" }); status > 1 {
		t.Errorf("$ %s: exit status %d\n%s", command, status, &stderr)
	}
	return stdout.String()
}

var casesDir string

// cases is the folder for what the examples record, one for all of them: a later one reads it.
func cases(t *testing.T) string {
	if casesDir == "" {
		casesDir = t.TempDir()
	}
	return casesDir
}

// newService is the service of the README's examples. The examples' reports of it are not compared.
func newService(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}
