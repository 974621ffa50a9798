package paste

import "strings"

// Lines gives the lines of a paste.
//
//  1. Bytes become text: UTF-16, Latin-1, colours and other things that only a terminal shows.
//  2. Fences, quotes, and the indentation that a person or a wiki added are taken off.
//  3. Line numbers are taken off.
//  4. Prompts are told from output.
//  5. What a logger or a grep put before each line is taken off.
//  6. Records of JSON that were broken at a width are put together.
//
// A line that has nothing left is kept, empty, so that numbers of lines stay right. All of it runs
// in time and memory linear in the paste.
func Lines(data []byte) []Line {
	all := decode(data)
	out := make([]Line, 0, strings.Count(all, "\n")+1) // a line takes more memory than its text
	for text := range strings.Lines(all) {
		out = append(out, Line{N: len(out) + 1, Text: plain(unescaped(text))})
	}
	fences(out)
	for i := range out {
		out[i].Text = untagged(out[i].Text)
	}
	quotes(out)
	indentations(out)
	quotes(out) // some are indented as a whole
	numbers(out)
	for i := range out {
		l := &out[i]
		l.code()
		l.bold()
		if elided(l.Text) {
			l.Text, l.Elided = "", true
		}
		l.idle()
		l.prompt()
	}
	loggers(out)
	paths(out)
	records(out)
	return out
}

// code takes off the marks of a line that somebody set as code, all of it: `free -m`.
func (l *Line) code() {
	if n := len(l.Text); n > 2 && l.Text[0] == '`' && l.Text[n-1] == '`' && strings.Count(l.Text, "`") == 2 {
		l.Text = l.Text[1 : n-1]
	}
}

// bold takes off the marks of a line that somebody set in bold, from its first word on.
func (l *Line) bold() {
	text, ok := strings.CutPrefix(l.Text, "**")
	in, after, closed := strings.Cut(text, "**")
	if ok && closed && in != "" && in[0] != ' ' && in[0] != '*' && !strings.HasSuffix(in, " ") &&
		!strings.Contains(after, "*") {
		l.Text = in + after
	}
}

// elided reports whether a line is a mark of what was left out.
func elided(text string) bool {
	switch strings.TrimSpace(text) {
	case "...", "....", ".....", "…", "[...]", "[…]", "(...)", "<snip>", "[snip]", "--snip--",
		"...snip...", "......", ". . .":
		return true
	}
	return false
}
