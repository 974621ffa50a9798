package paste

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// comments are the marks of comments in source files, in which people keep a tool's output.
var comments = []*pattern.Regexp{
	pattern.New(`^\s*//[ \t]?`),
	pattern.New(`^\s*#(?:[ \t]|$)`),
	pattern.New(`^\s*\*(?: |$)`),
	pattern.New(`^\s*--(?: |$)`),
	pattern.New(`^\s*;+(?: |$)`),
	pattern.New(`^\|(?: |$)`),      // quotes in messages of commits
	pattern.New(`^\s*[-•](?: |$)`), // lines of which a web page made a list
	pattern.New(`^\+`),             // lines that a diff adds
	pattern.New(`^#`),              // where a script put its mark before each line as it was
}

// InComments gives readings of lines that take off the marks of comments, or of strings. Most lines
// have none.
func InComments(lines []Line) (out [][]Line) {
	for _, v := range [][]Line{uncommented(lines), unquotedStrings(lines)} {
		if v != nil {
			out = append(out, v)
		}
	}
	return out
}

// uncommented is the lines with the marks taken off runs of comments, whatever code stands between,
// and off strings that stand in such comments; nil where there is no such run.
func uncommented(lines []Line) []Line {
	var out []Line
	for _, re := range comments {
		for i := 0; i < len(lines); {
			n, marked := commentRun(lines[i:], re)
			if marked >= 2 && out == nil {
				out = slices.Clone(lines)
			}
			for j := i; marked >= 2 && j < i+n; j++ {
				at := re.FindStringIndex(lines[j].Text)
				if at != nil && out[j].Text == lines[j].Text { // no other mark was taken off it
					out[j].uncomment(at[1])
				}
			}
			i += max(n, 1)
		}
	}
	if held := unquotedStrings(out); held != nil {
		return held
	}
	return out
}

// uncomment takes off the first bytes of a line, which were a comment's mark.
func (l *Line) uncomment(mark int) {
	l.Text, l.Command, l.Host = strings.TrimRight(l.Text[mark:], " \t"), "", ""
	switch {
	case strings.HasPrefix(l.Text, "```"):
		l.Text = ""
	case elided(l.Text):
		l.Text, l.Elided = "", true
	default:
		l.prompt()
	}
}

// commentRun counts the lines from the first on that are comments, with single empty lines between
// them, and those of them that have the mark. What reads like a prompt of root's is a comment where
// it stands between two others.
func commentRun(lines []Line, re *pattern.Regexp) (n, marked int) {
	for i, l := range lines {
		next := i+1 < len(lines) && lines[i+1].Command == "" && re.MatchString(lines[i+1].Text)
		switch {
		case l.Command != "" && !(n == i && n > 0 && lines[i-1].Text != "" && next):
			return n, marked
		case l.Text == "" && (n == 0 || n < i || !next):
			return n, marked
		case l.Text == "":
			continue
		case !re.MatchString(l.Text):
			return n, marked
		}
		n, marked = i+1, marked+1
	}
	return n, marked
}

// sourceString is a line that is nothing but a string of a program or of JSON.
var sourceString = pattern.New(`^\s*"((?:[^"\\]|\\.)*)"(?:[,;]| ?\+)?$`)

// inString are escapes in strings of programs.
var inString = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\t`, "\t", `\/`, `/`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// unquotedStrings is the lines with runs of strings as what they hold: tests of programs keep a
// tool's output so, a line in each. nil: there is no such run.
func unquotedStrings(lines []Line) (out []Line) {
	for i := 0; i < len(lines); {
		n := 0
		for i+n < len(lines) && lines[i+n].Command == "" && strings.Contains(lines[i+n].Text, `"`) &&
			sourceString.MatchString(lines[i+n].Text) {
			n++
		}
		if n >= 2 {
			if out == nil {
				out = slices.Clone(lines)
			}
			for j := i; j < i+n; j++ {
				text := strings.TrimSuffix(sourceString.FindStringSubmatch(lines[j].Text)[1], `\n`)
				out[j].Text = strings.TrimRight(inString.Replace(text), " \t")
			}
		}
		i += max(n, 1)
	}
	return out
}
