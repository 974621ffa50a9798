package webpage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Open and Close stand around an escape that Marked wrote. They are private characters, which
// Marked itself never lets through. So the page can tell an escape from a real backslash.
const (
	Open  = '\uf8f0'
	Close = '\uf8f1'
)

// Marked makes s safe to show on one line of the page: each escape stands between Open and Close.
func Marked(s string) string { return Escaped(s, string(Open), string(Close)) }

// Escaped makes s safe for one line of a terminal or a page. What is not a letter, mark, number,
// punctuation, symbol or plain space becomes an escape between before and after. These are control
// characters (ESC, line breaks, C1), direction changes, zero-width and private characters, and
// bytes that are no UTF-8.
func Escaped(s, before, after string) string {
	clean := true
	for _, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `%s\x%02x%s`, before, s[i], after)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(before + escapeOf(r) + after)
		}
		i += n
	}
	return b.String()
}

func escapeOf(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// plain shows the marks where there can be no markup, such as a title.
var plain = strings.NewReplacer(string(Open), "‹", string(Close), "›")
