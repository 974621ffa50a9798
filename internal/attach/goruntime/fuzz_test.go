package goruntime_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/goruntime"
	"github.com/whystall/whystall/internal/format/paste"
)

// FuzzKinds holds that no text makes a kind panic or claim more than there is.
func FuzzKinds(f *testing.F) {
	names, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
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
	kinds := goruntime.Kinds()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		try(t, kinds, paste.Lines(data))
	})
}

// try asks each kind about the start of the lines and, on its own, about each of the first ones.
func try(t *testing.T, kinds []*attach.Kind, lines []paste.Line) {
	for _, k := range kinds {
		for at := 0; at < len(lines) && at < 8; at++ {
			n := k.Claim(lines[at:])
			if n < 0 || n > len(lines)-at {
				t.Fatalf("%s: claims %d of %d lines", k.Name, n, len(lines)-at)
			}
			if n > 0 && k.Read != nil {
				k.Read(&attach.Part{Kind: k, Lines: lines[at : at+n]})
			}
		}
		if k.Read != nil && len(lines) > 0 {
			k.Read(&attach.Part{Kind: k, Lines: lines}) // of scattered lines, or of a wrong claim
		}
	}
}

// A chat that keeps no tabs, cuts lines or joins them must not bring a kind down.
func TestDamaged(t *testing.T) {
	kinds := goruntime.Kinds()
	names, _ := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for step := 1; step < 40; step += 7 {
			var cut []byte
			for i, b := range data {
				if (i*2654435761>>7)%41 != step {
					cut = append(cut, b)
				}
			}
			try(t, kinds, paste.Lines(cut))
		}
	}
}
