package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/attach/kinds"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/archive"
	"github.com/whystall/whystall/internal/format/paste"
)

// text takes a file that is no trace, case or archive.
func (in *input) text(name string, r io.Reader, left *int64) error {
	return in.cut(name, procPath(name), r, left)
}

// packed takes the files of an archive that can be read only in order, or a file that is packed.
func (in *input) packed(r io.Reader, left *int64) error {
	had, err := archive.Walk(in.name, r, archive.DefaultBudget(), in.visit(left))
	return in.walked("an archive", had, err)
}

func (in *input) zip(name string, f io.ReaderAt, size int64, left *int64) error {
	had, err := archive.Zip(name, f, size, archive.DefaultBudget(), in.visit(left))
	return in.walked("an archive", had, err)
}

func (in *input) folder(name string, left *int64) error {
	had, err := archive.Folder(name, archive.DefaultBudget(), in.visit(left))
	return in.walked("a folder", had, err)
}

// visit takes one file of an archive. What is wrong with it is a note, and the others are read.
func (in *input) visit(left *int64) archive.Visit {
	return func(member string, r io.Reader) error {
		if member == "" {
			return in.cut(in.name, procPath(in.name), r, left)
		}
		if in.kind == format.KindZip && member == "manifest.json" { // else it was opened as a case
			return fmt.Errorf("read %s: a case cannot be read from a pipe, or without its end: name the whole file", in.name)
		}
		in.members++
		if err := in.cut(in.name+":"+member, procPath(member), r, left); err != nil {
			in.notes = append(in.notes, err.Error())
		}
		return nil
	}
}

// walked says what an archive held.
func (in *input) walked(what string, had archive.Left, err error) error {
	in.notes = append(in.notes, had.Notes...)
	if err != nil {
		return err
	}
	in.passedBy(had.Others, "links or devices, which are not followed", had.Other)
	in.passedBy(in.binaries, "binary, and of no kind that is known", in.binary)
	if in.beyond > 0 {
		in.remarks = append(in.remarks, fmt.Sprintf("%s: more is known than is held at once; left out: %s, the first in %s: give the files that matter",
			in.name, attach.Plural(in.beyond, "part"), in.first))
	}
	if in.members > 0 {
		in.kind = format.Kind(fmt.Sprintf("%s of %d files", what, in.members))
	}
	switch {
	case len(in.items) > 0 || len(in.parts) > 0 || in.trace != nil:
		return nil
	case len(had.Notes) > 0:
		return errors.New(had.Notes[0])
	case in.members == 0:
		return fmt.Errorf("read %s: it holds no file", in.name)
	}
	return fmt.Errorf("read %s: none of its %d files is of a kind that is known%s", in.name,
		in.members, hint(format.KindUnknown))
}

// passedBy says how many members were not looked at, and why.
func (in *input) passedBy(n int, are, first string) {
	if n > 0 {
		in.remarks = append(in.remarks, fmt.Sprintf("%s: members that are %s: %d, the first %s", in.name, are, n, first))
	}
}

// cut takes one text: its parts, and its bytes where a format knows them. path is where the file
// was below /proc or /sys, "" if that is not known.
func (in *input) cut(name, path string, r io.Reader, left *int64) error {
	if in.restore == nil { // once: an archive may have many members
		in.restore = frugal()
	}
	head, err := attach.Head(r)
	kind := format.Identify(head[:min(len(head), format.HeadSize)])
	switch {
	case len(head) == 0 && err == nil:
		return nil // many files of /proc are empty
	case len(head) == 0:
		return fmt.Errorf("read %s: %w", name, evidence.FileCause(err))
	case kind == format.KindTrace && in.members > 0:
		return fmt.Errorf("read %s: an execution trace in an archive: unpack it, and give it by itself", name)
	case binary(head) && kind == format.KindUnknown && in.members == 0:
		return fmt.Errorf("read %s: binary data of no kind that is known: give what a tool prints of it as text", name)
	case binary(head) && kind == format.KindUnknown:
		if in.binaries++; in.binaries == 1 {
			in.binary = name
		}
		return nil
	case binary(head), kind == format.KindPprof:
		in.profile(name, head)
		return in.item(name, io.MultiReader(bytes.NewReader(head), r), 0, left)
	case attach.Whole(head):
		parts, ranges := attach.Cut(name, withPath(paste.Lines(head), path), kinds.Table())
		if in.members == 0 || len(parts) > 0 { // most files of an archive are of no kind
			var unknown []attach.Unknown
			if len(parts) > 0 || kind == format.KindUnknown { // else a format knows the rest
				unknown = attach.Leftovers(name, ranges, parts, kinds.Table())
			}
			in.take(parts, unknown)
		}
		return in.whole(name, kind, head, parts, err, left)
	case kind == format.KindUnknown, kind == format.KindHTML,
		kind == format.KindGCTrace: // no format reads it as a whole
		return in.long(name, head, r)
	}
	limit := int64(maxItem)
	if weak(kind) {
		limit = mostWeak
	}
	rest, _ := io.ReadAll(io.LimitReader(r, limit-int64(len(head))+1))
	if head = append(head, rest...); weak(kind) && len(head) > mostWeak {
		return in.long(name, head, r)
	}
	known := len(in.parts)
	_ = in.long(name, head, r)
	return in.whole(name, kind, head, in.parts[known:], err, left)
}

// textMemory is what Go's runtime may take while texts are read, unless what is held needs more:
// with the program's own pages that is 64 MiB.
const textMemory = 24 << 20

// frugal makes the collector keep to textMemory until undo is called: reading texts makes much
// garbage. What is held already counts beside it. Where that is
// far more, as a trace, it changes nothing.
func frugal() (undo func()) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	before, held := debug.SetMemoryLimit(-1), int64(live[0].Value.Uint64())
	limit := max(textMemory, held+textMemory/2)
	if before <= limit || held > 8*textMemory {
		return func() {}
	}
	debug.SetMemoryLimit(limit)
	return func() { debug.SetMemoryLimit(before) }
}

// What is held of an archive, whose members may each be small and known: of a part as much memory
// as of some ten lines or more is needed for what it says.
const (
	mostHeldParts = 3000
	mostHeldLines = 80_000
)

// take keeps what is known of a text.
func (in *input) take(parts []*attach.Part, unknown []attach.Unknown) {
	in.known = in.known || len(parts) > 0
	for _, p := range parts {
		if in.members > 1 && (len(in.parts) >= mostHeldParts || in.lines+len(p.Lines) > mostHeldLines) {
			if in.beyond++; in.beyond == 1 {
				in.first = p.File
			}
			continue
		}
		if in.members > 0 {
			p.Own()
		}
		in.lines += len(p.Lines)
		in.parts = append(in.parts, p)
	}
	for _, u := range unknown {
		if u.Lines = nil; in.beyond == 0 { // where it stands, and what it is, was said
			in.unknown = append(in.unknown, u)
		}
	}
}

// long takes a text that is too long to be held.
func (in *input) long(name string, head []byte, r io.Reader) error {
	parts, remarks, err := attach.Long(name, head, r, kinds.Table())
	in.take(parts, nil)
	in.remarks = append(in.remarks, remarks...)
	if len(parts) > 0 {
		return nil // the walker notes what is damaged
	}
	return cmp.Or(err, fmt.Errorf("read %s: no part of it is of a kind that is known, and it is too long to be looked at whole: cut out the part that matters", name))
}

// whole gives a text to the formats that read it as a whole. parts are what is known of it.
func (in *input) whole(name string, kind format.Kind, text []byte, parts []*attach.Part, err error, left *int64) error {
	known := len(parts) > 0
	if known && in.beyond > 0 {
		return nil // of what is not held, the detectors get nothing either
	}
	if known {
		err = nil // the walker notes what is damaged
	}
	switch {
	case known && weak(kind) && !same(parts, kind), kind == format.KindUnknown && in.members > 0:
		return nil
	case known && kind == format.KindGCTrace && len(text) > mostGCTrace:
		return nil // its kind says all of it, and a record of each cycle would take much memory
	case int64(len(text)) > min(maxItem, *left) && known:
		return nil
	case int64(len(text)) > min(maxItem, *left):
		return tooLong(name, *left)
	}
	*left -= int64(len(text))
	in.items = append(in.items, format.Item{Name: name, Data: text})
	return err
}

// mostWeak is how much of a text is held that may be a page of metrics. A longer one is a log.
const mostWeak = 8 << 20

// mostGCTrace is some ten thousand cycles.
const mostGCTrace = 1 << 20

// same reports whether a part is what the format takes the file for.
func same(parts []*attach.Part, kind format.Kind) bool {
	return slices.ContainsFunc(parts, func(p *attach.Part) bool { return p.Kind.Format == kind && kind != "" })
}

// withPath puts before the lines of a file of /proc or /sys what would have printed it: some hold
// one number and nothing that tells what it is.
func withPath(lines []paste.Line, path string) []paste.Line {
	if path == "" {
		return lines
	}
	return append([]paste.Line{{Text: "cat " + path, Command: "cat " + path}}, lines...)
}

// procPath is the path below /proc or /sys that the name of a file ends with, "" if it has none.
func procPath(name string) string {
	name = "/" + strings.TrimPrefix(filepath.ToSlash(name), "/")
	at := -1
	for _, root := range []string{"/proc/", "/sys/"} {
		if i := strings.Index(name, root); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	if at < 0 || strings.ContainsAny(name[at:], " \t\n:") {
		return ""
	}
	return name[at:]
}

// binary reports whether data is no text of any encoding.
func binary(data []byte) bool {
	head := data[:min(len(data), format.HeadSize)]
	return bytes.HasPrefix(head, []byte("\x1f\x8b")) || bytes.IndexByte(head, 0) >= 0 && !paste.UTF16(head)
}

// weak are formats that are known by so little that an output of a tool may look like one.
func weak(k format.Kind) bool {
	return k == format.KindMetrics || k == format.KindRecords || k == format.KindUnknown || k == format.KindHTML
}
