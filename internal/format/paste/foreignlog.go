package paste

import (
	"strings"
	"time"
	"unicode"
)

// foreignSyslog is syslog's line with a month of another language: "juin 12 00:33:18 host
// program[pid]: message", "déc. 08 ...", "8月 12 ...". Its time is left out, as the month is not
// known.
func foreignSyslog(text string) (prefix, bool) {
	month, rest, ok := strings.Cut(text[:min(len(text), 24)], " ")
	if !ok || !foreignMonth(month) {
		return prefix{}, false
	}
	day, clock, ok := strings.Cut(strings.TrimLeft(rest, " "), " ")
	if !ok || day == "" || len(day) > 2 || strings.Trim(day, "0123456789") != "" {
		return prefix{}, false
	}
	at := strings.Index(text, " "+clock) + 1
	if len(text) < at+10 || text[at+8] != ' ' {
		return prefix{}, false
	}
	if _, err := time.Parse(time.TimeOnly, text[at:at+8]); err != nil {
		return prefix{}, false
	}
	return fromProgram(text[at+9:], time.Time{})
}

// foreignMonth reports whether a word may be a month: letters and perhaps a point, or a number as
// Chinese and Japanese write it.
func foreignMonth(word string) bool {
	if number, ok := strings.CutSuffix(word, "月"); ok {
		return number != "" && strings.Trim(number, "0123456789") == ""
	}
	word = strings.TrimSuffix(word, ".")
	return len(word) >= 3 && len(word) <= 16 &&
		strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
}
