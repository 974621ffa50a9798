package profiler

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

var perfScript = &attach.Kind{Name: "perf script", Claim: claimPerfScript, Read: readPerfScript, Reports: true}

var (
	// "java 43869/44 [025] 51499.133872:          1 page-faults: ", with or without most of it
	scriptHead = pattern.New(`^(\S.{0,30}?)\s+(\d+)(?:/\s*(\d+))?\s+(?:\[(\d+)\]\s+)?(?:(\d+\.\d+):\s+)?(?:(\d+)\s+)?([A-Za-z][\w./,=-]*(?::[\w-]+){0,2}):(?:\s+(.*))?$`)
	// "   80786 _int_malloc+0x28 (/lib/libc.so)"
	scriptFrame = pattern.New(`^([0-9a-f]{1,16})\s+(\S.*?)\s+\((.*)\)$`)
	// "   ffff800080456c44 handle_userfault+0x47c", where no module was asked for
	scriptBare = pattern.New(`^([0-9a-f]{8,16})\s+(\S+\+0x[0-9a-f]+)$`)
	// "   b73f2a62  (/usr/lib/libX11.so.6.3.0)", as old versions write a function without a symbol
	scriptNameless = pattern.New(`^[0-9a-f]{6,16}\s+\(([^()\s]+)\)$`)
	scriptCut      = pattern.New(`^[0-9a-f]{6,16}\s+\S.*\s+\([^)]*$`) // its end was cut off
	inlined        = pattern.New(`^\S.*\s+\(inlined\)$`)
)

// scriptCutHead is an event of which the thread and the time were cut off.
var scriptCutHead = pattern.New(`^([a-z]\w*:\w+): \S`)

// otherHead reports whether a line is an event of whatever name, below events that are known: it
// has a thread, a CPU and a time.
func otherHead(text string) []string {
	if !strings.Contains(text, "] ") || len(text) > 1<<12 {
		return nil
	}
	if m := scriptHead.FindStringSubmatch(text); m != nil && m[4] != "" && m[5] != "" {
		return m
	}
	return nil
}

func scriptHeadOf(text string) []string {
	if !namesEvent(text) {
		return nil
	}
	m := scriptHead.FindStringSubmatch(text)
	if m == nil || !scriptEvent(m[7]) || m[4] == "" && m[5] == "" && m[6] == "" && m[8] != "" &&
		!scriptFrame.MatchString(m[8]) {
		return nil
	}
	return m
}

// namesEvent reports whether a word of a line is an event with a colon after it. It is what spares
// the lines of a long log the expression.
func namesEvent(text string) bool {
	for at := 0; at < min(len(text), 160); {
		i := strings.IndexByte(text[at:], ':')
		if i < 0 {
			return false
		}
		i += at
		if i+1 == len(text) || text[i+1] == ' ' {
			if scriptEvent(text[strings.LastIndexByte(text[:i], ' ')+1 : i]) {
				return true
			}
		}
		at = i + 1
	}
	return false
}

func claimPerfScript(lines []paste.Line) int {
	first := strings.TrimSpace(lines[0].Text)
	cut := false
	if m := scriptCutHead.FindStringSubmatch(first); m != nil && scriptEvent(m[1]) && len(lines) > 1 {
		cut = scriptHeadOf(strings.TrimSpace(lines[1].Text)) != nil
	}
	if !cut && scriptHeadOf(first) == nil && !scriptFrame.MatchString(first) && !scriptComment(first) {
		return 0
	}
	heads, frames := 0, 0
	n := claimed(lines, func(i int, text string) bool {
		switch {
		case scriptHeadOf(text) != nil:
			heads++
		case i == 0 && cut, heads > 0 && otherHead(text) != nil:
		case heads > 0 && headGoesOn(text, strings.TrimSpace(lines[i-1].Text)):
		case heads > 0 && i+1 == len(lines) && cutThread(text, lines[i-1].Text):
		case heads > 0 && (scriptCut.MatchString(text) || scriptBare.MatchString(text)):
		case scriptFrame.MatchString(text) && (heads > 0 || !strings.HasPrefix(text, "0 ") ||
			strings.Contains(text, "[unknown]")):
			frames++
		case heads+frames > 0 && (inlined.MatchString(text) || scriptNameless.MatchString(text)):
		case scriptComment(text):
		default:
			return heads+frames > 0 && text == "..."
		}
		return true
	})
	if heads == 0 && frames < 3 {
		return 0
	}
	return n
}

// headGoesOn reports whether a line is fields of the event above it, which a mail wrapped.
func headGoesOn(text, above string) bool {
	if !fieldsOfHead.MatchString(text) || len(text) > 400 {
		return false
	}
	return scriptHeadOf(above) != nil || otherHead(above) != nil || fieldsOfHead.MatchString(above)
}

// "comm=kworker/1:2 pid=7 prio=120", "==> next_comm=app next_pid=9"
var fieldsOfHead = pattern.New(`^(?:==> )?[a-z_]+=\S*(?: |$)`)

// joinedBy puts lines together that were wrapped. goesOn reports whether a line goes on with the
// one above it.
func joinedBy(lines []string, goesOn func(text, above string) bool) []string {
	out := make([]string, 0, len(lines))
	for i, text := range lines {
		if i > 0 && goesOn(text, lines[i-1]) && len(out[len(out)-1]) < 1<<12 {
			out[len(out)-1] += " " + text
			continue
		}
		out = append(out, text)
	}
	return out
}

// cutThread reports whether the last line is only the start of the one above it: a thread whose
// event was cut off.
func cutThread(text, above string) bool {
	return len(text) >= 4 && strings.HasPrefix(strings.TrimSpace(above), text)
}

// scriptComment reports whether a line is of the header that perf script prints.
func scriptComment(text string) bool {
	rest, ok := strings.CutPrefix(text, "#")
	if !ok {
		return false
	}
	rest = strings.TrimSpace(rest)
	return rest == "" || rest == "========" || perfHeaderField(rest) ||
		strings.HasPrefix(rest, "HEADER_") || strings.HasPrefix(rest, "contains ")
}

// scripted is what a part of perf script holds, by events.
type scripted struct {
	order  []string
	events map[string]*scriptedEvent
	pairs  *switches
}

type scriptedEvent struct {
	p           profile
	counted     float64 // periods: of events that are counted, how many there were
	first, last float64 // s
	tid         int     // of the first sample
	others      bool    // some are of other threads
	bare        bool    // some lines have no period
}

func readScript(p *attach.Part) *scripted {
	s := &scripted{events: map[string]*scriptedEvent{}, pairs: newSwitches()}
	var now *scriptedEvent
	for _, text := range joinedBy(texts(p), headGoesOn) {
		m := scriptHeadOf(text)
		if m == nil && now != nil {
			m = otherHead(text)
		}
		if m != nil {
			now = s.head(m)
			if at, ok := number(m[5]); ok {
				tid, _ := whole(cmp.Or(m[3], m[2]))
				s.pairs.event(tid, at, m[7], m[8])
			}
			if now != nil && m[8] != "" {
				now.frame(m[8])
			}
			continue
		}
		if now != nil {
			now.frame(text)
		}
	}
	return s
}

func (s *scripted) head(m []string) *scriptedEvent {
	e := s.events[m[7]]
	if e == nil {
		if len(s.order) >= 256 {
			return nil
		}
		e = &scriptedEvent{}
		s.events[m[7]] = e
		s.order = append(s.order, m[7])
	}
	if at, ok := number(m[5]); ok && m[5] != "" {
		if e.first == 0 {
			e.first = at
		}
		e.last = at
	}
	period, ok := number(m[6])
	if !ok || m[6] == "" {
		period, e.bare = 1, true
	}
	e.counted += period
	e.p.number++
	e.p.pid, _ = whole(m[2])
	tid, _ := whole(cmp.Or(m[3], m[2]))
	if e.p.number == 1 {
		e.tid = tid
	}
	e.others = e.others || tid != e.tid
	if len(e.p.samples) < most {
		e.p.samples = append(e.p.samples, sample{weight: period, comm: strings.TrimSpace(m[1])})
	}
	return e
}

// frame adds a function to the last sample.
func (e *scriptedEvent) frame(text string) {
	m := scriptFrame.FindStringSubmatch(text)
	if b := scriptBare.FindStringSubmatch(text); m == nil && b != nil {
		m = append(b, "")
		if len(b[1]) == 16 && strings.HasPrefix(b[1], "ffff") {
			m[3] = "[kernel.kallsyms]"
		}
	}
	if n := scriptNameless.FindStringSubmatch(text); m == nil && n != nil {
		m = []string{text, "", "[unknown]", n[1]}
	}
	if m == nil || len(e.p.samples) == 0 {
		return
	}
	s := &e.p.samples[len(e.p.samples)-1]
	name := m[2]
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	if name == "[unknown]" {
		name = ""
	}
	f := kernel.Frame{Func: name, Module: m[3]}
	if len(s.kernel)+len(s.program) > 0 {
		e.p.stacks = true
	}
	switch {
	case kernelModule(m[3]) && len(s.program) == 0 && len(s.kernel) < 256:
		f.Module = "kernel"
		s.kernel = append(s.kernel, f)
	case len(s.program) < 256:
		s.program = append(s.program, f)
	}
}

// kernelModule reports whether perf names the kernel or a module of it.
func kernelModule(module string) bool {
	switch {
	case strings.HasPrefix(module, "[kernel"), strings.Contains(module, "vmlinux"),
		strings.HasSuffix(module, ".ko"), strings.Contains(module, ".ko."):
		return true
	case strings.HasPrefix(module, "["):
		return module != "[unknown]" && module != "[vdso]" && module != "[heap]" &&
			module != "[stack]" && module != "[vsyscall]" && !strings.HasPrefix(module, "[anon")
	}
	return false
}

func readPerfScript(p *attach.Part) attach.Reading {
	s := readScript(p)
	var best string
	for _, name := range s.order {
		b, e := s.events[best], s.events[name]
		if b == nil || cpuEvent(name) && !cpuEvent(best) || cpuEvent(name) == cpuEvent(best) &&
			e.p.number > b.p.number {
			best = name
		}
	}
	if best == "" {
		return attach.Reading{Title: "perf script, a stack without its event", State: attach.CannotTell,
			Means: "The line that names the event of this stack was cut off: it may be CPU time, a fault or a switch."}
	}
	e := s.events[best]
	one := true
	for i := range e.p.samples {
		one = one && e.p.samples[i].comm == e.p.samples[0].comm
	}
	if !one {
		e.p.pid = 0
	}
	title := fmt.Sprintf("perf script, %s of event %s", attach.Plural(e.p.number, "sample"), best)
	if d := e.last - e.first; d > 0 {
		title += " in " + lasts(d)
	}
	if len(s.order) > 1 {
		title += fmt.Sprintf(", and %s", attach.Plural(len(s.order)-1, "other event"))
	}
	for i := range e.p.samples {
		s := &e.p.samples[i]
		if !cpuEvent(best) || e.bare || e.counted <= 0 {
			s.weight = 1
		}
		s.bare = len(s.kernel)+len(s.program) == 0 // its stack is not in the text
	}
	if cpuEvent(best) {
		e.p.only = sampledOnly(best)
		r := e.p.reading()
		r.Title = title
		e.clock(&r, best)
		return r
	}
	if r, ok := s.pairs.reading(); ok {
		return r
	}
	return scriptEvents(e, title, best)
}

// clock says how much CPU time samples of a clock stand for: their periods are nanoseconds. Of one
// thread it tells how busy that was.
func (e *scriptedEvent) clock(r *attach.Reading, event string) {
	clock := strings.HasPrefix(event, "cpu-clock") || strings.HasPrefix(event, "task-clock")
	each := e.counted / float64(max(e.p.number, 1))
	if !clock || each < 10_000 || each > 1e9 {
		return
	}
	idle := 0
	for i := range e.p.samples {
		if idles(&e.p.samples[i]) {
			idle++
		}
	}
	busy, span := e.counted/1e9-float64(idle)*each/1e9, e.last-e.first
	line := fmt.Sprintf("%s of %s each: %s of CPU time", attach.Plural(e.p.number, "sample"),
		lasts(each/1e9), lasts(busy))
	if idle > 0 {
		line = fmt.Sprintf("%s of %s each: %d of the idle task, and %s of CPU time",
			attach.Plural(e.p.number, "sample"), lasts(each/1e9), idle, lasts(busy))
	}
	if span > 0 {
		line += " in " + lasts(span)
	}
	r.Figures = append([]string{line}, r.Figures...)
	if !e.others && e.p.number >= 10 && busy >= 0.8*span && span > 0 {
		r.Means += fmt.Sprintf(" All are of one thread, which was on a CPU for nearly all of the %s.", lasts(span))
	}
}
