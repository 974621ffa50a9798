package paste

import (
	"slices"
	"strings"
	"time"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Views gives other readings of a paste, for who knows little of it as it stands: without a prefix
// that nearly all its lines have, and with lines put together that a terminal or a mail broke. Most
// pastes have none. A wrong view reads like nothing, so who asks takes the one of which it knows
// most.
func Views(lines []Line) (out [][]Line) {
	for _, re := range everyLine {
		if v := stripped(lines, re); v != nil {
			out = append(out, v)
			for _, w := range [][]Line{unwrapped(v, 0), uncommented(v)} {
				if w != nil {
					out = append(out, w)
				}
			}
		}
	}
	if v := unrolled(lines); v != nil {
		out = append(out, v)
	}
	if v := tabled(lines); v != nil {
		out = append(out, v)
	}
	if v := untailed(lines); v != nil {
		out = append(out, v)
	}
	if v := unpodded(lines); v != nil {
		out = append(out, v)
	}
	if v := unhosted(lines); v != nil {
		out = append(out, v)
	}
	out = append(out, InComments(lines)...)
	if v := unquoted(lines); v != nil {
		out = append(out, v)
	}
	if v := unremarked(lines); v != nil {
		out = append(out, v)
	}
	for _, loose := range []int{0, 3} {
		if v := unwrapped(lines, loose); v != nil {
			out = append(out, v)
		}
	}
	return out
}

// everyLine are prefixes that somebody or something put before each line. A tool's own rows start
// with some of them as well.
var everyLine = []*pattern.Regexp{
	pattern.New(`^\s*[\[(]?\d{4}[-/.]\d\d[-/.]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|GMT|CET|CEST|CST|[+-]\d\d:?\d\d))?[\])]?:?(?:\s\[?(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|I|W|E|D|info|warn|error|debug)\]?:?)?(?: |$)`),
	pattern.New(`^\s*[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?[\])]?:?(?: |$)`),
	pattern.New(`^\s*\[[\w./: -]{1,60}\](?: |$)`),
	pattern.New(`^\s*[A-Z][a-z]{2}, [A-Z][a-z]{2} \d{1,2} \d{4} \d{1,2}:\d\d:\d\d(?: [ap]m)? \| ?`), // of a page that shows a log
	pattern.New(`^\s*\d{1,6}\s+\d{1,6}(?:  |\t|$)`),
	pattern.New(`^\s*\d{1,6}(?:  |\t|$)`),
	pattern.New(`^\s*\d{1,6}(?: |[:.|)] ?|$)`),
	pattern.New(`^\s*[-*+•│|#;](?: |$)`),
	pattern.New(`^\s*(?://|--|>>|::)(?: |$)`),
	pattern.New(`^[\w.@/-]{2,40}: ?(?:|$)`),
	pattern.New(`^[\w.@/-]{2,40}\s+\| ?`),
}

// leastViewed is how many lines must have a prefix before it is taken for one.
const leastViewed = 3

// stripped is the lines without a prefix; nil where fewer than nine of ten have it.
func stripped(lines []Line, re *pattern.Regexp) []Line {
	with, all := 0, 0
	for _, l := range lines[:min(len(lines), 200)] {
		if l.Text == "" || l.Command != "" {
			continue
		}
		if all++; re.MatchString(l.Text) {
			with++
		}
	}
	if with < leastViewed && with < all || with*10 < all*9 || with == 0 {
		return nil
	}
	out := slices.Clone(lines)
	for i := range out {
		l := &out[i]
		if l.Command != "" {
			continue
		}
		if at := re.FindStringIndex(l.Text); at != nil {
			if t := prefixTime(l.Text[:at[1]]); l.Time.IsZero() {
				l.Time = t
			}
			l.Text = strings.TrimRight(l.Text[at[1]:], " \t")
			l.prompt()
		}
	}
	fences(out)
	indentations(out)
	for i := range out {
		if out[i].Command == "" {
			out[i].prompt()
		}
	}
	return out
}

// prefixTime is the date and time of a prefix; zero: it has none.
func prefixTime(prefix string) time.Time {
	text := strings.Trim(prefix, " \t[]():")
	if len(text) < len(time.DateTime) || len(text) > 2*len(time.DateTime) {
		return time.Time{}
	}
	t, _ := time.Parse(time.DateTime, strings.Replace(text, "T", " ", 1))
	return t
}

// Widths at which terminals and mails break lines.
const (
	leastWidth = 60
	mostWidth  = 400
	mostWraps  = 64 // widths in a line: a log of lines that are alike is no line that was broken
)

// startTimed is a line that starts with a time or a date: it is a record of its own.
var startTimed = pattern.New(`^\s*[\[(<"]?(?:\d{2,4}[.:/-]\d\d[.:/-]\d{2,4}(?:\b|T)|(?:[A-Z][a-z]{2},? +)?(?:[A-Z][a-z]{2} +\d{1,2}|\d{1,2}[ /-][A-Z][a-z]{2}) |\d+[.,]\d{3}(?:s|ms)?\])`)

// unwrapped joins lines that were broken at a width: where several lines are as long as the
// longest, each goes on in the next. Blanks at the end of a line were lost, so with loose a line
// may be so much shorter. nil: no width stands out.
func unwrapped(lines []Line, loose int) []Line {
	width, count, all := 0, 0, 0
	for _, l := range lines {
		n := len(l.Text)
		if n == 0 {
			continue
		}
		all++
		switch {
		case n > width:
			width, count = n, 1
		case n == width:
			count++
		}
	}
	if width < leastWidth || width > mostWidth || count < 2 || count*20 < all {
		return nil
	}
	var out []Line
	open := false // the last line goes on
	for _, l := range lines {
		if n := len(out); open && !startTimed.MatchString(l.Text) && l.Command == "" &&
			l.Text != "" && n > 0 && out[n-1].Block == l.Block && len(out[n-1].Text) < mostWraps*width {
			last := &out[n-1].Text
			*last += strings.Repeat(" ", width-(len(*last)-1)%width-1) + l.Text
		} else {
			out = append(out, l)
		}
		open = l.Text != "" && len(l.Text) >= width-loose
	}
	return out
}
