package database

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// psqlTook is what psql prints below a result where timing is on.
var psqlTook = pattern.New(`^Time: ([\d.]+ ms)(?: \([\d:.]+\))?$`)

// time takes in psql's time below a table. An empty line may stand between.
func (t *sqlTable) time(lines []paste.Line) {
	for at := t.lines; at < min(len(lines), t.lines+2) && lines[at].Command == ""; at++ {
		text := strings.TrimSpace(lines[at].Text)
		if psqlTook.MatchString(text) {
			t.lines, t.footer = at+1, true
		}
		if text != "" {
			return
		}
	}
}

// mostSingle bounds the rows of a table of one column, which has no bars to tell its rows by.
const mostSingle = 256

// readSingle reads psql's table of one column, which ends with the number of its rows or with its
// time; nil: it does not. Other texts have a line below their headings as well.
func readSingle(lines []paste.Line) *sqlTable {
	if len(lines) < 4 || !strings.HasPrefix(lines[1].Text, "---") || lines[0].Command != "" ||
		lines[1].Command != "" || strings.Trim(lines[1].Text, "-") != "" {
		return nil
	}
	name := strings.ToLower(strings.TrimSpace(lines[0].Text))
	if name == "" || name == "query plan" || len(lines[1].Text) < len(name) {
		return nil
	}
	t := &sqlTable{columns: []string{name}, lines: 2}
	for i, l := range lines[2:min(len(lines), mostSingle)] {
		text := strings.TrimSpace(l.Text)
		t.lines = i + 2
		switch {
		case l.Command != "" || text == "":
			return nil
		case pgRows.MatchString(text):
			t.lines, t.footer = i+3, true
			t.time(lines)
			return t
		case psqlTook.MatchString(text):
			t.time(lines)
			return t
		}
		t.row([]string{text})
	}
	return nil
}

// psqlSingle is the kind of such tables. It yields as other results of statements do.
func psqlSingle(others []*attach.Kind) *attach.Kind {
	k := &attach.Kind{Name: "psql result of one column", Reports: true,
		Apart: func(paste.Line) bool { return true },
		Claim: func(lines []paste.Line) int {
			if t := readSingle(lines); t != nil {
				return t.lines
			}
			return 0
		},
		Read: func(p *attach.Part) attach.Reading {
			t := readSingle(p.Lines)
			if t == nil {
				t = &sqlTable{columns: []string{"?"}}
			}
			return readResult(p, t)
		}}
	for _, o := range others {
		k.Yields = append(k.Yields, o.Name)
	}
	return k
}

// psqlTable is how psql describes a table: its columns, indexes and keys.
var psqlTable = &attach.Kind{
	Name: "psql \\d", Hints: []string{` "`}, Context: true, Reports: true,
	Apart: func(paste.Line) bool { return true },
	Claim: func(lines []paste.Line) int {
		if !psqlRelation.MatchString(strings.TrimSpace(lines[0].Text)) || len(lines) < 3 ||
			!psqlColumns.MatchString(lines[1].Text) || !tableRule(lines[2].Text) {
			return 0
		}
		return attach.ClaimWhile(lines, func(at int, text string) bool {
			return at < 3 || strings.TrimSpace(lines[at-1].Text) != "" &&
				(strings.Contains(text, "|") || psqlList.MatchString(text) || psqlItem.MatchString(text))
		})
	},
	Read: func(p *attach.Part) attach.Reading {
		r := &result{}
		r.Title = "psql's description of a table"
		r.Means = "It says what the table is made of, and nothing of how fast it is."
		return r.done(attach.CannotTell)
	},
}

var (
	psqlRelation = pattern.New(`^(?:Unlogged table|Partitioned table|Foreign table|Table|View|Materialized view|Index|Sequence|Partitioned index) "[\w.$]+"$`)
	psqlColumns  = pattern.New(`^ *Column +\| +(?:Type|Data [Tt]ype) +(?:\||$)`)
	psqlItem     = pattern.New(`^(?: {4}|"[^"]+" |TABLE ")`) // a page may have taken off the blanks
	psqlList     = pattern.New(`^(?:Indexes|Foreign-key constraints|Check constraints|Referenced by|Triggers|Inherits|Partition key|Partition of|Partitions|Number of (?:child tables|partitions)|Rules|Has OIDs|Options|Tablespace|Access method|Statistics objects|Policies|Not-null constraints|Publications|Disabled \w+|View definition)\b.*`)
)
