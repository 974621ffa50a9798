package detect

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The order, the table and the folders of cases have the same names, and each cause a file of its
// own.
func TestOrder(t *testing.T) {
	var names []string
	for _, d := range table {
		names = append(names, d.Name)
		if !slices.Contains(order, d.Name) {
			t.Errorf("%s: has no place in the order of looking (order.go)", d.Name)
		}
		if _, err := os.Stat(strings.ReplaceAll(d.Name, "-", "_") + ".go"); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	for _, name := range order {
		if !slices.Contains(names, name) {
			t.Errorf("%s: has a place in the order of looking, and is no detector", name)
		}
	}
	if len(order) != len(slices.Compact(slices.Sorted(slices.Values(order)))) {
		t.Error("a detector has two places in the order of looking")
	}
	folders, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		if !slices.Contains(names, f.Name()) {
			t.Errorf("testdata/%s: no detector has that name", f.Name())
		}
	}
	for _, name := range names {
		for _, part := range []string{"found", "clear", "blind"} {
			if l, _ := filepath.Glob("testdata/" + name + "/" + part + "*.txtar"); len(l) == 0 {
				t.Errorf("%s: has no case in which it is %s", name, part)
			}
		}
	}
}

var listed = regexp.MustCompile(`\b[a-z_]+\.go\b`)

// TestMap holds the map of files in doc.go to the folder.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	in := listed.FindAllString(string(text), -1)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f, "_test.go") && f != "doc.go" && !slices.Contains(in, f) {
			t.Errorf("doc.go does not list %s", f)
		}
	}
	for _, f := range in {
		if !slices.Contains(files, f) {
			t.Errorf("doc.go lists %s, which is not there", f)
		}
	}
}
