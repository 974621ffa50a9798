package exectrace

import "strconv"

// v1Nominal is the clock's rate where the trace ends before it has the rate: that of a 3 GHz x86
// CPU, of whose ticks the runtime counts every 64th.
const v1Nominal = 3_000_000_000 / 64

func utoa(v uint64) string { return strconv.FormatUint(v, 10) }

// v1Way is how a trace of formats 1.11 to 1.21 is read.
type v1Way struct {
	packed bool // batches are wanted instead of blocks
	alone  bool // in one goroutine, see v1Run
}

// blocksV1 gives the events in blocks.
func (t *Trace) blocksV1(way v1Way, yield func([]Event) bool) {
	t.v1Run(way, func(b v1Block) bool { return yield(b.ev) })
}

// v1Run reads formats 1.11 to 1.21.
//
//  1. The first pass (v1index.go) finds where each P's batches, the strings and the stacks are, and
//     the clock's rate, which stands at the end. It is made once.
//  2. One goroutine decodes and merges (v1merge.go), a block ahead.
//  3. This goroutine gives the block's strings and stacks their ids, and yields the block.
//
// If the way is alone, this goroutine does it all. That takes a third less CPU time, since no event
// goes from one core's cache to another's. It is better where yield does little.
func (t *Trace) v1Run(way v1Way, yield func(v1Block) bool) {
	if !t.v1Scan() {
		return
	}
	m := t.newV1Merge()
	m.packed = way.packed
	if t.v1.freq == 0 {
		t.read.gap(Gap{End: m.clock.time(t.v1.last),
			Reason: "the trace ends before it is complete, without the clock's rate and most stacks: times assume a CPU of 3 GHz and may be off by half"})
	}
	t.noteJoined(t.v1.joined, m.clock.time(t.v1.last))
	if way.alone || t.opt.Workers == 1 {
		t.v1Alone(m, yield)
		return
	}
	full := make(chan v1Block)
	free := make(chan v1Block, 2)
	size := v1BlockEvents
	if way.packed {
		size = v1Records
	}
	m.block = newV1Block(size, way.packed)
	free <- newV1Block(size, way.packed)
	free <- newV1Block(size, way.packed)
	stop := make(chan struct{})
	m.flush = func(b v1Block) (v1Block, bool) {
		select {
		case full <- b:
		case <-stop:
			return b, false
		}
		select {
		case b = <-free:
			return b, true
		case <-stop: // the consumer has left: it takes blocks off full, and gives none back
			return b, false
		}
	}
	var err error
	go func() {
		defer close(full)
		err = m.guarded()
	}()
	// However the consumer leaves, the worker must be gone before the mapping may be.
	defer func() {
		close(stop)
		for range full {
		}
		t.v1Done(m, err)
	}()
	for b := range full {
		if !t.v1Out(b, yield) {
			return
		}
		free <- b.empty()
	}
}

// v1Scan makes the first pass, if it was not made yet. It reports whether it could.
func (t *Trace) v1Scan() bool {
	if t.v1 == nil {
		err := guard(func() error {
			t.v1 = v1Scanned(t.data, t.version)
			return nil
		})
		if err != nil {
			t.read.fail(err)
			return false
		}
	}
	t.read.stats.Batches, t.read.stats.Generations = t.v1.batches, 1
	return true
}

// v1Alone runs m in this goroutine.
func (t *Trace) v1Alone(m *v1Merge, yield func(v1Block) bool) {
	m.block = newV1Block(v1AloneEvents, m.packed)
	m.flush = func(b v1Block) (v1Block, bool) {
		ok := t.v1Out(b, yield)
		return b.empty(), ok
	}
	t.v1Done(m, m.guarded())
}

// v1BlockEvents and v1Records are how many are handed over at once: waking the other goroutine
// costs some microseconds.
const (
	v1BlockEvents = 4 * blockEvents
	v1Records     = 16 * blockEvents
)

// v1AloneEvents is the same where no goroutine is woken: what the first-level cache holds.
const v1AloneEvents = blockEvents / 4

// newV1Block has room for so many events or, if packed, records.
func newV1Block(events int, packed bool) v1Block {
	if !packed {
		return v1Block{ev: make([]Event, 0, events)}
	}
	b := &Batch{Records: make([]Record, 0, events+2*batchOther), Other: make([]Event, 0, batchOther)}
	return v1Block{ev: b.Other, batch: b, room: events}
}

func (b v1Block) empty() v1Block {
	b.ev, b.gaps, b.synced = b.ev[:0], b.gaps[:0], 0
	if b.batch != nil {
		b.batch.Reset()
	}
	return b
}

func (t *Trace) newV1Merge() *v1Merge {
	m := &v1Merge{
		v1Index: t.v1,
		data:    t.data,
		version: t.version,
		shapes:  v1Shapes(t.version),
		init:    true,
		stw:     NoGoroutine,
		stwSlot: NoSlot,
		stwKind: v1Builtin,
		nowTick: t.v1.first,
	}
	freq := t.v1.freq
	if freq == 0 {
		freq = v1Nominal
	}
	m.clock.set(t.v1.first, freq)
	m.samples = v1Samples{data: t.data, shapes: m.shapes, spans: t.v1.samples}
	return m
}

// guarded runs the merge to its end. It hands over what is left in the block, also when the mapping
// faults.
func (m *v1Merge) guarded() error {
	err := guard(func() error {
		m.run()
		return nil
	})
	if !m.stopped {
		m.handOver()
	}
	return err
}

func (t *Trace) v1Done(m *v1Merge, err error) {
	t.read.stats.Repaired += m.repaired
	t.read.stats.Dropped += m.dropped
	if err != nil {
		t.read.fail(err)
	}
}

// v1Out gives a block's strings and stacks their ids, and yields the block.
func (t *Trace) v1Out(b v1Block, yield func(v1Block) bool) bool {
	for _, g := range b.gaps {
		t.read.gap(g)
	}
	n := len(b.ev)
	err := guard(func() error {
		t.v1Intern(b.ev)
		if b.batch != nil {
			n = len(b.batch.Records)
			t.v1InternRecords(b.batch.Records)
		}
		return nil
	})
	if err != nil {
		t.read.fail(err)
		return false
	}
	t.read.stats.Events += int64(n)
	return n == 0 || yield(b)
}
