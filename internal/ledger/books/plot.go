package books

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/request"
)

// When units of work were, for a picture of latency over time. It is known only at the end which
// groups are requests, so each group keeps its own:
//
//   - its units one by one, up to account.MostDots,
//   - beyond that a grid of how many of which length started when,
//   - nothing, where very many groups share the room.
//
// That takes 2 MiB of units and 2 MiB of grids at most.

const (
	mostDots  = 60_000 // of all groups
	leastFold = 1000   // units that a group has at least to be given a grid
	mostGrids = 16
)

// dot is a unit of work.
type dot struct {
	begin, wall, number int64
	leaf                Leaf // most of its own states
}

// plot is when the units of a group were.
type plot struct {
	dots     []dot
	grid     *grid
	notShown int64
	gaveUp   bool
}

// Plot notes when a unit was. Its own states must have been added to the group's column of all.
func (b *Books) Plot(g *Group, begin, wall, number int64) {
	p := &g.plot
	switch {
	case p.grid != nil:
		p.grid.add(begin, wall, 1)
		return
	case p.gaveUp:
		p.notShown++
		return
	}
	p.dots = append(p.dots, dot{begin, wall, number, g.All.unit.mostly()})
	b.dots++
	if len(p.dots) > account.MostDots {
		b.fold(g)
	}
	for b.dots > mostDots {
		most := g
		for _, o := range b.groups {
			if o != nil && len(o.plot.dots) > len(most.plot.dots) {
				most = o
			}
		}
		b.fold(most)
	}
}

// fold makes a grid of a group's units, or gives them up.
func (b *Books) fold(g *Group) {
	p := &g.plot
	b.dots -= len(p.dots)
	if len(p.dots) < leastFold || b.grids >= mostGrids {
		p.notShown, p.gaveUp = int64(len(p.dots)), true
	} else {
		b.grids++
		p.grid = &grid{}
		p.grid.addAll(p.dots)
	}
	p.dots = nil
	g.All.unit = nil // from here on nobody asks for it
}

// slowKey finds a unit among those that were kept.
type slowKey struct {
	group         int
	begin, number int64
}

// series writes down when the units of the listed groups were. Who is slow has been decided.
func (b *Books) series(list []request.Group, c *Column) account.Series {
	s := account.Series{Whole: true}
	slow := map[slowKey]*Kept{}
	n := 0
	for id, g := range b.listed(list) {
		n += len(g.plot.dots)
		s.NotShown += g.plot.notShown
		if g.plot.grid != nil || g.plot.gaveUp {
			s.Whole = false
		}
		for _, k := range g.candidates {
			if k.slow {
				slow[slowKey{id, k.Begin, k.Number}] = k
			}
		}
	}
	s.Whole = s.Whole && n <= account.MostDots
	w := seriesWriter{namer: namer{Books: b, column: c, accounts: map[uint32]account.Named{}},
		out: &s, entries: map[string]int{}, largest: map[account.Named]int{}}
	if s.Whole {
		for id, g := range b.listed(list) {
			for i := range g.plot.dots {
				d := &g.plot.dots[i]
				w.dot(d, slow[slowKey{id, d.begin, d.number}], list[id].Entry)
			}
		}
	} else {
		for key, k := range slow {
			w.dot(&dot{begin: k.Begin, wall: k.Wall(), number: k.Number}, k, list[key.group].Entry)
		}
		s.Density = b.density(list)
	}
	slices.SortFunc(s.Dots, func(x, y account.Dot) int {
		return cmp.Or(cmp.Compare(x.Begin, y.Begin), cmp.Compare(x.Actor, y.Actor), cmp.Compare(x.NS, y.NS))
	})
	w.renumber()
	return s
}

// density adds up the grids of the listed groups, and the units of those that have none.
func (b *Books) density(list []request.Group) account.Density {
	var sum grid
	for _, g := range b.listed(list) {
		if g.plot.grid != nil {
			sum.merge(g.plot.grid)
		}
		sum.addAll(g.plot.dots)
	}
	d := account.Density{Begin: b.names.Time(0), Width: 1 << sum.shift}
	for c, col := range sum.columns {
		if col == nil {
			continue
		}
		for r, n := range col {
			if n > 0 {
				d.Cells = append(d.Cells, account.DensityCell{Column: c, Low: rowStart(r),
					Up: rowStart(r + 1), N: int64(n)})
			}
		}
	}
	return d
}

// seriesWriter writes dots down. Names become numbers, which are given in the order of the dots.
type seriesWriter struct {
	namer
	out     *account.Series
	entries map[string]int
	largest map[account.Named]int
}

func (w *seriesWriter) dot(d *dot, slow *Kept, entry string) {
	n := account.Named{Leaf: leafNames[d.leaf]}
	if slow != nil {
		n = w.mostOf(slow)
	}
	w.out.Dots = append(w.out.Dots, account.Dot{
		Begin: w.names.Time(d.begin), NS: d.wall, Actor: d.number, Slow: slow != nil,
		Entry: number(w.entries, &w.out.Entries, entry), Largest: number(w.largest, &w.out.Largest, n),
	})
}

// mostOf is the largest account of a unit that was explained.
func (w *seriesWriter) mostOf(k *Kept) account.Named {
	id, ok := k.Largest()
	if !ok {
		return account.Named{Leaf: account.LeafUnknown, Class: account.ClassUnknown}
	}
	return w.named(id)
}

// number is the place of v in list, where it is put at the first time.
func number[T comparable](of map[T]int, list *[]T, v T) int {
	n, ok := of[v]
	if !ok {
		n = len(*list)
		of[v] = n
		*list = append(*list, v)
	}
	return n
}

// renumber gives numbers in the order of the dots. Maps were walked to make them, and the same
// input gives the same output.
func (w *seriesWriter) renumber() {
	s := w.out
	entries, largest := s.Entries, s.Largest
	s.Entries, s.Largest = nil, nil
	clear(w.entries)
	clear(w.largest)
	for i := range s.Dots {
		d := &s.Dots[i]
		d.Entry = number(w.entries, &s.Entries, entries[d.Entry])
		d.Largest = number(w.largest, &s.Largest, largest[d.Largest])
	}
}
