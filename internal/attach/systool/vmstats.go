package systool

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

var vmstatSums = &attach.Kind{
	Name:  "vmstat -s",
	Hints: []string{"memory", "ticks", "paged", "swap", "interrupts", "context switches", "boot time", "forks"},
	Claim: claimVmstatSums,
	Read:  readVmstatSums,
}

// vmstatSumsNames are how lines end.
var vmstatSumsNames = []string{"total memory", "used memory", "active memory", "inactive memory",
	"free memory", "buffer memory", "swap cache",
	"total swap", "used swap", "free swap", "cpu ticks", "paged in", "paged out", "pages paged in",
	"pages paged out", "pages swapped in", "pages swapped out",
	"pages free", "interrupts", "CPU context switches", "boot time", "forks"}

// vmstatSum takes a line apart.
func vmstatSum(text string) (value float64, name string) {
	if text = strings.TrimSpace(text); text == "" || text[0] < '0' || text[0] > '9' {
		return 0, ""
	}
	f := fields(text)
	if len(f) < 2 {
		return 0, ""
	}
	value, ok := number(f[0])
	if !ok {
		return 0, ""
	}
	rest := f[1:]
	if len(rest) > 1 && len(rest[0]) == 1 && strings.Contains("KkMmBb", rest[0]) {
		rest = rest[1:]
	}
	name = strings.Join(rest, " ")
	for _, n := range vmstatSumsNames {
		if name == n || n == "cpu ticks" && strings.HasSuffix(name, n) ||
			strings.HasPrefix(name, "pages alloc in ") && len(rest) == 4 {
			return value, name
		}
	}
	return 0, ""
}

func claimVmstatSums(lines []paste.Line) int {
	n := attach.ClaimWhile(lines, func(_ int, text string) bool { _, name := vmstatSum(text); return name != "" })
	if n < 4 {
		return 0
	}
	return n
}

// vmstatReports divides the lines by the outputs that they are of: a name that comes again starts
// the next one.
func vmstatReports(lines []paste.Line) (all []map[string]float64) {
	for _, l := range lines {
		value, name := vmstatSum(l.Text)
		if name == "" {
			continue
		}
		if len(all) == 0 {
			all = append(all, map[string]float64{})
		}
		if _, again := all[len(all)-1][name]; again {
			all = append(all, map[string]float64{})
		}
		all[len(all)-1][name] = value
	}
	return all
}

// vmstatShares says how CPUs spent their time; "": some of their ticks are cut off.
func vmstatShares(sums map[string]float64) string {
	ticks, idle, wait := 0.0, -1.0, 0.0
	for name, value := range sums {
		if !strings.HasSuffix(name, "cpu ticks") || strings.Contains(name, "guest") {
			continue
		}
		ticks += value
		switch {
		case strings.HasPrefix(name, "idle"):
			idle = value
		case strings.HasPrefix(name, "IO-wait"):
			wait = value
		}
	}
	stolen, last := sums["stolen cpu ticks"]
	if ticks <= 0 || idle < 0 || !last {
		return ""
	}
	return fmt.Sprintf("since boot: %s %% idle, %s %% iowait, %s %% steal", plain(100*idle/ticks),
		plain(100*wait/ticks), plain(100*stolen/ticks))
}

func readVmstatSums(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "vmstat -s, sums since boot"
	v.Boot, v.unsure = true, true
	all := vmstatReports(p.Lines)
	sums := all[0]
	for _, one := range all { // the fullest one: the last may be cut off
		if len(one) >= len(sums) {
			sums = one
		}
	}
	if len(all) > 1 {
		v.Title += fmt.Sprintf(", %d outputs; the last whole one counts", len(all))
	}
	if shares := vmstatShares(sums); shares != "" {
		v.figure("%s", shares)
	}
	in, read := sums["pages swapped in"]
	out, wrote := sums["pages swapped out"]
	used, swap := sums["used swap"]
	switch {
	case read && wrote && swap:
		v.figure("%s pages swapped in and %s out since boot, %s of swap in use", plain(in), plain(out), kB(used))
	case read && wrote:
		v.figure("%s pages swapped in and %s out since boot", plain(in), plain(out))
	case swap:
		v.figure("%s of swap in use", kB(used))
	}
	free, ok := sums["free memory"]
	cache, cached := sums["swap cache"] // so it is called, and is the page cache
	if total := sums["total memory"]; total > 0 && ok && cached {
		v.figure("free %s, cache and buffers %s of %s", kB(free), kB(cache+sums["buffer memory"]), kB(total))
	}
	v.means("these are sums since boot: they say nothing about now")
	v.not("what was swapped once since boot need not be missed now; what it calls swap cache is the page cache")
	v.next("vmstat 1 10", "what happens now")
	return v.done()
}
