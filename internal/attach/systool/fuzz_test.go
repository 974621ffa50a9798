package systool_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/systool"
	"github.com/whystall/whystall/internal/format/paste"
)

// FuzzKinds gives any text to all kinds of the room: none may panic, or claim more than there is.
func FuzzKinds(f *testing.F) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for _, k := range systool.Kinds() {
			for at := range lines {
				n := k.Claim(lines[at:])
				if n < 0 || n > len(lines)-at {
					t.Fatalf("%s claims %d of %d lines", k.Name, n, len(lines)-at)
				}
				if n > 0 && k.Read != nil {
					k.Read(&attach.Part{Kind: k, Lines: lines[at : at+n]})
				}
				if at > 200 {
					break
				}
			}
		}
	})
}
