package exectrace

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMap holds the map of the files in doc.go to the folder.
func TestMap(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := []string{"doc.go"}
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z0-9_*]+\.go) `).FindAllStringSubmatch(string(text), -1) {
		names, err := filepath.Glob(m[1])
		if err != nil || len(names) == 0 {
			t.Errorf("doc.go lists %s, which is not there", m[1])
		}
		listed = append(listed, names...)
	}
	there, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range there {
		if !strings.HasSuffix(name, "_test.go") && !slices.Contains(listed, name) {
			t.Errorf("doc.go does not list %s", name)
		}
	}
}
