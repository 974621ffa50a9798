package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/report"
)

// labVariant is what the lab knows of a case's variant.
type labVariant struct {
	Name  string
	Root  string
	May   []string
	Never []string
}

// TestLabRecordings explains short recordings of the lab's variants: the known root is found first, and nothing that is
// forbidden is named at all. They are made, on a machine with nothing else to do, by
//
//	go run -C lab . verify --times 1 --for 2s --right ../internal/cli/testdata/lab
func TestLabRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/lab/*.case")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".case"), func(t *testing.T) {
			t.Parallel()
			v := knownOf(t, file)
			status, stdout, stderr := run("explain", file, "--format", "json")
			if status > 1 {
				t.Fatalf("status %d: %s", status, stderr)
			}
			var r report.Report
			if err := json.Unmarshal([]byte(stdout), &r); err != nil {
				t.Fatal(err)
			}
			var roots []string
			for _, f := range r.Findings {
				if f.BecauseOf == "" {
					roots = append(roots, f.Cause)
				}
				allowed := f.Cause == v.Root || slices.Contains(v.May, f.Cause)
				if !allowed && (slices.Contains(v.Never, "*") || slices.Contains(v.Never, f.Cause)) {
					t.Errorf("names %s (%s), which is not there", f.Cause, f.Confidence)
				}
			}
			if v.Root != "" && (len(roots) == 0 || roots[0] != v.Root) {
				t.Errorf("finds %v, want %s first", roots, v.Root)
			}
		})
	}
}

// knownOf reads what the lab knows of the variant that a recording CASE.VARIANT.case is of.
func knownOf(t *testing.T, file string) labVariant {
	t.Helper()
	name, variant, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".case"), ".")
	b, err := os.ReadFile(filepath.Join("..", "..", "lab", name, "case.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Variants []labVariant }
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(c.Variants, func(v labVariant) bool { return v.Name == variant })
	if i < 0 {
		t.Fatalf("the lab has no variant %s of %s", variant, name)
	}
	return c.Variants[i]
}
