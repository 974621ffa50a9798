package profiler

import (
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/oncpu"
)

// path is a call chain of perf's call graph, and its share of all.
type path struct {
	names  []string // as printed: the innermost first or last
	share  float64
	deeper bool // branches start at its end: its time is in some that are too small to print
}

// branch is a line of a call graph which starts a chain, with the functions that follow it.
type branch struct {
	column int
	share  float64 // of all
	parts  float64 // of share: of the branches that start at its end
	names  []string
}

// graph reads the call graph below a row of perf report whose share of all is whole. Lines stand as
// printed, with their indentation, by which alone a branch is told from its neighbour. What a
// branch has beyond the branches at its end, such as are too small to print, is a path of its own.
func graph(lines []string, whole float64) (paths []path) {
	if paths := foldedChains(lines); len(paths) > 0 {
		return paths
	}
	var open []branch
	relative := partsOfParent(lines, whole)
	emit := func() {
		top := open[len(open)-1]
		if left := top.share - top.parts; left > 0.0002 && len(paths) < most {
			p := path{share: left, deeper: top.parts > 0}
			for _, b := range open {
				p.names = append(p.names, b.names...)
			}
			if len(p.names) > 0 {
				paths = append(paths, p)
			}
		}
		open = open[:len(open)-1]
	}
	for _, line := range lines {
		column, share, name := graphLine(line)
		if column < 0 {
			if n := len(open); n > 0 && name != "" && len(open[n-1].names) < 256 {
				open[n-1].names = append(open[n-1].names, name)
			}
			continue
		}
		for len(open) > 0 && open[len(open)-1].column >= column {
			emit()
		}
		above := whole
		if n := len(open); n > 0 {
			above = open[n-1].share
		}
		switch {
		case share < 0:
			share = above
		case relative:
			share *= above
		}
		if n := len(open); n > 0 {
			open[n-1].parts += share
		}
		if len(open) < 128 {
			b := branch{column: column, share: share}
			if name != "" {
				b.names = []string{name}
			}
			open = append(open, b)
		}
	}
	for len(open) > 0 {
		emit()
	}
	return paths
}

// partsOfParent reports whether the shares of a graph are parts of what they stand in: so it is
// before perf 4.3, and with "fractal". No share of all is larger than the one that it stands in.
func partsOfParent(lines []string, whole float64) bool {
	type level struct {
		column int
		share  float64
	}
	var open []level
	for _, line := range lines {
		column, share, _ := graphLine(line)
		if column < 0 {
			continue
		}
		for len(open) > 0 && open[len(open)-1].column >= column {
			open = open[:len(open)-1]
		}
		above := whole
		if n := len(open); n > 0 {
			above = open[n-1].share
		}
		if share > above*1.02+0.005 {
			return true
		}
		if share < 0 {
			share = above
		}
		if len(open) < 128 {
			open = append(open, level{column, share})
		}
	}
	return false
}

// graphLine divides a line of a call graph. Column is -1 for one that goes on with its branch,
// share for one that has none: 0.00 % is a share.
func graphLine(line string) (column int, share float64, name string) {
	trimmed := strings.TrimLeft(line, " \t|")
	at := len(line) - len(trimmed)
	if !strings.HasPrefix(trimmed, "--") {
		return -1, 0, strings.TrimSpace(trimmed)
	}
	rest := strings.TrimLeft(trimmed, "-")
	if s, after, ok := strings.Cut(rest, "%"); ok {
		if f, ok := percent(s + "%"); ok {
			return at, f, strings.TrimSpace(strings.TrimLeft(after, "- "))
		}
	}
	return at, -1, strings.TrimSpace(rest)
}

// sameFunc compares names of functions but for the underscores that web pages eat.
func sameFunc(a, b string) bool { return strings.TrimLeft(a, "_") == strings.TrimLeft(b, "_") }

// chains gives the call chains whose innermost function is symbol, the innermost first, with their
// shares of all. A chain of a caller's row goes on past it and is left out.
func chains(lines []string, symbol string, self float64) []path {
	paths := graph(lines, self)
	out := paths[:0]
	for _, p := range paths {
		switch {
		case sameFunc(p.names[0], symbol):
		case sameFunc(p.names[len(p.names)-1], symbol):
			slices.Reverse(p.names)
		default:
			continue
		}
		p.names[0] = symbol
		out = append(out, p)
	}
	return out
}

// caller keeps what the call graph of a row says of the functions that its function calls. Where
// the rows of these were cut off, it is all there is.
func (s *perfSection) caller(row perfRow, below []string) {
	if row.children <= row.self || row.children <= s.covered || len(below) == 0 {
		return
	}
	paths := graph(below, row.children)
	if len(paths) < 2 || paths[0].names[0] != row.symbol {
		return
	}
	s.called, s.covered, s.below = nil, row.children, nil
	paths = withRest(paths, row.children)
	for _, p := range paths {
		if row.screen && p.deeper {
			p.names = append(p.names, "[unknown]")
		}
		slices.Reverse(p.names)
		one := sample{weight: p.share, comm: row.comm}
		one.kernel, one.program = split(p.names, row.mark == "[k]")
		if row.screen && len(one.kernel) == 0 {
			one.program = frames(p.names, "")
			if p.names[0] == "[unknown]" && oncpu.Named(nil, one.program).Kind == account.WorkOwn {
				one.program = nil // what it calls may be the kernel's
			}
		}
		s.called = append(s.called, one)
	}
	if !row.screen {
		return
	}
	s.below = map[string]float64{}
	if !allZero(row.symbol) {
		s.below[row.symbol] = row.children
	}
	for _, line := range below {
		if _, share, name := graphLine(line); share > 0 && name != "" {
			s.below[name] = max(s.below[name], min(share, row.children))
		}
	}
}

// settle takes the callees of the largest row in the place of the rows, where the rows that were
// not cut off have less.
func (s *perfSection) settle() {
	own := 0.0
	for i := range s.p.samples {
		own += s.p.samples[i].weight
	}
	if s.covered > 1.5*own {
		s.p.self = map[string]float64{}
		for i := range s.p.samples {
			if name := s.p.samples[i].leaf(); !unresolved(name) {
				s.p.self[name] += s.p.samples[i].weight
			}
		}
		s.p.samples, s.p.stacks, s.p.below = s.called, true, s.below
	}
}
