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
	"unicode/utf8"

	"github.com/whystall/whystall/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the outputs in README.md and docs")

// elsewhere has the pages' commands that this test does not run, and the file that shows who does.
var elsewhere = map[string]struct{ file, has string }{
	"./check":                           {".ci/run", "./check"}, // it runs this test
	"go run -C lab . run sched-latency": {"lab/lab_test.go", `"run", "sched-latency"`},
	"go run -C lab . list":              {"lab/lab_test.go", "loadCases()"},
	"go run -C bench .":                 {"bench/bench_test.go", "bench(t.Context()"},
}

// elided is the line that stands for the rest of an output.
const elided = "..."

// restBegins is where the part of an output that a page does not show starts: a page shows as much
// of a report as its readers need.
var restBegins = map[string]string{
	"README.md":       "\nSLOWEST",
	"docs/reading.md": "\nSLOWEST REQUESTS",
}

// TestPages runs what README.md and the pages of docs/ show after a $. Where they show an output,
// that is what comes out.
func TestPages(t *testing.T) {
	t.Chdir("../..")
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	service := newService(t)
	ran := 0
	for _, page := range append([]string{"README.md"}, pages...) {
		ran += runPage(t, page, service)
	}
	if ran < 10 {
		t.Errorf("only %d commands seen", ran)
	}
}

// runPage runs the examples of one page and gives their number.
func runPage(t *testing.T, page, service string) (ran int) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	cases := t.TempDir() // for what the page's examples record: a later one of the same page reads it
	var out strings.Builder
	lines := strings.Split(string(text), "\n")
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
		got := runExample(t, command, service, cases)
		if len(want) == 0 {
			continue
		}
		if want[len(want)-1] == elided {
			head, _, found := strings.Cut(got, restBegins[page])
			if !found || restBegins[page] == "" {
				t.Errorf("%s: $ %s: no %q in its output", page, command, restBegins[page])
			}
			got = head + "\n" + elided
		}
		if got = strings.TrimRight(got, "\n"); *update {
			want = strings.Split(got, "\n")
		} else if shown := strings.TrimRight(strings.Join(want, "\n"), "\n"); shown != got {
			t.Errorf("$ %s\n%s shows:\n%s\n\nit is:\n%s", command, page, shown, got)
		}
		out.WriteString(strings.Join(want, "\n") + "\n")
	}
	if *update {
		if err := os.WriteFile(page, []byte(strings.TrimSuffix(out.String(), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return ran
}

// TestReadmeIsShort holds the README to what is read at one go. Everything else has a page in
// docs/, which its index lists.
func TestReadmeIsShort(t *testing.T) {
	const mostLines, mostColumns = 150, 120
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(readme), "\n"), "\n")
	if len(lines) > mostLines {
		t.Errorf("README.md has %d lines, more than %d", len(lines), mostLines)
	}
	for i, line := range lines {
		if n := utf8.RuneCountInString(line); n > mostColumns {
			t.Errorf("README.md:%d has %d columns, more than %d", i+1, n, mostColumns)
		}
	}
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("docs/README.md does not link to %s", name)
		}
	}
}

// runExample gives the command's standard output.
func runExample(t *testing.T, command, service, cases string) string {
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
			args[i] = filepath.Join(cases, a)
		}
	}
	var stdout, stderr bytes.Buffer
	status := cli.Main(args[1:], strings.NewReader(""), &stdout, &stderr, func(string) string { return "" })
	if answered := status == 3 && stdout.Len() > 0; status > 1 && !answered { // 3: it cannot tell
		t.Errorf("$ %s: exit status %d\n%s", command, status, &stderr)
	}
	return stdout.String()
}

// newService is the service of the pages' examples. The examples' reports of it are not compared.
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
