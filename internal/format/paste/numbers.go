package paste

import (
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// numbers takes off the line numbers of an editor, of cat -n and of grep -n. The numbers of cat and
// of editors count up by one; those of grep rise.
func numbers(lines []Line) {
	for i := 0; i < len(lines); {
		first, mark, _, ok := numbered(lines[i].Text)
		if !ok {
			i++
			continue
		}
		end, last, tight := i+1, first, 0
		for end < len(lines) && lines[end].Block == lines[i].Block {
			n, m, rest, ok := numbered(lines[end].Text)
			if ok && mark != ':' && rest == "" { // an empty line
				m = mark
			}
			if !ok || m != mark || n <= last || mark != ':' && n != last+1 {
				break
			}
			if rest != "" && rest[0] != ' ' {
				tight++
			}
			last = n
			end++
		}
		if (mark == ' ' || mark == '.') && !alone(lines, i, end, first) || i > 0 &&
			heads(lines[i-1].Text, lines[i].Text, mark) {
			i = end
			continue
		}
		// /proc/interrupts and /proc/locks number their lines with "N: ".
		if end-i >= 3 && (mark != ':' || tight*2 > end-i) {
			for j := i; j < end; j++ {
				_, _, lines[j].Text, _ = numbered(lines[j].Text)
			}
		}
		i = end
	}
}

// heads reports whether a line is the head of a table of which the line below it is a row: the
// numbers are then a column of the table, such as pids that count up by one.
func heads(head, row string, mark byte) bool {
	switch mark {
	case '|':
		return strings.Contains(head, "-+-") && strings.Trim(head, " -+") == "" ||
			strings.Contains(head, " |-----") // of a histogram
	case '\t':
		n := strings.Count(row, "\t")
		return n > 1 && strings.Count(head, "\t") == n && strings.Trim(head[:1], "0123456789 \t") != ""
	}
	return false
}

// alone reports whether lines whose numbers only blanks part from the text are numbered by an
// editor: from 1 on, aligned, and with nothing above or below, as a tool's table has a heading.
func alone(lines []Line, i, end, first int) bool {
	if first != 1 || end-i < 5 {
		return false
	}
	for _, at := range []int{i - 1, end} {
		if at >= 0 && at < len(lines) && lines[at].Block == lines[i].Block && lines[at].Text != "" {
			return false
		}
	}
	if lines[i].Text[strings.IndexByte(lines[i].Text, '1')+1] == '.' {
		return true // lists of web pages are not aligned at the right
	}
	column := strings.IndexByte(lines[i].Text, '1') + 1
	for _, l := range lines[i:end] {
		t := strings.TrimLeft(l.Text, " ")
		if len(l.Text)-len(t)+len(t)-len(strings.TrimLeft(t, "0123456789")) != column {
			return false
		}
	}
	return true
}

// clock is the rest of a time behind its hours, which may rise by one from row to row.
var clock = pattern.New(`^:\d\d(?::\d\d)?(?:\s|$)`)

// numbered divides a line into its number, what follows the number, and the text.
func numbered(text string) (n int, mark byte, rest string, ok bool) {
	t := strings.TrimLeft(text, " ")
	digits := len(t) - len(strings.TrimLeft(t, "0123456789"))
	if digits == 0 || digits > 9 {
		return 0, 0, "", false
	}
	n, _ = strconv.Atoi(t[:digits])
	after := t[digits:]
	switch after {
	case "":
		return n, '\t', "", len(t) < len(text) || digits < 5 // an empty line of an editor
	case ".":
		return n, '.', "", true // one of a web page
	}
	switch {
	case after[0] == '\t':
		return n, '\t', after[1:], true
	case strings.HasPrefix(after, ". "): // of a web page
		return n, '.', after[2:], true
	case strings.HasPrefix(after, "  "):
		return n, ' ', after[2:], true
	case after[0] == ':' && len(t) == len(text) && !(digits == 2 && clock.MatchString(after)):
		return n, ':', after[1:], true
	}
	if bar := strings.TrimLeft(after, " "); strings.HasPrefix(bar, "|") || strings.HasPrefix(bar, "│") {
		_, size := cutRune(bar)
		return n, '|', strings.TrimPrefix(bar[size:], " "), true
	}
	return 0, 0, "", false
}
