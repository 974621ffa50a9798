package goruntime

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/finding"
	"github.com/whystall/whystall/internal/format/paste"
)

// memField is a value of runtime.MemStats with its name, as "HeapAlloc = 5 MiB", "heap-alloc:
// 9.92MB (10398000 bytes)" and `"HeapAlloc":5242880` write it.
var memField = regexp.MustCompile(`([A-Za-z][A-Za-z_-]*(?: [A-Za-z]+)?)"?[ \t]{0,4}[:=][ \t]*"?([0-9][0-9.]*(?:[eE][+-]?[0-9]+)?)(?:[ \t]?(B|bytes|[kKMG]i?B?|ns|us|µs|ms|s)\b)?(?:[ \t]\(([0-9]+) bytes\))?`)

// memLead is the name that a line starts with.
var memLead = regexp.MustCompile(`^[#{&"\s]*([A-Za-z][A-Za-z_-]*(?: [A-Za-z]+)?)"?\s*[:=]`)

// memPauses is the list of the last stops, which the next lines may go on with.
var memPauses = regexp.MustCompile(`PauseNs"?\s*[:=]?\s*\[?((?:[\s,]*[0-9]+)+)[\s,\]]*`)

// memNames are the names of runtime.MemStats' fields, and of what programs print beside them, in
// small letters without blanks and dashes. Those of the heap are true: they are no other program's.
var memNames = map[string]bool{
	"totalalloc": true, "heapalloc": true, "heapsys": true, "heapidle": true, "heapinuse": true, "heapreleased": true, "heapobjects": true,
	"numgc": true, "numforcedgc": true, "gccpufraction": true, "nextgc": true, "pausetotalns": true, "mspaninuse": true, "mcacheinuse": true, "buckhashsys": true,
	"alloc": false, "sys": false, "lookups": false, "mallocs": false, "frees": false, "lastgc": false, "pausens": false, "pauseend": false, "pausetotal": false,
	"stackinuse": false, "stacksys": false, "mspansys": false, "mcachesys": false, "gcsys": false, "othersys": false,
	"stack": false, "mspan": false, "mcache": false, "stackmspaninuse": false, "stackmspansys": false, "stackmcacheinuse": false, "stackmcachesys": false,
	"gcpausetotal": false, "gcpause": false, "gcpauseend": false, "enablegc": false, "debuggc": false, "numgoroutine": false, "goroutines": false,
	"maxrss": false, "heapgoal": false, "debugfreeosmemory": false, "bysize": false, "size": false,
}

var memJoin = strings.NewReplacer("-", "", "_", "", " ", "")

// memName is a field's name as memNames has it; "": it is none.
func memName(s string) string {
	for _, name := range []string{s, s[strings.LastIndexByte(s, ' ')+1:]} {
		if len(name) > 24 {
			continue
		}
		name = strings.ToLower(memJoin.Replace(name))
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
	samples int     // lines of a log that each have the heap's size
	first   float64 // the heap's size in the first of them
}

func (m *memFields) take(text string) {
	for _, f := range memPauses.FindAllStringSubmatch(text, 4) {
		if len(m.pauses) == 0 {
			m.addPauses(f[1])
		}
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
		m.first = max(m.v["heapalloc"], m.v["alloc"])
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
			continue
		}
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
	end, list, heap := 0, false, false
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
		mine := list && onlyNumbers(t) || strings.HasPrefix(t, "# runtime.MemStats") || lead != nil && memName(lead[1]) != ""
		mine = mine || i > 0 && strings.Trim(t, "{}[], ") == ""
		known := map[string]bool{}
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
	if own < 2 || len(seen) < 4 {
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
	}
	if has("nextgc") {
		heap = append(heap, "goal "+size("nextgc"))
	}
	if has("sys") {
		system = append(system, size("sys")+" from the system")
	}
	if has("heapidle") && has("heapreleased") {
		system = append(system, fmt.Sprintf("%s of the heap idle, of which %s are given back", size("heapidle"), size("heapreleased")))
	}
	if m.samples > 1 {
		heap = append(heap, fmt.Sprintf("in the last of %d samples; %s in the first", m.samples, finding.Bytes(int64(min(m.first, 1e18)))))
	}
	for _, parts := range [][]string{heap, system} {
		if len(parts) > 0 {
			r.Figures = append(r.Figures, strings.Join(parts, ", "))
		}
	}
	if text := m.collections(r); text != "" {
		r.Figures = append(r.Figures, text)
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
		parts = append(parts, text)
	}
	if n := len(m.pauses); n > 0 {
		worst := 0.0
		for _, v := range m.pauses {
			worst = max(worst, v)
		}
		parts = append(parts, fmt.Sprintf("stop-the-world of the last %s: median %s, worst %s", count(n, "cycle", "cycles"), ms(attach.Median(m.pauses)/1e6), ms(worst/1e6)))
		r.Facts = append(r.Facts, attach.Fact{Name: FactGCPause, Value: worst})
	}
	for _, name := range []string{"pausetotalns", "gcpausetotal"} {
		if v, ok := m.v[name]; ok && v > 0 {
			parts = append(parts, ms(v/1e6)+" of stops in all")
			break
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

// Floors of memory that the heap keeps without need.
const (
	keptShare = 0.25 // of what the process has from the system
	keptLeast = 256 << 20

	grownLeast = 64 << 20
)

// judge says what follows of stops and of memory.
func (m *memFields) judge(r *attach.Reading) {
	r.Boot, r.State = true, attach.Healthy
	r.Means = "it shows how much memory the heap has and needs"
	r.Not = "what GC costs now: counters since the start, read once, are no rate"
	share, hasShare := m.v["gccpufraction"]
	kept := m.v["heapidle"] - m.v["heapreleased"]
	next := attach.Next{Command: "curl http://HOST:PORT/debug/vars, twice, a minute apart under load", Why: "two readings give a rate"}
	switch {
	case hasShare && share >= 0.10:
		r.State = attach.CannotTell
		r.Means = "since the start, GC took much of the CPU"
		r.Next = []attach.Next{next}
	case len(m.pauses) >= 5 && attach.Median(m.pauses) >= longStop*1e6:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the world stops for %s (median) in a cycle: before Go 1.5 all marking is a stop; later it is a thread that gets no CPU", ms(attach.Median(m.pauses)/1e6))
		for _, cause := range []string{"stw-pause", "cpu-throttled"} {
			r.Signs = append(r.Signs, attach.Sign{Cause: cause, Grade: attach.Candidate, Proof: r.Figures[len(r.Figures)-1:]})
		}
		r.Next = []attach.Next{next}
	case m.samples > 1 && m.v["heapalloc"] >= 2*m.first && m.v["heapalloc"] >= grownLeast:
		r.State = attach.CannotTell
		r.Means = "the heap grows from the first sample to the last: a leak, a cache that fills, or garbage that the next cycle takes; it is no cause of latency by itself"
		r.Next = []attach.Next{{Command: "go tool pprof -top -diff_base heap1.pb.gz heap2.pb.gz", Why: "two heap profiles, a while apart, say which code's memory grows"}}
	case kept >= keptLeast && kept >= keptShare*m.v["sys"]:
		r.State = attach.CannotTell
		r.Means = fmt.Sprintf("the runtime keeps %s that the heap does not use and has not given back to the system: memory that the process has, and no leak", finding.Bytes(int64(kept)))
		r.Next = []attach.Next{{Command: "GODEBUG=gctrace=1 for a minute under load", Why: "says to which size the heap grows before each cycle; GOMEMLIMIT or a lower GOGC bounds it"}}
	case hasShare || len(m.pauses) > 0:
		r.Means = "since the start, GC took little of the CPU"
		if !hasShare {
			r.Means = "it shows how much memory the heap has and needs; the last stops were short"
		}
		if worst := slices.Max(append(m.pauses, 0)); worst >= veryLong*1e6 {
			r.Means = fmt.Sprintf("one of the last stops took %s, and most are short: such a stop is mostly a thread that got no CPU", ms(worst/1e6))
		}
	}
}
