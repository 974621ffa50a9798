package database

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// stepTime is how long a step took, in seconds, in the forms without a unit.
func stepTime(text string) (float64, bool) {
	m := tikvTimes.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	if m[1] != "" {
		s, _ := number(m[1])
		ns, _ := number(m[2])
		return s + ns/1e9, true
	}
	ms, ok := number(cmp.Or(m[3], m[4]))
	return ms / 1e3, ok
}

var stepWords = pattern.New(`(scheduler handle command: \w+)|handle \d+ (pending peers)|\[(handle \w+ ready|on raft ready|apply snapshot)`)

// stepName says what a step was, where its line has words that are known; "": it has none.
func stepName(text string) string {
	m := stepWords.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	if m[2] != "" {
		return "handling pending peers"
	}
	if kind, ok := strings.CutPrefix(m[1], "scheduler handle command: "); ok {
		return kind + " commands"
	}
	return m[3]
}

var tikvCount = pattern.New(`\[([\w.]+)=(\d+)\]`)

// tikvScan says what the slowest query read, where its line does.
func tikvScan(r *result, text, which string) bool {
	n := map[string]float64{}
	for _, m := range tikvCount.FindAllStringSubmatch(text, -1) {
		n[m[1]], _ = number(m[2])
	}
	if _, said := n["scan.total"]; !said {
		return false
	}
	line := fmt.Sprintf("%s scanned %s keys and used %s of them", which, count(n["scan.total"]),
		count(n["scan.processed"]))
	if blocks, said := n["perf_stats.block_read_count"]; said {
		line += fmt.Sprintf("; blocks read from files: %s", count(blocks))
	}
	if dead, skipped := n["perf_stats.internal_delete_skipped_count"],
		n["perf_stats.internal_key_skipped_count"]; dead+skipped > 0 {
		line += fmt.Sprintf("; %s keys and %s deleted ones skipped on the way", count(skipped), count(dead))
	}
	r.figure(line)
	return true
}
