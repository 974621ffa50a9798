package database

import (
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// The processlist as some clients copy it: values with commas between them and texts in quotes.
var (
	procComma  = pattern.New(`^"?Id"?, ?"?User"?, ?"?Host"?, ?"?db"?, ?"?Command"?, ?"?Time"?\b`)
	procQuoted = pattern.New(`^\d+, ?(?:'[^']*'|NULL), ?(?:'[^']*'|NULL), ?(?:'[^']*'|NULL), ?'([^']*)', ?(\d+), ?(?:'([^']*)'|NULL)(?:, ?(.*))?$`)
)

// mostOfStatement bounds the lines of one statement.
const mostOfStatement = 60

// claimCommaRows claims rows, whose statements may have lines of their own.
func claimCommaRows(lines []paste.Line) int {
	n, rows := 1, 0
	for i := 1; i < len(lines) && i < n+mostOfStatement && lines[i].Command == ""; i++ {
		text := strings.TrimSpace(lines[i].Text)
		if text == "" && !lines[i].Elided {
			break
		}
		if procQuoted.MatchString(text) {
			rows++
		} else if rows == 0 {
			break
		}
		n = i + 1
	}
	return attach.ClaimIf(rows > 0, n)
}
