package cli

import (
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/goruntime"
	"github.com/whystall/whystall/internal/format/paste"
)

// profileKind names the parts that are pprof's own files. They have no lines.
const profileKind = "pprof file"

// profile takes a file of pprof as a part: what it says by itself. Its records go to the detectors
// besides.
func (in *input) profile(name string, data []byte) {
	r, err := goruntime.ReadProfile(name, data)
	if err != nil {
		return // who reads the item says what is wrong with it
	}
	kind := &attach.Kind{Name: profileKind, Read: func(*attach.Part) attach.Reading { return r }}
	in.parts = append(in.parts, &attach.Part{Kind: kind, File: name, Lines: []paste.Line{{}}})
	in.known = true
}

// withoutProfiles leaves out profiles: beside a trace they are its evidence, and no attachment.
func withoutProfiles(parts []*attach.Part) (out []*attach.Part) {
	for _, p := range parts {
		if p.Kind.Name != profileKind {
			out = append(out, p)
		}
	}
	return out
}
