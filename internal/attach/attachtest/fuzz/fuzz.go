// Package fuzz gives any text to one kind. It does not know the table of kinds, as attachtest does:
// so the rooms that the table imports can use it in tests of their own.
package fuzz

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// each is how many first lines are all asked about. Behind them, as when a paste is cut, the lines
// of a part are not asked about again.
const each = 64

// Kind holds a kind to what every text may ask of it: it does not panic, claims no more lines than
// there are, and says something of what it claims. The seeds are the samples of the room.
func Kind(f *testing.F, k *attach.Kind) {
	f.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			if file.Name != "want" {
				f.Add(file.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := paste.Lines(data)
		for at := 0; at < len(lines); {
			n := claim(t, k, lines[at:])
			if at < each {
				n = 1
			}
			at += max(n, 1)
		}
	})
}

// claim asks about the first line, and reads what is claimed.
func claim(t *testing.T, k *attach.Kind, lines []paste.Line) int {
	n := k.Claim(lines)
	if n < 0 || n > len(lines) {
		t.Fatalf("%s: claims %d of %d lines", k.Name, n, len(lines))
	}
	if n == 0 || k.Read == nil {
		return n
	}
	p := &attach.Part{Kind: k, Lines: lines[:n]}
	if lines[0].Command != "" && n > 1 {
		p.Command, p.Lines = lines[0].Command, p.Lines[1:]
	}
	if r := k.Read(p); r.Title == "" || r.Means == "" || r.State == "" {
		t.Fatalf("%s: an empty reading: %+v", k.Name, r)
	}
	return n
}
