package paste

import (
	"strings"
	"time"
)

// mostBars is how many fields a prefix of bars may have behind its level: a name, a thread, a time.
const mostBars = 3

// inBars is "INFO   | app 1    | 2026/11/22 22:28:49 | message", as wrappers write what the service
// prints that they run: a level first, and the time last.
func inBars(text string) (prefix, bool) {
	if strings.IndexByte(text[:min(len(text), 12)], '|') < 0 {
		return prefix{}, false
	}
	level, rest, _ := strings.Cut(text, "|")
	if level = strings.ToLower(strings.TrimSpace(level)); !levels[level] && level != "status" {
		return prefix{}, false
	}
	p := prefix{}
	for range mostBars {
		field, message, ok := strings.Cut(rest, "|")
		if field = strings.TrimSpace(field); !ok || len(field) > 64 {
			return prefix{}, false
		}
		if t, err := time.Parse(time.DateTime, strings.ReplaceAll(field, "/", "-")); err == nil {
			p.rest, p.time = strings.TrimPrefix(message, " "), t
			return p, true
		}
		p.source, rest = field, message
	}
	return prefix{}, false
}
