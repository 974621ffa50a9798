package goruntime

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/format/paste"
	"github.com/whystall/whystall/internal/format/paste/pattern"
)

// goroutineDump is stacks as debug=2, a panic, SIGQUIT and runtime.Stack print them.
var goroutineDump = &attach.Kind{
	Name: "goroutine dump",
	Hints: []string{"goroutine ", " goroutines [", "fatal error: ", "panic: ", "Observed a panic",
		"panic serving ", "unexpected goroutines", "PC=0x", "SIG", "(", " in state ", "leaked",
		".go:", "runtime: ", "pthread_create failed"},
	Claim:   claimDump,
	Reports: true,
	Read: func(p *attach.Part) attach.Reading {
		d := parseDump(p.Lines)
		return readDump(p, d)
	},
}

// dump is what a text of stacks holds.
type dump struct {
	stacks []*stack
	deep   float64 // bytes that a goroutine's stack may have, and had; 0: none is said
	memory string  // what it asked for when it ran out of memory, and had; "": it did not
	large  uint64  // bytes of a large object, as the stack that ran out of memory has it
	crash  string  // "fatal error: all goroutines are asleep - deadlock!"; "": none
	loose  bool    // the crash stands behind other words, such as a logger's
	nested string  // a second panic, of a deferred function while the first went on; "": none
	fault  string  // "SIGSEGV", of a crash; "": none
	signal string  // "SIGQUIT: quit"
	total  int     // as a heading says; 0: none
	// threadless: the system gave no further thread.
	threadless bool
	// tests are those that ran when a test's program ended itself, as the text lists them.
	tests  []string
	astray bool // the system gave memory at an address of no use
	cut    int  // lines that stand for what was left out
	open   bool // the text ends within a header
	counts bool // debug=1: stacks with counts, no states
	// timeless: of a debugger, without states and times.
	timeless bool
	leak     bool // a test's own check found them
	lost     bool // the runtime found that nothing can wake them

	reversed bool // the newest line stands first
}

// maxStacks bounds what is held of a dump.
const maxStacks = 100_000

// lineOf says what a line of a dump is.
type lineOf int

const (
	lineOther lineOf = iota
	lineBlank
	lineHeader
	lineCall
	linePlace
	lineCrash  // panic, fatal error
	lineSignal // SIGQUIT: quit
	lineNoise  // registers, "runtime stack:"
	lineCut    // "..."
	lineLeak   // what a test's check of leaks prints first
	lineParent // where the stack of the goroutine starts that started this one
)

// bare is a line without the key that a terminal shows for a signal, and the marks of a person who
// meant a fence.
func bare(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "remote:") // of git, before what a hook prints
	if strings.Contains(s, "](http") {
		s = numberLink.ReplaceAllString(s, "$1")
	}
	return strings.TrimPrefix(strings.Trim(strings.TrimSpace(s), "`"), `^\`)
}

// numberLink is a link that a web page made of some digits within a line.
var numberLink = pattern.New(`\[(\d+)\]\(https?://[^)\s]*\)`)

func dumpLine(s string) lineOf {
	t := bare(s)
	if t == "" {
		return lineBlank
	}
	if _, _, ok := headerIn(t); ok {
		return lineHeader
	}
	if strings.HasPrefix(t, "goroutine running on other thread") {
		return lineNoise
	}
	if strings.HasPrefix(t, "[originating from goroutine") {
		return lineParent
	}
	if _, _, ok := parseCall(t); ok {
		return lineCall
	}
	if _, ok := parsePlace(t); ok {
		return linePlace
	}
	switch {
	case leakLine(t):
		return lineLeak
	case t == "...", t == "…", t == "[...]", t == "(...)", cutHeader(t),
		strings.HasPrefix(t, "...additional frames elided"), strings.HasPrefix(t, "...") &&
			strings.HasSuffix(t, "elided..."):
		return lineCut
	case strings.HasPrefix(t, "fatal error: "), strings.HasPrefix(t, "panic: "), noThread(t),
		survived(t), logged(t) > 0:
		return lineCrash
	case strings.HasPrefix(t, "SIG") && strings.Contains(t, ": ") && len(t) < 60:
		return lineSignal
	case strings.HasPrefix(t, "[signal SIG"), strings.HasPrefix(t, "PC=0x"),
		strings.HasPrefix(t, "runtime stack:"), strings.HasPrefix(t, "exit status "),
		t == "]", strings.HasPrefix(t, "runtime: "),
		strings.HasPrefix(t, "unexpected fault address"), strings.HasPrefix(t, "stack: frame={"),
		strings.HasPrefix(t, "goroutine 0 "), isRegister(t), isTail(t), isRuntimeC(t), memoryRow.MatchString(t):
		return lineNoise
	}
	return lineOther
}

// headerIn finds a goroutine's header in a line. A program's own words may stand right before it,
// where they had no end of line; glued is true then.
func headerIn(t string) (s stack, glued, ok bool) {
	if s, ok = leakHeader(t); ok {
		return s, false, true
	}
	if s, ok = countedHeader(t); ok {
		return s, false, true
	}
	at := strings.LastIndex(t, "goroutine ")
	if at < 0 || at > 0 && !strings.HasSuffix(t, "]:") {
		return s, false, false
	}
	s, ok = parseHeader(t[at:])
	return s, at > 0, ok
}

// cutHeader knows the start of a goroutine's header, the end of which somebody cut off.
func cutHeader(t string) bool {
	rest, ok := strings.CutPrefix(t, "goroutine ")
	d := digits(rest)
	return ok && d > 0 && strings.HasPrefix(rest[d:], " [") && !strings.Contains(rest, "]")
}

// isRegister knows "rax    0xca" at the end of a crash.
func isRegister(t string) bool {
	f := strings.Fields(t)
	return len(f) == 2 && len(f[0]) <= 6 && strings.HasPrefix(f[1], "0x") && f[0] == strings.ToLower(f[0])
}

// isRuntimeC knows a call of the runtime's C code, which Go had until 1.4: "stopm()".
func isRuntimeC(t string) bool {
	name, args, ok := strings.Cut(t, "(")
	if !ok || name == "" || len(name) > 40 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return false
	}
	return args == ")" || strings.HasPrefix(args, "0x") && strings.HasSuffix(args, ")")
}

// tooDeep is how the runtime says that a stack has reached its limit.
var tooDeep = pattern.New(`^runtime: goroutine stack exceeds (\d+)-byte limit`)

func parseDump(lines []paste.Line) *dump {
	d := &dump{}
	r := dumpReader{d: d}
	if d.reversed = upsideDown(lines); d.reversed {
		lines = slices.Clone(lines)
		slices.Reverse(lines)
	}
	for _, line := range lines {
		what := dumpLine(line.Text)
		if what == lineHeader && len(d.stacks) >= maxStacks {
			d.cut++
			break
		}
		r.take(what, bare(line.Text))
	}
	d.loose = r.loose
	if len(d.stacks) > 0 && d.stacks[0].ofThread() {
		d.stacks = d.stacks[1:]
	}
	return d
}

// ofThread reports whether a stack without a header is that of a thread, which a crash prints
// first: all of it is the runtime's, and it ends where threads start or switch.
func (s *stack) ofThread() bool {
	n := len(s.frames)
	if s.id != 0 || s.state != "" || n == 0 || slices.ContainsFunc(s.frames,
		func(f frame) bool { return !strings.HasPrefix(f.fn, "runtime.") }) {
		return false
	}
	return slices.Contains([]string{"runtime.mcall", "runtime.mstart", "runtime.mstart0",
		"runtime.mstart1", "runtime.systemstack", "runtime.rt0_go"}, s.frames[n-1].fn)
}

// dumpReader takes the lines of a dump one by one.
type dumpReader struct {
	d       *dump
	s       *stack
	created bool // the line above says who started the goroutine
	ended   bool // the stack has its last line
	parents bool // what follows is of the goroutines that started this one
	loose   bool // the crash stood behind other words, which may be a person's
	last    lineOf
	blanks  int // in this stack
}

func (r *dumpReader) start(s *stack) {
	r.s, r.created, r.ended, r.parents, r.blanks = s, false, false, false, 0
	r.d.stacks = append(r.d.stacks, s)
}

// another reports whether a call starts a stack of which no header is there.
func (r *dumpReader) another() bool {
	return r.s == nil || r.s.id == 0 && (r.ended || r.blanks == 1 && r.last == linePlace) && len(r.d.stacks) < maxStacks
}

func (r *dumpReader) take(what lineOf, t string) {
	d := r.d
	switch what {
	case lineBlank:
		r.blanks++
		return
	case lineHeader:
		_, goleak := leakHeader(t)
		d.leak = d.leak || goleak || leakLine(t)
		h, glued, _ := headerIn(t)
		if before := t[:max(0, strings.LastIndex(t, "goroutine "))]; glued && d.crash == "" &&
			dumpLine(before) == lineCrash {
			d.crash = strings.TrimSpace(before)
		}
		if r.s != nil && r.s.id == h.id && len(r.s.frames) == 0 { // goleak prints both
			*r.s = h
			break
		}
		r.start(&h)
	case lineCall:
		r.call(t)
	case linePlace:
		if place, _ := parsePlace(t); r.s != nil && len(r.s.frames) > 0 && !r.created && !r.parents {
			r.s.frames[len(r.s.frames)-1].at = place
		}
		r.ended = r.ended || r.created
	case lineCrash:
		if d.crash != "" && d.nested == "" && len(d.stacks) == 0 &&
			strings.HasPrefix(t, "panic: ") && !strings.HasPrefix(d.crash, t) {
			d.nested = t
		}
		if d.crash == "" || r.loose && logged(t) == 0 {
			d.crash, r.loose = t[logged(t):], logged(t) > 0
		}
		if noThread(t) {
			d.threadless = true
		}
	case lineNoise:
		// The stack of the thread that ended the process is no goroutine's.
		r.parents = r.parents || strings.HasPrefix(t, "runtime stack:") ||
			strings.HasPrefix(t, "PC=0x") && len(d.stacks) == 0
		if fault, ok := strings.CutPrefix(t, "[signal "); ok && d.fault == "" {
			d.fault, _, _ = strings.Cut(strings.Trim(fault, "]"), ":")
			d.fault, _, _ = strings.Cut(d.fault, " ")
		}
		if m := tooDeep.FindStringSubmatch(t); m != nil {
			d.deep, _ = strconv.ParseFloat(m[1], 64)
		}
		if strings.Contains(t, ") not in usable range [") {
			d.astray = true
		}
		if text := d.refusal(t); text != "" && d.memory == "" {
			d.memory = text
			d.crash = cmp.Or(d.crash, "out of memory")
		}
	case lineSignal:
		d.signal = t
	case lineLeak:
		d.leak, r.s = true, nil
	case lineParent:
		r.parents = true
	case lineCut:
		d.cut++
		d.open = cutHeader(t)
	case lineOther:
		if elided(t) {
			d.cut++
		}
		if m := runningTest.FindStringSubmatch(t); m != nil &&
			strings.HasPrefix(d.crash, "panic: test timed out") && len(d.stacks) == 0 {
			d.tests = append(d.tests[:min(len(d.tests), maxTests)], m[0])
		}
	}
	r.last = what
}

func (r *dumpReader) call(t string) {
	f, created, _ := parseCall(t)
	if f.fn == "runtime.largeAlloc" && len(f.args) > 0 && !f.vague && r.d.large == 0 {
		r.d.large = f.args[0]
	}
	if r.parents {
		return
	}
	if created && r.s == nil { // of a stack that was cut off
		r.created = true
		return
	}
	if r.another() {
		r.start(&stack{count: 1})
	}
	if r.created = created; created {
		r.s.created = f.fn
		r.ended = f.at != ""
	} else if len(r.s.frames) < 256 {
		r.s.frames = append(r.s.frames, f)
	}
}
