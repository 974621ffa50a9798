package database

import (
	"regexp"
	"slices"
	"strings"
	"sync"

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

// readTable reads one table from the first line on; nil if none starts there.
func readTable(lines []paste.Line) *sqlTable {
	first := strings.TrimSpace(lines[0].Text)
	switch {
	case lines[0].Command != "" || first == "" || len(first) > 64<<10:
		return nil
	case first[0] == '*' && innoRow.MatchString(first):
		return readRecords(lines, innoRow, func(text string) (string, string, bool) {
			m := upright.FindStringSubmatch(text)
			if m == nil {
				return "", "", false
			}
			return m[1], m[2], true
		})
	case first[0] == '-' && psqlRecord.MatchString(first):
		return readRecords(lines, psqlRecord, func(text string) (string, string, bool) {
			return strings.Cut(text, "|")
		})
	case planRule.MatchString(first) || strings.Contains(first, "|") || strings.Contains(first, "\t"):
		return readGrid(lines)
	}
	return nil
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
func readGrid(lines []paste.Line) *sqlTable {
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
	if !mayHead(lines, at, sep) {
		return nil
	}
	t.columns = sqlCells(lines[at].Text, sep)
	if len(t.columns) < 2 || len(t.columns) > 256 {
		return nil
	}
	for i, c := range t.columns {
		if c == "" || len(c) > 80 {
			return nil
		}
		t.columns[i] = strings.ToLower(c)
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

// mayHead reports whether a line may hold the names of columns: with bars a rule is near, and with
// tabs two of the names are known. It spares most lines of a long log the rest.
func mayHead(lines []paste.Line, at int, sep string) bool {
	if sep == "\t" {
		known, text := 0, lines[at].Text
		for known < 2 && text != "" {
			word, rest, _ := strings.Cut(text, sep)
			if len(word) < 64 && sqlNames()[strings.ToLower(strings.TrimSpace(word))] {
				known++
			}
			text = rest
		}
		return known == 2
	}
	if at > 0 {
		return true
	}
	if len(lines) < 2 {
		return false
	}
	below := strings.TrimSpace(lines[1].Text)
	return planRule.MatchString(below) || psqlRule.MatchString(below)
}

// sqlNames are the columns that views are known by.
var sqlNames = sync.OnceValue(func() map[string]bool {
	names := map[string]bool{}
	for _, v := range sqlViews {
		for _, list := range v.has {
			for _, n := range strings.Fields(list) {
				names[n] = true
			}
		}
	}
	return names
})

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

// sqlKind is the results of statements, whatever their columns. It yields to those that know such
// tables better. It is one kind and not one of each view, since nearly any line of a log may be the
// start of a table, and is asked about once.
func sqlKind(others []*attach.Kind) *attach.Kind {
	k := &attach.Kind{Name: "result of a statement", Hints: []string{"|", "\t", "+--", ". row *", "-[ RECORD"}, Claim: claimSQL, Read: readSQL}
	for _, o := range others {
		k.Yields = append(k.Yields, o.Name)
	}
	return k
}

// viewOf is the view that knows these columns; nil: none does.
func viewOf(t *sqlTable) *sqlView {
	for i := range sqlViews {
		if t.has(sqlViews[i].has...) {
			return &sqlViews[i]
		}
	}
	return nil
}

func claimSQL(lines []paste.Line) int {
	t := readTable(lines)
	if t == nil || len(t.rows) == 0 || len(t.columns) == 0 || !t.footer && viewOf(t) == nil {
		return 0
	}
	return t.lines
}

func readSQL(p *attach.Part) attach.Reading {
	t := readTable(p.Lines)
	if t == nil {
		t = &sqlTable{}
	}
	v := viewOf(t)
	if v == nil {
		return readResult(p, t)
	}
	r := &result{}
	r.Title = v.name + ", " + attach.Plural(len(t.rows), "row")
	v.read(r, t)
	if r.Means == "" {
		r.Means = "It says nothing of why a service is slow."
	}
	return r.done(attach.CannotTell)
}

// readResult says of a result of any statement no more than what it is.
func readResult(p *attach.Part, t *sqlTable) attach.Reading {
	r := &result{}
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
