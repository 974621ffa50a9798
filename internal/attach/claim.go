package attach

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// ClaimWhile counts lines from the first on for which mine holds. Blank lines inside count, at the
// end they do not. A prompt ends it.
func ClaimWhile(lines []paste.Line, mine func(at int, text string) bool) int {
	end := 0
	for at, l := range lines {
		if l.Command != "" {
			break
		}
		if strings.TrimSpace(l.Text) == "" {
			continue
		}
		if !mine(at, l.Text) {
			break
		}
		end = at + 1
	}
	return end
}

// ClaimIf is n lines where one of them is surely the kind's, and otherwise none: lines that others
// have as well do not make a part.
func ClaimIf(sure bool, n int) int {
	if !sure {
		return 0
	}
	return n
}

// Nesting is how many brackets of JSON a line opens and leaves open; negative: it closes more.
func Nesting(text string) int {
	return strings.Count(text, "{") + strings.Count(text, "[") - strings.Count(text, "}") - strings.Count(text, "]")
}

var jsonKey = pattern.New(`^"([\w.$ /:-]+)"\s*:`)

// ClaimJSON counts the lines of a JSON text that has a line for each value, from its first brace to
// the one that closes it, or to where it was cut off. known says by its keys whether it is the
// kind's.
func ClaimJSON(lines []paste.Line, known func(keys map[string]bool) bool) int {
	first := strings.TrimSpace(lines[0].Text)
	if first == "" || !strings.Contains(`[{"`, first[:1]) || first[0] == '"' && !jsonKey.MatchString(first) {
		return 0
	}
	keys := map[string]bool{}
	depth, n := 0, 0
	for i, l := range lines {
		text := strings.TrimSpace(l.Text)
		if l.Command != "" || text == "" {
			break
		}
		if m := jsonKey.FindStringSubmatch(text); m != nil {
			keys[m[1]] = true
		} else if !strings.Contains(`[]{}"-0123456789tfn`, text[:1]) {
			break
		}
		depth += Nesting(text)
		n = i + 1
		if depth <= 0 && first[0] != '"' {
			break
		}
	}
	return ClaimIf(known(keys), n)
}
