package paste

import "strings"

// tabled is the lines with tables of Markdown as the tool printed them that a person put into one:
// cells with blanks between, and neither bars nor the rule below the names. nil: there is no such
// table.
func tabled(lines []Line) (out []Line) {
	from := 0 // lines before it are in out, once there is a table
	for i := 0; i+1 < len(lines); i++ {
		names := cells(lines[i])
		if len(names) < 2 || !ruled(lines[i+1], len(names)) {
			continue
		}
		out = append(out, lines[from:i+1]...)
		out[len(out)-1].Text = uncelled(names, nil)
		for i += 2; i < len(lines); i++ {
			row := cells(lines[i])
			if len(row) < 2 {
				break
			}
			out = append(out, lines[i])
			out[len(out)-1].Text = uncelled(row, names)
		}
		from = i
	}
	if out == nil {
		return nil
	}
	return append(out, lines[from:]...)
}

// unbarred is a line of a table without the bars at its ends, which some leave out.
func unbarred(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "|"), "|")
}

// cells are the cells of a line of a table; nil: it has no bar, or is a prompt's.
func cells(l Line) (all []string) {
	if l.Command != "" || strings.IndexByte(l.Text, '|') < 0 {
		return nil
	}
	for rest := unbarred(l.Text); ; {
		end := bar(rest)
		all = append(all, strings.ReplaceAll(strings.TrimSpace(rest[:end]), `\|`, "|"))
		if end == len(rest) {
			return all
		}
		rest = rest[end+1:]
	}
}

// bar is where the next bar stands that divides cells; a bar behind a backslash does not. Without
// one it is the end.
func bar(text string) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '|':
			return i
		}
	}
	return len(text)
}

// ruled reports whether a line is the rule below the names of a table with so many columns.
func ruled(l Line, columns int) bool {
	text := unbarred(l.Text)
	return strings.Count(text, "|") == columns-1 && strings.Count(text, "-") >= columns &&
		strings.Trim(text, "|:- \t") == ""
}

// uncelled is a line of a tool from the cells of a table's. An empty one between others would shift
// the columns behind it, so a dash stands for it where there is a name above.
func uncelled(row, names []string) string {
	kept := make([]string, 0, len(row))
	for i, c := range row {
		switch {
		case c != "":
			kept = append(kept, c)
		case i > 0 && i < len(names) && names[i] != "" && i < len(row)-1:
			kept = append(kept, "-")
		}
	}
	return strings.Join(kept, "  ")
}
