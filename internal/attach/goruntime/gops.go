package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// gopsStats is what gops stats prints: how many goroutines and threads there are.
var gopsStats = &attach.Kind{
	Name:  "gops stats",
	Hints: []string{"goroutines: ", "OS threads: "},
	Claim: func(lines []paste.Line) int {
		n := while(lines, func(s string) bool { name, _ := gopsLine(s); return name != "" })
		if n < 3 {
			return 0
		}
		return n
	},
	Reports: true,
	Read:    readGopsStats,
}

func gopsLine(s string) (name string, n int) {
	key, value, ok := strings.Cut(strings.TrimSpace(s), ": ")
	n, isNumber := whole(strings.TrimSpace(value))
	switch key {
	case "goroutines", "OS threads", "GOMAXPROCS", "num CPU":
		if ok && isNumber {
			return key, n
		}
	}
	return "", 0
}

func readGopsStats(p *attach.Part) attach.Reading {
	v := map[string]int{}
	for _, line := range p.Lines {
		if name, n := gopsLine(line.Text); name != "" {
			v[name] = n
		}
	}
	r := attach.Reading{Title: "gops stats of a Go program", State: attach.CannotTell, Glance: true,
		Figures: []string{fmt.Sprintf("%s, %s, GOMAXPROCS %d on %s",
			count(v["goroutines"], "goroutine", "goroutines"),
			count(v["OS threads"], "thread", "threads"), v["GOMAXPROCS"], count(v["num CPU"], "CPU", "CPUs"))},
		Facts: []attach.Fact{{Name: FactGoroutines, Value: float64(v["goroutines"])}},
		Means: "how many there are in one moment; what they wait for is not in it",
		Next: []attach.Next{{Command: "gops stack PID",
			Why: "says where each goroutine is, and who waits for a lock"}}}
	if ps := v["GOMAXPROCS"]; ps > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: float64(ps)})
	}
	return r
}
