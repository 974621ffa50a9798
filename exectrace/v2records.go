package exectrace

// Batches from format 1.22 on. Workers decode as for Blocks, with one difference: of what the fast
// path decodes, sprintRecords makes Records instead of Events. What the rest of the worker emits
// stays an Event, for which an OpOther stands. A record has no goroutine's number: one is only made
// of a goroutine that an event or a creation of this generation introduced.

// batchRecords is the number of records in a batch: 64 KB. So a batch stays in the second-level
// cache between the loop that puts in the trace's ids and the consumer's loop.
const batchRecords = 2048

// batchesV2 is blocksV2 for batches.
func (t *Trace) batchesV2(yield func(*Batch) bool) {
	c := &consumer{t: t}
	p := t.pipeline()
	p.packed = true
	whole := p.drain(c, func(b block) bool {
		c.records(b.batch)
		return len(b.batch.Records) == 0 || yield(b.batch)
	})
	if !whole {
		return
	}
	if ev := c.finish(); ev != nil {
		yield(&Batch{Records: []Record{ev[0].whole(0)}, Other: ev})
	}
}

func newBatch() *Batch {
	// Twice the whole events: their records are appended whatever room there is.
	return &Batch{Records: make([]Record, 0, batchRecords+2*batchOther), Other: make([]Event, 0, batchOther)}
}

func (p *pipeline) emptyBatch() *Batch {
	select {
	case b := <-p.freeBatches:
		return b
	default:
		return newBatch()
	}
}

// take gives w an empty batch to fill.
func (w *worker) take(b *Batch) {
	b.Reset()
	w.batch, w.buf, w.synced = b, b.Other, 0
}

// sync appends the records of events that have none yet.
func (w *worker) sync() {
	for ; w.synced < len(w.buf); w.synced++ {
		e := &w.buf[w.synced]
		w.introduce(e.Slot, e.G)
		w.introduce(e.OnSlot, e.On)
		w.batch.Records = append(w.batch.Records, e.whole(w.synced))
	}
}

// introduce remembers that an event had the number of goroutine k.
func (w *worker) introduce(k uint32, id GoID) {
	if uint(k) < uint(len(w.gs)) && w.gs[k].id == uint64(id) {
		w.gs[k].introduced = true
	}
}

// flushBatch is flush for batches.
func (w *worker) flushBatch() bool {
	b := w.batch
	if w.stopped {
		w.take(b)
		return false
	}
	w.sync()
	b.Other = w.buf
	w.end.stats.Events += int64(len(b.Records))
	next, ok := w.sendBatch(b)
	w.take(next)
	if !ok {
		w.stopped = true
	}
	return ok
}

// opStates has the states that goroutines' records lead to.
var opStates = [opCount]State{OpStart: Running, OpWake: Runnable, OpBlock: Waiting,
	OpStop: Runnable, OpSyscall: Syscall, OpSyscallEnd: Running}

// namedReason is what the trace's word for a reason means: for a goroutine that stopped, and for
// one that blocked.
type namedReason struct {
	name    StringID
	reasons [2]Reason // by Op&1
}

// nameReasons makes the table in which records' reasons are looked up, by the generation's string.
func (c *consumer) nameReasons() {
	c.named = c.named[:0]
	for k := range max(1, len(c.strs)) {
		var n namedReason
		for _, op := range [2]Op{OpBlock, OpStop} {
			e := Event{Name: StringID(k), To: opStates[op]}
			c.nameReason(&e)
			n.name, n.reasons[op&1] = e.Name, e.Reason
		}
		c.named = append(c.named, n)
	}
}

// records is block for a batch. The commonest kinds are all done alike: they come in no order that
// a branch predictor could learn.
func (c *consumer) records(b *Batch) {
	last, own := c.last, c.t.ownTimes
	slots, stacks, states, named := c.slots, c.stacks, c.states, c.named
	born := 0
	for i := range b.Records {
		r := &b.Records[i]
		if r.Op == OpOther {
			c.last = last
			e := b.Other[r.Arg : r.Arg+1]
			c.block(e)
			r.Time, r.Slot = e[0].Time, e[0].Slot
			last, slots, states = c.last, c.slots, c.states
			continue
		}
		if r.Time >= last {
			last = r.Time
		} else if !own {
			r.Time = last
		}
		r.Stack = stackOf(stacks, r.Stack)
		local := r.Slot
		slot := uint32(slotUnknown)
		if k := local + 1; uint(k) < uint(len(slots)) {
			slot = slots[k]
		}
		if r.Op > OpSyscallEnd {
			switch r.Op {
			case OpCreate:
				if slot == slotUnknown {
					slot = c.newSlot(local, b.Born[born])
					slots, states = c.slots, c.states
				}
				born++
				r.Name = StringID(stackOf(stacks, StackID(r.Name)))
				r.Arg = slotOf(slots, r.Arg)
				states[slot] = Runnable
			case OpEnd:
				if uint(slot) < uint(len(states)) {
					states[slot] = NotExist
					slots[local+1] = slotUnknown
					c.t.slots.end(c.t.slots.goid[slot])
				}
			case OpRegionBegin, OpRegionEnd:
				r.Name = c.str(uint64(r.Name))
			}
			r.Slot = slot
			continue
		}
		r.Slot = slot
		r.Arg = slotOf(slots, r.Arg)
		n := uint(r.Name)
		if n >= uint(len(named)) {
			n = 0
		}
		l := &named[n]
		r.Name = l.name
		reason := uint32(r.Reason)
		if reason == uint32(reasonByName) {
			reason = uint32(l.reasons[r.Op&1])
		}
		r.Reason = Reason(reason)
		if uint(slot) < uint(len(states)) {
			states[slot] = opStates[r.Op]
		}
	}
	c.last = last
}

// slotOf is the trace's slot of a goroutine that was introduced.
func slotOf(slots []uint32, local uint32) uint32 {
	if k := local + 1; uint(k) < uint(len(slots)) {
		return slots[k]
	}
	return NoSlot
}
