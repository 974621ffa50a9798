package paste

import (
	"strings"
)

// A line that holds others has several escaped ends of lines, some with the tab of what follows.
const (
	leastRolled = 3
	mostRolled  = 4096  // lines in one
	mostLines   = 20000 // of a view: a line takes more memory than its text
)

// unrolled is the lines with those taken apart that a logger wrote into one, with \n for their
// ends, as it does with a stack in a field. nil: there are none. Each log that keeps another one's
// lines in a field of its own doubles their backslashes. A line that a terminal broke goes on in
// the next, up to the quote that closes the field.
func unrolled(lines []Line) []Line {
	var out []Line
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		slashes := rolledBy(l.Text)
		if l.Command != "" || len(out) > mostLines || slashes == "" {
			if out != nil {
				out = append(out, l)
			}
			continue
		}
		if out == nil {
			out = append(make([]Line, 0, len(lines)+64), lines[:i]...)
		}
		text := l.Text
		if next := i + 1; next < len(lines) && brokenOff(text, slashes, lines[next]) {
			text += lines[next].Text
			i = next
		}
		parts := strings.SplitN(text, slashes+"n", mostRolled)
		unfielded(parts)
		for _, part := range parts {
			l.Text = strings.TrimRight(strings.ReplaceAll(part, slashes+"t", "\t"), " \t\"\\")
			out = append(out, l)
		}
	}
	return out
}

// unfielded takes off the first and the last part of a line what stands before and behind the field
// in which the lines are: other fields of the log's own record.
func unfielded(parts []string) {
	first, last := &parts[0], &parts[len(parts)-1]
	if strings.Count(*first, `"`)%2 == 1 {
		*first = (*first)[strings.LastIndexByte(*first, '"')+1:]
	}
	if at := strings.IndexByte(*last, '"'); at >= 0 {
		*last = (*last)[:at]
	}
}

// rolledBy is the backslashes that stand before the n of an end of a line in this text; "": no
// lines are in it.
func rolledBy(text string) string {
	at := strings.Index(text, `\n\`)
	if at < 0 {
		return ""
	}
	from := at
	for from > 0 && text[from-1] == '\\' {
		from--
	}
	slashes := text[from : at+1]
	if strings.Count(text, slashes+"n") < leastRolled ||
		!strings.Contains(text, slashes+"n"+slashes+"t") {
		return ""
	}
	return slashes
}

// brokenOff reports whether the next line is the rest of a rolled one, which lacks its quote.
func brokenOff(text, slashes string, next Line) bool {
	return !strings.HasSuffix(text, `"`) && !strings.HasSuffix(text, "}") && next.Command == "" &&
		!strings.HasPrefix(next.Text, "{") && !strings.Contains(next.Text, `="`) &&
		(strings.HasSuffix(next.Text, `\n"`) || rolledBy(next.Text) == slashes)
}
