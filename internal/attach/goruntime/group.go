package goruntime

import (
	"fmt"
	"strings"
)

// group is the goroutines of a dump that wait in one place, in one state.
type group struct {
	n       int
	at      frame
	state   string // as printed; "": not printed
	kind    waitKind
	least   int // minutes of the shortest wait, and of the longest
	minutes int
	below   string // "": the place says all
}

// group is the largest one of the program's own, but of those at locks, which have words of their
// own.
func (p *picture) group() (best group) {
	type key struct {
		fn, at string
		kind   waitKind
	}
	all := map[key]*group{}
	for i, s := range p.stacks {
		kind := p.waits[i].kind
		own := s.own()
		if kind == waitRuntime || kind == waitLock || own.fn == "" {
			continue
		}
		k := key{own.fn, own.at, kind}
		g := all[k]
		if g == nil {
			g = &group{at: own, state: s.state, kind: kind, least: s.minutes, below: s.through()}
			all[k] = g
		}
		g.n += s.count
		g.least, g.minutes = min(g.least, s.minutes), max(g.minutes, s.minutes)
		if g.n > best.n || g.n == best.n && g.at.fn+g.at.at < best.at.fn+best.at.at {
			best = *g
		}
	}
	if best.n > 0 { // the last one that was counted may have had another stack
		best = *all[key{best.at.fn, best.at.at, best.kind}]
	}
	return best
}

// groupText names the largest group, where there are more in it than one.
func (p *picture) groupText() string {
	g := p.group()
	if g.n < 2 || strings.HasPrefix(g.state, "chan send") { // these are told of anyhow
		return ""
	}
	state := g.state
	if state == "" {
		state = kindWords[g.kind]
	}
	text := fmt.Sprintf("most alike: %d of %d [%s] in %s%s", g.n, p.n, state, g.at.fn, at(g.at.at))
	if g.below != "" {
		text += " below " + g.below
	}
	switch {
	case g.minutes == 0:
	case g.least == g.minutes:
		text += ", each for " + count(g.minutes, "minute", "minutes")
	default:
		text += longest(g.n, g.minutes)
	}
	return text
}
