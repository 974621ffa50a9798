package attach

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var placeholder = pattern.New(`\b(PID|CGROUP)\b`)

// filled puts what is known of the process into a command that a person may copy. What is known
// comes from the input: it is left out where a shell would take it for more than a word.
func filled(command string, w Who) string {
	return placeholder.ReplaceAllStringFunc(command, func(word string) string {
		switch {
		case word == "PID" && w.PID > 0:
			return strconv.Itoa(w.PID)
		case word == "CGROUP" && w.Cgroup != "" && plainWord(w.Cgroup):
			return cmp.Or(strings.Trim(w.Cgroup, "/"), ".") // the root, as a container sees it
		}
		return word
	})
}

// plainWord reports whether a shell takes s as it stands.
func plainWord(s string) bool {
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("/._-:@", r):
		default:
			return false
		}
	}
	return !strings.HasPrefix(s, "-") && !strings.Contains(s, "..")
}
