package exectrace

import (
	"fmt"
	"slices"
)

// A damaged header may still look like one. Its time is off by an hour, and so would the
// recording's end be. What shows the damage is that nothing else was written at such a time. A
// process that was stopped for an hour, in contrast, leaves many batches behind the hour: its
// generation's tables at the least, which are written last.

// strayAfter is how many seconds a lone batch may be from all others of its generation.
const strayAfter = 10

// leaveStrays takes those batches out of g whose times are far from all others. high is the last
// time of the generations before, 0 if there is none.
func (g *generation) leaveStrays(high, freq uint64) {
	far := strayAfter * max(freq, linuxFreq)
	for range maxLost {
		i, away := g.stray(high, far)
		if i < 0 {
			return
		}
		b := g.batches[i]
		g.lose(b.span, fmt.Sprintf("a batch of thread %d is damaged at offset %d: its time is %d s from all others; its %d bytes are lost", int64(b.m), b.off, away/max(freq, linuxFreq), b.end-b.off))
		g.batches = slices.Delete(g.batches, i, i+1)
		g.minTs, g.maxTs, g.lastTs = g.tableMin, g.tableMax, 0
		for _, b := range g.batches {
			g.minTs, g.maxTs, g.lastTs = min(g.minTs, b.ts), max(g.maxTs, b.ts), max(g.lastTs, b.ts)
		}
		if g.maxTs == 0 { // nothing is left
			g.minTs, g.maxTs, g.lastTs = high, high, high
		}
	}
}

// stray finds a batch that is later or earlier than all others by more than far, and by how much.
// It gives -1 if there is none.
func (g *generation) stray(high, far uint64) (int, uint64) {
	if len(g.batches) == 0 {
		return -1, 0
	}
	last, first := 0, 0
	for i, b := range g.batches {
		if b.ts > g.batches[last].ts {
			last = i
		}
		if b.ts < g.batches[first].ts {
			first = i
		}
	}
	below, above := max(high, g.tableMax), g.tableMin
	for i, b := range g.batches {
		if i != last {
			below = max(below, b.ts)
		}
		if i != first {
			above = min(above, b.ts)
		}
	}
	if t := g.batches[last].ts; below > 0 && t > below && t-below > far {
		return last, t - below
	}
	// A batch up to which the generation before reaches is not alone. One of a few may be all that
	// was written before a stop.
	if t := g.batches[first].ts; len(g.batches) > 2 && above != ^uint64(0) && above > t &&
		above-t > far && (high == 0 || t+far < high) {
		return first, above - t
	}
	return -1, 0
}
