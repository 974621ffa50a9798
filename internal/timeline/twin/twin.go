// Package twin holds traces written by hand, for tests: a text that a person can check by eye, made into the events that a
// real trace would have. It refuses what no runtime would write, unless told that the trace is damaged.
package twin

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// Parse makes a trace of a text that a person writes and checks by eye. A line that begins in the first column is
// about the whole process or opens a goroutine, an indented one tells what that goroutine does:
//
//	# the caller waits for the batcher
//	unit 1ms
//	procs 2
//	3..7 gc
//	goroutine A main.caller
//		0 running
//		1 waiting chan receive at runtime.chanrecv1<main.get
//		10 runnable by B at runtime.closechan
//		12 running
//		13 end
//	goroutine B main.batcher
//		0 running
//		2 waiting network at internal/poll.(*FD).Read
//		4 runnable by P
//		9 running
//		14 waiting forever
//
// Process lines:
//
//	unit 1us                  what a bare time is a multiple of; 1ns unless said. Times may have a fraction.
//	version 26                exectrace.Version
//	procs 2                   GOMAXPROCS; else as many as are needed
//	wall 1700000000000000000  the wall clock at time 0, ns: the trace has a wall clock then
//	end 20                    the trace's end; else its last time
//	damaged                   do not check that wakers were running, nor that Ps suffice
//	8 procs 4                 GOMAXPROCS changes
//	6 start 1                 a thread starts P 1, and stops it at once unless a goroutine runs on it
//	3..7 gc                   the mark phase
//	5..6 gap REASON           events are missing; lines that fall inside are not handed out
//	7 sync                    a generation begins: the running states are repeated as statuses
//	5 heap live 4096          or: heap goal 4096
//
// A goroutine is a name (or its number) and its entry function. Its lines, in order of time:
//
//	0 running [on 1]                 on P 1; unless said the P it had last, or the first that is free
//	1 waiting REASON [at STACK]      REASON is the runtime's word: chan receive, chan send, select, sync,
//	                                 sync.(*Cond).Wait, network, sleep, preempted, coroutine, forever, …
//	10 runnable by B [at STACK]      after a wait: woken by goroutine B, which did it at STACK;
//	                                 "by P": a P without goroutine; "by nobody": a thread without P
//	10 runnable [yield]              after running: preempted, or gave way
//	10 runnable                      after a syscall: came back without its P
//	2 syscall [at STACK]
//	3 retaken                        lost its P in the syscall; else it keeps it until it comes back
//	4 created [blocked] by B [at STACK]   "by nobody": made by a timer or unseen
//	13 end
//	2..4 assist [at STACK]
//	2..4 sweep [swept N] [reclaimed N] [at STACK]
//	2..4 stw GC mark termination [at STACK]
//	2..9 task NAME [in PARENT] [by B]     by B: it is B that ends it
//	2..9 region NAME [in TASK]
//	5 log CATEGORY MESSAGE…
//	5 label NAME
//	5 sample at STACK
//
// Where a time may be missing (2.. or ..4) the range is open at that end of the trace. A first line other than
// created is the goroutine's status there. STACK is "inner<outer<…", a frame may have a line number (main.f:12);
// the entry function is added at its end unless there ("-": no stack). Without "at" there is the frame that the reason implies.
//
// Within one instant wake-ups come first, then who leaves a P, then who gets one; the lines of one goroutine never change order.
func Parse(r io.Reader) (*Trace, error) {
	p := &parser{
		Trace:  &Trace{version: 26, strings: []string{""}, stacks: [][]exectrace.Frame{nil}},
		unit:   1,
		end:    math.MinInt64,
		begin:  math.MaxInt64,
		byName: map[string]*goroutine{},
		strs:   map[string]exectrace.StringID{"": 0},
		stks:   map[string]exectrace.StackID{"": 0},
		tasks:  map[string]uint64{},
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		if err := p.line(n, sc.Text()); err != nil {
			return nil, fmt.Errorf("parse text timeline: line %d: %w", n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("parse text timeline: %w", err)
	}
	if err := p.generate(); err != nil {
		return nil, fmt.Errorf("parse text timeline: %w", err)
	}
	return p.Trace, nil
}

// Must is Parse of a string, for tests.
func Must(s string) *Trace {
	src, err := Parse(strings.NewReader(s))
	if err != nil {
		panic(err)
	}
	return src
}

// Trace is a parsed twin, a timeline.Source: the whole stream in memory.
type Trace struct {
	version exectrace.Version
	clock   exectrace.Clock
	events  []exectrace.Event
	strings []string
	stacks  [][]exectrace.Frame
	gaps    []exectrace.Gap
}

func (t *Trace) Version() exectrace.Version { return t.version }

func (t *Trace) Lacks() []string { return nil }

func (t *Trace) Clock() exectrace.Clock { return t.clock }

func (t *Trace) Gaps() []exectrace.Gap { return t.gaps }

func (t *Trace) Err() error { return nil }

func (t *Trace) Stats() exectrace.Stats { return exectrace.Stats{Events: int64(len(t.events))} }

// Blocks hands out copies of a few events at a time, so that who keeps a block is found out.
func (t *Trace) Blocks() iter.Seq[[]exectrace.Event] {
	return func(yield func([]exectrace.Event) bool) {
		block := make([]exectrace.Event, 0, 64)
		for c := range slices.Chunk(t.events, 64) {
			block = append(block[:0], c...)
			if !yield(block) {
				return
			}
		}
	}
}

func (t *Trace) String(id exectrace.StringID) string {
	if int(id) >= len(t.strings) {
		return ""
	}
	return t.strings[id]
}

func (t *Trace) Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame {
	if int(id) >= len(t.stacks) {
		return dst
	}
	return append(dst, t.stacks[id]...)
}

// Ranks order the lines of one instant.
const (
	rankStatus = iota
	rankProcess
	rankWake
	rankRangeEnd
	rankLeave
	rankRun
	rankRangeBegin
	rankLate // woken by one that runs from this instant on
	rankLast // end of the trace
)

// textG is one goroutine block.
type goroutine struct {
	name   string
	id     exectrace.GoID
	entry  string
	line   int
	states []state // for checks while parsing and for who runs when
	last   int64   // of the last state line
	rank   int
}

type state struct {
	t     int64
	state exectrace.State
}

// textItem is one thing that happens at one instant.
type item struct {
	t, end int64
	rank   int
	line   int
	verb   string
	g      *goroutine
	by     *goroutine
	byName string // resolved after all lines are read
	stack  exectrace.StackID
	name   exectrace.StringID
	reason exectrace.Reason
	first  bool
	yield  bool
	proc   int // pinned, or -1
	arg    [2]uint64
}

type parser struct {
	*Trace
	unit       float64
	procs      int
	damaged    bool
	begin, end int64
	cur        *goroutine
	gs         []*goroutine
	byName     map[string]*goroutine
	items      []item
	strs       map[string]exectrace.StringID
	stks       map[string]exectrace.StackID
	tasks      map[string]uint64
	ntasks     uint64
}

func (p *parser) string(s string) exectrace.StringID {
	id, ok := p.strs[s]
	if !ok {
		id = exectrace.StringID(len(p.strings))
		p.strings = append(p.strings, s)
		p.strs[s] = id
	}
	return id
}

// stack interns "inner<outer" with the goroutine's entry added.
func (p *parser) stack(s string, g *goroutine) exectrace.StackID {
	if s == "-" {
		return 0
	}
	if g != nil && g.entry != "" && s != g.entry && !strings.HasSuffix(s, "<"+g.entry) {
		if s != "" {
			s += "<"
		}
		s += g.entry
	}
	if id, ok := p.stks[s]; ok {
		return id
	}
	var frames []exectrace.Frame
	for f := range strings.SplitSeq(s, "<") {
		fr := exectrace.Frame{Func: f, File: "file.go", Line: 1}
		if i := strings.LastIndexByte(f, ':'); i > 0 {
			if n, err := strconv.Atoi(f[i+1:]); err == nil && n > 0 {
				fr.Func, fr.Line = f[:i], n
			}
		}
		for _, c := range []byte(f) { // a program counter that is the same for the same frame
			fr.PC = fr.PC*31 + uint64(c)
		}
		frames = append(frames, fr)
	}
	id := exectrace.StackID(len(p.stacks))
	p.stacks = append(p.stacks, frames)
	p.stks[s] = id
	return id
}

func (p *parser) time(s string) (int64, error) {
	unit := p.unit
	for _, u := range []struct {
		suffix string
		ns     float64
	}{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}} {
		if v, ok := strings.CutSuffix(s, u.suffix); ok {
			s, unit = v, u.ns
			break
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	// Beyond 2^53 a float64 no longer counts nanoseconds; below 0 nothing happens.
	if err != nil || !(f >= 0) || f*unit > 1<<53 {
		return 0, fmt.Errorf("want a time, got %q", s)
	}
	return int64(math.Round(f * unit)), nil
}

func (p *parser) see(t int64) {
	p.begin = min(p.begin, t)
	p.end = max(p.end, t)
}

// line reads one line: a setting, the start of a goroutine, one of its lines, or one of the process.
func (p *parser) line(n int, s string) error {
	body := strings.TrimSpace(s)
	if body == "" || body[0] == '#' {
		return nil
	}
	f := strings.Fields(body)
	switch {
	case s[0] != ' ' && s[0] != '\t':
	case p.cur == nil:
		return fmt.Errorf("%q is indented but no goroutine was opened", body)
	default:
		return p.gline(n, f)
	}
	if f[0] == "goroutine" {
		return p.open(n, f)
	}
	if done, err := p.setting(f, body); done {
		return err
	}
	return p.processLine(n, f, body)
}

// setting reads a line that holds for the whole trace. done reports whether it was one.
func (p *parser) setting(f []string, body string) (done bool, err error) {
	arg := ""
	if len(f) > 1 {
		arg = f[1]
	}
	switch f[0] {
	case "unit":
		u, err := p.time(arg)
		if err != nil || u <= 0 {
			return true, fmt.Errorf("want unit and a time above 0, got %q", body)
		}
		p.unit = float64(u)
	case "version":
		v, err := strconv.Atoi(arg)
		if err != nil {
			return true, fmt.Errorf("want version and a number, got %q", body)
		}
		p.version = exectrace.Version(v)
	case "procs":
		v, err := strconv.Atoi(arg)
		if err != nil || v < 1 || v > 1<<16 {
			return true, fmt.Errorf("want procs and a number, got %q", body)
		}
		p.procs = v
	case "wall":
		v, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return true, fmt.Errorf("want wall and nanoseconds, got %q", body)
		}
		p.clock.Wall, p.clock.WallNS = true, v
	case "end":
		t, err := p.time(arg)
		if err != nil {
			return true, err
		}
		p.see(t)
	case "damaged":
		p.damaged = true
	default:
		return false, nil
	}
	return true, nil
}

// processLine reads what happens to the process and to no goroutine: "T gc", "T heap live N".
func (p *parser) processLine(n int, f []string, body string) error {
	it, err := p.times(n, f[0])
	if err != nil {
		return err
	}
	it.rank = rankProcess
	if len(f) < 2 {
		return fmt.Errorf("%q says nothing", body)
	}
	it.verb = f[1]
	switch it.verb {
	case "gc":
		p.addRange(it, rankRangeBegin, rankRangeEnd)
		return nil
	case "gap":
		if it.end < it.t || it.end == math.MaxInt64 {
			return fmt.Errorf("want gap with begin and end")
		}
		it.name = p.string(strings.Join(f[2:], " "))
		p.gaps = append(p.gaps, exectrace.Gap{Begin: exectrace.Time(it.t), End: exectrace.Time(it.end), Reason: p.String(it.name)})
	case "sync":
	case "procs", "start":
		v := -1
		if len(f) == 3 {
			v, _ = strconv.Atoi(f[2])
		}
		if v < 0 || v > 1<<16 || v == 0 && it.verb == "procs" {
			return fmt.Errorf("want %s and a number, got %q", it.verb, body)
		}
		it.arg[0] = uint64(v)
	case "heap":
		if len(f) != 4 || f[2] != "live" && f[2] != "goal" {
			return fmt.Errorf("want heap live N or heap goal N, got %q", body)
		}
		v, err := strconv.ParseUint(f[3], 10, 64)
		if err != nil {
			return fmt.Errorf("want a number of bytes, got %q", f[3])
		}
		it.verb, it.arg[0] = "heap "+f[2], v
	default:
		return fmt.Errorf("unknown %q", it.verb)
	}
	p.items = append(p.items, it)
	return nil
}

func (p *parser) open(n int, f []string) error {
	if len(f) < 2 || len(f) > 3 {
		return fmt.Errorf("want goroutine NAME [ENTRY], got %d words", len(f))
	}
	if p.byName[f[1]] != nil {
		return fmt.Errorf("goroutine %s is there already", f[1])
	}
	if f[1] == "P" || f[1] == "nobody" {
		return fmt.Errorf("goroutine %s: the name is taken", f[1])
	}
	g := &goroutine{name: f[1], line: n}
	if len(f) == 3 {
		g.entry = f[2]
	}
	if id, err := strconv.ParseInt(f[1], 10, 64); err == nil {
		if id < 1 {
			return fmt.Errorf("want a goroutine number above 0, got %d", id)
		}
		g.id = exectrace.GoID(id)
	}
	p.byName[f[1]] = g
	p.gs = append(p.gs, g)
	p.cur = g
	return nil
}

// times reads "T", "T..T", "T.." or "..T".
func (p *parser) times(n int, s string) (item, error) {
	it := item{line: n, proc: -1, end: math.MinInt64}
	a, b, isRange := strings.Cut(s, "..")
	it.t = math.MinInt64
	if a != "" {
		t, err := p.time(a)
		if err != nil {
			return it, err
		}
		it.t = t
		p.see(t)
	} else if !isRange || b == "" {
		return it, fmt.Errorf("want a time, got %q", s)
	}
	if isRange {
		it.end = math.MaxInt64
		if b != "" {
			t, err := p.time(b)
			if err != nil {
				return it, err
			}
			if t < it.t {
				return it, fmt.Errorf("range %s ends before it begins", s)
			}
			it.end = t
			p.see(t)
		}
	}
	return it, nil
}

// addRange makes two items of one line.
func (p *parser) addRange(it item, begin, end int) {
	open := it
	open.rank = begin
	if it.t == math.MinInt64 {
		open.first = true // active
		open.rank = rankProcess
	}
	p.items = append(p.items, open)
	if it.end != math.MaxInt64 {
		it.t, it.rank = it.end, end
		it.verb += " end"
		p.items = append(p.items, it)
	}
}
