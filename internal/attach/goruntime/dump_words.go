package goruntime

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// leakHeader parses goleak's "[Goroutine 21 in state select, with main.serve on top of the stack:".
func leakHeader(t string) (s stack, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimPrefix(t,
		"found unexpected goroutines: "), "["), "Goroutine ")
	id, rest, ok2 := strings.Cut(rest, " in state ")
	state, _, ok3 := strings.Cut(rest, ", with ")
	if !ok || !ok2 || !ok3 || !strings.HasSuffix(t, " on top of the stack:") {
		return s, false
	}
	return parseHeader("goroutine " + id + " [" + state + "]:")
}

// leakLine knows what checks of tests print of goroutines that are left: goleak, leaktest, and
// net/http's own.
func leakLine(t string) bool {
	return strings.Contains(t, "found unexpected goroutines") ||
		strings.Contains(t, "eaked goroutine: ") || strings.Contains(t, "Test appears to have leaked ")
}

// logged is where a crash's first words start in a line of a log; 0: nowhere.
func logged(t string) int {
	for _, words := range []string{" panic: runtime error: ",
		" fatal error: all goroutines are asleep", " fatal error: concurrent map ",
		" Observed a panic", ` "Observed a panic"`} {
		if at := strings.Index(t, words); at > 0 && at < 200 {
			return at + 1
		}
	}
	return 0
}

// survived knows what programs print of a panic that need not end them: net/http, and Kubernetes'
// HandleCrash.
func survived(t string) bool {
	return strings.Contains(t, "http: panic serving ") || strings.Contains(t, "http2: panic serving ") ||
		strings.HasPrefix(strings.TrimPrefix(t, `"`), "Observed a panic") &&
			(strings.Contains(t, `anic: "`) || strings.Contains(t, ` panic="`))
}

// maxReversed bounds where the header is looked for below a stack in reversed order.
const maxReversed = 256

// headBelow reports whether a stack starts here whose lines stand in reversed order, as a log has
// them that shows the newest line first: each place above its call, and the header last.
func headBelow(lines []paste.Line) bool {
	for i := 0; i+1 < len(lines) && i < maxReversed && lines[i].Command == ""; i += 2 {
		place, call := dumpLine(lines[i].Text), dumpLine(lines[i+1].Text)
		if place != linePlace || call != lineCall {
			return i > 0 && place == lineHeader && upsideDown(lines[:i+1])
		}
	}
	n := len(lines)
	return n > 2 && n%2 == 1 && n < maxReversed && dumpLine(lines[n-1].Text) == lineHeader && upsideDown(lines)
}

// upsideDown reports whether the lines of a dump stand in reversed order: a call with its place
// above is right above each header, and none is below.
func upsideDown(lines []paste.Line) bool {
	found := false
	for i, line := range lines {
		if dumpLine(line.Text) != lineHeader {
			continue
		}
		if i < 2 || dumpLine(lines[i-1].Text) != lineCall ||
			dumpLine(lines[i-2].Text) != linePlace || i+1 < len(lines) && dumpLine(lines[i+1].Text) == lineCall {
			return false
		}
		found = true
	}
	return found
}

// isTail knows the rest of a line of hexadecimal arguments that was broken in two.
func isTail(t string) bool {
	return strings.Trim(t, "0123456789abcdefx, ?.{})") == "" &&
		(strings.HasPrefix(t, "0x") || strings.Contains(t, ", 0x"))
}

// elided knows a line that stands for a part of the dump which was taken out.
func elided(s string) bool {
	t := strings.TrimSpace(s)
	t = strings.TrimPrefix(t, "[ ")
	return strings.HasPrefix(t, "...") || strings.HasPrefix(t, "…") ||
		strings.HasPrefix(t, "[...") || strings.HasPrefix(t, "<snip") || strings.HasPrefix(t, "(snip")
}

// maxNotes is how many lines of notes a reader writes above a goroutine, at most.
const maxNotes = 4

// notes reports whether comments start here, as a reader writes them right above a goroutine.
func notes(lines []paste.Line) bool {
	for i, line := range lines[:min(len(lines), maxNotes+1)] {
		t := strings.TrimSpace(line.Text)
		if !strings.HasPrefix(t, "#") && !strings.HasPrefix(t, "//") {
			return i > 0 && dumpLine(t) == lineHeader
		}
	}
	return false
}

// numberAbove reports whether the goroutine below these notes is in the lines above as well: then
// another dump starts.
func numberAbove(above, below []paste.Line) bool {
	for _, line := range below[:min(len(below), maxNotes+1)] {
		next, _, ok := headerIn(bare(line.Text))
		if !ok {
			continue
		}
		return slices.ContainsFunc(above, func(l paste.Line) bool {
			if !strings.Contains(l.Text, "goroutine ") {
				return false
			}
			s, _, ok := headerIn(bare(l.Text))
			return ok && s.id == next.id
		})
	}
	return false
}
