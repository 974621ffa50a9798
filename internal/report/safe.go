package report

import (
	"strings"
	"unicode"

	"github.com/whystall/whystall/internal/report/webpage"
)

// Printable makes s safe for a terminal and for one line: see [webpage.Escaped].
func Printable(s string) string { return webpage.Escaped(s, "", "") }

// width is the number of terminal columns that a printable s takes.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// runeWidth knows the wide scripts and emoji by block. The few ambiguous characters count as one.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// middle shortens s to at most max columns by leaving out its middle. The first words of a symbol's
// package and the last of its function say most.
func middle(s string, max int) string {
	if width(s) <= max {
		return s
	}
	if max < 2 {
		return "…"
	}
	r := []rune(s)
	tail := (max - 1) * 2 / 3
	head := max - 1 - tail
	return cut(r, head) + "…" + reverse(cut([]rune(reverse(string(r))), tail))
}

// cut returns the start of r that fits in max columns.
func cut(r []rune, max int) string {
	n := 0
	for i, c := range r {
		if n += runeWidth(c); n > max {
			return string(r[:i])
		}
	}
	return string(r)
}

func reverse(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}

// longWords says what becomes of a word that is longer than a line.
type longWords int

const (
	shortenWords longWords = iota // in its middle
	keepWords                     // half a command or URL is worse than a long line
)

// Wrap breaks s at spaces into lines of at most max columns. A word longer than that stays whole:
// it may be a command.
func Wrap(s string, max int) []string { return wrap(s, max, keepWords) }

// wrap breaks s at spaces into lines of at most max columns.
func wrap(s string, max int, long longWords) []string {
	var lines []string
	line, n := "", 0
	words := strings.Fields(s)
	for i := 0; i < len(words); i++ {
		word := words[i]
		// A number stays with its thousands and its unit.
		for i+1 < len(words) && isDigit(word[len(word)-1]) && (unitWord(words[i+1]) || thousands(words[i+1])) {
			word += " " + words[i+1]
			i++
		}
		if long == shortenWords {
			word = middle(word, max)
		}
		w := width(word)
		if n > 0 && n+1+w > max {
			lines = append(lines, line)
			line, n = "", 0
		}
		if n > 0 {
			line += " "
			n++
		}
		line += word
		n += w
	}
	if n > 0 || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// unitWord reports whether s is a unit, perhaps with a punctuation mark after it.
func unitWord(s string) bool {
	switch strings.TrimRight(s, ".,;:)") {
	case "%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB":
		return true
	}
	return false
}

// thousands reports whether s may be the next three digits of a number that count printed.
func thousands(s string) bool {
	s = strings.TrimRight(s, ".,;:)")
	return len(s) == 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
