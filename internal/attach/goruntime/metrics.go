package goruntime

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// prometheus is a Go process' page in the Prometheus text format. A page of other programs, and a
// list of names and numbers such as /proc/vmstat, is not.
var prometheus = &attach.Kind{
	Name:  "Prometheus metrics of a Go program",
	Hints: []string{"# HELP ", "# TYPE ", "go_", "process_"},
	Claim: claimPrometheus,
	Joins: true,
	Read:  readPrometheus,

	Format: format.KindMetrics,
}

// promLine parses a line of the format: a comment, or a sample and its name.
func promLine(s string) (name string, comment, ok bool) {
	s = strings.TrimSpace(s)
	for _, h := range []string{"# HELP ", "# TYPE ", "# UNIT "} {
		if rest, is := strings.CutPrefix(s, h); is {
			return firstWord(rest), true, true
		}
	}
	if s == "# EOF" {
		return "", true, true
	}
	n := 0
	for n < len(s) && (isLetter(s[n]) || s[n] == '_' || s[n] == ':' || n > 0 && s[n] >= '0' && s[n] <= '9') {
		n++
	}
	if n == 0 || n == len(s) {
		return "", false, false
	}
	rest := s[n:]
	if rest[0] == '{' {
		end := strings.LastIndexByte(rest, '}')
		if end < 0 || !strings.Contains(rest[:end], "=\"") && end > 1 {
			return "", false, false
		}
		rest = rest[end+1:]
	}
	f := strings.Fields(rest)
	if len(f) == 0 || len(f) > 2 && f[1] != "#" || rest[0] != ' ' && rest[0] != '\t' {
		return "", false, false
	}
	switch f[0] {
	case "NaN", "+Inf", "-Inf":
		return s[:n], false, true
	}
	_, err := strconv.ParseFloat(f[0], 64)
	return s[:n], false, err == nil
}

// ofGo reports whether a series is one of client_golang's about the process.
func ofGo(name string) bool {
	for _, p := range []string{"go_goroutines", "go_gc_", "go_memstats_", "go_sched_", "go_threads",
		"go_info", "go_cpu_classes_", "go_memory_classes_", "go_sync_", "process_cpu_seconds_total",
		"process_resident_memory_bytes",
		"process_open_fds", "process_start_time_seconds", "process_virtual_memory",
		"process_max_fds", "process_network_"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

func claimPrometheus(lines []paste.Line) int {
	end, ofGoSeries, before := 0, 0, ""
	for i, line := range lines {
		name, comment, ok := promLine(line.Text)
		switch {
		case line.Command != "":
			return promEnd(end, ofGoSeries)
		case strings.TrimSpace(line.Text) == "" && i > 0:
			continue
		case !ok:
			return promEnd(end, ofGoSeries)
		case ofGo(name) && !comment && name != before:
			ofGoSeries++
			before = name
		}
		end = i + 1
	}
	return promEnd(end, ofGoSeries)
}

func promEnd(end, ofGoSeries int) int {
	return attach.ClaimIf(ofGoSeries >= 2, end)
}

// pages divides a part where a series comes for the second time with the same labels: two readings
// pasted one after the other.
func pages(lines []paste.Line) (out []string) {
	seen := map[string]bool{}
	var page strings.Builder
	for _, line := range lines {
		s := strings.TrimSpace(line.Text)
		name, comment, ok := promLine(s)
		if ok && !comment && ofGo(name) {
			key := s
			if i := strings.LastIndexByte(s, ' '); i > 0 {
				key = s[:i]
			}
			if seen[key] && len(out) < 15 {
				out = append(out, page.String())
				page.Reset()
				seen = map[string]bool{}
			}
			seen[key] = true
		}
		page.WriteString(s + "\n")
	}
	return append(out, page.String())
}

func readPrometheus(p *attach.Part) attach.Reading {
	all := pages(p.Lines)
	r := attach.Reading{Title: "Prometheus metrics of a Go program", State: attach.CannotTell, Boot: len(all) == 1}
	if len(all) > 1 {
		r.Title += fmt.Sprintf(", %d readings", len(all))
	}
	first, err := values(all[0])
	last, err2 := values(all[len(all)-1])
	r.Records, _ = format.Metrics([]byte(all[len(all)-1]), 0)
	for _, e := range []error{err, err2} {
		if e != nil && len(r.Flaws) == 0 {
			r.Flaws = append(r.Flaws, e.Error())
		}
	}
	promFigures(&r, last, all[len(all)-1])
	if len(all) == 1 {
		r.Means = "one reading of counters: no rate follows, so what it costs now is not in it"
		r.Next = []attach.Next{{Command: "curl http://HOST:PORT/metrics, twice, a minute apart under load", Why: "two readings give rates"}}
		return r
	}
	judgePrometheus(&r, first, last)
	return r
}

// values are the records of a page by stream.
func values(page string) (map[string]evidence.Record, error) {
	records, err := format.Metrics([]byte(page), 0)
	out := map[string]evidence.Record{}
	for _, rec := range records {
		if rec.Shape != evidence.GapShape {
			out[rec.Stream] = rec
		}
	}
	return out, err
}

// promFigures says what one reading says of the present: sizes, and the pauses of the last cycles,
// which client_golang keeps as quantiles.
func promFigures(r *attach.Reading, v map[string]evidence.Record, page string) {
	var parts, memory []string
	for _, f := range []struct{ stream, format string }{{"/go/sched/goroutines:goroutines",
		"%.0f goroutines"}, {"/go/sched/threads:threads", "%.0f threads"},
		{"/go/sched/gomaxprocs:threads", "GOMAXPROCS %.0f"}} {
		if x, ok := v[f.stream]; ok {
			parts = append(parts, fmt.Sprintf(f.format, x.Value))
		}
	}
	if x, ok := v["/go/sched/gomaxprocs:threads"]; ok {
		r.Facts = append(r.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: x.Value})
	}
	for _, f := range []struct{ stream, format string }{{"/go/memory/heap/alloc:bytes", "heap %s"},
		{"/go/gc/heap/live:bytes", "%s live"}, {"/go/memory/heap/inuse:bytes", "%s of spans in use"},
		{"/go/gc/heap/goal:bytes", "goal %s"},
		{"/go/memory/heap/sys:bytes", "%s of heap from the system"}, {"/process/rss:bytes", "resident %s"}} {
		if x, ok := v[f.stream]; ok {
			memory = append(memory, fmt.Sprintf(f.format, finding.Bytes(int64(min(x.Value, 1e18)))))
		}
	}
	for _, name := range []string{"go_memstats_heap_objects ", "go_gc_heap_objects_objects "} {
		if n, ok := sample(page, name); ok {
			memory = append(memory, fmt.Sprintf("%.0f objects", n))
			break
		}
	}
	if open, ok := sample(page, "process_open_fds "); ok {
		text := fmt.Sprintf("%.0f file descriptors", open)
		if most, ok := sample(page, "process_max_fds "); ok {
			text += fmt.Sprintf(" of %.0f", most)
		}
		parts = append(parts, text)
	}
	if x, ok := v["/go/version:text"]; ok && len(x.Text) < 40 {
		parts = append(parts, x.Text)
	}
	for _, line := range [][]string{parts, memory} {
		if len(line) > 0 {
			r.Figures = append(r.Figures, strings.Join(line, ", "))
		}
	}
	if line := runtimeCounts(page); line != "" {
		r.Figures = append(r.Figures, line)
	}
	for _, line := range []string{buckets(page, schedBucket, "waits of goroutines for a P"),
		buckets(page, pauseBucket, "GC pauses")} {
		if line != "" {
			r.Figures = append(r.Figures, line)
		}
	}
	mid, okMid := sample(page, `go_gc_duration_seconds{quantile="0.5"} `)
	worst, okWorst := sample(page, `go_gc_duration_seconds{quantile="1"} `)
	if !okMid || !okWorst {
		return
	}
	if n, ok := v["/go/gc/cycles:gc-cycles"]; ok && n.Value == 0 {
		r.Figures = append(r.Figures, "no GC cycle since the start")
		return
	}
	line := fmt.Sprintf("GC pauses of the last cycles: median %s, worst %s", seconds(mid), seconds(worst))
	if n, ok := v["/go/gc/cycles:gc-cycles"]; ok {
		line += fmt.Sprintf("; %.0f cycles since the start", n.Value)
		if stops, ok := v["/go/gc/pauses:ns"]; ok {
			line += fmt.Sprintf(", with stops of %s in all", finding.Duration(int64(stops.Value)))
		}
	}
	if share, ok := sample(page, "go_memstats_gc_cpu_fraction "); ok && share <= 1 {
		line += fmt.Sprintf("; GC used %s of the CPU since the start", percent(share))
	}
	r.Figures = append(r.Figures, line)
	r.Facts = append(r.Facts, attach.Fact{Name: FactGCPause, Value: worst * 1e9})
}

// runtimeCounts says what client_golang prints of runtime/metrics' counters of GC, which are since
// the start.
func runtimeCounts(page string) string {
	var parts []string
	for _, f := range []struct {
		name  string
		write func(float64) string
	}{
		{"go_gc_cycles_total_gc_cycles", func(v float64) string { return fmt.Sprintf("%.0f GC cycles", v) }},
		{"go_gc_cycles_forced_gc_cycles", func(v float64) string { return fmt.Sprintf("%.0f of them forced", v) }},
		{"go_gc_heap_allocs_bytes", func(v float64) string { return decimal(v) + " allocated" }},
		{"go_gc_heap_allocs_objects", func(v float64) string { return fmt.Sprintf("%.0f allocations", v) }},
	} {
		v, ok := sample(page, f.name+"_total ")
		if !ok {
			v, ok = sample(page, f.name+" ")
		}
		if ok {
			parts = append(parts, f.write(v))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + " since the start"
}

// Lines of runtime/metrics' histograms, whose counts add up: of stops for GC, and of how long
// goroutines that could run waited for a P.
var (
	pauseBucket = pattern.New(`(?m)^(?:go_gc_pauses_seconds(?:_total)?|go_sched_pauses_total_gc_seconds)_bucket\{le="([^"]+)"\} (\S+)`)
	schedBucket = pattern.New(`(?m)^go_sched_latencies_seconds_bucket\{le="([^"]+)"\} (\S+)`)
)

// buckets says how many of something there were, and below which bounds half and all of them are.
func buckets(page string, line *pattern.Regexp, what string) string {
	type bucket struct{ le, n float64 }
	var all []bucket
	for _, m := range line.FindAllStringSubmatch(page, 200) {
		le, err := strconv.ParseFloat(m[1], 64)
		n, ok := number(m[2])
		if err != nil || !ok || len(all) > 0 && (le <= all[len(all)-1].le || n < all[len(all)-1].n) {
			return ""
		}
		all = append(all, bucket{le, n})
	}
	if len(all) == 0 || !math.IsInf(all[len(all)-1].le, 1) || all[len(all)-1].n == 0 {
		return ""
	}
	total := all[len(all)-1].n
	text := fmt.Sprintf("%.0f %s since the start", total, what)
	said := -1.0
	for _, b := range all[:len(all)-1] {
		if b.le > 0 && b.le < 3600 && b.n > said && (b.n >= total/2 || b.n == total) && b.n > 0 {
			text += fmt.Sprintf(", %.0f of %s or less", b.n, seconds(b.le))
			said = b.n
		}
	}
	return text
}

// sample is the value of a series, whose name with labels and a blank starts a line.
func sample(page, name string) (float64, bool) {
	_, rest, ok := strings.Cut("\n"+page, "\n"+name)
	line, _, _ := strings.Cut(rest, "\n")
	v, isNumber := number(firstWord(line))
	return v, ok && isNumber
}

// judgePrometheus compares two readings. Between them no clock is needed for a share of CPU.
func judgePrometheus(r *attach.Reading, a, b map[string]evidence.Record) {
	delta := func(stream string) float64 { return b[stream].Value - a[stream].Value }
	if b["/process/start:unix-ns"].Value != a["/process/start:unix-ns"].Value || delta("/go/gc/cycles:gc-cycles") < 0 {
		r.Means = "the readings are of two processes, or of one that was restarted: no rate follows"
		return
	}
	cycles, cpu := delta("/go/gc/cycles:gc-cycles"), delta("/process/cpu:ns")
	has := func(stream string) bool {
		_, before := a[stream]
		_, after := b[stream]
		return before && after
	}
	line := "two readings"
	if has("/go/gc/cycles:gc-cycles") {
		line = fmt.Sprintf("%.0f GC cycles between the readings", cycles)
	}
	if has("/process/cpu:ns") {
		line += fmt.Sprintf(", %s of CPU used", finding.Duration(int64(cpu)))
	}
	r.Means = "the readings do not say what GC costs"
	gc, total, idle := delta("/go/cpu/gc:ns"), delta("/go/cpu/total:ns"), delta("/go/cpu/idle:ns")
	if used := total - idle; total > 0 && used > 0 && gc >= 0 && has("/go/cpu/gc:ns") && has("/go/cpu/idle:ns") {
		share := min(1, gc/used)
		line += fmt.Sprintf("; GC took %s of the CPU used", percent(share))
		r.State, r.Means = attach.Healthy, fmt.Sprintf("GC takes %s of the CPU that the process uses", percent(share))
		if share >= gcUnclear {
			r.State = attach.CannotTell
		}
		if share >= gcOfUsed && used >= gcLeast*total {
			r.State, r.Means = attach.Ill, fmt.Sprintf("GC takes %s of the CPU that the process uses", percent(share))
			r.Signs = []attach.Sign{{Cause: "frequent-gc", Grade: attach.Found,
				Sure: finding.Possible, Share: share, Proof: []string{line}}}
		}
	}
	r.Figures = append([]string{line}, r.Figures...)
}

// runtimeMetrics is runtime/metrics as programs print it: names with their values, in lines or in
// JSON, also behind a program's own words.
var runtimeMetrics = &attach.Kind{
	Name:  "runtime/metrics",
	Hints: []string{"/gc/", "/sched/", "/cpu/classes/", "/memory/classes/", "/sync/mutex/", "/cgo/"},
	Claim: func(lines []paste.Line) int {
		found, valued := 0, 0
		n := while(lines, func(s string) bool {
			names := len(runtimeMetric.FindAllString(s, 200))
			found += names
			if names > 0 && !metricInWords.MatchString(s) {
				valued++
			}
			return names > 0 || found > 0 && (strings.Trim(s, "{}[], \t") == "" || runtimeClock.MatchString(s))
		})
		return attach.ClaimIf(found >= 2 && valued > 0, n)
	},
	Reports: true,
	Read:    readRuntimeMetrics,
}

// runtimeMetric finds "/gc/heap/live:bytes 4194304", also with a colon, "=" or quotes between. The
// unit behind the colon tells a name from a path.
var runtimeMetric = pattern.New(`(?:^|[\s"'{,(\[=|])(/(?:gc|sched|cpu|memory|sync|cgo|godebug)/[\w/.-]+:[a-z-]{4,16})["')\]]*[ \t]*(?:[:=]|=>|,)?[ \t]*["'({]?([0-9][0-9.]*(?:[eE][+-]?[0-9]+)?)?`)

// metricInWords is a name at the end of a sentence of documentation, which is no reading of it.
var metricInWords = pattern.New(`[A-Za-z]+ [A-Za-z]+[ ,]+(?:or )?/(?:gc|sched|cpu|memory|sync|cgo|godebug)/[\w/.-]+:[a-z-]+[ .]*$`)

// runtimeClock is a time that a program puts among them.
var runtimeClock = pattern.New(`^[\w \t-]{0,40}time["']?[:=][ \t]*\S+$`)

func readRuntimeMetrics(p *attach.Part) attach.Reading {
	v := map[string]float64{}
	names := 0
	for _, line := range p.Lines {
		for _, m := range runtimeMetric.FindAllStringSubmatch(line.Text, 200) {
			names++
			if n, isNumber := number(m[2]); isNumber && len(v) < 1000 {
				v[m[1]] = n
			}
		}
	}
	r := attach.Reading{Title: fmt.Sprintf("runtime/metrics, %s", count(names, "value", "values")),
		State: attach.CannotTell, Boot: true,
		Means: "one reading of counters: no rate follows, so what GC costs now is not in it",
		Next:  []attach.Next{{Command: "read them twice, a minute apart under load", Why: "two readings give rates"}}}
	total, idle := v["/cpu/classes/total:cpu-seconds"], v["/cpu/classes/idle:cpu-seconds"]
	gc, hasGC := v["/cpu/classes/gc/total:cpu-seconds"]
	_, hasIdle := v["/cpu/classes/idle:cpu-seconds"]
	if used := total - idle; used > 0 && total > 0 && hasGC && hasIdle {
		r.Figures = append(r.Figures,
			fmt.Sprintf("GC used %s (%s) of the CPU used since the start, %s; %s of the Ps' time was idle", seconds(gc), percent(min(1, gc/used)), seconds(used), percent(min(1, idle/total))))
	}
	heap := heapMetrics(v)
	if len(heap) > 0 {
		r.Figures = append(r.Figures, strings.Join(heap, ", "))
	}
	var parts []string
	if n, ok := v["/sched/goroutines:goroutines"]; ok {
		parts = append(parts, fmt.Sprintf("%.0f goroutines", n))
		r.Facts = append(r.Facts, attach.Fact{Name: FactGoroutines, Value: n})
	}
	if ps := v["/sched/gomaxprocs:threads"]; ps > 0 {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %.0f", ps))
		r.Facts = append(r.Facts, attach.Fact{Name: FactGOMAXPROCS, Value: ps})
	}
	if n, ok := v["/gc/cycles/total:gc-cycles"]; ok {
		parts = append(parts, fmt.Sprintf("%.0f GC cycles", n))
		r.Facts = append(r.Facts, attach.Fact{Name: FactCycles, Value: n})
	}
	if n, ok := v["/memory/classes/heap/objects:bytes"]; ok {
		r.Facts = append(r.Facts, attach.Fact{Name: FactHeap, Value: n})
	}
	if n, ok := v["/gc/heap/allocs:bytes"]; ok {
		parts = append(parts, decimal(n)+" allocated")
		r.Facts = append(r.Facts, attach.Fact{Name: FactAllocated, Value: n})
	}
	if n, ok := v["/sync/mutex/wait/total:seconds"]; ok {
		parts = append(parts, fmt.Sprintf("%s waited for mutexes since the start", seconds(n)))
	}
	if len(parts) > 0 {
		r.Figures = append(r.Figures, strings.Join(parts, ", "))
	}
	return r
}

// heapMetrics says how large the heap is and may become.
func heapMetrics(v map[string]float64) (out []string) {
	for _, f := range []struct{ name, format string }{{"/gc/heap/live:bytes", "heap %s live"},
		{"/memory/classes/heap/objects:bytes", "heap objects %s"}, {"/gc/heap/goal:bytes", "goal %s"},
		{"/memory/classes/total:bytes", "%s from the system"}} {
		if n, ok := v[f.name]; ok {
			out = append(out, fmt.Sprintf(f.format, finding.Bytes(int64(n))))
		}
	}
	return out
}
