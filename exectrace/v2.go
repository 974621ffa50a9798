package exectrace

import "sync"

// blocksV2 reads formats 1.22 and later.
//
//  1. An indexer walks the headers of batches and sends the generations off in order.
//  2. Each worker decodes one generation at a time (v2merge.go) into a short queue of blocks.
//  3. Here, the consumer empties the queues in the order of the generations. It replaces the
//     generation's ids of strings, stacks and goroutines by the trace's, fills in states that only
//     earlier generations know, and yields the block.
//
// The queues bound the memory, whatever the file's size: a worker that is too far ahead waits.
func (t *Trace) blocksV2(yield func([]Event) bool) {
	c := &consumer{t: t}
	whole := t.pipeline().drain(c, func(b block) bool {
		c.block(b.ev)
		return len(b.ev) == 0 || yield(b.ev)
	})
	if !whole {
		return
	}
	if ev := c.finish(); ev != nil {
		yield(ev)
	}
}

// drain starts p and gives take each block in order, until it says no. It reports whether the trace
// was read to its end.
func (p *pipeline) drain(c *consumer, take func(block) bool) bool {
	defer p.wg.Wait()
	defer close(p.done)
	p.start()
	for j := range p.order {
		if err := guard(func() error { c.generation(j); return nil }); err != nil {
			p.t.read.fail(err)
			return false
		}
		n := 0
		for b := range j.out {
			if !take(b) {
				return false
			}
			p.recycle(b)
			if n++; n%turnBlocks == 0 {
				j.room <- struct{}{}
			}
			if b.end != nil {
				c.endGeneration(j, b.end)
				if b.end.err != nil {
					p.t.read.fail(b.end.err)
					return false
				}
			}
		}
	}
	if p.err != nil {
		p.t.read.fail(p.err)
	}
	p.t.noteJoined(p.joined, c.last)
	return p.err == nil
}

// queueBlocks is how many blocks a worker may be ahead of the consumer. A worker that is so far
// ahead is woken for turnBlocks at a time: putting a thread to sleep and waking it cost as much as
// some hundred events.
const (
	queueBlocks = 16
	turnBlocks  = 8
)

type job struct {
	g    *generation
	freq uint64
	out  chan block
	room chan struct{} // a token for each turnBlocks blocks
}

type pipeline struct {
	t      *Trace
	order  chan *job // to the consumer
	jobs   chan *job // to the workers
	done   chan struct{}
	free   chan []Event
	wg     sync.WaitGroup
	err    error // the indexer's; read after order is closed
	joined int   // the same: where another trace starts

	packed      bool // batches are wanted instead of blocks
	freeBatches chan *Batch

	totals bool         // for totals: no events where sums do
	spare  chan *v2Sums // memory of generations that were added up
}

func (p *pipeline) start() {
	p.wg.Add(1)
	go func() {
		defer p.wg.Done()
		defer close(p.jobs)
		defer close(p.order)
		p.err = guard(func() error { p.index(); return nil })
	}()
	for range p.t.opt.Workers {
		p.wg.Add(1)
		go func() {
			defer p.wg.Done()
			w := &worker{data: p.t.data}
			for {
				// Memory first, then the job. The other way round, later generations could take all
				// the memory.
				var s *v2Sums
				if p.totals {
					select {
					case s = <-p.spare:
					case <-p.done:
						return
					}
				}
				j, ok := <-p.jobs
				if !ok {
					return
				}
				p.work(w, j, s)
			}
		}()
	}
}

// index sends each generation off when it is known where the next one starts.
func (p *pipeline) index() {
	x := &indexer{data: p.t.data, off: headerLen, version: p.t.version}
	freq, high := uint64(0), uint64(0)
	g := x.next()
	if g != nil {
		g.leaveStrays(0, g.freq)
	}
	for g != nil {
		next := x.next() // g ends where it starts
		if next != nil {
			next.leaveStrays(max(high, g.lastTs), max(freq, g.freq, next.freq))
		}
		g.endTs = g.lastTs + tsSlack
		if g.freq != 0 {
			freq = g.freq
		} else if freq == 0 {
			freq = p.laterFreq(next, x)
		}
		if next != nil && !next.restart && next.minTs >= g.minTs {
			// An M may be off its CPU between taking the time and writing an event, so generations
			// overlap a little.
			g.endTs = max(g.lastTs, next.minTs) + freq
		}
		if g.minTs+freq < high {
			g.restart = true // an earlier trace follows
		}
		high = max(high, g.lastTs)
		j := &job{g: g, freq: freq, out: make(chan block, queueBlocks+1),
			room: make(chan struct{}, queueBlocks/turnBlocks)}
		for range cap(j.room) {
			j.room <- struct{}{}
		}
		select {
		case p.order <- j:
		case <-p.done:
			return
		}
		select {
		case p.jobs <- j:
		case <-p.done:
			return
		}
		g = next
	}
	p.joined = x.joined
}

// laterFreq finds the clock's frequency for a first generation that lost its own.
func (p *pipeline) laterFreq(next *generation, x *indexer) uint64 {
	if next != nil && next.freq != 0 {
		return next.freq
	}
	ahead := *x
	for range 64 {
		g := ahead.next()
		if g == nil {
			break
		}
		if g.freq != 0 {
			return g.freq
		}
	}
	return linuxFreq
}

// linuxFreq is the clock of each trace made on Linux or macOS: CLOCK_MONOTONIC in units of 64 ns.
const linuxFreq = 1e9 / 64

// work decodes one generation.
func (p *pipeline) work(w *worker, j *job, s *v2Sums) {
	defer close(j.out)
	w.reset(j.g, j.freq)
	w.stopped = false
	n := 0
	room := func() bool {
		if n++; n%turnBlocks == 1 {
			select {
			case <-j.room:
			case <-p.done:
				return false
			}
		}
		return true
	}
	w.send = func(full []Event) ([]Event, bool) {
		if !room() {
			return full, false
		}
		select {
		case j.out <- block{ev: full}:
		case <-p.done:
			return full, false
		}
		return p.empty(), true
	}
	w.sendBatch = func(full *Batch) (*Batch, bool) {
		if !room() {
			return full, false
		}
		select {
		case j.out <- block{batch: full}:
		case <-p.done:
			return full, false
		}
		return p.emptyBatch(), true
	}
	if p.packed {
		w.take(p.emptyBatch())
	} else {
		w.buf = p.empty()
	}
	var sum *summed
	err := guard(func() error {
		if s != nil {
			if sum = p.sum(w, s); sum != nil {
				return nil
			}
		}
		w.decode()
		return nil
	})
	if s != nil && sum == nil {
		p.spare <- s
	}
	last := block{ev: w.buf, sum: sum}
	if w.batch != nil {
		w.sync()
		w.batch.Other = w.buf
		last = block{batch: w.batch}
		w.end.stats.Events += int64(len(w.batch.Records))
	} else {
		w.end.stats.Events += int64(len(w.buf))
	}
	w.end.err = err
	end := w.end
	last.end = &end
	select {
	case j.out <- last:
	case <-p.done:
	}
	w.buf, w.batch = nil, nil
}

func (p *pipeline) empty() []Event {
	select {
	case b := <-p.free:
		return b
	default:
		return make([]Event, 0, blockEvents)
	}
}

func (t *Trace) pipeline() *pipeline {
	return &pipeline{
		t:     t,
		order: make(chan *job, t.opt.Workers),
		jobs:  make(chan *job, t.opt.Workers),
		done:  make(chan struct{}),
		free:  make(chan []Event, 4*t.opt.Workers+queueBlocks),

		freeBatches: make(chan *Batch, 4*t.opt.Workers+queueBlocks),
	}
}

func (p *pipeline) recycle(b block) {
	if b.batch != nil {
		select {
		case p.freeBatches <- b.batch:
		default:
		}
		return
	}
	select {
	case p.free <- b.ev[:0]:
	default:
	}
}
