package exectrace

import "fmt"

// span is a range of bytes of the file.
type span struct{ off, end int }

// batchRef is a batch of events.
type batchRef struct {
	span
	m, ts uint64
	cut   bool // its end is missing
}

// lost is a piece of a generation that no batch could be found in.
type lost struct {
	span
	reason string
}

// generation is what the indexer finds of one: where its batches are. Nothing is decoded but the
// clock.
type generation struct {
	num      uint64
	batches  []batchRef
	strings  []span
	stacks   []span
	samples  []span
	lost     []lost
	minTs    uint64
	maxTs    uint64 // of the headers of all batches; tables are at times written seconds later
	lastTs   uint64 // of the headers of batches of events
	tableMin uint64 // of the headers of all other batches; ^0 and 0: there are none
	tableMax uint64
	endTs    uint64 // no event is later: the start of the next generation, or far behind maxTs
	freq     uint64 // ticks a second; 0 unknown
	snap     snapshot
	complete bool // its end is in the file
	restart  bool // it does not follow the generation before it
	skipped  int64
}

type snapshot struct {
	ok              bool
	ts, mono        uint64
	wallSec, wallNs uint64
}

// maxFreq bounds the clock's frequency: no counter runs at 100 GHz.
const maxFreq = 100e9

// maxBatches bounds what is indexed of one generation: 16 GB of full batches.
const maxBatches = 1 << 18

// tsSlack is how far apart in time two batches of one generation may be before one is taken for
// damage: half a day of 64 ns ticks, and an hour at 1 GHz.
const tsSlack = 1 << 42

// indexer finds the batches of a trace, a generation at a time, by their headers alone.
type indexer struct {
	data    []byte
	off     int
	version Version
	cur     *generation
	started bool // there was a batch
	joined  int  // where another trace starts, which is not read; 0: there is none
}

// next gives the next generation, nil at the end of the trace.
//
//  1. A header says how long its batch is, so the next header is behind it. A generation ends where
//     the number in the headers changes, and from 1.26 on at a mark.
//  2. Where no plausible header is, the search for one starts behind the header of the batch
//     before: the size in that one may be what is damaged. Then the batch before is cut where the
//     next header was found.
//  3. Where another trace's header is, the trace ends.
func (x *indexer) next() *generation {
	g := x.cur
	x.cur = nil
	var last *batchRef
	lastHead := -1
	for x.off < len(x.data) {
		if x.another(x.off) {
			if !x.started {
				x.off += headerLen
				continue
			}
			// Its clock and its ids are its own; it may be another process'.
			x.joined, x.data = x.off, x.data[:x.off]
			break
		}
		h, ok := parseHeader(x.data[x.off:])
		if ok && !x.plausible(g, h, x.off) {
			ok = false
		}
		if !ok {
			from := x.off + 1
			if lastHead >= 0 {
				from = lastHead + 1
			}
			bad := x.off
			x.off = x.resync(g, from)
			if g == nil {
				g = newGeneration(true)
			}
			if last != nil && x.off < last.end {
				// The batch before claimed more bytes than it has.
				last.end, last.cut = max(last.off, x.off), true
				bad = x.off
			}
			if n := x.off - bad; n > 0 || last == nil {
				g.lose(span{bad, x.off}, fmt.Sprintf("%d bytes at offset %d hold no batch", n, bad))
			}
			last, lastHead = nil, -1
			continue
		}
		if h.kind == evEndOfGeneration {
			x.off++
			if g != nil && g.num != 0 {
				g.complete = true
				return g
			}
			continue
		}
		if g != nil && g.num != 0 && h.gen != g.num {
			x.cur = newGeneration(h.gen != g.num+1)
			return x.finish(g)
		}
		if g == nil {
			g = newGeneration(false)
		}
		x.started = true
		lastHead = x.off
		last = x.add(g, h)
		x.off += h.n + h.size
		if x.off > len(x.data) {
			n := x.off - len(x.data)
			x.off = len(x.data)
			g.lose(span{x.off, x.off}, fmt.Sprintf("the trace is truncated: %d bytes of its last batch are missing", n))
			return g
		}
	}
	return x.finish(g)
}

// maxLost bounds the places of one generation that are listed one by one.
const maxLost = 64

func (g *generation) lose(s span, reason string) {
	if n := len(g.lost); n >= maxLost {
		l := &g.lost[n-1]
		*l = lost{span{l.off, l.off + l.end - l.off + s.end - s.off}, l.reason}
		return
	}
	g.lost = append(g.lost, lost{s, reason})
}

// finish decides whether g is whole where no mark says so: its tables are written last.
func (x *indexer) finish(g *generation) *generation {
	if g != nil && x.version < 26 {
		g.complete = g.freq != 0 && (len(g.strings) > 0 || len(g.stacks) > 0)
	}
	return g
}

// plausible reports whether h, read at off, can be the next header after those of g.
func (x *indexer) plausible(g *generation, h header, off int) bool {
	if h.kind == evEndOfGeneration {
		return x.version >= 26
	}
	if g == nil || g.num == 0 {
		return true
	}
	if h.gen == g.num {
		return apart(h.ts, g.maxTs) < tsSlack
	}
	if h.gen == g.num+1 && apart(h.ts, g.maxTs) < tsSlack {
		return true
	}
	// Generations between may be missing. Then a second batch of this generation must follow.
	return h.gen > g.num && apart(h.ts, g.maxTs) < tsSlack && x.chain(off, 2)
}

// chain reports whether n headers follow one another from off on, of one generation or the next,
// and close in time.
func (x *indexer) chain(off, n int) bool {
	h, ok := parseHeader(x.data[off:])
	for ; ok && n > 1; n-- {
		off += h.n + h.size
		if off == len(x.data) {
			return true
		}
		if off > len(x.data) {
			return false
		}
		if x.version >= 26 && x.data[off] == evEndOfGeneration {
			return true
		}
		next, ok := parseHeader(x.data[off:])
		if !ok || next.gen != h.gen && next.gen != h.gen+1 || apart(next.ts, h.ts) > tsSlack {
			return false
		}
		h = next
	}
	return ok
}

// another reports whether another trace starts at off: files get joined like that.
func (x *indexer) another(off int) bool {
	return x.data[off] == 'g' && anotherTrace(x.data[off:min(len(x.data), off+headerLen)]) == 0
}

func apart(a, b uint64) uint64 {
	if a > b {
		return a - b
	}
	return b - a
}

// resync finds the next offset from from on where another trace starts, or where a batch can be: of
// g or the generation behind it, with another batch, or the end, behind it.
func (x *indexer) resync(g *generation, from int) int {
	for o := from; o < len(x.data); o++ {
		switch x.data[o] {
		case 'g':
			if x.another(o) {
				return o
			}
			continue
		case evEventBatch, evExperimental:
		default:
			continue
		}
		h, ok := parseHeader(x.data[o:])
		if !ok || h.size == 0 {
			continue
		}
		if g == nil || g.num == 0 {
			// There is nothing to compare it with: three in a row are asked for.
			if h.gen < 1<<32 && x.chain(o, 3) {
				return o
			}
			continue
		}
		if h.gen != g.num && h.gen != g.num+1 || apart(h.ts, g.maxTs) > tsSlack {
			continue
		}
		if x.chain(o, 2) || h.gen == g.num && o+h.n+h.size > len(x.data) {
			return o
		}
	}
	return len(x.data)
}

// add files the batch under what its first byte says it is. It returns a batch of events.
func (x *indexer) add(g *generation, h header) *batchRef {
	if g.num == 0 {
		g.num = h.gen
		g.minTs, g.maxTs = h.ts, h.ts
	}
	s := span{x.off + h.n, min(x.off+h.n+h.size, len(x.data))}
	if s.off >= s.end {
		return nil
	}
	if h.kind == evExperimental {
		g.skipped++
		return nil
	}
	if len(g.strings)+len(g.stacks)+len(g.samples) >= maxBatches {
		g.lose(s, "a generation has more tables than are read")
		return nil
	}
	switch x.data[s.off] {
	case evStrings:
		g.strings = append(g.strings, s)
	case evStacks:
		g.stacks = append(g.stacks, s)
	case evCPUSamples:
		g.samples = append(g.samples, s)
	case evFrequency, evSync:
		x.sync(g, s, h.ts)
	default:
		g.minTs, g.maxTs = min(g.minTs, h.ts), max(g.maxTs, h.ts)
		if len(g.batches) >= maxBatches {
			g.lose(s, "a generation has more batches than are read")
			return nil
		}
		g.lastTs = max(g.lastTs, h.ts)
		g.batches = append(g.batches, batchRef{span: s, m: h.m, ts: h.ts, cut: s.end-s.off < h.size})
		return &g.batches[len(g.batches)-1]
	}
	g.minTs, g.maxTs = min(g.minTs, h.ts), max(g.maxTs, h.ts)
	g.tableMin, g.tableMax = min(g.tableMin, h.ts), max(g.tableMax, h.ts)
	return nil
}

func newGeneration(restart bool) *generation {
	return &generation{restart: restart, tableMin: ^uint64(0)}
}

// sync reads the frequency and, from 1.25 on, the clocks.
func (x *indexer) sync(g *generation, s span, ts uint64) {
	d := x.data[s.off:s.end]
	i := 0
	if d[0] == evSync {
		i++
	}
	for i < len(d) {
		c := d[i]
		i++
		var v [4]uint64
		switch c {
		case evFrequency:
			v[0], i = uvarint(d, i)
			if i <= len(d) && v[0] > 0 && v[0] <= maxFreq && g.freq == 0 {
				g.freq = v[0]
			}
		case evClockSnapshot:
			for k := range v {
				v[k], i = uvarint(d, i)
			}
			if i <= len(d) {
				g.snap = snapshot{true, ts + min(v[0], maxTicks), v[1], v[2], v[3]}
			}
		default:
			return
		}
	}
}

func (g *generation) batchCount() int64 {
	return int64(len(g.batches) + len(g.strings) + len(g.stacks) + len(g.samples))
}
