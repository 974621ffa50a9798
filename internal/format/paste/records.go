package paste

import "strings"

// leastRecord is the width from which on terminals and chats break a record.
const leastRecord = 60

// records puts records of JSON together which stood in one line and were broken at a width, in the
// middle of words. The lines that they went on in are left empty. A record that the paste does not
// close stays as it is.
func records(lines []Line) {
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i].Text, `{"`) || len(lines[i].Text) < leastRecord {
			continue
		}
		var j jsonText
		if j.read(lines[i].Text); j.closed() || j.tidy() {
			continue
		}
		end := i + 1
		for ; end < len(lines) && end-i < mostWraps && !j.closed(); end++ {
			l := lines[end]
			if l.Text == "" || l.Command != "" || l.Raw != "" || l.Block != lines[i].Block ||
				startTimed.MatchString(l.Text) {
				break
			}
			j.read(l.Text)
		}
		if !j.closed() {
			continue
		}
		var b strings.Builder
		for at := i; at < end; at++ {
			b.WriteString(lines[at].Text)
			if at > i {
				lines[at].Text = ""
			}
		}
		lines[i].Text = b.String()
		i = end - 1
	}
}

// jsonText follows the braces of a JSON text.
type jsonText struct {
	depth     int
	in, skips bool // in a string; behind a backslash
	last      byte
}

func (j *jsonText) read(text string) {
	for i := range len(text) {
		c := text[i]
		switch {
		case j.skips:
			j.skips = false
		case j.in && c == '\\':
			j.skips = true
		case c == '"':
			j.in = !j.in
		case j.in:
		case c == '{', c == '[':
			j.depth++
		case c == '}', c == ']':
			j.depth--
		}
		j.last = c
	}
}

func (j *jsonText) closed() bool { return j.depth <= 0 && !j.in }

// tidy reports whether the line ends where a program breaks lines that it indents.
func (j *jsonText) tidy() bool {
	return !j.in && strings.IndexByte("{[,", j.last) >= 0
}
