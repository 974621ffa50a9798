package twin

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/whystall/whystall/exectrace"
)

// parser is what is kept while lines are read.
type parser struct {
	*Trace
	unit       float64
	procs      int
	damaged    bool
	begin, end int64
	current    *goroutine
	gs         []*goroutine
	named      map[string]*goroutine
	items      []item
	strs       map[string]exectrace.StringID
	stks       map[string]exectrace.StackID
	tasks      map[string]uint64
	ntasks     uint64
}

func newParser() *parser {
	return &parser{
		Trace: &Trace{version: 26, strings: []string{""}, stacks: [][]exectrace.Frame{nil}},
		unit:  1,
		end:   math.MinInt64,
		begin: math.MaxInt64,
		named: map[string]*goroutine{},
		strs:  map[string]exectrace.StringID{"": 0},
		stks:  map[string]exectrace.StackID{"": 0},
		tasks: map[string]uint64{},
	}
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
