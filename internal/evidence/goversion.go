package evidence

import (
	"strconv"
	"strings"
)

// GoMinor returns N of a version "go1.N" or "go1.N.M", as a manifest has it; 0 for anything else.
func GoMinor(version string) int64 {
	rest, ok := strings.CutPrefix(version, "go1.")
	if !ok {
		return 0
	}
	if i := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' }); i >= 0 {
		rest = rest[:i]
	}
	n, err := strconv.ParseInt(rest, 10, 16)
	if err != nil {
		return 0
	}
	return n
}
