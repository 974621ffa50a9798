package attach_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/kinds"
	"github.com/whystall/whystall/internal/format/paste"
)

// Each measure is a fact that a room writes under this name, as some sample shows.
func TestMeasuresAreWritten(t *testing.T) {
	seen := map[attach.FactName]bool{}
	files, err := filepath.Glob("*/testdata/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range txtar.Parse(data).Files {
			if !strings.HasPrefix(f.Name, "paste") {
				continue
			}
			parts, _ := attach.Cut("", paste.Lines(f.Data), kinds.Table())
			for _, told := range attach.Explain(parts, nil).Told {
				for _, fact := range told.Facts {
					seen[fact.Name] = true
				}
			}
		}
	}
	names := map[attach.FactName]bool{}
	for _, name := range attach.MeasureNames() {
		if names[name] {
			t.Errorf("%s is listed twice", name)
		}
		if names[name] = true; !seen[name] {
			t.Errorf("no sample's reading has the fact %s", name)
		}
	}
}
