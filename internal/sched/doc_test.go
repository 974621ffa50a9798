package sched

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMaps holds the maps of files in the doc.go of this room and of unit to their folders.
func TestMaps(t *testing.T) {
	for _, dir := range []string{".", "../unit"} {
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{"doc.go": true}
		for _, m := range regexp.MustCompile(`(?m)^//\t([a-z]+\.go) `).FindAllStringSubmatch(string(text), -1) {
			listed[m[1]] = true
			if _, err := os.Stat(filepath.Join(dir, m[1])); err != nil {
				t.Errorf("%s/doc.go lists %s, which is not there", dir, m[1])
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if name := filepath.Base(f); !strings.HasSuffix(name, "_test.go") && !listed[name] {
				t.Errorf("%s/doc.go does not list %s", dir, name)
			}
		}
	}
}
