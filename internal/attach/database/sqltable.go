package database

import (
	"slices"
	"strings"
	"sync"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// sqlTable is the result of a statement, as a client printed it: in a box or a record for each row
// (mysql), with bars or expanded (psql), or with tabs (mysql -B). Names are in lower case.
type sqlTable struct {
	columns []string
	rows    []map[string]string
	lines   int
	footer  bool // "3 rows in set", "(3 rows)": or a form that only SQL clients have
	cut     int  // rows that end before their last column
}

// mostRows bounds what of a table is read.
const mostRows = 1 << 14

var (
	psqlRule    = pattern.New(`^-+(\+-+)+$`)
	psqlRecord  = pattern.New(`^-\[ RECORD (\d+) \]`)
	markRule    = pattern.New(`^\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?$`) // Markdown's
	houseRecord = pattern.New(`^Row (\d+):$`)                                    // ClickHouse's, above a rule
	upright     = pattern.New(`^\s*([\w@$. ()*]{1,64}?):(?: (.*))?$`)
)

// tableRule reports whether a line divides the names of columns from the rows, in whichever form.
func tableRule(text string) bool {
	t := strings.TrimSpace(text)
	return t != "" && (t[0] == '+' && planRule.MatchString(t) || t[0] == '-' &&
		psqlRule.MatchString(t) || strings.Contains(t, "--") && markRule.MatchString(t))
}

// inTable reports whether a line stands in a table with bars: a row, a rule, or a mark of what was
// left out above another row.
func inTable(lines []paste.Line, at int) bool {
	text := lines[at].Text
	return strings.Contains(text, "|") || tableRule(text) || lines[at].Elided &&
		at+1 < len(lines) && strings.Contains(lines[at+1].Text, "|")
}

// noRow reports whether a line of a table is none of its rows: a rule, or dots in place of rows.
func noRow(text string) bool { return tableRule(text) || strings.Trim(text, " |.…\t") == "" }

// has reports whether the columns are there, all of one of these lists.
func (t *sqlTable) has(lists ...string) bool {
	for _, list := range lists {
		all := true
		for _, c := range strings.Fields(list) {
			all = all && (slices.Contains(t.columns, c) || slices.Contains(t.columns, strings.ReplaceAll(c, "_", " ")))
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

// readTable reads one table from the first line on, with psql's time below it; nil if none starts
// there.
func readTable(lines []paste.Line) *sqlTable {
	t := readForm(lines)
	if t == nil {
		return nil
	}
	t.time(lines)
	return t
}

// readForm reads a table in whichever form it stands.
func readForm(lines []paste.Line) *sqlTable {
	first := strings.TrimSpace(lines[0].Text)
	switch {
	case lines[0].Command != "" || first == "" || len(first) > 64<<10:
		return nil
	case first[0] == '*' && innoRow.MatchString(first):
		return readRecords(lines, innoRow, uprightPair)
	case first[0] == 'R' && houseRecord.MatchString(first):
		if len(lines) < 2 || !houseRule(lines[1].Text) {
			return nil
		}
		return readRecords(lines, houseRecord, uprightPair)
	case first[0] == '-' && psqlRecord.MatchString(first):
		return readRecords(lines, psqlRecord, func(text string) (string, string, bool) {
			return strings.Cut(text, "|")
		})
	case planRule.MatchString(first) || strings.Contains(first, "|") || strings.Contains(first, "\t"):
		return readGrid(lines)
	case len(lines) > 1 && lines[1].Command == "" && ruled(lines[1].Text):
		return readRuled(lines)
	}
	return nil
}

func uprightPair(text string) (name, value string, ok bool) {
	m := upright.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// houseRule reports whether a line is the one below "Row 1:".
func houseRule(text string) bool {
	t := strings.TrimSpace(text)
	return t != "" && strings.Trim(t, "─") == ""
}

// readRecords reads a line for each value.
func readRecords(lines []paste.Line, record *pattern.Regexp, pair func(string) (string, string, bool)) *sqlTable {
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
		case strings.HasPrefix(text, "|") && planHeader.MatchString(text):
			return t // the plan that a column holds is a table of its own
		case record.MatchString(text):
			row = map[string]string{}
			if len(t.rows) < mostRows {
				t.rows = append(t.rows, row)
			}
			last = ""
		case houseRule(text):
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
				if !textColumn(last) && (record != houseRecord || len(text) > 16) { // a torn value
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
	for _, s := range []string{"query", "info", "text", "statement", "stmt", "sql", "plan", "prev",
		"status", "show", "create"} {
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
	box := sep == "|" && strings.HasPrefix(strings.TrimSpace(lines[at].Text), "|")
	t.columns = sqlCells(lines[at].Text, sep, box)
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
		case lines[i].Command != "" || text == "" && !lines[i].Elided:
			return t
		case text == "":
			continue
		case rowsInSet.MatchString(text), pgRows.MatchString(text):
			t.lines, t.footer = i+1, true
			return t
		case noRow(text):
			t.lines = i + 1
			continue
		case !strings.Contains(text, sep) &&
			(sep != "\t" || strings.ContainsAny(text, " |")): // an empty value behind a tab may be gone
			return t
		}
		t.lines = i + 1
		t.row(sqlCells(lines[i].Text, sep, box))
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
	return tableRule(lines[1].Text)
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
func sqlCells(text, sep string, box bool) []string {
	if box {
		text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "|"), "|")
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
	k := &attach.Kind{Name: "result of a statement", Hints: []string{"|", "\t", "+--", ". row *",
		"-[ RECORD", "Row ", "wait_type"}, Claim: claimSQL, Read: readSQL, Apart: func(paste.Line) bool { return true }}
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
	r.leftRows(p.Lines, len(t.rows))
	if t.cut > 0 {
		r.Flaws = append(r.Flaws, attach.Plural(t.cut, "row")+" cut off before the last column")
	}
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
		if m := psqlTook.FindStringSubmatch(strings.TrimSpace(l.Text)); m != nil {
			r.figure("the client waited " + m[1] + " for it")
		}
	}
	r.Means = "No result with these columns is known: nothing is read from its values."
	if slices.ContainsFunc(t.columns,
		func(c string) bool { return strings.Contains(c, "duration") || strings.Contains(c, "latency") }) {
		r.Means = "It has times that only who asked for them can tell apart: whose they are, and in which unit."
	}
	return r.done(attach.CannotTell)
}
