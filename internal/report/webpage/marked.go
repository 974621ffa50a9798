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

// Marked makes s safe to show on one line of the page. What is not a letter, mark, number,
// punctuation, symbol or plain space becomes an escape between Open and Close: control characters,
// direction changes, zero-width and private characters, and bytes that are no UTF-8.
func Marked(s string) string {
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
			escape(&b, `\x%02x`, rune(s[i]))
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			escape(&b, `\n`)
		case r == '\t':
			escape(&b, `\t`)
		case r < 0x100:
			escape(&b, `\x%02x`, r)
		case r < 0x10000:
			escape(&b, `\u%04x`, r)
		default:
			escape(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

func escape(b *strings.Builder, format string, args ...any) {
	b.WriteRune(Open)
	fmt.Fprintf(b, format, args...)
	b.WriteRune(Close)
}

// plain shows the marks where there can be no markup, such as a title.
var plain = strings.NewReplacer(string(Open), "‹", string(Close), "›")
