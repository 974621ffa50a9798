package attach

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/format/paste"
)

// inComments adds the parts that stand in comments or strings between other parts. A reading of
// the whole paste without the marks of comments may lose those: some tools start their lines so.
func inComments(file string, lines []paste.Line, parts []*Part, unknown []Range, kinds *Kinds) ([]*Part, []Range) {
	if len(parts) == 0 {
		return parts, unknown // the whole paste was read so
	}
	known := map[int]bool{}
	for _, p := range parts {
		for _, l := range p.Lines {
			known[l.N] = true
		}
	}
	for at := 0; at < len(lines); {
		end := at
		for end < len(lines) && !known[lines[end].N] {
			end++
		}
		if end > at {
			first, last := lines[at].N, lines[end-1].N
			for _, v := range paste.InComments(lines[at:end]) {
				p, u := cutOnce(file, v, kinds)
				if len(p) == 0 {
					continue
				}
				parts = append(parts, p...)
				unknown = append(slices.DeleteFunc(unknown, func(r Range) bool {
					return r.First >= first && r.First <= last
				}), u...)
				break
			}
		}
		at = end + 1
	}
	slices.SortStableFunc(parts, func(a, b *Part) int { return cmp.Compare(a.First(), b.First()) })
	slices.SortStableFunc(unknown, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	return parts, unknown
}
