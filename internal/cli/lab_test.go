package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/report"
	"github.com/whystall/whystall/internal/report/conform"
)

// labVariant is what the lab knows of a case's variant.
type labVariant struct {
	Name  string
	Root  string
	May   []string
	Never []string
}

// labMissed lists the recordings for which the report differs from what is known of their variant,
// and says why. One that is right by now fails the test, so that it is removed here.
var labMissed = map[string]string{}

// TestLabRecordings explains a short recording of each of the lab's variants: the known root is
// found first, nothing that is forbidden is named at all, the JSON conforms to its schema, and the
// one screen fits. They are made, on a machine with nothing else to do, by
//
//	go run -C lab . record-cases
//
// and those that take two NUMA nodes by
//
//	go run -C lab . qemu -- record-cases --only numa-balancing
func TestLabRecordings(t *testing.T) {
	cases, err := filepath.Glob("../../lab/*/case.json")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	files, err := filepath.Glob("testdata/lab/*.case")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range cases {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Variants []labVariant }
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatal(err)
		}
		for _, v := range c.Variants {
			name := filepath.Base(filepath.Dir(file)) + "." + v.Name
			known[name] = true
			recording := filepath.Join("testdata", "lab", name+".case")
			missed := labMissed[name]
			if v.Root == "" && !slices.Contains(v.Never, "*") {
				t.Errorf("%s: has no root, and its \"never\" lacks *: anything could be found in it", name)
			}
			if !slices.Contains(files, recording) {
				t.Errorf("%s: has no recording", name)
			} else {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					wrong := labWrong(t, recording, v)
					switch {
					case missed != "" && len(wrong) == 0:
						t.Errorf("is right by now, and known as missed: %s", missed)
					case missed != "":
						t.Logf("known as missed: %s: %s", missed, strings.Join(wrong, "; "))
					case len(wrong) > 0:
						t.Error(strings.Join(wrong, "; "))
					}
				})
			}
		}
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".case"); !known[name] {
			t.Errorf("%s: the lab has no such variant", name)
		}
	}
}

// labWrong says what is wrong in the report of a recording.
func labWrong(t *testing.T, file string, v labVariant) (wrong []string) {
	var stdout, stderr bytes.Buffer
	con := &console{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		getenv: func(string) string { return "" }}
	r, err := con.examine([]string{file}, selectFlags{}, "", false)
	if err != nil || statusOf(r) > statusFound {
		t.Fatalf("status %d, %v: %s", statusOf(r), err, stderr.String())
	}
	if err := r.Print(&stdout, "json", report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	wrong = append(conform.Errors(report.Schema, stdout.Bytes()), tooLarge(t, r, file)...)
	var roots []string
	for _, f := range r.Findings {
		if f.BecauseOf == "" {
			roots = append(roots, f.Cause)
		}
		allowed := f.Cause == v.Root || slices.Contains(v.May, f.Cause)
		if !allowed && (slices.Contains(v.Never, "*") || slices.Contains(v.Never, f.Cause)) {
			wrong = append(wrong, "names "+f.Cause+", which is not there")
		}
	}
	if v.Root != "" && (len(roots) == 0 || roots[0] != v.Root) {
		wrong = append(wrong, "finds "+strings.Join(roots, ", ")+", want "+v.Root+" first")
	}
	return wrong
}

// tooLarge says where the one screen is longer than 45 lines or wider than the terminal. It keeps
// the screens where WHYSTALL_SHOTS names a folder, for a person to look at.
func tooLarge(t *testing.T, r *report.Report, file string) (wrong []string) {
	for _, columns := range []int{72, 80, 100, 120} {
		var b bytes.Buffer
		if err := r.Print(&b, "text",
			report.TextOptions{Columns: columns, More: "whystall explain " + shellWord(file) + " -v"}); err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(b.Bytes(), []byte("\n")); n > 45 {
			wrong = append(wrong, fmt.Sprintf("%d lines at %d columns", n, columns))
		}
		for line := range strings.Lines(b.String()) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > columns ||
				strings.TrimRight(line, " ") != line {
				wrong = append(wrong, fmt.Sprintf("at %d columns: %q", columns, line))
			}
		}
		if dir := os.Getenv("WHYSTALL_SHOTS"); dir != "" {
			name := fmt.Sprintf("%s.%d.txt", strings.TrimSuffix(filepath.Base(file), ".case"), columns)
			if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	return wrong
}

// TestWhoseReclaim: the cause is the same at a memory cgroup's limit and where the host is short of
// memory, what is to be done is not.
func TestWhoseReclaim(t *testing.T) {
	for variant, want := range map[string]string{"ill": "of its memory cgroup", "ill-host": "of the host's memory"} {
		_, stdout, stderr := run("explain", filepath.Join("testdata", "lab", "direct-reclaim."+
			variant+".case"), "--format", "json")
		var r report.Report
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		for _, f := range r.Findings {
			if f.Cause == "direct-reclaim" && !strings.Contains(f.Summary, want) {
				t.Errorf("%s: %q, want that it is %s", variant, f.Summary, want)
			}
		}
	}
}
