package paste

import "strings"

// fences empties the lines that open and close a fence, and numbers the lines between.
func fences(lines []Line) {
	block, closing := 0, ""
	last := 0
	for i := range lines {
		l := &lines[i]
		text := strings.TrimLeft(strings.TrimLeft(l.Text, "> \t"), " \t")
		mark := fence(text)
		switch {
		case closing == "" && mark != "", mark != "" && mark == closing && language(text, mark):
			last++
			block, closing = last, mark
			l.Text = afterFence(text, mark)
			if l.Text != "" {
				l.Block = block
			}
		case closing != "" && closes(text, closing):
			l.Text = strings.TrimRight(text[:len(text)-len(closerOf(closing))], " \t`~")
			if l.Text != "" {
				l.Block = block
			}
			block, closing = 0, ""
		default:
			l.Block = block
		}
	}
}

// language reports whether a line opens a fence of Markdown with the name of a language. No line
// that closes one has that: where one is open, its mark stood for an end whose start was cut off.
func language(text, mark string) bool {
	name := strings.TrimLeft(text, mark[:1])
	return (mark == "```" || mark == "~~~") && name != "" && len(name) < 20 &&
		strings.Trim(name, "abcdefghijklmnopqrstuvwxyz-+") == ""
}

// fence is the mark with which a line opens a fence; "": it opens none. A heading between waves, as
// test runners print it, is none.
func fence(text string) string {
	if strings.HasPrefix(text, "~~~") && strings.HasSuffix(text, "~~~") && strings.Trim(text, "~") != "" {
		return ""
	}
	for _, mark := range []string{"```", "~~~", "{code", "{noformat", "<pre", "[code"} {
		if strings.HasPrefix(text, mark) {
			return mark
		}
	}
	return ""
}

// afterFence is what stands on the line that opens a fence, behind it, where that is no name of a
// language: some chats put the first line there.
func afterFence(text, mark string) string {
	var rest string
	switch mark {
	case "```", "~~~":
		rest = strings.TrimLeft(text, mark[:1])
		if word := strings.TrimSpace(rest); !strings.ContainsAny(word, " \t:=%@") || strings.HasPrefix(word, "{") {
			rest = ""
		}
	default:
		_, rest, _ = strings.Cut(text, map[byte]string{'{': "}", '<': ">", '[': "]"}[mark[0]])
		rest = untagged(rest)
	}
	return strings.TrimRight(rest, " \t")
}

func closerOf(mark string) string {
	switch mark {
	case "{code":
		return "{code}"
	case "{noformat":
		return "{noformat}"
	case "<pre":
		return "</pre>"
	case "[code":
		return "[/code]"
	}
	return mark
}

// closes reports whether a line closes a fence. Markdown's stands alone, but chats put it at the
// end of the last line.
func closes(text, mark string) bool { return strings.HasSuffix(text, closerOf(mark)) }

// quotes takes the marks of a quotation off runs of lines that all have one.
func quotes(lines []Line) {
	for depth := 0; depth < 3; depth++ {
		for i := 0; i < len(lines); {
			n, quote := quoted(lines[i:])
			inFence := n == 1 && lines[i].Block > 0 && (i == 0 || lines[i-1].Text == "")
			// A paragraph of one line before another one that is quoted as well.
			first := n == 1 && i+2 < len(lines) && lines[i+1].Text == "" && strings.HasPrefix(lines[i+2].Text, ">")
			if !quote || n < 2 && len(lines) > 1 && !inFence && !first {
				i += max(n, 1)
				continue
			}
			for j := i; j < i+n; j++ {
				l := &lines[j]
				l.Text = strings.TrimPrefix(strings.TrimPrefix(l.Text, ">"), " ")
				if l.Block == 0 {
					l.Block = -(i + 1) // no fence has such a number
				}
			}
			i += n
		}
	}
}

// quoted counts the lines from the first on that start with ">". Commands at a prompt of that kind
// are none: but in a quotation a line may read like one.
func quoted(lines []Line) (n int, quote bool) {
	commands := 0
	for n < len(lines) && strings.HasPrefix(lines[n].Text, ">") {
		if commandAfter(strings.TrimPrefix(lines[n].Text, ">")) {
			commands++
		}
		n++
	}
	return n, commands < n
}

// indentations takes off the blanks that all lines of a run start with. A run is lines between
// others that stand at the margin; a mark of what was left out is none of them. A tool's own
// indentation follows a line at the margin directly; what a person or a wiki indented stands after
// an empty line, a prompt, or "like this:".
func indentations(lines []Line) {
	for i := 0; i < len(lines); {
		if lines[i].Text == "" || margin(lines[i].Text) == 0 {
			i++
			continue
		}
		end, common := i, -1
		for j := i; j < len(lines); j++ {
			text := lines[j].Text
			if text == "" || elided(text) {
				if lines[j].Block != lines[i].Block {
					break
				}
				continue
			}
			m := margin(text)
			if m == 0 || lines[j].Block != lines[i].Block {
				break
			}
			if common < 0 || m < common || text[:common] != lines[i].Text[:common] {
				common = shared(lines[i].Text, text, common)
			}
			end = j + 1
		}
		if common > 0 && indented(lines, i, end, common) {
			for j := i; j < end; j++ {
				l := &lines[j]
				if l.Text != "" && !elided(l.Text) {
					l.Text = l.Text[common:]
				}
				if common >= 2 && l.Block == 0 {
					l.Block = -(i + 1)
				}
			}
		}
		i = max(end, i+1)
	}
}

// shared is how many leading blanks two texts share, at most most (if it is not negative).
func shared(a, b string, most int) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] && (a[n] == ' ' || a[n] == '\t') && (most < 0 || n < most) {
		n++
	}
	return n
}

// indented reports whether somebody other than the tool indented the run from i to end.
func indented(lines []Line, i, end, common int) bool {
	if i == 0 || lines[i-1].Text == "" {
		return true
	}
	above := lines[i-1].Text
	if common < 2 && lines[i].Text[0] != '\t' {
		return false
	}
	return strings.HasSuffix(above, ":") && !strings.Contains(above, "[") && !strings.Contains(above, "(") &&
		(end == len(lines) || lines[end].Text == "" || lines[end-1].Text == "") || strings.HasSuffix(above, "：")
}

func margin(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }
