package goruntime

import (
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// memField is a value of runtime.MemStats with its name, as "HeapAlloc = 5 MiB", "heap-alloc:
// 9.92MB (10398000 bytes)" and `"HeapAlloc":5242880` write it.
var memField = pattern.New(`([A-Za-z][A-Za-z_-]*(?: [A-Za-z]+)?)"?[ \t]{0,4}[:=][ \t]*"?([0-9][0-9.]*(?:[eE][+-]?[0-9]+)?)(?:[ \t]?(B|bytes|[kKMG]i?B?|ns|us|µs|ms|s)\b)?(?:[ \t]\(([0-9]+) bytes\))?`)

// memCut is a number that somebody cut: "Sys":8533 ...
var memCut = pattern.New(`[0-9]+\s*(?:\.\.\.|…)\s*$`)

// memLead is the name that a line starts with.
var memLead = pattern.New(`^[#{&"\s]*([A-Za-z][A-Za-z_-]*(?: [A-Za-z]+)?)"?\s*[:=]`)

// memPauses is the list of the last stops, which the next lines may go on with.
var memPauses = pattern.New(`PauseNs"?\s*[:=]?\s*\[?((?:[\s,]*[0-9]+)+)[\s,\]]*`)

// memNames are the names of runtime.MemStats' fields, and of what programs print beside them, in
// small letters without blanks and dashes. Those of the heap are true: they are no other program's.
var memNames = map[string]bool{
	"totalalloc": true, "heapalloc": true, "heapsys": true, "heapidle": true, "heapinuse": true,
	"heapreleased": true, "heapobjects": true,
	"numgc": true, "numforcedgc": true, "gccpufraction": true, "nextgc": true, "pausetotalns": true,
	"mspaninuse": true, "mcacheinuse": true, "buckhashsys": true,
	"alloc": false, "sys": false, "lookups": false, "mallocs": false, "frees": false,
	"lastgc": false, "pausens": false, "pauseend": false, "pausetotal": false,
	"stackinuse": false, "stacksys": false, "mspansys": false, "mcachesys": false, "gcsys": false, "othersys": false,
	"stack": false, "mspan": false, "mcache": false, "stackmspaninuse": false,
	"stackmspansys": false, "stackmcacheinuse": false, "stackmcachesys": false,
	"gcpausetotal": false, "gcpause": false, "gcpauseend": false, "enablegc": false,
	"debuggc": false, "numgoroutine": false, "goroutines": false,
	"maxrss": false, "heapgoal": false, "debugfreeosmemory": false, "bysize": false, "size": false,
}

// memAliases are the names of the same under which handlers of statistics print them.
var memAliases = map[string]string{
	"goroutinenum": "numgoroutine", "gcnum": "numgc", "gcnext": "nextgc", "gclast": "lastgc",
	"memoryalloc": "alloc", "memorytotalalloc": "totalalloc",
	"memorysys": "sys", "memorylookups": "lookups", "memorymallocs": "mallocs", "memoryfrees": "frees",
}

var memJoin = strings.NewReplacer("-", "", "_", "", " ", "")

// memName is a field's name as memNames has it; "": it is none.
func memName(s string) string {
	for _, name := range []string{s, s[strings.LastIndexByte(s, ' ')+1:]} {
		if len(name) > 24 {
			continue
		}
		name = strings.ToLower(memJoin.Replace(name))
		if alias, ok := memAliases[name]; ok {
			name = alias
		}
		if _, ok := memNames[name]; ok {
			return name
		}
	}
	return ""
}

// memFields is what a text says of runtime.MemStats. Sizes are bytes, times ns.
type memFields struct {
	v       map[string]float64
	pauses  []float64
	cut     bool    // the list of pauses has no end
	samples int     // lines of a log that each have the heap's size
	first   float64 // the heap's size in the first of them
	cycles  float64 // and NumGC
}

func (m *memFields) take(text string) {
	for _, f := range memPauses.FindAllStringSubmatch(text, 4) {
		if len(m.pauses) == 0 {
			m.cut = strings.HasSuffix(strings.TrimSpace(text), f[1]) && strings.Contains(f[0], "[")
			list := f[1]
			if m.cut { // its last number may be cut as well
				list = strings.TrimRight(list, "0123456789")
			}
			m.addPauses(list)
		}
	}
	if cut := memCut.FindStringIndex(text); cut != nil { // its last number is cut as well
		text = text[:cut[0]]
	}
	text = strings.Replace(text, "when heap-alloc >= ", "", 1) // gops' next-gc
	fields := memField.FindAllStringSubmatch(text, 400)
	again := m.again(fields)
	seen := map[string]bool{}
	for _, f := range fields {
		name := memName(f[1])
		if _, has := m.v[name]; name == "" || has && !again || seen[name] {
			continue
		}
		seen[name] = true
		v, _, ok := amount(f[2] + memUnit(f[3]))
		if f[4] != "" {
			v, ok = number(f[4])
		}
		if plain, isNumber := number(f[2]); !ok && isNumber {
			v, ok = plain, true
		}
		if ok {
			m.v[name] = v
		}
	}
}

// again reports whether a line is one more sample of a program that logs its heap now and then.
func (m *memFields) again(fields [][]string) bool {
	known, heap := 0, false
	for _, f := range fields {
		name := memName(f[1])
		if name != "" {
			known++
		}
		heap = heap || name == "heapalloc" || name == "alloc"
	}
	if known < 3 || !heap {
		return false
	}
	if m.samples++; m.samples == 2 {
		m.first, m.cycles = max(m.v["heapalloc"], m.v["alloc"]), m.v["numgc"]
	}
	return m.samples > 1
}

// memUnit is the unit as amount knows it; "" where the next word is none.
func memUnit(s string) string {
	switch strings.ToLower(s) {
	case "k", "kb", "kib":
		return "kB"
	case "m", "mb", "mib":
		return "MB"
	case "g", "gb", "gib":
		return "GB"
	case "ns", "us", "µs", "ms", "s":
		return s
	}
	return ""
}

func (m *memFields) addPauses(list string) {
	for _, f := range strings.FieldsFunc(list, func(r rune) bool { return r < '0' || r > '9' }) {
		if v, ok := number(f); ok && v > 0 && v < 1e12 && len(m.pauses) < 256 {
			m.pauses = append(m.pauses, v)
		}
	}
}

// memFieldsOf reads the fields of some lines. The list of pauses may be broken into lines.
func memFieldsOf(lines []paste.Line) *memFields {
	m := &memFields{v: map[string]float64{}}
	open := false
	for i, line := range lines {
		if i > 20000 {
			break
		}
		if names, values := memTable(lines[i:]); names != nil {
			for j, name := range names {
				if v, ok := number(values[j]); ok {
					m.v[memName(name)] = v
				}
			}
			continue
		}
		if open && onlyNumbers(line.Text) {
			m.addPauses(line.Text)
			m.cut = m.cut && !strings.Contains(line.Text, "]")
			continue
		}
		m.cut = m.cut && line.Text == ""
		m.take(line.Text)
		open = strings.HasSuffix(strings.TrimRight(line.Text, " \t[:=0123456789,\""), "PauseNs")
	}
	return m
}

func onlyNumbers(s string) bool {
	return strings.Trim(s, "0123456789, \t[]") == "" && strings.ContainsAny(s, "0123456789")
}

// memTable parses a heading of fields' names with a line of values below, as InfluxDB prints them.
func memTable(lines []paste.Line) (names, values []string) {
	names = strings.Fields(lines[0].Text)
	if len(names) < 4 {
		return nil, nil
	}
	heap := 0
	for _, name := range names {
		if strings.ContainsAny(name, ":=") || memName(name) == "" {
			return nil, nil
		}
		if memNames[memName(name)] {
			heap++
		}
	}
	for _, line := range lines[1:min(3, len(lines))] {
		if strings.Trim(line.Text, "- \t") == "" {
			continue
		}
		if values = strings.Fields(line.Text); onlyNumbers(line.Text) && len(values) == len(names) && heap >= 2 {
			return names, values
		}
	}
	return nil, nil
}

// memFirst is within how many lines a field of the heap comes: so a text of lines that are nearly
// its own takes no time in the square.
const memFirst = 8

// claimMemFields takes lines that name fields, and the numbers of the list of pauses.
func claimMemFields(lines []paste.Line) int {
	if n := claimMemTable(lines); n > 0 {
		return n
	}
	seen := map[string]bool{}
	end, list, heap, typed, sizes := 0, false, false, false, false
	for i, line := range lines {
		t := strings.TrimSpace(line.Text)
		if line.Command != "" || i > 2000 {
			break
		}
		if t == "" {
			if i == 0 {
				return 0
			}
			continue
		}
		lead := memLead.FindStringSubmatch(t)
		fields := memField.FindAllStringSubmatch(t, 60)
		mine := list && onlyNumbers(t) || strings.HasPrefix(t, "# runtime.MemStats") ||
			lead != nil && memName(lead[1]) != ""
		mine = mine || i > 0 && strings.Trim(t, "{}[], ") == ""
		known := map[string]bool{}
		sizes = sizes || lead != nil && memName(lead[1]) == "bysize"
		typed = typed || strings.Contains(t, "MemStats.") && len(fields) > 0
		for _, f := range fields {
			if name := memName(f[1]); name != "" {
				seen[name], known[name] = true, true
				heap = heap || memNames[name]
			}
		}
		if !mine && len(known) < 3 || i >= memFirst && !heap {
			break
		}
		list = list && onlyNumbers(t) || strings.Contains(t, "Pause")
		end = i + 1
	}
	own := 0
	for name := range seen {
		if memNames[name] {
			own++
		}
	}
	// Counts by size are no other program's, nor are fields that are given with their type.
	sure := sizes && seen["mallocs"] && seen["frees"] || own > 0 && typed
	if own < 2 && !sure || len(seen) < 4 {
		return 0
	}
	return end
}

func claimMemTable(lines []paste.Line) int {
	for i := range min(3, len(lines)) {
		if names, _ := memTable(lines[i:]); names != nil {
			n := i + 2
			if strings.Trim(lines[i+1].Text, "- \t") == "" {
				n++
			}
			return n
		}
		if t := strings.TrimSpace(lines[i].Text); t != "name: runtime" && strings.Trim(t, "-") != "" {
			break
		}
	}
	return 0
}

// figures says what they say of the present: sizes, and the last stops.
func (m *memFields) figures(r *attach.Reading) {
	size := func(name string) string { return finding.Bytes(int64(min(m.v[name], 1e18))) }
	has := func(name string) bool { _, ok := m.v[name]; return ok }
	var heap, system []string
	if has("heapalloc") || has("alloc") {
		m.v["heapalloc"] = max(m.v["heapalloc"], m.v["alloc"])
		heap = append(heap, "heap "+size("heapalloc"))
		if has("heapobjects") {
			heap[0] += fmt.Sprintf(" in %.0f objects", m.v["heapobjects"])
		}
	}
	if has("heapinuse") {
		heap = append(heap, size("heapinuse")+" of spans in use")
		if holes := m.v["heapinuse"] - m.v["heapalloc"]; has("heapalloc") && holes >= keptLeast &&
			holes >= keptShare*m.v["heapinuse"] {
			heap[len(heap)-1] += fmt.Sprintf(", %s of them free between objects",
				finding.Bytes(int64(min(holes, 1e18))))
		}
	}
	for _, name := range []string{"stackinuse", "stack"} {
		if v, ok := m.v[name]; ok && v >= keptLeast {
			heap = append(heap, "stacks "+size(name))
			break
		}
	}
	if has("nextgc") {
		heap = append(heap, "goal "+size("nextgc"))
	}
	if has("sys") {
		system = append(system, size("sys")+" from the system"+m.offHeap())
	}
	if has("heapidle") && has("heapreleased") {
		system = append(system, fmt.Sprintf("%s of the heap idle, of which %s are given back",
			size("heapidle"), size("heapreleased")))
	}
	if m.samples > 1 {
		heap = append(heap, fmt.Sprintf("in the last of %d samples; %s in the first", m.samples,
			finding.Bytes(int64(min(m.first, 1e18)))))
	}
	for _, parts := range [][]string{heap, system} {
		if len(parts) > 0 {
			r.Figures = append(r.Figures, strings.Join(parts, ", "))
		}
	}
	if text := m.collections(r); text != "" {
		r.Figures = append(r.Figures, text)
	}
	m.facts(r)
}

// facts are what two readings are compared by.
func (m *memFields) facts(r *attach.Reading) {
	for _, f := range []struct {
		name string
		fact attach.FactName
	}{{"heapalloc", FactHeap}, {"numgc", FactCycles}, {"totalalloc", FactAllocated}} {
		if v, ok := m.v[f.name]; ok {
			r.Facts = append(r.Facts, attach.Fact{Name: f.fact, Value: v})
		}
	}
	if v := m.stopped(); v > 0 {
		r.Facts = append(r.Facts, attach.Fact{Name: FactStopped, Value: v})
	}
}

// collections says what is known of cycles and stops.
func (m *memFields) collections(r *attach.Reading) string {
	var parts []string
	if v, ok := m.v["numgc"]; ok {
		text := count(int(min(v, 1e9)), "GC cycle", "GC cycles") + " since the start"
		if share, ok := m.v["gccpufraction"]; ok {
			text += ", with " + percent(min(share, 1)) + " of the CPU"
		}
		if m.samples > 1 && v >= m.cycles {
			text += fmt.Sprintf(", %.0f of them after the first sample", v-m.cycles)
		}
		parts = append(parts, text)
	}
	if n := len(m.pauses); n > 0 {
		worst := 0.0
		for _, v := range m.pauses {
			worst = max(worst, v)
		}
		of := "of the last " + count(n, "cycle", "cycles")
		if m.cut {
			of = fmt.Sprintf("of %d of the last 256 cycles (the list is cut off)", n)
		}
		text := fmt.Sprintf("stop-the-world %s: median %s, worst %s", of,
			ms(attach.Median(m.pauses)/1e6), ms(worst/1e6))
		if n == 1 && !m.cut {
			text = "stop-the-world of the last cycle: " + ms(worst/1e6)
		}
		if from, to := m.trend(); from > 0 {
			text += fmt.Sprintf("; they grow along the list, from %s to %s (medians of its first and last quarter)", ms(from/1e6), ms(to/1e6))
		}
		parts = append(parts, text)
		r.Facts = append(r.Facts, attach.Fact{Name: FactGCPause, Value: worst})
	}
	if v := m.stopped(); v > 0 {
		parts = append(parts, ms(v/1e6)+" of stops in all")
		if n := m.v["numgc"]; n > 0 && len(m.pauses) == 0 {
			parts[len(parts)-1] += fmt.Sprintf(", %s a cycle (mean)", ms(v/n/1e6))
		}
	}
	for _, name := range []string{"numgoroutine", "goroutines"} {
		if v, ok := m.v[name]; ok && v > 0 {
			parts = append(parts, fmt.Sprintf("%.0f goroutines", v))
			r.Facts = append(r.Facts, attach.Fact{Name: FactGoroutines, Value: v})
			break
		}
	}
	return strings.Join(parts, "; ")
}
