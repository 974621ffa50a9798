package paste

import (
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// procfile is what foreman, goreman and honcho put before the lines of the processes that they
// start: a clock, the process' name, and a bar.
var procfile = pattern.New(`^\d{1,2}:\d\d:\d\d ([A-Za-z][\w.-]{0,62}) *\| ?(.*)$`)

// leastProcfile is how many lines in a row have the bar at one column; the first one may be cut.
const leastProcfile = 3

// procfiles takes that off: whose a line is stays in its source.
func procfiles(lines []Line) {
	for i := 0; i < len(lines); {
		if lines[i].Text == "" || !procfile.MatchString(lines[i].Text) {
			i++
			continue
		}
		end, bar := i+1, 0
		for end < len(lines) && procfile.MatchString(lines[end].Text) {
			at := strings.Index(lines[end].Text, "|")
			if bar != 0 && at != bar {
				break
			}
			bar = at
			end++
		}
		if end-i >= leastProcfile {
			for j := i; j < end; j++ {
				m := procfile.FindStringSubmatch(lines[j].Text)
				lines[j].take(prefix{rest: m[2], source: m[1]})
			}
		}
		i = end
	}
}
