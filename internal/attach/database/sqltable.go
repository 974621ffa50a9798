package database

import (
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// sqlTable is the result of a statement, as a client printed it: in a box or a record for each row
// (mysql), with bars or expanded (psql), or with tabs (mysql -B). Names are in lower case.
type sqlTable struct {
	columns []string
	rows    []map[string]string
	lines   int
	footer  bool // "3 rows in set", "(3 rows)": or a form that only SQL clients have
}

// mostRows bounds what of a table is read.
const mostRows = 1 << 14

var (
	psqlRule   = regexp.MustCompile(`^-+(\+-+)+$`)
	psqlRecord = regexp.MustCompile(`^-\[ RECORD (\d+) \]`)
	upright    = regexp.MustCompile(`^\s*([\w@$. ()*]{1,64}?):(?: (.*))?$`)
)

// has reports whether the columns are there, all of one of these lists.
func (t *sqlTable) has(lists ...string) bool {
	for _, list := range lists {
		all := true
		for _, c := range strings.Fields(list) {
			all = all && slices.Contains(t.columns, c)
		}
		if all {
			return true
		}
	}
	return false
}

// valueOf is the first of these columns that a row has.
func valueOf(row map[string]string, columns ...string) string {
	for _, c := range columns {
		if v := row[c]; v != "" && v != "NULL" {
			return v
		}
	}
	return ""
}

// num is a figure of a row, 0 where it has none.
func num(row map[string]string, columns ...string) float64 {
	v, _ := number(valueOf(row, columns...))
	return v
}

// readTable reads one table from the first line on; nil if none starts there. want is asked as soon
// as the columns are known, so that a long table is not read for nothing.
func readTable(lines []paste.Line, want func(*sqlTable) bool) *sqlTable {
	first := strings.TrimSpace(lines[0].Text)
	var t *sqlTable
	switch {
	case lines[0].Command != "" || first == "" || len(first) > 64<<10:
		return nil
	case innoRow.MatchString(first):
		t = readRecords(lines, innoRow, func(text string) (string, string, bool) {
			m := upright.FindStringSubmatch(text)
			if m == nil {
				return "", "", false
			}
			return m[1], m[2], true
		})
	case psqlRecord.MatchString(first):
		t = readRecords(lines, psqlRecord, func(text string) (string, string, bool) {
			return strings.Cut(text, "|")
		})
	case planRule.MatchString(first) || strings.Contains(first, "|") || strings.Contains(first, "\t"):
		return readGrid(lines, want)
	}
	if t == nil || !want(t) {
		return nil
	}
	return t
}

// readRecords reads a line for each value.
func readRecords(lines []paste.Line, record *regexp.Regexp, pair func(string) (string, string, bool)) *sqlTable {
	t := &sqlTable{footer: true}
	var row map[string]string
	last := ""
	for i, l := range lines {
		text := strings.TrimSpace(l.Text)
		switch {
		case l.Command != "":
			return t
		case rowsInSet.MatchString(text):
			t.lines = i + 1
			return t
		case text == "":
			if i+1 >= len(lines) || !record.MatchString(strings.TrimSpace(lines[i+1].Text)) {
				return t
			}
			continue
		case record.MatchString(text):
			row = map[string]string{}
			if len(t.rows) < mostRows {
				t.rows = append(t.rows, row)
			}
			last = ""
		default:
			name, v, ok := pair(l.Text)
			name = strings.ToLower(strings.TrimSpace(name))
			switch {
			case ok && name != "" && (len(t.rows) == 1 || slices.Contains(t.columns, name)):
				if len(t.columns) < 256 && !slices.Contains(t.columns, name) {
					t.columns = append(t.columns, name)
				}
				row[name], last = strings.TrimSpace(v), name
			case last == "" || len(row[last]) > 16<<10:
				return t
			case ok && name != "" && len(t.rows) > 1, len(text) > 4096:
				return t
			default: // a value of several lines, such as a statement
				if !textColumn(last) {
					return t
				}
				row[last] += " " + text
			}
		}
		t.lines = i + 1
	}
	return t
}

// textColumn reports whether a column holds statements, which have lines of their own.
func textColumn(name string) bool {
	for _, s := range []string{"query", "info", "text", "statement", "stmt", "sql", "plan", "prev", "status", "show", "create"} {
		if strings.Contains(name, s) {
			return true
		}
	}
	return false
}

// readGrid reads a line for each row.
func readGrid(lines []paste.Line, want func(*sqlTable) bool) *sqlTable {
	t := &sqlTable{}
	at := 0
	if planRule.MatchString(strings.TrimSpace(lines[0].Text)) {
		if at = 1; len(lines) < 2 || lines[1].Command != "" {
			return nil
		}
	}
	sep := "|"
	if !strings.Contains(lines[at].Text, "|") {
		sep = "\t"
	}
	t.columns = sqlCells(lines[at].Text, sep)
	if at == 0 && sep == "|" && !strings.HasPrefix(strings.TrimSpace(lines[0].Text), "|") && (len(lines) < 2 || !psqlRule.MatchString(strings.TrimSpace(lines[1].Text))) {
		return nil
	}
	if len(t.columns) < 2 || len(t.columns) > 256 {
		return nil
	}
	for i, c := range t.columns {
		if c == "" || len(c) > 80 {
			return nil
		}
		t.columns[i] = strings.ToLower(c)
	}
	if !want(t) {
		return nil
	}
	t.lines = at + 1
	for i := at + 1; i < len(lines); i++ {
		text := strings.TrimSpace(lines[i].Text)
		switch {
		case lines[i].Command != "" || text == "":
			return t
		case rowsInSet.MatchString(text), pgRows.MatchString(text):
			t.lines, t.footer = i+1, true
			return t
		case planRule.MatchString(text), psqlRule.MatchString(text):
			t.lines = i + 1
			continue
		case !strings.Contains(text, sep) && (sep != "\t" || strings.ContainsAny(text, " |")): // an empty value behind a tab may be gone
			return t
		}
		t.lines = i + 1
		t.row(sqlCells(lines[i].Text, sep))
	}
	return t
}

// sqlCells takes a row apart. Only a box has bars at its ends: elsewhere a bar in front stands
// behind an empty cell.
func sqlCells(text, sep string) []string {
	trimmed := strings.TrimSpace(text)
	if sep == "|" && strings.HasPrefix(trimmed, "|") && strings.HasSuffix(trimmed, "|") && !strings.HasPrefix(text, " ") {
		text = strings.TrimSuffix(trimmed[1:], "|")
	}
	out := strings.Split(strings.TrimRight(text, "\r\n"), sep)
	for i := range out {
		out[i] = strings.TrimSpace(out[i])
	}
	return out
}

func (t *sqlTable) row(c []string) {
	if len(t.rows) >= mostRows {
		return
	}
	row := map[string]string{}
	for i, name := range t.columns[:min(len(c), len(t.columns))] {
		row[name] = c[i]
	}
	t.rows = append(t.rows, row)
}

// A sqlView is a table that is known by its columns.
type sqlView struct {
	name string
	has  []string // lists of columns, of which all of one are there
	read func(r *result, t *sqlTable)
}

// sqlKinds makes a kind of each view, and one of results of which nothing more is known. They yield
// to those that know such tables better.
func sqlKinds(others []*attach.Kind) (out []*attach.Kind) {
	var better []string
	for _, k := range others {
		better = append(better, k.Name)
	}
	hints := []string{"|", "\t", "+--", ". row *", "-[ RECORD"}
	for _, v := range sqlViews {
		want := func(t *sqlTable) bool { return t.has(v.has...) && v.first(t) }
		out = append(out, &attach.Kind{Name: v.name, Hints: hints, Yields: better,
			Claim: func(lines []paste.Line) int { return claimSQL(lines, want) },
			Read: func(p *attach.Part) attach.Reading {
				r := &result{}
				t := readTable(p.Lines, want)
				if t == nil {
					t = &sqlTable{}
				}
				r.Title = v.name + ", " + attach.Plural(len(t.rows), "row")
				v.read(r, t)
				if r.Means == "" {
					r.Means = "It says nothing of why a service is slow."
				}
				return r.done(attach.CannotTell)
			}})
		better = append(better, v.name)
	}
	any := func(*sqlTable) bool { return true }
	return append(out, &attach.Kind{Name: "result of a statement", Hints: hints, Yields: better,
		Claim: func(lines []paste.Line) int {
			if t := readTable(lines, any); t != nil && t.footer && len(t.columns) > 0 && len(t.rows) > 0 {
				return t.lines
			}
			return 0
		},
		Read: readResult})
}

// first reports whether no view before this one knows the table.
func (v sqlView) first(t *sqlTable) bool {
	for _, w := range sqlViews {
		if w.name == v.name {
			return true
		}
		if t.has(w.has...) {
			return false
		}
	}
	return true
}

func claimSQL(lines []paste.Line, want func(*sqlTable) bool) int {
	if t := readTable(lines, want); t != nil && len(t.rows) > 0 {
		return t.lines
	}
	return 0
}

// readResult says of a result of any statement no more than what it is.
func readResult(p *attach.Part) attach.Reading {
	r := &result{}
	t := readTable(p.Lines, func(*sqlTable) bool { return true })
	if t == nil {
		t = &sqlTable{}
	}
	r.Title = "the result of a statement, " + attach.Plural(len(t.rows), "row")
	names := strings.Join(t.columns[:min(4, len(t.columns))], ", ")
	r.figure("columns: " + names)
	for _, l := range p.Lines {
		if m := inSet.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			r.figure("the client waited " + m[2] + " for it")
		}
	}
	r.Means = "No time of the server is in it: it says nothing of why a service is slow."
	return r.done(attach.CannotTell)
}
