package exectrace

// Batches of formats before 1.22. Of the kinds that most events are, the merge makes a Record at
// once, as in v2records.go.

// sync appends the records of events that have none yet.
func (m *v1Merge) sync() {
	b := m.block.batch
	if b == nil {
		return
	}
	for ; m.block.synced < len(m.block.ev); m.block.synced++ {
		e := &m.block.ev[m.block.synced]
		m.introduce(e.Slot, e.G)
		m.introduce(e.OnSlot, e.On)
		b.Records = append(b.Records, e.whole(m.block.synced))
	}
}

// introduce notes that an event gave the number of slot's goroutine. In a damaged trace the number
// may be of a goroutine whose slot another one has by now: then that one must be introduced again.
func (m *v1Merge) introduce(slot uint32, g GoID) {
	if uint(slot) < uint(len(m.gs)) {
		m.gs[slot].introduced = m.slots.goid[slot] == g
	}
}

// pack makes a Record of what happened on c to the goroutine at slot. It gives nil where a Record
// cannot express the event: the state before is not the one that op implies (fits is false), or a
// goroutine has not been introduced yet. Stack and Name are left to the caller.
func (m *v1Merge) pack(fits bool, op Op, slot uint32, c *v1Cursor, why Reason) *Record {
	if !m.packed || !fits || c.pid >= 1<<15 {
		return nil
	}
	if m.block.synced < len(m.block.ev) {
		m.sync()
	}
	if slot != NoSlot && !m.gs[slot].introduced {
		return nil
	}
	waker := uint32(NoSlot)
	if c.g != 0 && (op == OpWake || op == OpCreate) {
		if waker = c.slot; !m.holdsSlot(c) || !m.gs[waker].introduced {
			return nil
		}
	}
	if len(m.block.batch.Records) >= m.block.room {
		m.handOver()
	}
	b := m.block.batch
	n := len(b.Records)
	b.Records = b.Records[:n+1]
	r := &b.Records[n]
	r.Time, r.M, r.P, r.Op, r.Reason = m.now, 1<<32-1, int16(c.pid), op, why
	r.Slot, r.Arg, r.Stack, r.Name = slot, waker, 0, 0
	return r
}

// holdsSlot reports whether the slot of c's goroutine is still that goroutine's.
func (m *v1Merge) holdsSlot(c *v1Cursor) bool { return c.g == 0 || m.slots.goid[c.slot] == c.g }

// v1InternRecords is v1Intern for the records that stand for no event of Other.
func (t *Trace) v1InternRecords(records []Record) {
	stacks := t.v1.stackIDs
	for i := range records {
		r := &records[i]
		if n := r.Stack; n != 0 {
			if int(n) < len(stacks) && stacks[n] != 0 {
				r.Stack = StackID(stacks[n] - 1)
			} else {
				r.Stack = StackID(t.v1Stack(uint32(n)))
				stacks = t.v1.stackIDs
			}
		}
		switch r.Op {
		case OpCreate:
			r.Name = StringID(t.v1Stack(uint32(r.Name)))
		case OpRegionBegin, OpRegionEnd:
			r.Name = t.v1Name(uint32(r.Name))
		}
	}
}
