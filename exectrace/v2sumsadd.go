package exectrace

import (
	"cmp"
	"slices"
)

// maxSums bounds how many generations are summed at once: each may take 16 MB.
const maxSums = 3

// totalsV2 adds the trace up for a, a generation at a time, and without order where that can be
// done.
func (t *Trace) totalsV2(a *summer) {
	p := t.pipeline()
	p.totals = true
	n := min(t.opt.Workers, maxSums)
	p.spare = make(chan *v2Sums, n)
	for range n {
		p.spare <- new(v2Sums)
	}
	c := &consumer{t: t}
	if p.drain(c, func(b block) bool {
		if b.sum != nil {
			a.generation(c, b.sum, c.gens == 1)
			p.spare <- b.sum.s
		} else {
			c.block(b.ev)
			a.events(b.ev)
		}
		return true
	}) {
		t.read.stats.Events++ // the Sync at the end
	}
}

// summed is what a worker hands over of a generation that it could sum up.
type summed struct {
	s    *v2Sums
	mul  uint64
	last uint64 // the last sample's time; the sums have no samples
}

// sum adds the generation up without order. It gives nil if that cannot be done.
func (p *pipeline) sum(w *worker, s *v2Sums) *summed {
	if !s.run(w) {
		w.end = genEnd{}
		return nil
	}
	w.readSamples()
	r := &summed{s: s, mul: w.mul}
	if n := len(w.samples); n > 0 {
		r.last = w.samples[n-1].ts
	}
	w.end.stats.Generations = 1
	w.end.stats.Batches = w.gen.batchCount()
	w.end.stats.Events = s.n + int64(len(w.samples)) + 1
	w.end.stats.Experimental += w.gen.skipped
	return r
}

// openSum adds up ranges of one kind: the times of their ends less those of their starts, and how
// many more starts than ends there were.
type openSum struct {
	ticks int64
	open  int64

	// Those that the generation's statuses say were open already.
	activeTicks int64
	active      int64
}

// generation adds up a generation that was summed without order.
func (a *summer) generation(c *consumer, j *summed, first bool) {
	s, mul := j.s, j.mul
	at := func(rel uint64) Time { return Time((s.min + rel) * mul) }
	end := at(s.max)
	a.span(at(0), max(end, Time(j.last*mul)))
	c.last = max(c.last, end) // if the next is read event by event, none may be earlier
	for g := range s.all() {
		a.summedG(g, c.stack(StackID(g.stack)), at, mul, end)
	}
	// A P was in its status' state from the end of the generation before until that status was
	// written, if that end left it in the same state; else the time is unknown. Its sums follow
	// from there.
	for k := range s.ps {
		p := s.ps[k]
		if p == nil || p.state == 0 {
			continue
		}
		l := a.proc(ProcID(k), at(p.first))
		state := procStates[p.state]
		if p.lost && (l.state == Syscall || l.state == Running) {
			state = Syscall
		}
		known := l.state
		if known != state {
			known = Undetermined
		}
		l.NS[known] = max(0, l.NS[known]+int64(at(p.first)-l.since))
		for x, v := range p.acc {
			st := [...]State{Running, Idle, Syscall, state}[x]
			l.NS[st] += int64(v&^stillOpen) * int64(mul)
			if v&stillOpen != 0 {
				l.state = st
			}
		}
		l.since = end
	}
	slices.SortStableFunc(s.marks, func(a, b mark) int { return cmp.Compare(a.ts, b.ts) })
	for _, m := range s.marks {
		a.mark(Interval{Begin: at(m.ts), G: m.g, Name: c.str(uint64(m.name)), Stack: c.stack(m.stack)}, m.rng, m.kind)
	}
	// Ranges have no keys in the sums: a generation adds its ends and subtracts its starts. What is
	// still open at its end is closed in a later generation, so only the number of open ranges is
	// carried on. Times count from the generation's start, hence the ns of opened*s.min. Statuses
	// of the first generation say what was open before the trace: those count as starts.
	add := func(o openSum, n *int64, since map[int64]Time) int64 {
		ticks, opened := o.ticks, o.open
		if first {
			ticks, opened = ticks-o.activeTicks, opened+o.active
		}
		ns := ticks*int64(mul) - opened*int64(s.min*mul)
		*n += opened
		// What events before it left open is open from now on without a key.
		for k, t := range since {
			ns -= int64(t)
			*n++
			delete(since, k)
		}
		return ns
	}
	a.sum.AssistNS += add(s.assist, &a.assists, a.assist)
	a.sum.SweepNS += add(s.sweep, &a.sweeps, a.sweep)
	a.count(&s.counts)
}
