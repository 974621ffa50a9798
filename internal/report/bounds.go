package report

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/finding"
)

// bounds says in brackets what a cause that was ruled out can cost at most, "" where it is not
// there at all or nothing is known.
func bounds(bs []finding.Bound) string {
	var parts []string
	for _, b := range bs {
		if b.NS == 0 && b.Share == 0 {
			continue
		}
		switch {
		case b.Scope == finding.Process:
			parts = append(parts, fmt.Sprintf("%s of the process' %s", percent(b.Share), b.Of))
		default:
			parts = append(parts, fmt.Sprintf("%s (%s) of a %s request", finding.Duration(b.NS),
				percent(b.Share), b.Scope))
		}
	}
	switch {
	case len(bs) == 0:
		return ""
	case len(parts) == 0:
		return " [costs: nothing]"
	}
	return " [costs at most: " + strings.Join(parts, ", ") + "]"
}
