package format

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindHeapText is what /debug/pprof/heap?debug=1 answers, or the end of it that whystall keeps.
const KindHeapText Kind = "a heap profile as text"

// Its sizes are those of expvar's memstats.
var _ = register(&row{
	kind: KindHeapText, name: "heap-text", rank: rankRuntime + 2,
	looks: startsBytes("heap profile: ", memStatsHead),
	parse: alone(HeapText),
	also:  slices.Sorted(maps.Values(memStats)),
})

// memStatsHead is the line above runtime.MemStats in the text form of a heap profile.
const memStatsHead = "# runtime.MemStats\n"

// maxMemStats is far more bytes than those lines have.
const maxMemStats = 64 << 10

// HeapTextMemStats returns the part of a heap profile as text that holds runtime.MemStats, with its
// heading.
func HeapTextMemStats(page []byte) ([]byte, error) {
	i := bytes.LastIndex(page, []byte(memStatsHead))
	if i < 0 || i > 0 && page[i-1] != '\n' {
		return nil, fmt.Errorf("read heap profile as text: holds no runtime.MemStats")
	}
	return page[i:min(len(page), i+maxMemStats)], nil
}

// memStats maps lines below the heading to streams: the sizes of what there is now. It leaves out
// what counts events: the page is read once, and one reading of a counter says nothing.
var memStats = map[string]string{
	"NextGC":       "/go/gc/heap/goal:bytes",
	"HeapAlloc":    "/go/memory/heap/alloc:bytes",
	"HeapInuse":    "/go/memory/heap/inuse:bytes",
	"HeapIdle":     "/go/memory/heap/idle:bytes",
	"HeapReleased": "/go/memory/heap/released:bytes",
	"HeapSys":      "/go/memory/heap/sys:bytes",
	"Stack":        "/go/memory/stacks/inuse:bytes", // "in use / from the system"
	"Sys":          "/go/memory/sys:bytes",
}

// HeapText parses runtime.MemStats in the text form of a heap profile, read at time t. The stacks
// are for ParseProfile: the other form has them exactly. The first error does not end the parse:
// what else is there is returned with it.
func HeapText(page []byte, t int64) ([]evidence.Record, error) {
	part, err := HeapTextMemStats(page)
	if err != nil {
		return nil, err
	}
	var first error
	var out []evidence.Record
	seen := map[string]bool{}
	for line := range strings.Lines(string(part[len(memStatsHead):])) {
		line, isStat := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "# ")
		name, value, hasValue := strings.Cut(line, " = ")
		stream := memStats[name]
		if !isStat || !hasValue || stream == "" || seen[name] {
			continue
		}
		seen[name] = true
		value, _, _ = strings.Cut(value, " / ")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("read heap profile as text: %s: %q is not a number of bytes", name, value)
			}
			continue
		}
		out = append(out, evidence.Record{Stream: stream, Shape: evidence.Sample, Time: t, Value: float64(n)})
	}
	if len(out) == 0 && first == nil {
		first = fmt.Errorf("read heap profile as text: holds no runtime.MemStats")
	}
	return out, first
}
