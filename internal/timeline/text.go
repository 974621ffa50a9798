package timeline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// ParseText makes a Source of a text twin: a trace that a person writes and checks by eye. A line that begins in the first column is
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
func ParseText(r io.Reader) (Source, error) {
	p := &textParser{
		text:   &text{version: 26, strings: []string{""}, stacks: [][]exectrace.Frame{nil}},
		unit:   1,
		end:    math.MinInt64,
		begin:  math.MaxInt64,
		byName: map[string]*textG{},
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
	return p.text, nil
}

// MustText is ParseText of a string, for tests.
func MustText(s string) Source {
	src, err := ParseText(strings.NewReader(s))
	if err != nil {
		panic(err)
	}
	return src
}

// text is a parsed twin: the whole stream in memory.
type text struct {
	version exectrace.Version
	clock   exectrace.Clock
	events  []exectrace.Event
	strings []string
	stacks  [][]exectrace.Frame
	gaps    []exectrace.Gap
}

func (t *text) Version() exectrace.Version { return t.version }
func (t *text) Lacks() []string            { return nil }
func (t *text) Clock() exectrace.Clock     { return t.clock }
func (t *text) Gaps() []exectrace.Gap      { return t.gaps }
func (t *text) Err() error                 { return nil }
func (t *text) Stats() exectrace.Stats     { return exectrace.Stats{Events: int64(len(t.events))} }

// Blocks hands out copies of a few events at a time, so that who keeps a block is found out.
func (t *text) Blocks() iter.Seq[[]exectrace.Event] {
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

func (t *text) String(id exectrace.StringID) string {
	if int(id) >= len(t.strings) {
		return ""
	}
	return t.strings[id]
}

func (t *text) Frames(dst []exectrace.Frame, id exectrace.StackID) []exectrace.Frame {
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
type textG struct {
	name   string
	id     exectrace.GoID
	entry  string
	line   int
	states []textState // for checks while parsing and for who runs when
	last   int64       // of the last state line
	rank   int
}

type textState struct {
	t     int64
	state exectrace.State
}

// textItem is one thing that happens at one instant.
type textItem struct {
	t, end int64
	rank   int
	line   int
	verb   string
	g      *textG
	by     *textG
	byName string // resolved after all lines are read
	stack  exectrace.StackID
	name   exectrace.StringID
	reason exectrace.Reason
	first  bool
	yield  bool
	proc   int // pinned, or -1
	arg    [2]uint64
}

type textParser struct {
	*text
	unit       float64
	procs      int
	damaged    bool
	begin, end int64
	cur        *textG
	gs         []*textG
	byName     map[string]*textG
	items      []textItem
	strs       map[string]exectrace.StringID
	stks       map[string]exectrace.StackID
	tasks      map[string]uint64
	ntasks     uint64
}

func (p *textParser) string(s string) exectrace.StringID {
	id, ok := p.strs[s]
	if !ok {
		id = exectrace.StringID(len(p.strings))
		p.strings = append(p.strings, s)
		p.strs[s] = id
	}
	return id
}

// stack interns "inner<outer" with the goroutine's entry added.
func (p *textParser) stack(s string, g *textG) exectrace.StackID {
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

func (p *textParser) time(s string) (int64, error) {
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

func (p *textParser) see(t int64) {
	p.begin = min(p.begin, t)
	p.end = max(p.end, t)
}

func (p *textParser) line(n int, s string) error {
	body := strings.TrimSpace(s)
	if body == "" || body[0] == '#' {
		return nil
	}
	f := strings.Fields(body)
	if s[0] == ' ' || s[0] == '\t' {
		if p.cur == nil {
			return fmt.Errorf("%q is indented but no goroutine was opened", body)
		}
		return p.gline(n, f)
	}
	arg := func() string {
		if len(f) > 1 {
			return f[1]
		}
		return ""
	}
	switch f[0] {
	case "unit":
		u, err := p.time(arg())
		if err != nil || u <= 0 {
			return fmt.Errorf("want unit and a time above 0, got %q", body)
		}
		p.unit = float64(u)
		return nil
	case "version":
		v, err := strconv.Atoi(arg())
		if err != nil {
			return fmt.Errorf("want version and a number, got %q", body)
		}
		p.version = exectrace.Version(v)
		return nil
	case "procs":
		v, err := strconv.Atoi(arg())
		if err != nil || v < 1 || v > 1<<16 {
			return fmt.Errorf("want procs and a number, got %q", body)
		}
		p.procs = v
		return nil
	case "wall":
		v, err := strconv.ParseInt(arg(), 10, 64)
		if err != nil {
			return fmt.Errorf("want wall and nanoseconds, got %q", body)
		}
		p.clock.Wall, p.clock.WallNS = true, v
		return nil
	case "end":
		t, err := p.time(arg())
		if err == nil {
			p.see(t)
		}
		return err
	case "damaged":
		p.damaged = true
		return nil
	case "goroutine":
		return p.open(n, f)
	}
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
	case "procs":
		v := 0
		if len(f) == 3 {
			v, _ = strconv.Atoi(f[2])
		}
		if v < 1 || v > 1<<16 {
			return fmt.Errorf("want procs and a number, got %q", body)
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

func (p *textParser) open(n int, f []string) error {
	if len(f) < 2 || len(f) > 3 {
		return fmt.Errorf("want goroutine NAME [ENTRY], got %d words", len(f))
	}
	if p.byName[f[1]] != nil {
		return fmt.Errorf("goroutine %s is there already", f[1])
	}
	if f[1] == "P" || f[1] == "nobody" {
		return fmt.Errorf("goroutine %s: the name is taken", f[1])
	}
	g := &textG{name: f[1], line: n}
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
func (p *textParser) times(n int, s string) (textItem, error) {
	it := textItem{line: n, proc: -1, end: math.MinInt64}
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
func (p *textParser) addRange(it textItem, begin, end int) {
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

// reasons are the runtime's words; see traceBlockReasonStrings in runtime/traceruntime.go.
var reasons = map[string]struct {
	reason exectrace.Reason
	frame  string // where such a wait stands unless the line says
}{
	"forever":                      {exectrace.ReasonForever, "runtime.block"},
	"network":                      {exectrace.ReasonNetwork, "internal/poll.(*FD).Read"},
	"select":                       {exectrace.ReasonSelect, "runtime.selectgo"},
	"sync":                         {exectrace.ReasonSync, "sync.(*Mutex).Lock"},
	"sync.(*Cond).Wait":            {exectrace.ReasonCond, "sync.(*Cond).Wait"},
	"sleep":                        {exectrace.ReasonSleep, "time.Sleep"},
	"chan send":                    {exectrace.ReasonChanSend, "runtime.chansend1"},
	"chan receive":                 {exectrace.ReasonChanRecv, "runtime.chanrecv1"},
	"GC mark assist wait for work": {exectrace.ReasonAssistCredit, "runtime.gcAssistAlloc"},
	"GC background sweeper wait":   {exectrace.ReasonSweeperIdle, "runtime.bgsweep"},
	"system goroutine wait":        {exectrace.ReasonSystem, "-"},
	"preempted":                    {exectrace.ReasonPreempted, "runtime.asyncPreempt"},
	"wait for debug call":          {exectrace.ReasonDebugCall, "-"},
	"wait until GC ends":           {exectrace.ReasonUntilGCEnds, "-"},
	"GC worker (idle)":             {exectrace.ReasonGCWorkerIdle, "runtime.gcBgMarkWorker"},
	"coroutine":                    {exectrace.ReasonCoroutine, "-"},
	"synctest":                     {exectrace.ReasonSynctest, "-"},
	"GC weak to strong wait":       {exectrace.ReasonOther, "-"},
	"unknown":                      {exectrace.ReasonNone, "-"},
}

// gline reads one line of a goroutine.
func (p *textParser) gline(n int, f []string) error {
	it, err := p.times(n, f[0])
	if err != nil {
		return err
	}
	if len(f) < 2 {
		return fmt.Errorf("%q says nothing", f[0])
	}
	g := p.cur
	it.g, it.verb = g, f[1]

	// clauses: words before the first of them are the verb's own
	var words []string
	var at, in string
	hasAt := false
	for i := 2; i < len(f); i++ {
		next := func() (string, error) {
			if i++; i >= len(f) {
				return "", fmt.Errorf("want a word after %q", f[i-1])
			}
			return f[i], nil
		}
		switch key := f[i]; key {
		case "at", "by", "on", "in", "swept", "reclaimed":
			v, err := next()
			if err != nil {
				return err
			}
			switch key {
			case "at":
				at, hasAt = v, true
			case "by":
				it.byName = v
			case "in":
				in = v
			default:
				u, err := strconv.ParseUint(v, 10, 48)
				if err != nil {
					return fmt.Errorf("want a number after %q, got %q", key, v)
				}
				switch key {
				case "on":
					it.proc = int(min(u, 1<<16))
				case "swept":
					it.arg[0] = u
				case "reclaimed":
					it.arg[1] = u
				}
			}
		default:
			words = append(words, key)
		}
	}
	if it.verb == "log" { // the message is free text
		words = f[2:]
	}
	rest := strings.Join(words, " ")

	isRange := it.end != math.MinInt64
	switch it.verb {
	case "assist", "sweep", "stw", "task", "region":
		if !isRange {
			return fmt.Errorf("%s: want begin..end", it.verb)
		}
		it.stack = p.stack(at, g)
		switch it.verb {
		case "stw":
			it.name = p.string(rest)
		case "task":
			if rest == "" {
				return fmt.Errorf("want task NAME")
			}
			it.name = p.string(rest)
			it.arg[1] = p.tasks[in]
			p.ntasks++
			it.arg[0] = p.ntasks
			p.tasks[rest] = p.ntasks
		case "region":
			if rest == "" {
				return fmt.Errorf("want region NAME")
			}
			it.name = p.string(rest)
			if in != "" && p.tasks[in] == 0 {
				return fmt.Errorf("region %s: no task %s above", rest, in)
			}
			it.arg[0] = p.tasks[in]
		}
		p.addRange(it, rankRangeBegin, rankRangeEnd)
		return nil
	}
	if isRange {
		return fmt.Errorf("%s: want one time, got a range", it.verb)
	}
	switch it.verb {
	case "log":
		if len(words) == 0 {
			return fmt.Errorf("want log CATEGORY MESSAGE")
		}
		it.rank, it.name = rankRangeBegin, p.string(words[0])
		it.arg[0] = p.tasks[in]
		it.arg[1] = uint64(p.string(strings.Join(words[1:], " ")))
		p.items = append(p.items, it)
		return nil
	case "label":
		it.rank, it.name = rankRangeBegin, p.string(rest)
		p.items = append(p.items, it)
		return nil
	case "sample":
		it.rank, it.stack = rankRangeBegin, p.stack(at, g)
		p.items = append(p.items, it)
		return nil
	}
	return p.stateLine(it, rest, at, hasAt)
}

// stateLine checks a state against the one before and ranks it within its instant.
func (p *textParser) stateLine(it textItem, rest, at string, hasAt bool) error {
	g := it.g
	prev := exectrace.Undetermined
	if len(g.states) > 0 {
		l := g.states[len(g.states)-1]
		prev = l.state
		if it.t < l.t {
			return fmt.Errorf("time goes back from %d ns to %d ns", l.t, it.t)
		}
	}
	it.first = prev == exectrace.Undetermined
	var to exectrace.State
	bad := func() error { return fmt.Errorf("goroutine %s: %s cannot follow %s", g.name, it.verb, stateWord(prev)) }
	switch it.verb {
	case "running":
		to, it.rank = exectrace.Running, rankRun
		if !it.first && prev != exectrace.Runnable && prev != exectrace.Syscall {
			return bad()
		}
		if prev == exectrace.Syscall {
			it.rank = rankLeave
		}
	case "waiting":
		to, it.rank = exectrace.Waiting, rankLeave
		if !it.first && prev != exectrace.Running {
			return bad()
		}
		r, ok := reasons[rest]
		if !ok {
			if rest == "" {
				r.frame, r.reason = "-", exectrace.ReasonNone
			} else {
				r.frame, r.reason = "-", exectrace.ReasonOther
			}
		}
		if r.reason == exectrace.ReasonOther {
			it.name = p.string(rest)
		}
		it.reason = r.reason
		if !hasAt {
			at = r.frame
		}
		it.stack = p.stack(at, g)
	case "syscall":
		to, it.rank = exectrace.Syscall, rankLeave
		if !it.first && prev != exectrace.Running {
			return bad()
		}
		if !hasAt {
			at = "syscall.Syscall"
		}
		it.stack = p.stack(at, g)
	case "retaken":
		to, it.rank = exectrace.Syscall, rankLeave
		if prev != exectrace.Syscall {
			return bad()
		}
	case "runnable":
		to = exectrace.Runnable
		it.yield = rest == "yield"
		switch prev {
		case exectrace.Waiting:
			it.rank = rankWake
			if it.byName == "" {
				return fmt.Errorf("goroutine %s: who woke it? (runnable by NAME, by P or by nobody)", g.name)
			}
		case exectrace.Running, exectrace.Syscall:
			it.rank = rankLeave
			if hasAt {
				it.stack = p.stack(at, g)
			}
		case exectrace.Undetermined:
		default:
			return bad()
		}
	case "created":
		to, it.rank = exectrace.Runnable, rankWake
		if rest == "blocked" {
			to = exectrace.Waiting
		} else if rest != "" {
			return fmt.Errorf("created: unknown %q", rest)
		}
		if !it.first {
			return bad()
		}
		if it.byName == "" {
			return fmt.Errorf("goroutine %s: who created it? (created by NAME or by nobody)", g.name)
		}
	case "end":
		to, it.rank = exectrace.NotExist, rankLeave
		if prev != exectrace.Running && prev != exectrace.Syscall {
			return bad()
		}
	default:
		return fmt.Errorf("unknown %q", it.verb)
	}
	if it.first && it.verb != "created" {
		it.rank = rankStatus
		if to == exectrace.Running {
			it.rank = rankRun // it needs a P that somebody may be leaving
		}
	}
	if (it.verb == "runnable" || it.verb == "created") && it.byName != "" {
		// the stack is the waker's, whose entry is known when all is read
		if !hasAt {
			at = ""
		}
		it.name = p.string(at)
	}
	// the order of one goroutine's lines at one instant stays
	if len(g.states) > 0 && it.t == g.last {
		it.rank = max(it.rank, g.rank)
	}
	g.last, g.rank = it.t, it.rank
	g.states = append(g.states, textState{it.t, to})
	p.items = append(p.items, it)
	return nil
}

// runs tells whether g runs up to t (1), from t on (2) or not (0).
func (g *textG) runs(t int64) int {
	before := exectrace.Undetermined
	after := exectrace.Undetermined
	for _, s := range g.states {
		if s.t < t {
			before = s.state
		}
		if s.t <= t {
			after = s.state
		}
	}
	switch {
	case before == exectrace.Running:
		return 1
	case after == exectrace.Running:
		return 2
	}
	// ran for no time at all, at t
	for _, s := range g.states {
		if s.t == t && s.state == exectrace.Running {
			return 2
		}
	}
	return 0
}

// resolve finds wakers and orders everything.
func (p *textParser) resolve() error {
	next := exectrace.GoID(1)
	used := map[exectrace.GoID]bool{}
	for _, g := range p.gs {
		if g.id != 0 {
			if used[g.id] {
				return fmt.Errorf("line %d: goroutine %d is there twice", g.line, g.id)
			}
			used[g.id] = true
		}
		if len(g.states) == 0 {
			return fmt.Errorf("line %d: goroutine %s has no state", g.line, g.name)
		}
	}
	for _, g := range p.gs {
		if g.id == 0 {
			for used[next] {
				next++
			}
			g.id = next
			used[next] = true
		}
	}
	for i := range p.items {
		it := &p.items[i]
		if it.t == math.MinInt64 {
			it.t = p.begin
		}
		if it.byName == "" {
			continue
		}
		if it.byName != "P" && it.byName != "nobody" {
			it.by = p.byName[it.byName]
			if it.by == nil {
				return fmt.Errorf("line %d: no goroutine %s", it.line, it.byName)
			}
		}
		switch it.verb {
		case "runnable", "created":
			at := p.strings[it.name]
			it.name = 0
			if it.by == nil {
				continue
			}
			it.stack = p.stack(at, it.by)
			switch r := it.by.runs(it.t); {
			case r == 2:
				it.rank = max(it.rank, rankLate)
			case r == 0 && !p.damaged:
				return fmt.Errorf("line %d: goroutine %s cannot have done this: it does not run at %d ns", it.line, it.by.name, it.t)
			}
		}
	}
	// A wake-up that had to come late takes what follows it in the same instant along.
	late := map[*textG]textItem{}
	for i := range p.items {
		it := &p.items[i]
		if it.g == nil {
			continue
		}
		if l, ok := late[it.g]; ok && l.t == it.t && l.line < it.line {
			it.rank = max(it.rank, l.rank)
		}
		if it.rank == rankLate {
			late[it.g] = *it
		}
	}
	slices.SortStableFunc(p.items, func(a, b textItem) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.rank, b.rank), cmp.Compare(a.line, b.line))
	})
	return nil
}
