package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/evidence"
)

// KindMetrics is a page in the Prometheus text format.
const KindMetrics Kind = "Prometheus metrics"

// The names are those of client_golang's go_* and process_* series.
var _ = register(&row{
	kind: KindMetrics, name: "metrics", rank: rankRuntime,
	line: looksMetrics, mostly: true,
	parse: alone(Metrics),
	streams: []evidence.Stream{
		{Name: "/go/version:text", Doc: "Fact. Go version of the target: \"go1.26.1\"."},
		{Name: "/go/sched/gomaxprocs:threads", Doc: "Sample. GOMAXPROCS."},
		{Name: "/go/sched/goroutines:goroutines", Doc: "Sample. Goroutines that exist."},
		{Name: "/go/sched/threads:threads", Doc: "Sample. OS threads the runtime made."},
		{Name: "/go/sched/latency:ns",
			Doc: "Counter. Time goroutines were runnable before they ran, all together; approximate (a histogram's sum)."},
		{Name: "/go/sched/latency:events", Doc: "Counter. How many times a goroutine was runnable before it ran."},
		{Name: "/go/gc/cycles:gc-cycles", Doc: "Counter. GC cycles completed."},
		{Name: "/go/gc/pauses:ns", Doc: "Counter. Stop-the-world time of GC."},
		{Name: "/go/gc/gogc:percent", Doc: "Sample. GOGC."},
		{Name: "/go/gc/gomemlimit:bytes", Doc: "Sample. GOMEMLIMIT; 2^63-1 or so if there is none."},
		{Name: "/go/gc/heap/goal:bytes", Doc: "Sample. Heap size at which the next cycle ends."},
		{Name: "/go/gc/heap/live:bytes", Doc: "Sample. Heap marked live by the last cycle."},
		{Name: "/go/gc/cpu-fraction:ratio",
			Doc: "Sample. Share of all CPU time available since the program started that GC used."},
		{Name: "/go/cpu/total:ns", Doc: "Counter. CPU time available: GOMAXPROCS x time."},
		{Name: "/go/cpu/gc:ns", Doc: "Counter. CPU time of GC, all kinds; estimated by the runtime."},
		{Name: "/go/cpu/gc/assist:ns", Doc: "Counter. CPU time goroutines spent in mark assist."},
		{Name: "/go/cpu/idle:ns", Doc: "Counter. CPU time available and not used."},
		{Name: "/go/memory/heap/alloc:bytes", Doc: "Sample. Bytes in heap objects, dead ones not yet swept included."},
		{Name: "/go/memory/heap/allocs:bytes", Doc: "Counter. Bytes allocated."},
		{Name: "/go/memory/heap/allocs:objects", Doc: "Counter. Objects allocated."},
		{Name: "/go/memory/heap/inuse:bytes", Doc: "Sample. Bytes in spans in use."},
		{Name: "/go/memory/heap/idle:bytes", Doc: "Sample. Bytes in spans without objects, released ones included."},
		{Name: "/go/memory/heap/released:bytes", Doc: "Sample. Bytes given back to the system."},
		{Name: "/go/memory/heap/sys:bytes", Doc: "Sample. Bytes of heap obtained from the system."},
		{Name: "/go/memory/stacks/inuse:bytes", Doc: "Sample. Bytes of goroutine stacks."},
		{Name: "/go/memory/sys:bytes", Doc: "Sample. All bytes obtained from the system."},
		{Name: "/go/sync/mutex/wait:ns",
			Doc: "Counter. Time goroutines were blocked on sync.Mutex, sync.RWMutex or a runtime lock; approximate."},
		{Name: "/process/cpu:ns", Doc: "Counter. CPU time of the process."},
		{Name: "/process/rss:bytes", Doc: "Sample. Resident memory."},
		{Name: "/process/start:unix-ns", Doc: "Fact. When the process started. If two differ, it was restarted."},
	},
})

func looksMetrics(line string) bool {
	if strings.HasPrefix(line, "# HELP ") || strings.HasPrefix(line, "# TYPE ") {
		return true
	}
	s, ok := parseSample(line)
	// A column that was aligned is another program's list: exporters write one blank.
	if rest := line[nameLen(line):]; strings.HasPrefix(rest, "\t") || strings.HasPrefix(rest, "  ") {
		return false
	}
	// Names of metrics are in small letters. "TIME_WAIT 41" is a count of somebody's.
	return ok && !strings.HasSuffix(s.name, ":") && s.name != strings.ToUpper(s.name)
}

// metric maps a series of a metrics page to a stream.
type metric struct {
	name   string
	stream string
	shape  evidence.Shape
	scale  float64
}

// metrics lists the series that say something about the runtime or the process: those of
// client_golang's collectors, and of libraries that name theirs alike. Where a page has several for
// one stream, the one listed first is taken.
var metrics = []metric{
	{"go_sched_gomaxprocs_threads", "/go/sched/gomaxprocs:threads", evidence.Sample, 1},
	{"go_gomaxprocs", "/go/sched/gomaxprocs:threads", evidence.Sample, 1},
	{"go_goroutines", "/go/sched/goroutines:goroutines", evidence.Sample, 1},
	{"go_sched_goroutines_goroutines", "/go/sched/goroutines:goroutines", evidence.Sample, 1},
	{"go_threads", "/go/sched/threads:threads", evidence.Sample, 1},
	{"go_sched_latencies_seconds_sum", "/go/sched/latency:ns", evidence.Counter, 1e9},
	{"go_sched_latencies_seconds_count", "/go/sched/latency:events", evidence.Counter, 1},
	{"go_gc_duration_seconds_count", "/go/gc/cycles:gc-cycles", evidence.Counter, 1},
	{"go_gc_cycles_total_gc_cycles_total", "/go/gc/cycles:gc-cycles", evidence.Counter, 1},
	{"go_gc_duration_seconds_sum", "/go/gc/pauses:ns", evidence.Counter, 1e9},
	{"go_gc_gogc_percent", "/go/gc/gogc:percent", evidence.Sample, 1},
	{"go_gc_gomemlimit_bytes", "/go/gc/gomemlimit:bytes", evidence.Sample, 1},
	{"go_memstats_next_gc_bytes", "/go/gc/heap/goal:bytes", evidence.Sample, 1},
	{"go_gc_heap_goal_bytes", "/go/gc/heap/goal:bytes", evidence.Sample, 1},
	{"go_gc_heap_live_bytes", "/go/gc/heap/live:bytes", evidence.Sample, 1},
	{"go_memstats_gc_cpu_fraction", "/go/gc/cpu-fraction:ratio", evidence.Sample, 1},
	{"go_cpu_classes_total_cpu_seconds_total", "/go/cpu/total:ns", evidence.Counter, 1e9},
	{"go_cpu_classes_gc_total_cpu_seconds_total", "/go/cpu/gc:ns", evidence.Counter, 1e9},
	{"go_cpu_classes_gc_mark_assist_cpu_seconds_total", "/go/cpu/gc/assist:ns", evidence.Counter, 1e9},
	{"go_cpu_classes_idle_cpu_seconds_total", "/go/cpu/idle:ns", evidence.Counter, 1e9},
	{"go_memstats_heap_alloc_bytes", "/go/memory/heap/alloc:bytes", evidence.Sample, 1},
	{"go_memstats_alloc_bytes", "/go/memory/heap/alloc:bytes", evidence.Sample, 1},
	{"go_memstats_alloc_bytes_total", "/go/memory/heap/allocs:bytes", evidence.Counter, 1},
	{"go_memstats_mallocs_total", "/go/memory/heap/allocs:objects", evidence.Counter, 1},
	{"go_memstats_heap_inuse_bytes", "/go/memory/heap/inuse:bytes", evidence.Sample, 1},
	{"go_memstats_heap_idle_bytes", "/go/memory/heap/idle:bytes", evidence.Sample, 1},
	{"go_memstats_heap_released_bytes", "/go/memory/heap/released:bytes", evidence.Sample, 1},
	{"go_memstats_heap_sys_bytes", "/go/memory/heap/sys:bytes", evidence.Sample, 1},
	{"go_memstats_stack_inuse_bytes", "/go/memory/stacks/inuse:bytes", evidence.Sample, 1},
	{"go_memstats_sys_bytes", "/go/memory/sys:bytes", evidence.Sample, 1},
	{"go_sync_mutex_wait_total_seconds_total", "/go/sync/mutex/wait:ns", evidence.Counter, 1e9},
	{"process_cpu_seconds_total", "/process/cpu:ns", evidence.Counter, 1e9},
	{"process_resident_memory_bytes", "/process/rss:bytes", evidence.Sample, 1},
	{"process_start_time_seconds", "/process/start:unix-ns", evidence.Fact, 1e9},
}

var metricIndex = func() map[string]int {
	m := map[string]int{}
	for i, e := range metrics {
		m[e.name] = i
	}
	return m
}()

// Metrics parses a page in the Prometheus text format, or OpenMetrics', read at time t. It looks
// only at the series that it knows. A series that is there more than once, because the page speaks
// for several processes, is a gap. The first error does not end the parse: what else is on the page
// is returned with it.
func Metrics(page []byte, t int64) ([]evidence.Record, error) {
	var (
		first error
		found = make([][]float64, len(metrics))
		out   []evidence.Record
		text  = string(page)
	)
	for n := 1; text != ""; n++ {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		name := line[:nameLen(line)]
		if name == "go_info" {
			if v, ok := label(line[len(name):], "version"); ok {
				out = append(out, evidence.Record{Stream: "/go/version:text", Shape: evidence.Fact, Time: t, Text: v})
			}
			continue
		}
		i, known := metricIndex[name]
		if !known {
			continue
		}
		s, ok := parseSample(line)
		if !ok {
			if first == nil {
				first = fmt.Errorf("read metrics: line %d: %s: want name{labels} value", n, name)
			}
			continue
		}
		if !math.IsNaN(s.value) && !math.IsInf(s.value, 0) {
			found[i] = append(found[i], s.value)
		}
	}
	done := map[string]bool{}
	for i, values := range found {
		m := metrics[i]
		if len(values) == 0 || done[m.stream] {
			continue
		}
		done[m.stream] = true
		if len(values) > 1 {
			out = append(out, evidence.Record{Stream: m.stream, Shape: evidence.GapShape, Time: t, End: t,
				Text: fmt.Sprintf("the page has %d series %s: it speaks for several processes", len(values), m.name)})
			continue
		}
		out = append(out, evidence.Record{Stream: m.stream, Shape: m.shape, Time: t, Value: values[0] * m.scale})
	}
	return out, first
}

type sample struct {
	name  string
	value float64
}

// parseSample parses one line: name, labels, value, and perhaps a timestamp or an exemplar, which
// it leaves out.
func parseSample(line string) (sample, bool) {
	n := nameLen(line)
	if n == 0 {
		return sample{}, false
	}
	s := sample{name: line[:n]}
	rest := line[n:]
	if strings.HasPrefix(rest, "{") {
		end := labelsEnd(rest)
		if end < 0 {
			return sample{}, false
		}
		rest = rest[end:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 || rest[0] != ' ' && rest[0] != '\t' && len(rest) == len(line)-n {
		return sample{}, false
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	s.value = v
	if len(fields) > 1 && fields[1] != "#" {
		if _, notTime := strconv.ParseFloat(fields[1], 64); notTime != nil || len(fields) > 2 && fields[2] != "#" {
			return s, false
		}
	}
	return s, err == nil
}

func nameLen(line string) int {
	for i, c := range []byte(line) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(line)
}

// labelsEnd is the offset behind the closing brace that is not quoted; -1 without one.
func labelsEnd(s string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && s[i] == '}':
			return i + 1
		}
	}
	return -1
}

// label finds a label's value in "{...} 1".
func label(s, key string) (string, bool) {
	end := labelsEnd(s)
	if end < 0 || !strings.HasPrefix(s, "{") {
		return "", false
	}
	for s = s[1 : end-1]; s != ""; {
		k, rest, ok := strings.Cut(s, "=")
		if !ok {
			return "", false
		}
		rest = strings.TrimLeft(rest, " ")
		q, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return "", false
		}
		if strings.TrimSpace(k) == key {
			v, err := strconv.Unquote(q)
			return v, err == nil
		}
		s = strings.TrimLeft(rest[len(q):], ", ")
	}
	return "", false
}
