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
// ends, as it does with a stack in a field. nil: there are none. A line that a terminal broke goes
// on in the next, up to the quote that closes the field.
func unrolled(lines []Line) []Line {
	var out []Line
	for i := 0; i < len(lines); i++ {
		l := lines[i]
		if l.Command != "" || len(out) > mostLines || !rolled(l.Text) {
			if out != nil {
				out = append(out, l)
			}
			continue
		}
		if out == nil {
			out = append(make([]Line, 0, len(lines)+64), lines[:i]...)
		}
		text := l.Text
		if next := i + 1; next < len(lines) && brokenOff(text, lines[next]) {
			text += lines[next].Text
			i = next
		}
		for _, part := range strings.SplitN(text, `\n`, mostRolled) {
			l.Text = strings.TrimRight(strings.ReplaceAll(part, `\t`, "\t"), " \t\"")
			out = append(out, l)
		}
	}
	return out
}

func rolled(text string) bool {
	return strings.Count(text, `\n`) >= leastRolled && strings.Contains(text, `\n\t`)
}

// brokenOff reports whether the next line is the rest of a rolled one, which lacks its quote.
func brokenOff(text string, next Line) bool {
	return !strings.HasSuffix(text, `"`) && !strings.HasSuffix(text, "}") && next.Command == "" &&
		strings.HasSuffix(next.Text, `\n"`) && !strings.Contains(next.Text, `="`)
}
