package kernelfile

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
)

// diskstats has a line for each device and partition. Times are in ms.
var diskstats = counted{name: "/proc/diskstats", hints: []string{" "}, line: diskLine, least: 1, read: readDisks}.kind()

// diskLine wants "major minor name" and 11, 15 or 17 counters: before Linux 4.18, before 5.5, and
// since.
func diskLine(text string) (string, pairs, bool) {
	f := strings.Fields(text)
	if n := len(f) - 3; n != 11 && n != 15 && n != 17 {
		return "", pairs{}, false
	}
	if _, ok := columns(f[:2], "major", "minor"); !ok || f[2][0] >= '0' && f[2][0] <= '9' {
		return "", pairs{}, false
	}
	m, ok := columns(f[3:], "reads", "reads merged", "sectors read", "read ms", "writes",
		"writes merged", "sectors written", "write ms", "in flight", "busy ms", "queue ms")
	return f[2], m, ok
}

func readDisks(p *attach.Part, c counts) attach.Reading {
	by, when, boot, seconds := c.since()
	var all []attach.DiskUse
	for _, k := range c.keys {
		d := attach.DiskUse{Name: printed(k), Reads: by(k + " reads"), Writes: by(k + " writes"), Busy: -1, Queue: -1}
		d.ReadMS, d.WriteMS = ratio(by(k+" read ms"), d.Reads), ratio(by(k+" write ms"), d.Writes)
		if seconds > 0 {
			d.Busy, d.Queue = min(1, by(k+" busy ms")/seconds/1e3), by(k+" queue ms")/seconds/1e3
		}
		if d.Reads+d.Writes > 0 {
			all = append(all, d)
		}
	}
	r := attach.Disks(all, boot, when, "date; cat /proc/diskstats; sleep 10; date; cat /proc/diskstats", number)
	r.Title, r.Time = "/proc/diskstats, "+plural(len(c.keys), "device", "devices"), c.when[0].at
	if !boot {
		r.Title += fmt.Sprintf(", %d samples%s", len(c.when), over(seconds))
	}
	return r
}
