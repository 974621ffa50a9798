package attach

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// claimOf asks which of a few kinds these lines start with, and how many are its.
func claimOf(lines []paste.Line, kinds []*Kind) (*Kind, int) {
	var best choice
	for _, k := range kinds {
		if len(k.Hints) == 0 ||
			slices.ContainsFunc(k.Hints, func(h string) bool { return strings.Contains(lines[0].Text, h) }) {
			best.ask(k, lines)
		}
	}
	return best.kind, best.whole(lines)
}

// choice is the kind that has the best claim so far.
type choice struct {
	kind *Kind
	most int
}

func (c *choice) ask(k *Kind, lines []paste.Line) {
	n := safely(k, lines)
	switch {
	case n <= 0:
	case c.kind == nil, slices.Contains(c.kind.Yields, k.Name),
		n > c.most && !slices.Contains(k.Yields, c.kind.Name):
		c.kind, c.most = k, n
	}
}

// whole is how many lines are claimed, without blank ones at the end.
func (c *choice) whole(lines []paste.Line) int {
	n := c.most
	for n > 0 && strings.TrimSpace(lines[n-1].Text) == "" {
		n--
	}
	return n
}

// A kind is first asked about so many lines. One that sees none of its own there knows none of
// them: so the time for a text of lines that are nearly its own is linear.
const (
	firstLook = 256
	lookEdge  = 64 // a claim that ends so near to the end of the first look may go on
)

// safely asks one kind. One that panics knows nothing.
func safely(k *Kind, lines []paste.Line) (n int) {
	defer func() {
		if recover() != nil {
			n = 0
		}
	}()
	if len(lines) > firstLook {
		if n := k.Claim(lines[:firstLook:firstLook]); n <= firstLook-lookEdge {
			return n
		}
	}
	return min(k.Claim(lines), len(lines))
}
