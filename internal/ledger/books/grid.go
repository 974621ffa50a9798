package books

import "math/bits"

// grid counts units by when they started and how long they took. Its columns become twice as wide
// whenever a unit starts beyond the last one, so that it covers any length of time in a fixed
// number of them.
type grid struct {
	shift   uint // a column is 1<<shift ns
	columns [gridColumns]*[gridRows]uint32
}

// A row is a quarter of an octave. The first has all below a microsecond, the last all from 2^39 ns
// on: nine minutes.
const (
	gridColumns = 256
	firstOctave = 10
	lastOctave  = 39
	gridRows    = 4*(lastOctave-firstOctave) + 2
	firstShift  = 20 // columns of a millisecond
)

// row is the row of a length.
func row(ns int64) int {
	if ns < 1<<firstOctave {
		return 0
	}
	e := bits.Len64(uint64(ns)) - 1
	if e >= lastOctave {
		return gridRows - 1
	}
	return 1 + 4*(e-firstOctave) + int(ns>>(e-2)&3)
}

// rowStart is the least length of a row.
func rowStart(r int) int64 {
	if r <= 0 {
		return 0
	}
	r--
	e := firstOctave + r/4
	return int64(4+r%4) << (e - 2)
}

func (g *grid) add(begin, wall int64, n uint32) {
	begin = max(begin, 0)
	g.cover(begin)
	c := &g.columns[begin>>g.shift]
	if *c == nil {
		*c = new([gridRows]uint32)
	}
	(*c)[row(wall)] += n
}

func (g *grid) addAll(l []dot) {
	for i := range l {
		g.add(l[i].begin, l[i].wall, 1)
	}
}

// cover widens the columns until one has that moment.
func (g *grid) cover(begin int64) {
	g.shift = max(g.shift, firstShift)
	for begin>>g.shift >= gridColumns {
		g.widen()
	}
}

// widen makes one column of every two.
func (g *grid) widen() {
	for i := range gridColumns {
		c := g.columns[i]
		if i > 0 {
			g.columns[i] = nil
		}
		if c == nil || i == 0 {
			continue
		}
		if to := &g.columns[i/2]; *to == nil {
			*to = c
		} else {
			for r, n := range c {
				(*to)[r] += n
			}
		}
	}
	g.shift++
}

// merge adds another grid.
func (g *grid) merge(o *grid) {
	for c, col := range o.columns {
		if col == nil {
			continue
		}
		at := int64(c) << o.shift
		g.cover(at)
		for r, n := range col {
			if n > 0 {
				g.add(at, rowStart(r), n)
			}
		}
	}
}
