package attach

import (
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/format/paste"
)

// Leftovers says of each range of a file what it may be: words of a person, the rest of a log, or
// data that resembles a kind.
func Leftovers(file string, ranges []Range, parts []*Part, kinds []*Kind) (out []Unknown) {
	for _, r := range ranges {
		u := Unknown{File: file, Range: r, Words: words(r.Lines) || ofLog(r, parts)}
		if !u.Words {
			u.Guess = guess(r.Lines, kinds)
		}
		out = append(out, u)
	}
	return out
}

// ofLog reports whether a range is the rest of a log that has lines of a scattered kind: it stands
// among them, or has a logger's prefixes.
func ofLog(r Range, parts []*Part) bool {
	for _, p := range parts {
		if p.Kind.Scattered && (r.First > p.First() && r.Last < p.Last() || r.Lines[0].Raw != "") {
			return true
		}
	}
	return false
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
