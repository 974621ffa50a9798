package systool

import (
	"iter"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// mostBroken is how many pieces a line may be in.
const mostBroken = 4

// broken says how lines of a tool look that a mail or a terminal may have broken.
type broken struct {
	whole  func(text string) bool // it is a complete line, after what was read before
	starts func(text string) bool // it starts a line, complete or not; nil: complete ones do
}

// begins reports whether a line is no piece of the one above it.
func (b broken) begins(text string) bool {
	return b.whole(text) || b.starts != nil && b.starts(text)
}

// logical yields lines, with those put together that were broken, each with the index behind its
// last piece. A line that no piece completes is yielded as it is.
func logical(lines []paste.Line, b broken) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for at := 0; at < len(lines); {
			text, n := b.joined(lines[at:])
			at += n
			if !yield(at, text) {
				return
			}
		}
	}
}

// joined is the first line with the pieces that complete it, and how many lines that is.
func (b broken) joined(lines []paste.Line) (string, int) {
	text := lines[0].Text
	if !piece(lines[0]) {
		return text, 1
	}
	n := 1
	for sum := text; !b.whole(sum); n++ {
		if n == min(len(lines), mostBroken) || !piece(lines[n]) || b.begins(lines[n].Text) {
			return text, 1
		}
		sum += " " + lines[n].Text
	}
	for _, l := range lines[1:n] {
		text += " " + l.Text
	}
	// A line may be complete without its last columns.
	for n < min(len(lines), mostBroken) && piece(lines[n]) && goesOn(text, lines[n].Text) &&
		!b.begins(lines[n].Text) && b.whole(text+" "+lines[n].Text) {
		text += " " + lines[n].Text
		n++
	}
	return text, n
}

// piece reports whether a line may be a piece of a row.
func piece(l paste.Line) bool {
	return l.Command == "" && l.Text != "" && len(l.Text) < 400
}

// lastNames are names of last columns which do not look like one.
var lastNames = []string{"Command", "COMMAND", "Device", "blocked", "id", "wa", "st", "gu", "Mem",
	"buff/cache", "ops/s"}

var countOfCPUs = pattern.New(`^\(\d+ CPU\)$`)

// goesOn reports whether names go on with names, or figures with figures.
func goesOn(text, next string) bool {
	f, all := fields(next), fields(text)
	if len(f) == 0 || len(f) > 12 || len(all) == 0 {
		return false
	}
	if countOfCPUs.MatchString(strings.TrimSpace(next)) {
		return banner(text) != nil
	}
	_, figure := number(all[len(all)-1])
	if numeric(f) {
		return figure
	}
	named := strings.ContainsAny(next, "%/-_") || slices.Contains(lastNames, f[len(f)-1])
	return !figure && named && !slices.ContainsFunc(f, func(c string) bool {
		return strings.Trim(c[:1], "0123456789") == "" || strings.ContainsAny(c, ".,:;'\"")
	})
}

// claimLogical counts lines from the first on for which mine holds, broken ones put together. at is
// the index of a line's first piece.
func claimLogical(lines []paste.Line, b broken, mine func(at int, text string) bool) int {
	end, at := 0, 0
	for next, text := range logical(lines, b) {
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
