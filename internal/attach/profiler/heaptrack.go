package profiler

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// heaptrack is what heaptrack and heaptrack_print say: who allocated, how often and how much.
var heaptrack = &attach.Kind{Name: "heaptrack", Claim: claimHeaptrack, Read: readHeaptrack, Reports: true,
	Hints: []string{"heaptrack", "MOST CALLS", "PEAK MEMORY", "MOST TEMPORARY", "MEMORY LEAKS", "total runtime: ",
		"peak heap memory"}}

var (
	heapSure = pattern.New(`^(?:reading file "heaptrack\.|heaptrack output will be written|heaptrack stats:|Heaptrack finished!|MOST CALLS TO ALLOCATION FUNCTIONS|PEAK MEMORY CONSUMERS|MEMORY LEAKS$|MOST TEMPORARY ALLOCATIONS|MOST BYTES ALLOCATED OVER TIME|total runtime: \d|peak heap memory consumption: |peak RSS \(including heaptrack|temporary (?:memory )?allocations: \d|calls to allocation functions: \d)`)
	heapOwn  = pattern.New(`^(?:Debuggee command was: |finished reading file|starting application|total memory leaked: |suppressed leaks: |bytes allocated in total|heaptrack_gui |heaptrack --analyze|allocations: +\d|leaked allocations: +\d|temporary allocations: +\d|and \d+ from \d+ other places|[\d.]+[KMGT]?B? (?:peak memory consumed|leaked|consumed|in)|\d+ (?:calls|temporary allocations)|at |in |\?\?)`)
	heapSum  = pattern.New(`^(total runtime|calls to allocation functions|peak heap memory consumption|total memory leaked|allocations|leaked allocations): +(\S+(?: \([^)]*\))?)`)
)

func claimHeaptrack(lines []paste.Line) int {
	if !heapSure.MatchString(strings.TrimSpace(lines[0].Text)) {
		return 0
	}
	frames, end := 0, 0
	claimed(lines, func(i int, text string) bool {
		switch {
		case len(text) > 2000:
			return false
		case heapSure.MatchString(text), heapOwn.MatchString(text):
			frames, end = 0, i+1
		default: // functions of a stack, each with its file and module below it
			if frames++; frames > 3 {
				return false
			}
		}
		return true
	})
	return end
}

func readHeaptrack(p *attach.Part) attach.Reading {
	r := attach.Reading{Title: "heaptrack", State: attach.Context}
	for _, text := range texts(p) {
		if m := heapSum.FindStringSubmatch(text); m != nil && len(r.Figures) < 4 {
			r.Figures = append(r.Figures, fmt.Sprintf("%s: %s", m[1], strings.TrimSuffix(m[2], ".")))
		}
	}
	r.Means = "It says which code allocated how often and how much, and what the program held at its peak."
	r.Not = "It is no latency, and what was not freed when the program ended need be no leak. Where allocation costs time, a CPU profile shows it."
	return r
}
