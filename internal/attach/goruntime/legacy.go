package goruntime

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
)

// heapText is a heap profile as text: Go's debug=1, gperftools' and jemalloc's.
var heapText = &attach.Kind{
	Name:  "heap profile as text",
	Hints: []string{"heap profile: ", "--- heapz", "heap_v2/", "] @"},
	Claim: func(lines []paste.Line) int {
		java := javaHeap(lines)
		return claimLegacy(lines, heapHead, func(s string) bool { _, ok := heapRecord(s, java); return ok })
	},
	Read: readHeapText,
}

// contentionText is a profile of mutexes or of blocking as text: Go's debug=1, and contentionz.
var contentionText = &attach.Kind{
	Name:  "contention profile as text",
	Hints: []string{"--- mutex:", "--- contention", " @ 0x", "cycles/second"},
	Claim: func(lines []paste.Line) int {
		return claimLegacy(lines, contentionHead, func(s string) bool { _, ok := contentionLine(s); return ok })
	},
	Read: readContentionText,
}

func heapHead(s string) bool {
	return strings.HasPrefix(s, "heap profile: ") && strings.Contains(s, " @") ||
		strings.HasPrefix(s, "--- heapz ") || strings.HasPrefix(s, "heap_v2/")
}

func contentionHead(s string) bool {
	return s == "--- mutex:" || s == "--- contention:" ||
		strings.HasPrefix(s, "--- contentionz ") || strings.HasPrefix(s, "--- contention")
}

// sums is the figures of a record of a heap profile.
type sums struct{ liveN, live, allN, all float64 }

// heapLine parses "79: 374063104 [3119: 14768390144] @ 0x40104b3", jemalloc's "t*: 1: 2 [3: 4]".
func heapLine(s string) (v sums, ok bool) {
	s = strings.TrimSpace(s)
	if len(s) > 1 && s[0] == 't' {
		if who, rest, isJe := strings.Cut(s, ": "); isJe && (who == "t*" || digits(who[1:]) == len(who)-1) {
			s = rest
		}
	}
	open, closing := strings.IndexByte(s, '['), strings.IndexByte(s, ']')
	if open < 0 || closing < open {
		return v, false
	}
	a, b, ok1 := strings.Cut(s[:open], ":")
	c, d, ok2 := strings.Cut(s[open+1:closing], ":")
	for i, part := range []string{a, b, c, d} {
		n, isNumber := number(part)
		if !isNumber {
			return v, false
		}
		*[]*float64{&v.liveN, &v.live, &v.allN, &v.all}[i] = n
	}
	rest := strings.TrimSpace(s[closing+1:])
	return v, ok1 && ok2 && (rest == "" || strings.HasPrefix(rest, "@"))
}

// javaHeap reports whether a heap profile is a JVM's: its records are "bytes objects @ stack".
func javaHeap(lines []paste.Line) bool {
	if !strings.HasPrefix(strings.TrimSpace(lines[0].Text), "--- heapz ") {
		return false
	}
	return slices.ContainsFunc(lines[1:min(4, len(lines))],
		func(l paste.Line) bool { return strings.TrimSpace(l.Text) == "format = java" })
}

func heapRecord(s string, java bool) (v sums, ok bool) {
	if !java {
		return heapLine(s)
	}
	one, ok := contentionLine(s)
	return sums{liveN: one[1], live: one[0], allN: one[1], all: one[0]}, ok
}

// contentionLine parses "3106756016 1 @ 0x46e148 0x75acf5".
func contentionLine(s string) (v [2]float64, ok bool) {
	head, rest, ok := strings.Cut(strings.TrimSpace(s), " @ ")
	f := strings.Fields(head)
	if !ok || len(f) != 2 || !strings.HasPrefix(strings.TrimSpace(rest), "0x") {
		return v, false
	}
	for i := range v {
		n, isNumber := number(f[i])
		if !isNumber {
			return v, false
		}
		v[i] = n
	}
	return v, true
}

// claimLegacy takes a heading, records, the lines with # below them, and a map of memory.
func claimLegacy(lines []paste.Line, head, record func(string) bool) int {
	end, heads, records, stacks, inMap := 0, 0, 0, 0, false
loop:
	for i, line := range lines {
		s := strings.TrimSpace(line.Text)
		_, isStack := stackLine(s)
		if !isStack && strings.HasPrefix(s, "/") {
			_, isStack = parsePlace(s) // the end of a line that was broken before its place
		}
		switch {
		case line.Command != "":
			break loop
		case head(s):
			if records > 0 && !strings.HasPrefix(s, "--- Thread") && !strings.HasPrefix(s, "[same") {
				break loop // the next one
			}
			heads++
		case record(s):
			records++
		case s == "" || line.Elided:
			continue
		case isStack && end > 0:
			stacks++
		case end == 0:
			return 0
		case strings.HasPrefix(s, "--- Memory map: ---"), strings.HasPrefix(s, "MAPPED_LIBRARIES:"):
			inMap = true
		case strings.HasPrefix(s, "# "), s == "#", legacySetting(s), javaSymbol(s):
		case inMap && mapLine(s):
		default:
			break loop
		}
		end = i + 1
	}
	if heads == 0 && (records < 2 && stacks == 0 || records == 0) {
		return 0
	}
	return end
}

// legacySetting knows "cycles/second=2596140707", "ms since reset = 16502830", "format = java".
func legacySetting(s string) bool {
	key, _, ok := strings.Cut(s, "=")
	switch strings.TrimSpace(key) {
	case "cycles/second", "sampling period", "ms since reset", "discarded samples", "format", "resolution", "period":
		return ok
	}
	return false
}

// javaSymbol knows "0x00000003 com.example.function03 (source.java:03)".
func javaSymbol(s string) bool {
	f := strings.Fields(s)
	return len(f) >= 2 && strings.HasPrefix(f[0], "0x") && strings.Contains(s, ".") && !strings.HasPrefix(f[1], "0x")
}

func mapLine(s string) bool {
	first := firstWord(s)
	lo, hi, ok := strings.Cut(strings.TrimSuffix(first, ":"), "-")
	_, err1 := strconv.ParseUint(lo, 16, 64)
	_, err2 := strconv.ParseUint(hi, 16, 64)
	return ok && err1 == nil && err2 == nil || strings.Contains(first, "=/") || strings.HasPrefix(s, "build=")
}

// stackOf collects the named frames below a record.
func stackOf(lines []paste.Line) (out []string) {
	for _, line := range lines {
		f, ok := stackLine(line.Text)
		if !ok {
			break
		}
		if f.fn != "" && len(out) < 256 {
			out = append(out, f.fn)
		}
	}
	return out
}

func readHeapText(part *attach.Part) attach.Reading {
	r := attach.Reading{Title: "heap profile as text", State: attach.Context, Not: "anything about latency"}
	var total, top, made sums
	var topStack, madeStack []frame
	headed, off := false, false
	java := javaHeap(part.Lines)
	for i, line := range part.Lines {
		s := strings.TrimSpace(line.Text)
		if rest, ok := strings.CutPrefix(s, "heap profile: "); ok {
			total, headed = headSums(rest)
			off = strings.HasSuffix(rest, "@ heap/0")
			continue
		}
		v, ok := heapRecord(s, java)
		if !ok {
			continue
		}
		if strings.HasPrefix(s, "t*: ") && total.live == 0 {
			total, headed = v, true
			continue
		}
		if !headed {
			total.live, total.liveN, total.all, total.allN = total.live+v.live, total.liveN+v.liveN,
				total.all+v.all, total.allN+v.allN
		}
		if v.live > top.live {
			top, topStack = v, framesOf(part.Lines[i+1:])
		}
		if v.all > made.all {
			made, madeStack = v, framesOf(part.Lines[i+1:])
		}
	}
	r.Figures = []string{fmt.Sprintf("%s live in %.0f objects, as sampled; %s in %.0f allocated in all", decimal(total.live), total.liveN, decimal(total.all), total.allN)}
	if !headed {
		r.Figures[0] = fmt.Sprintf("the records that are shown: %s live in %.0f objects, as sampled; %s in %.0f allocated", decimal(total.live), total.liveN, decimal(total.all), total.allN)
	}
	if java {
		r.Title = "heap profile of a JVM as text"
		r.Figures[0] = fmt.Sprintf("%s in %.0f objects, as sampled", decimal(total.live), total.liveN)
	}
	r.Means = "it shows which code allocated the memory that is live"
	switch {
	case top.live > 0:
		r.Figures = append(r.Figures,
			fmt.Sprintf("most at one place: %s in %.0f of %.0f objects (%s) from %s",
				decimal(top.live), top.liveN, total.liveN,
				percent(min(1, ratio(top.live, total.live))), allocator(topStack)))
	case made.all > 0:
		r.Figures = append(r.Figures,
			fmt.Sprintf("most was allocated, and is garbage by now: %s in %.0f objects (%s) by %s",
				decimal(made.all), made.allN, percent(min(1, ratio(made.all, total.all))), allocator(madeStack)))
		r.Means = "nothing of it is live; it shows which code allocated since the start"
	}
	if off {
		r.Figures, r.State = nil, attach.CannotTell
		r.Means = "the profile is switched off in the program (a rate of 0), so it is empty; that says nothing of the heap's size"
		r.Next = []attach.Next{{Command: "runtime.MemProfileRate = 512 << 10 in the program, first thing in main", Why: "switches it on: linkers leave it out where nothing uses it"}}
	}
	memStatsFigures(&r, part.Lines)
	return r
}

// framesOf collects the frames below a record that have names.
func framesOf(lines []paste.Line) (out []frame) {
	for _, line := range lines {
		f, ok := stackLine(line.Text)
		if !ok || len(out) == 256 {
			break
		}
		if f.fn != "" {
			out = append(out, f)
		}
	}
	return out
}

// allocator is the program's own function of a stack that allocated.
func allocator(frames []frame) string {
	where := "a stack without names"
	for _, f := range frames {
		if where = f.fn + at(f.at); !library(f.fn) {
			break
		}
	}
	return where
}

func headSums(s string) (sums, bool) {
	at := strings.IndexByte(s, '@')
	if at < 0 {
		return sums{}, false
	}
	v, ok := heapLine(s[:at])
	return v, ok
}

// memStatsFigures adds what runtime.MemStats below Go's heap profile says.
func memStatsFigures(r *attach.Reading, lines []paste.Line) {
	at := slices.IndexFunc(lines,
		func(l paste.Line) bool { return strings.HasPrefix(strings.TrimSpace(l.Text), "# runtime.MemStats") })
	if at < 0 {
		return
	}
	m := memFieldsOf(lines[at:])
	m.figures(r)
	if len(m.pauses) > 0 {
		r.Means += fmt.Sprintf("; of the last %s the longest took %s", count(len(m.pauses), "stop of the world", "stops of the world"), ms(slices.Max(m.pauses)/1e6))
		r.Not = "when these stops were, nor what requests waited for"
	}
}

func readContentionText(part *attach.Part) attach.Reading {
	kind := profDelay
	perSecond, period, since, java := 0.0, 1.0, 0.0, false
	p := newProfile(kind)
	p.unsummed = true
	for i, line := range part.Lines {
		s := strings.TrimSpace(line.Text)
		if s == "--- mutex:" {
			p.kind = profMutex
		}
		if s == "--- contention:" {
			p.kind = profBlock
		}
		if strings.HasPrefix(s, "--- contentionz") {
			p.kind, p.threads = profMutex, true // C++ and Java count locks only
		}
		key, value, _ := strings.Cut(s, "=")
		n, isNumber := number(value)
		switch key = strings.TrimSpace(key); {
		case key == "format":
			java = strings.TrimSpace(value) == "java"
		case !isNumber:
		case key == "cycles/second":
			perSecond = n
		case key == "sampling period":
			period = n
		case key == "ms since reset":
			since = n / 1e3
		}
		v, ok := contentionLine(s)
		if !ok {
			continue
		}
		one := sampled{funcs: stackOf(part.Lines[i+1:]), value: v[0], n: v[1]}
		p.total += one.value
		p.events += one.n
		p.add(one)
	}
	title := fmt.Sprintf("%s profile as text", p.kind)
	if p.kind == profMutex && period == 0 {
		return attach.Reading{Title: title, State: attach.CannotTell,
			Means: "the profile is switched off in the program (sampling period 0), so it says nothing of locks",
			Next: []attach.Next{{Command: "runtime.SetMutexProfileFraction(100) in the program",
				Why: "switches it on"}}}
	}
	scale := ratio(1e9, perSecond)
	if java {
		scale = 1e3 // microseconds
	}
	if since > 0 { // gperftools prints samples; Go prints what it has scaled
		scale *= max(1, period)
		p.events *= max(1, period)
		p.duration = since
	}
	if scale == 0 {
		return attach.Reading{Title: title, State: attach.CannotTell,
			Means:   "its first lines are cut off, so the unit of the waits is not known",
			Figures: []string{fmt.Sprintf("%.0f waits", p.events)},
			Next: []attach.Next{{Command: "curl 'http://HOST:PORT/debug/pprof/mutex?debug=1'",
				Why: "with its first lines"}}}
	}
	p.rescale(scale)
	return p.read(title)
}

func (p *profile) rescale(by float64) {
	p.total *= by
	for _, m := range []map[string]float64{p.flat, p.cum} {
		for k := range m {
			m[k] *= by
		}
	}
	for i := range p.stacks {
		p.stacks[i].value *= by
	}
}
