package attach

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// Range is lines that no kind knows, from First to Last.
type Range struct {
	First, Last int
	Lines       []paste.Line
}

// Cut divides the lines of a file into parts. What no kind claims is in unknown.
func Cut(file string, lines []paste.Line, kinds []*Kind) (parts []*Part, unknown []Range) {
	var command string
	scattered := map[*Kind]*Part{}
	for at := 0; at < len(lines); {
		line := lines[at]
		if line.Command != "" {
			command = line.Command
			at++
			continue
		}
		kind, n := claim(lines[at:], kinds)
		if n == 0 {
			if strings.TrimSpace(line.Text) != "" {
				if last := len(unknown) - 1; last >= 0 && unknown[last].Last == line.N-1 {
					unknown[last].Last = line.N
					unknown[last].Lines = append(unknown[last].Lines, line)
				} else {
					unknown = append(unknown, Range{line.N, line.N, []paste.Line{line}})
				}
			}
			at++
			continue
		}
		if p := scattered[kind]; p != nil {
			p.Lines = append(p.Lines, lines[at:at+n]...)
		} else {
			p := &Part{Kind: kind, File: file, Lines: slices.Clone(lines[at : at+n]), Command: command}
			parts = append(parts, p)
			if kind.Scattered {
				scattered[kind] = p
			}
		}
		at += n
	}
	return parts, unknown
}

// claim asks which kind these lines start with, and for how many of them.
func claim(lines []paste.Line, kinds []*Kind) (best *Kind, most int) {
	for _, k := range kinds {
		if len(k.Hints) > 0 && !slices.ContainsFunc(k.Hints, func(h string) bool { return strings.Contains(lines[0].Text, h) }) {
			continue
		}
		n := min(k.Claim(lines), len(lines))
		switch {
		case n == 0:
		case best == nil, slices.Contains(best.Yields, k.Name),
			n > most && !slices.Contains(k.Yields, best.Name):
			best, most = k, n
		}
	}
	return best, most
}
