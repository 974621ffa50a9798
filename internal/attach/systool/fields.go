package systool

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// table is a line of names and the rows below it.
type table struct {
	names []string
	rows  []row
}

// row is one row of figures. A file may have a hundred thousand of them, so rows that are as they
// were printed are kept as text.
type row struct {
	time    string // as printed; "": none
	since   string // of the line of names right above, which is when its interval started; "": none
	average bool
	cells   []string
	text    string // instead of cells: they stand in it, with blanks between
}

// column is -1 where none of these names is there.
func (t *table) column(names ...string) int {
	for _, n := range names {
		if at := slices.Index(t.names, n); at >= 0 {
			return at
		}
	}
	return -1
}

func (t *table) has(names ...string) bool { return t.column(names...) >= 0 }

// cell is "" where the row has no such column.
func (t *table) cell(r row, names ...string) string {
	at := t.column(names...)
	if at >= 0 && r.text != "" {
		return nth(r.text, at)
	}
	if at >= 0 && at < len(r.cells) {
		return r.cells[at]
	}
	return ""
}

// nth is a field of a text, counted from 0; "" where there are not so many.
func nth(text string, at int) string {
	for {
		text = strings.TrimLeft(text, " \t")
		end := strings.IndexAny(text, " \t")
		if end < 0 {
			end = len(text)
		}
		if at == 0 || end == 0 {
			return text[:end]
		}
		text, at = text[end:], at-1
	}
}

// num is 0 where there is no such figure.
func (t *table) num(r row, names ...string) float64 {
	f, _ := number(t.cell(r, names...))
	return f
}

// fields splits at blanks. A tool's rows have tens of cells: longer lines are cut.
func fields(text string) []string {
	const long = 16 << 10
	if len(text) > long {
		text = text[:long]
	}
	f := strings.Fields(text)
	if strings.IndexByte(text, '#') >= 0 || strings.IndexByte(text, '<') >= 0 || strings.Contains(text, "←") {
		for i, c := range f {
			if i >= leastCells && remark(c) {
				return f[:i]
			}
		}
	}
	return f
}

// leastCells is fewer than a row has before what a person wrote beside it.
const leastCells = 3

// remark reports whether what a person wrote beside a row starts here.
func remark(cell string) bool {
	if rest, ok := strings.CutPrefix(cell, "#"); ok {
		return rest == "" || rest[0] >= utf8.RuneSelf
	}
	return strings.HasPrefix(cell, "←") || len(cell) > 1 && cell[0] == '<' && strings.Trim(cell[1:], "-=") == ""
}

func blank(l paste.Line) bool { return strings.TrimSpace(l.Text) == "" }

// following is the next line that is not blank, from at on; false at the end or at a prompt.
func following(lines []paste.Line, at int) (paste.Line, bool) {
	for ; at < len(lines); at++ {
		if lines[at].Command != "" {
			return paste.Line{}, false
		}
		if !blank(lines[at]) {
			return lines[at], true
		}
	}
	return paste.Line{}, false
}

// logRun counts lines of a log from the first on for which mine holds. A prompt behind the first
// ends them.
func logRun(lines []paste.Line, mine func(paste.Line) bool) int {
	n := 0
	for n < len(lines) && (n == 0 || lines[n].Command == "") && mine(lines[n]) {
		n++
	}
	return n
}

// option reports whether the part's command has this option of one letter, alone or in a bundle.
func option(p *attach.Part, letter byte) bool {
	words := strings.Fields(p.Command)
	return slices.ContainsFunc(words, func(w string) bool {
		return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.IndexByte(w, letter) > 0
	})
}
