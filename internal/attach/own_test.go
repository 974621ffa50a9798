package attach

import (
	"reflect"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/format/paste"
)

// A part that owns its memory says what it did.
func TestOwn(t *testing.T) {
	lines := []paste.Line{{N: 1, Text: "gc 1", Raw: "Nov 22 host app[7]: gc 1", Source: "app", PID: 7},
		{N: 2, Text: "gc 2", Source: "app"}, {N: 3, Text: "other", Raw: "no such"}, {N: 4}}
	p := &Part{Lines: slices.Clone(lines), Command: "cat x", Title: "before:"}
	if p.Own(); !reflect.DeepEqual(p.Lines, lines) || p.Command != "cat x" || p.Title != "before:" {
		t.Errorf("got %+v", p)
	}
}
