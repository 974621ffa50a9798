package paste

import (
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// Lines of quoted-printable, in which mails are sent, have at most 76 characters. The marks of
// quotes were taken off here.
const (
	leastSoft = 60
	mostSoft  = 76
)

var escaped = pattern.New(`=[0-9A-F]{2}`)

// unquoted is the lines of a mail as they were before quoted-printable: a "=" at the end of a line
// goes on in the next, and =3D is a character. nil: nothing looks like it.
func unquoted(lines []Line) []Line {
	soft := func(text string) bool {
		return strings.HasSuffix(text, "=") && !strings.HasSuffix(text, "==") &&
			len(text) >= leastSoft && len(text) <= mostSoft
	}
	if !slices.ContainsFunc(lines, func(l Line) bool { return soft(l.Text) }) {
		return nil
	}
	var out []Line
	open := false
	for _, l := range lines {
		on := soft(l.Text)
		if on {
			l.Text = strings.TrimSuffix(l.Text, "=")
		}
		if n := len(out); open && l.Command == "" && n > 0 {
			out[n-1].Text += l.Text
		} else {
			out = append(out, l)
		}
		open = on
	}
	quotes(out) // the second half of a broken line had no mark, so the one below it was left alone
	indentations(out)
	for i := range out {
		out[i].Text = escaped.ReplaceAllStringFunc(out[i].Text, func(s string) string {
			if n, err := strconv.ParseUint(s[1:], 16, 8); err == nil && (n >= ' ' && n < 0x7f || n == '\t') {
				return string(rune(n))
			}
			return s
		})
	}
	return out
}
