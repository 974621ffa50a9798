package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var (
	// "  2000.538611  task clock ticks  #  4.000 CPU utilization factor" of the first perf
	// stat, and "  2000.538611  task-clock-msecs  #  4.000 CPUs" of Linux 2.6.31 to 2.6.38
	oldStatRow = pattern.New(`^(\d[\d.]*)\s+(task clock ticks|task-clock-msecs|context switches|CPU[ -]migrations|pagefaults|CPU cycles|cache references|cache misses)(?:\s+(#.*))?$`)
	// " Wall-clock time elapsed:   500.134652 msecs"
	oldStatTime = pattern.New(`^Wall-clock time elapsed:\s+(\d+\.\d+) msecs$`)
)

// oldStatNames are today's names of those events.
var oldStatNames = map[string]string{"task clock ticks": "msec task-clock",
	"task-clock-msecs": "msec task-clock", "context switches": "context-switches",
	"CPU migrations": "cpu-migrations", "CPU-migrations": "cpu-migrations",
	"pagefaults": "page-faults", "CPU cycles": "cycles", "cache references": "cache-references",
	"cache misses": "cache-misses"}

// modernStat writes a row of old versions as today's perf does. Other lines stay as they are.
func modernStat(text string) string {
	if text == "" || text[0] != 'W' && (text[0] < '0' || text[0] > '9') || len(text) > 160 {
		return text
	}
	if m := oldStatRow.FindStringSubmatch(text); m != nil {
		comment := strings.Replace(m[3], "CPU utilization factor", "CPUs utilized", 1)
		return strings.TrimSpace(m[1] + " " + oldStatNames[m[2]] + " " + comment)
	}
	if m := oldStatTime.FindStringSubmatch(text); m != nil {
		ms, _ := number(m[1])
		return fmt.Sprintf("%.9f seconds time elapsed", ms/1000)
	}
	return text
}
