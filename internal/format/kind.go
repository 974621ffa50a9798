package format

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is what a file is, known by its content. Its text is for people. Each kind stands in the
// file of its row.
type Kind string

// KindUnknown is what no row knows, or what more than one does.
const KindUnknown Kind = "not known"

// HeadSize is how many first bytes Identify wants to see; fewer are enough where the file is
// shorter.
const HeadSize = 8 << 10

// head is the start of a file, as recognisers want it.
type head struct {
	data  []byte
	text  string // data without a byte order mark; "" where a zero byte says that this is no text
	start string // text from its first character that is not blank
}

func newHead(data []byte) head {
	h := head{data: data}
	if bytes.IndexByte(data, 0) >= 0 {
		return h
	}
	h.text = string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if !utf8.ValidString(h.text[:max(0, len(h.text)-utf8.UTFMax)]) {
		h.text = strings.ToValidUTF8(h.text, "?")
	}
	h.start = strings.TrimLeft(h.text, " \t\r\n")
	return h
}

// Identify says what a file is by its first bytes. A gzip file is KindGzip: what is in it is for
// the caller to look at, with Gunzip.
func Identify(data []byte) Kind {
	if known := candidates(newHead(data)); len(known) == 1 {
		return known[0].kind
	}
	return KindUnknown
}

// maxLookLines is how many lines are asked of whether any row knows them. A row that looks further
// down has anywhere.
const maxLookLines = 64

// candidates lists the rows that know a head, without those that yield to another. Rows that know
// how a file starts come first: they have seen more of it than one line. JSON is not looked at by
// lines: its lines mean nothing alone.
func candidates(h head) []*row {
	known := rowsThat(func(r *row) bool { return r.looks != nil && r.looks(h) })
	if text := h.start; len(known) == 0 && !strings.HasPrefix(text, "{") {
		for n := 0; n < maxLookLines && text != "" && len(known) == 0; n++ {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			if line = strings.TrimSpace(line); line != "" {
				known = rowsThat(func(r *row) bool { return r.line != nil && r.line(line) && (!r.mostly || mostly(h, r.line)) })
			}
		}
	}
	return known
}

// mostly reports whether most of the first lines are known, comments and blank ones left out. Of a
// command and a number, or a name and a number in another program's output, each is a line that a
// page of metrics might have.
func mostly(h head, knows func(line string) bool) bool {
	yes, no := 0, 0
	text := h.start
	for n := 0; n < maxLookLines && text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		switch line = strings.TrimSpace(line); {
		case line == "":
		case knows(line):
			yes++
		case line[0] != '#':
			no++
		}
	}
	return yes > no
}

// rowsThat lists the rows that ok accepts, without those that yield to another of them.
func rowsThat(ok func(*row) bool) []*row {
	var known []*row
	for _, r := range rows() {
		if ok(r) {
			known = append(known, r)
		}
	}
	return unyielding(known)
}

func unyielding(known []*row) []*row {
	yields := func(r *row) bool {
		return slices.ContainsFunc(known, func(other *row) bool { return slices.Contains(r.yields, other.kind) })
	}
	var out []*row
	for _, r := range known {
		if len(known) == 1 || !yields(r) {
			out = append(out, r)
		}
	}
	return out
}

// identifyWhole knows a file by all of it and by its name, where its start says nothing.
func identifyWhole(name string, data []byte) []*row {
	known := candidates(newHead(data[:min(len(data), HeadSize)]))
	if len(known) == 0 {
		known = rowsThat(func(r *row) bool { return r.anywhere != nil && r.anywhere(data) })
	}
	if len(known) == 0 {
		base := path.Base(name)
		known = rowsThat(func(r *row) bool { return r.named != nil && r.named(base, data) })
	}
	return known
}

// starts makes a recogniser of what a text starts with, after blanks.
func starts(with ...string) func(head) bool {
	return func(h head) bool {
		return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(h.start, w) })
	}
}

// startsBytes makes a recogniser of the first bytes.
func startsBytes(with ...string) func(head) bool {
	return func(h head) bool {
		return slices.ContainsFunc(with, func(w string) bool { return bytes.HasPrefix(h.data, []byte(w)) })
	}
}

// firstKey makes a recogniser of lines "name value", the first of which has one of these names.
func firstKey(names ...string) func(head) bool {
	return func(h head) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			rest, ok := strings.CutPrefix(h.start, n+" ")
			return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
		})
	}
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
