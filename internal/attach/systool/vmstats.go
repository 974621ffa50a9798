package systool

import (
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
var vmstatSumsNames = []string{"total memory", "used memory", "active memory", "inactive memory", "free memory", "buffer memory", "swap cache",
	"total swap", "used swap", "free swap", "cpu ticks", "paged in", "paged out", "pages paged in", "pages paged out", "pages swapped in", "pages swapped out",
	"interrupts", "CPU context switches", "boot time", "forks"}

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
		if name == n || n == "cpu ticks" && strings.HasSuffix(name, n) {
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

func readVmstatSums(p *attach.Part) attach.Reading {
	v := &verdict{}
	v.Title = "vmstat -s, sums since boot"
	v.Boot, v.unsure = true, true
	var ticks, idle, wait, stolen float64
	sums := map[string]float64{}
	for _, l := range p.Lines {
		value, name := vmstatSum(l.Text)
		sums[name] = value
		if !strings.HasSuffix(name, "cpu ticks") || strings.Contains(name, "guest") {
			continue
		}
		ticks += value
		switch {
		case strings.HasPrefix(name, "idle"):
			idle = value
		case strings.HasPrefix(name, "IO-wait"):
			wait = value
		case strings.HasPrefix(name, "stolen"):
			stolen = value
		}
	}
	if ticks > 0 {
		v.figure("since boot: %s %% idle, %s %% iowait, %s %% steal", plain(100*idle/ticks), plain(100*wait/ticks), plain(100*stolen/ticks))
	}
	if in, ok := sums["pages swapped in"]; ok {
		v.figure("%s pages swapped in and %s out since boot", plain(in), plain(sums["pages swapped out"]))
	}
	if total := sums["total memory"]; total > 0 {
		v.figure("free %s, cache and buffers %s of %s", kB(sums["free memory"]), kB(sums["swap cache"]+sums["buffer memory"]), kB(total))
	}
	v.means("these are sums since boot: they say nothing about now")
	v.not("what was swapped once since boot need not be missed now")
	v.next("vmstat 1 10", "what happens now")
	return v.done()
}
