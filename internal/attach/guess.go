package attach

import (
	"slices"
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/format/paste"
)

// Leftovers says of each range of a file what it may be: words of a person, what they are about,
// the rest of a log or of a part, or data that resembles a kind.
func Leftovers(file string, ranges []Range, parts []*Part, kinds *Kinds) (out []Unknown) {
	for i, r := range ranges {
		u := Unknown{File: file, Range: r, Sort: leftSort(i, ranges, parts)}
		u.Apple, u.Groups = machineOf(r.Lines)
		if u.Sort == SortOutput || u.Sort == SortLine {
			if u.Guess = guess(r.Lines, kinds.all); u.Guess != "" {
				u.Sort = SortOutput
			}
		}
		out = append(out, u)
	}
	return out
}

// leftSort says what a range is, by itself, by what stands beside it, and by the fence around it.
func leftSort(i int, ranges []Range, parts []*Part) Sort {
	r := ranges[i]
	s := sortOf(r.Lines, len(parts) > 0)
	if s == SortOutput || s == SortLog || s == SortLine || s == SortConfig {
		switch {
		case ofLog(r, parts):
			return SortLog
		case restOf(r, parts):
			return SortRest
		}
	}
	if s != SortOutput && s != SortWords && s != SortLine || r.Lines[0].Block <= 0 {
		return s
	}
	// Blank lines divide a program or a configuration into ranges.
	var all []paste.Line
	for _, o := range ranges[max(0, i-mostApart):min(len(ranges), i+mostApart)] {
		if o.Lines[0].Block == r.Lines[0].Block && len(all) < maxGuess {
			all = append(all, o.Lines...)
		}
	}
	if whole := sortOf(all, len(parts) > 0); len(all) > len(r.Lines) && (whole == SortCode || whole == SortConfig) {
		return whole
	}
	return s
}

// mostApart bounds how many blank lines a program is put together over.
const mostApart = 16

// How many lines beside a part are taken for its own, and between two of one kind. A table has
// more.
const (
	mostRest    = 2
	mostBetween = 4
)

// restOf reports whether a range stands right above or below a part, and is too short to be an
// output: a heading that the part's kind does not know, or a row that is cut off.
func restOf(r Range, parts []*Part) bool {
	n := r.Last - r.First + 1
	if n > mostBetween {
		return false
	}
	var above, below *Part
	for _, p := range parts {
		if r.First == p.Last()+1 && fenced(r.Lines[0]) == fenced(p.Lines[len(p.Lines)-1]) {
			above = p
		}
		if r.Last == p.First()-1 && fenced(r.Lines[0]) == fenced(p.Lines[0]) {
			below = p
		}
	}
	return n <= mostRest && (above != nil || below != nil) || above != nil && below != nil && above.Kind == below.Kind
}

// ofLog reports whether a range is the rest of a log that has lines of a scattered kind: it stands
// among them, has a logger's prefixes, or starts with a time right beside them.
func ofLog(r Range, parts []*Part) bool {
	for _, p := range parts {
		if !p.Kind.Scattered {
			continue
		}
		if r.First > p.First() && r.Last < p.Last() || r.Lines[0].Raw != "" || (r.Last == p.First()-1 || r.First == p.Last()+1) && logLine.MatchString(r.Lines[0].Text) {
			return true
		}
		if (r.Last == p.First()-1 || r.First == p.Last()+1) && plainLines(r.Lines) {
			return true // what the program itself prints, into which the runtime writes
		}
	}
	return false
}

// plainLines reports whether a few lines have no columns, as no table's do.
func plainLines(lines []paste.Line) bool {
	return len(lines) <= mostLog && !slices.ContainsFunc(lines, func(l paste.Line) bool { return len(l.Text) > 80 || columns(l.Text) || codeLine.MatchString(l.Text) })
}

// maxGuess bounds how many lines of a range are looked at.
const maxGuess = 200

// guess is the kind of which most lines have a hint; "" where none is near.
func guess(lines []paste.Line, kinds []*Kind) string {
	best, most := "", 0
	least := 4
	if len(lines) == 1 {
		least = 8 // a short word of one line is chance
	}
	for _, k := range kinds {
		n := 0
		for _, l := range lines[:min(len(lines), maxGuess)] {
			for _, h := range k.Hints {
				if len(h) >= least && telling(h) && strings.Contains(l.Text, h) {
					n++
					break
				}
			}
		}
		if n > most {
			best, most = k.Name, n
		}
	}
	return best
}

// telling reports whether a hint says more than that a text is a table, or has a common word.
func telling(hint string) bool {
	letters := 0
	for _, r := range hint {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return letters >= 5
}

// words reports whether a person wrote most of these lines: few digits, no columns.
func words(lines []paste.Line) bool {
	human := 0
	lines = lines[:min(len(lines), maxGuess)]
	for _, l := range lines {
		text := strings.TrimSpace(l.Text)
		if sentence(text) || sentence(uncommented(text)) || paste.IsCommand(uncommented(text)) || address(uncommented(text)) || heading(text) {
			human++
		}
	}
	return human*3 >= len(lines)*2
}

// uncommented takes off what makes a line a heading, an item of a list or a comment. Where nothing
// is left, the line was a rule.
func uncommented(text string) string {
	rest := strings.TrimLeft(text, "#/*=-+•| ")
	if rest == "" || rest == text {
		return rest
	}
	return strings.TrimRight(rest, "#*=- ")
}

// heading reports whether a line is a comment or a heading of Markdown, whatever its blanks.
func heading(text string) bool {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "#")
	return ok && sentence(strings.Join(strings.Fields(strings.TrimLeft(rest, "#")), " "))
}

// address reports whether a line is a link and no more.
func address(text string) bool {
	text = strings.Trim(text, "<>()[] ")
	return (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) && !strings.ContainsAny(text, " \t")
}

func sentence(text string) bool {
	letters, digits, other, wide, all := 0, 0, 0, 0, 0
	for _, r := range text {
		all++
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
			wide++
		case unicode.IsLetter(r):
			letters++
		case unicode.IsDigit(r):
			digits++
		case r != ' ' && r != '.' && r != ',' && r != '\'':
			other++
		}
	}
	if letters+digits+wide == 0 { // a rule of dashes
		return true
	}
	if wide > 0 && wide*3 >= all-wide {
		return true
	}
	if strings.Contains(text, "  ") || strings.Contains(text, "\t") {
		return false
	}
	return letters >= 2*digits && letters >= 4*other && letters > 0 && (len(strings.Fields(text)) >= 2 || digits == 0 && other <= 2)
}
