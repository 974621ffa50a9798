package goruntime

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// claimDump starts at a header, at a crash's first line where a header follows, or in the middle of
// a stack: two calls with their places.
func claimDump(lines []paste.Line) int {
	first := dumpLine(lines[0].Text)
	switch first {
	case lineHeader:
		if _, glued, _ := headerIn(bare(lines[0].Text)); glued &&
			(len(lines) < 2 || dumpLine(lines[1].Text) != lineCall) {
			return 0
		}
	case lineLeak:
		if !headerNear(lines) && pairs(lines[1:]) == 0 {
			return 0
		}
	case lineCrash, lineSignal, lineNoise:
		if isTail(strings.TrimSpace(lines[0].Text)) || !headerNear(lines) && !throws(lines) {
			return 0
		}
	case lineCall, linePlace:
		if pairs(lines) < 2 && !restAbove(lines) && !headBelow(lines) {
			return 0
		}
	default:
		return 0
	}
	end, calls, stacks := 0, 0, 0 // stacks: where the last line of a stack ends
	seen, last := map[int]bool{}, 0
	for i, line := range lines {
		if line.Command != "" {
			break
		}
		what := dumpLine(line.Text)
		if what == lineHeader {
			h, _, _ := headerIn(bare(line.Text))
			if h.id != last && seen[h.id] { // another dump, and the words above it are its own
				return stacks
			}
			seen[h.id], last = h.id > 0, h.id
		}
		if what == lineOther {
			if calls == 0 && i < 12 && first != lineHeader && first != lineCall &&
				first != linePlace && headerNear(lines[i:]) {
				continue // more words of the crash
			}
			if elided(line.Text) {
				end = i + 1
				continue
			}
			if calls > 0 && notes(lines[i:]) && !numberAbove(lines[:i], lines[i:]) {
				continue
			}
			if cutPlace(lines, i) {
				end = i + 1
			}
			break
		}
		if what == lineCall || what == lineHeader {
			calls++
		}
		if what != lineBlank {
			end = i + 1
		}
		if what == lineCall || what == lineHeader || what == linePlace {
			stacks = end
		}
	}
	return end
}

// cutPlace knows the last line of a text that was cut within a place, right below its call.
func cutPlace(lines []paste.Line, i int) bool {
	if i == 0 || dumpLine(lines[i-1].Text) != lineCall {
		return false
	}
	for _, below := range lines[i+1:] {
		if t := strings.Trim(strings.TrimSpace(below.Text), "`"); t != "" {
			return false
		}
	}
	t := strings.TrimSpace(lines[i].Text)
	return strings.HasPrefix(t, "/") && !strings.ContainsAny(t, " \t")
}

// throws reports whether a crash of the runtime itself starts here, which may come without a
// goroutine: it ran out of memory, or a stack of the runtime follows.
func throws(lines []paste.Line) bool {
	fatal := false
	for i := 0; i < len(lines) && i < 8 && lines[i].Command == ""; i++ {
		t := bare(lines[i].Text)
		switch {
		case noMemory.MatchString(t), noVirtual.MatchString(t), fatal &&
			strings.HasPrefix(t, "runtime stack:"), fatal && strings.HasPrefix(t, "[signal SIG"):
			return true
		case strings.HasPrefix(t, "fatal error: "), strings.HasPrefix(t, "panic: "):
			fatal = true
		}
	}
	return fatal && pairs(lines[1:]) > 0
}

func headerNear(lines []paste.Line) bool {
	for i := 0; i < len(lines) && i < 40; i++ { // Go before 1.5 prints the stopped thread's stack first
		switch dumpLine(lines[i].Text) {
		case lineHeader:
			return true
		}
		if lines[i].Command != "" {
			return false
		}
	}
	return false
}

// restAbove reports whether the last call of a stack that was cut off stands right above a header,
// or its place alone.
func restAbove(lines []paste.Line) bool {
	for i := 1; i < len(lines) && i < 4 && lines[i].Command == ""; i++ {
		switch what := dumpLine(lines[i].Text); {
		case what == lineHeader:
			return true
		case what == lineBlank, i == 1 && what == linePlace && dumpLine(lines[0].Text) == lineCall:
		default:
			return false
		}
	}
	return false
}

// pairs counts calls that are followed by their places, at the start.
func pairs(lines []paste.Line) (n int) {
	for i := 0; i+1 < len(lines) && i < 12; i++ {
		below := i + 1
		for below+1 < len(lines) && below < i+3 && strings.TrimSpace(lines[below].Text) == "" {
			below++ // a page may have put blank lines between
		}
		a, b := dumpLine(lines[i].Text), dumpLine(lines[below].Text)
		if f, _, _ := parseCall(lines[i].Text); a == lineCall && (b == linePlace || f.at != "") {
			n++
		}
		if a != lineCall && a != linePlace && a != lineBlank {
			break
		}
	}
	return n
}
