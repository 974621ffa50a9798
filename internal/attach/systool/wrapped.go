package systool

import (
	"iter"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// mostBroken is how many pieces a line may be in.
const mostBroken = 4

// logical yields lines, with those put together that a mail or a terminal broke, each with the
// index behind its last piece. whole reports whether a text is a complete line of the tool, after
// what was yielded before. A line that no piece completes is yielded as it is.
func logical(lines []paste.Line, whole func(text string) bool) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(lines); {
			text, n := joined(lines[at:], whole)
			at += n
			if !yield(at, text) {
				return
			}
		}
	}
}

// joined is the first line with the pieces that complete it, and how many lines that is.
func joined(lines []paste.Line, whole func(text string) bool) (string, int) {
	text := lines[0].Text
	if !piece(lines[0]) {
		return text, 1
	}
	n := 1
	for sum := text; !whole(sum); n++ {
		if n == min(len(lines), mostBroken) || !piece(lines[n]) || whole(lines[n].Text) {
			return text, 1
		}
		sum += " " + lines[n].Text
	}
	for _, l := range lines[1:n] {
		text += " " + l.Text
	}
	// A line may be complete without its last columns: names go on with names, figures with
	// figures.
	for n < min(len(lines), mostBroken) && piece(lines[n]) && goesOn(text, lines[n].Text) && !whole(lines[n].Text) && whole(text+" "+lines[n].Text) {
		text += " " + lines[n].Text
		n++
	}
	return text, n
}

// piece reports whether a line may be a piece of a row.
func piece(l paste.Line) bool {
	return l.Command == "" && l.Text != "" && len(l.Text) < 400
}

func goesOn(text, next string) bool {
	f := fields(next)
	if len(f) == 0 || len(f) > 12 {
		return false
	}
	if strings.ContainsAny(next, "0123456789") {
		return numeric(f) && strings.ContainsAny(text, "0123456789")
	}
	return !strings.ContainsAny(text, "0123456789") || len(f) == 1 && strings.ContainsAny(next, "%/-")
}

// claimLogical counts lines from the first on for which mine holds, broken ones put together. at is
// the index of a line's first piece.
func claimLogical(lines []paste.Line, whole func(text string) bool, mine func(at int, text string) bool) int {
	end, at := 0, 0
	for next, text := range logical(lines, whole) {
		if lines[at].Command != "" {
			break
		}
		if strings.TrimSpace(text) != "" {
			if !mine(at, text) {
				break
			}
			end = next
		}
		at = next
	}
	return end
}
