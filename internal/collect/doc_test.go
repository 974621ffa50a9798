package collect

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMaps holds the maps of files in the doc.go of this room and of the larger sensors to their
// folders. A map names a file without the suffix of a system.
func TestMaps(t *testing.T) {
	system := regexp.MustCompile(`_(linux|unix|other)\.go$`)
	for _, dir := range []string{".", "../sensor/bpf", "../sensor/symbol"} {
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		listed := map[string]bool{"doc.go": true}
		for _, name := range regexp.MustCompile(`\b[a-z_]+\.go\b`).FindAllString(string(text), -1) {
			listed[system.ReplaceAllString(name, ".go")] = true
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, f := range files {
			name := system.ReplaceAllString(filepath.Base(f), ".go")
			if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "_bpfel") {
				continue
			}
			found[name] = true
			if !listed[name] {
				t.Errorf("%s/doc.go does not list %s", dir, name)
			}
		}
		for name := range listed {
			if !found[name] {
				t.Errorf("%s/doc.go lists %s, which is not there", dir, name)
			}
		}
	}
}
