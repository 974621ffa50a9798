package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// What the program of a bpftrace map says of its values.
var (
	// "@us[pid] = hist((nsecs - @start[pid]) / 1000000);"
	timedMap = pattern.New(`(@\w*)(?:\[[^\]]*\])?\s*=\s*l?hist\(\s*\(?\s*nsecs\s*-\s*@\w*(?:\[[^\]]*\])?\s*\)?\s*(?:/\s*(\d{1,10}|1e\d)\s*)?[,)]`)
	// "@start[pid] = nsecs", of a request to a device
	startedBy = pattern.New(`@\w+\[(pid|tid)\]\s*=\s*nsecs`)
)

// unitsOf says in which unit a program's maps hold times: nsecs is divided by what the program
// says, whatever the map's name is.
func unitsOf(script string) map[string]string {
	out := map[string]string{}
	for _, m := range timedMap.FindAllStringSubmatch(script, 16) {
		switch m[2] {
		case "":
			out[m[1]] = "nsecs"
		case "1000", "1e3":
			out[m[1]] = "usecs"
		case "1000000", "1e6":
			out[m[1]] = "msecs"
		case "1000000000", "1e9":
			out[m[1]] = "secs"
		}
	}
	return out
}

// mapName is a map's name without its keys.
func mapName(label string) string {
	name, _, _ := strings.Cut(label, "[")
	return name
}

// scriptMeaning says where a program's text contradicts what its output seems to say.
func scriptMeaning(r *attach.Reading, script string, all []*histogram) {
	if m := startedBy.FindStringSubmatch(script); m != nil &&
		strings.Contains(script, "block_rq_issue") && strings.Contains(script, "block_rq_complete") {
		r.State, r.Signs, r.Facts = attach.CannotTell, nil, nil
		r.Means = fmt.Sprintf("The program keeps one start for each %s: of several requests at once it knows the last one's alone, and a request mostly ends while some other thread runs. So these are no latencies of the device.", m[1])
		r.Not = "Neither its few values nor its long ones say anything of the disk."
	}
	if i := slices.IndexFunc(all, func(h *histogram) bool { return h.renamed }); i >= 0 {
		r.Means += fmt.Sprintf(" By the program %s holds %s, whatever its name says.",
			mapName(all[i].label), all[i].unit)
	}
}
