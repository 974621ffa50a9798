package profiler

import (
	"fmt"
	"strings"
)

// statCSV writes a row of perf stat -x in the words of the usual one: count, unit, event, the
// time for which it was counted and its share, and a comment. A time stands in front with -I, and
// a CPU or a socket with -A. seconds is how long a row of one CPU was counted; 0: not said. plain
// is "" where the line is none.
func statCSV(text string) (seconds float64, plain string) {
	if len(text) > 240 {
		return 0, ""
	}
	for _, sep := range []string{",", ";", "\t", "|"} {
		if strings.Count(text, sep) < 4 {
			continue
		}
		cells := strings.Split(text, sep)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if seconds, plain = statCells(cells); plain != "" {
			return seconds, plain
		}
	}
	return 0, ""
}

// statCells is the same of a row that was divided.
func statCells(cells []string) (seconds float64, plain string) {
	for at := 2; at < min(len(cells)-2, 6); at++ {
		name, unit, value := cells[at], cells[at-1], cells[at-2]
		if !statEvent(name) || unit != "" && unit != "msec" && unit != "ns" && unit != "Joules" && unit != "MiB" {
			continue
		}
		_, counted := number(value)
		ran, timed := number(cells[at+1])
		share, shared := number(cells[at+2])
		if !counted && !strings.HasPrefix(value, "<not ") || !timed || !shared || share < 0 || share > 100 {
			continue
		}
		if unit == "" && strings.HasSuffix(name, "-clock") {
			unit = "msec"
		}
		front := ""
		if at > 2 {
			front = cells[0] + " "
			if f, ok := number(cells[0]); ok && strings.ContainsAny(cells[0], ".,") {
				front = fmt.Sprintf("%.9f ", f)
			} else if strings.HasPrefix(cells[0], "CPU") {
				seconds = ran / 1e9
			} else {
				front = ""
			}
		}
		plain = front + value + " " + unit + " " + name
		if len(cells) > at+4 && cells[at+3] != "" {
			plain += " # " + cells[at+3] + " " + cells[at+4]
		}
		return seconds, plain
	}
	return 0, ""
}
