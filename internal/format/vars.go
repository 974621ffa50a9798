package format

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindVars is what /debug/vars answers.
const KindVars Kind = "expvar JSON"

var _ = register(&row{
	kind: KindVars, name: "vars", rank: rankRuntime + 1,
	looks: func(h head) bool {
		return strings.HasPrefix(h.start, "{") && (strings.Contains(h.text, `"memstats"`) ||
			strings.Contains(h.text, `"cmdline"`))
	},
	parse: alone(Vars),
	also: []string{
		"/go/gc/cycles:gc-cycles", "/go/gc/pauses:ns", "/go/gc/heap/goal:bytes", "/go/gc/cpu-fraction:ratio",
		"/go/memory/heap/alloc:bytes", "/go/memory/heap/allocs:bytes",
		"/go/memory/heap/allocs:objects", "/go/memory/heap/inuse:bytes",
		"/go/memory/heap/idle:bytes", "/go/memory/heap/released:bytes", "/go/memory/heap/sys:bytes",
		"/go/memory/stacks/inuse:bytes",
		"/go/memory/sys:bytes",
	},
})

// Vars parses the memstats of a /debug/vars page, read at time t. The names are runtime.MemStats'.
func Vars(page []byte, t int64) ([]evidence.Record, error) {
	var vars struct {
		Memstats *struct {
			NumGC, PauseTotalNs, NextGC, HeapAlloc, TotalAlloc, Mallocs *float64
			HeapInuse, HeapIdle, HeapReleased, HeapSys, StackInuse, Sys *float64
			GCCPUFraction                                               *float64
		} `json:"memstats"`
	}
	if err := json.Unmarshal(page, &vars); err != nil {
		return nil, fmt.Errorf("read expvar: %w", err)
	}
	m := vars.Memstats
	if m == nil {
		return nil, fmt.Errorf("read expvar: holds no memstats")
	}
	var out []evidence.Record
	add := func(stream string, shape evidence.Shape, v *float64) {
		if v != nil {
			out = append(out, evidence.Record{Stream: stream, Shape: shape, Time: t, Value: *v})
		}
	}
	add("/go/gc/cycles:gc-cycles", evidence.Counter, m.NumGC)
	add("/go/gc/pauses:ns", evidence.Counter, m.PauseTotalNs)
	add("/go/gc/heap/goal:bytes", evidence.Sample, m.NextGC)
	add("/go/gc/cpu-fraction:ratio", evidence.Sample, m.GCCPUFraction)
	add("/go/memory/heap/alloc:bytes", evidence.Sample, m.HeapAlloc)
	add("/go/memory/heap/allocs:bytes", evidence.Counter, m.TotalAlloc)
	add("/go/memory/heap/allocs:objects", evidence.Counter, m.Mallocs)
	add("/go/memory/heap/inuse:bytes", evidence.Sample, m.HeapInuse)
	add("/go/memory/heap/idle:bytes", evidence.Sample, m.HeapIdle)
	add("/go/memory/heap/released:bytes", evidence.Sample, m.HeapReleased)
	add("/go/memory/heap/sys:bytes", evidence.Sample, m.HeapSys)
	add("/go/memory/stacks/inuse:bytes", evidence.Sample, m.StackInuse)
	add("/go/memory/sys:bytes", evidence.Sample, m.Sys)
	return out, nil
}
