package systool

import (
	"math"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/format/paste"
)

// iostatBare are the columns of iostat -x by version, for rows that lost their names to a filter:
// the number of figures tells which. What is read and written is in sectors, kB or MB, which
// nothing in a row tells, so those columns have no name here.
var iostatBare = [][]string{
	{"Device", "rq", "wq", "r/s", "w/s", "r", "w", "size", "avgqu-sz", "await", "svctm", "%util"},
	{"Device", "rq", "wq", "r/s", "w/s", "r", "w", "size", "avgqu-sz", "await", "r_await", "w_await", "svctm", "%util"},
	{"Device", "r/s", "r", "rq", "%rq", "r_await", "size", "w/s", "w", "wq", "%wq", "w_await", "size", "aqu-sz", "%util"},
	{"Device", "r/s", "w/s", "r", "w", "rq", "wq", "%rq", "%wq", "r_await", "w_await", "aqu-sz", "size", "size", "svctm", "%util"},
	{"Device", "r/s", "r", "rq", "%rq", "r_await", "size", "w/s", "w", "wq", "%wq", "w_await", "size",
		"d/s", "d", "dq", "%dq", "d_await", "size", "aqu-sz", "%util"},
	{"Device", "r/s", "r", "rq", "%rq", "r_await", "size", "w/s", "w", "wq", "%wq", "w_await", "size",
		"d/s", "d", "dq", "%dq", "d_await", "size", "f/s", "f_await", "aqu-sz", "%util"},
}

// bareRows is how many rows are asked for one whose figures follow from each other.
const bareRows = 16

// iostatBareNames are the columns of rows without names above them; nil: they are none of iostat's.
func iostatBareNames(lines []paste.Line) []string {
	f := fields(lines[0].Text)
	at := slices.IndexFunc(iostatBare, func(n []string) bool { return len(n) == len(f) })
	if at < 0 || !diskName(f[0]) || !numeric(f[1:]) {
		return nil
	}
	names := iostatBare[at]
	for _, l := range lines[:min(len(lines), bareRows)] {
		f := fields(l.Text)
		if l.Command != "" || len(f) > 0 && len(f) != len(names) {
			break
		}
		if len(f) > 0 && queueFits(names, f, l.Text) {
			return names
		}
	}
	return nil
}

// queueFits reports whether the queue in a row is what follows from its requests a second and the
// time of each.
func queueFits(names, f []string, text string) bool {
	if !iostatRow(names, f) {
		return false
	}
	d := disk{{names, text}}
	get := func(column string) float64 { v, _ := d.get(column); return v }
	want := (get("r/s")*get("r_await") + get("w/s")*get("w_await") + get("d/s")*get("d_await") +
		get("f/s")*get("f_await")) / 1000
	if !slices.Contains(names, "r_await") {
		want = (get("r/s") + get("w/s")) * get("await") / 1000
	}
	queue := get("aqu-sz") + get("avgqu-sz")
	return want >= 0.05 && math.Abs(queue-want) <= 0.1*want+0.02 && get("%util") <= impossibleShares
}

// filtered reports whether a command shows all of iostat's reports, the one since boot included,
// with their headings filtered out.
func filtered(command string) bool {
	tool, _, piped := strings.Cut(command, "|")
	return piped && slices.Contains(fields(tool), "iostat")
}
