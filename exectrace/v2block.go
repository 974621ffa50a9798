package exectrace

// block replaces the generation's ids by the trace's, in place, and fills in what only earlier
// generations know. What differs from event to event without a pattern is no branch here: an absent
// stack and an absent goroutine have entries of their own in the tables.
func (c *consumer) block(b []Event) {
	last := c.last
	slots, stacks, states := c.slots, c.stacks, c.states
	for i := range b {
		e := &b[i]
		if e.Time >= last {
			last = e.Time
		} else if !c.t.ownTimes {
			e.Time = last
		}
		e.Stack = stackOf(stacks, e.Stack)
		e.OnStack = stackOf(stacks, e.OnStack)
		if k := e.OnSlot + 1; uint(k) < uint(len(slots)) && slots[k] != slotUnknown {
			e.OnSlot = slots[k]
		} else {
			e.OnSlot = c.newSlot(e.OnSlot, e.On)
			slots, states = c.slots, c.states
		}
		if e.Kind != KindGoroutine {
			c.other(e)
			slots, states = c.slots, c.states
			continue
		}
		local := e.Slot
		slot := uint32(slotUnknown)
		if k := local + 1; uint(k) < uint(len(slots)) {
			slot = slots[k]
		}
		if uint(slot) >= uint(len(states)) {
			slot = c.newSlot(local, e.G)
			slots, states = c.slots, c.states
		}
		e.Slot = slot
		if e.Reason == reasonByName {
			c.nameReason(e)
		} else if e.Reason == ReasonStatus {
			e.From = states[slot]
		} else if e.Reason == ReasonEnd {
			slots[local+1] = slotUnknown
			c.t.slots.end(e.G)
		}
		states[slot] = e.To
	}
	c.last = last
}

func stackOf(stacks []StackID, id StackID) StackID {
	if uint(id) < uint(len(stacks)) {
		return stacks[id]
	}
	return 0
}

func (c *consumer) stack(id StackID) StackID { return stackOf(c.stacks, id) }

// slotUnknown stands in consumer.slots for a goroutine that had no event in this generation yet.
const slotUnknown = NoSlot - 1

// slot is the trace's slot of the generation's goroutine k, whose number is g.
func (c *consumer) slot(k uint32, g GoID) uint32 {
	if uint(k+1) < uint(len(c.slots)) {
		if s := c.slots[k+1]; s != slotUnknown {
			return s
		}
	}
	return c.newSlot(k, g)
}

// resetSlots forgets the generation's goroutines. Entry 0 is for no goroutine.
func (c *consumer) resetSlots() {
	if len(c.slots) == 0 {
		c.slots = append(c.slots, NoSlot)
	}
	for k := range c.slots[1:] {
		c.slots[k+1] = slotUnknown
	}
}

func (c *consumer) newSlot(k uint32, g GoID) uint32 {
	for int(k)+1 >= len(c.slots) {
		c.slots = append(c.slots, slotUnknown)
	}
	s, isNew := c.t.slots.get(g)
	for int(s) >= len(c.states) {
		c.states = append(c.states, Undetermined)
		c.stw = append(c.stw, 0)
		c.seen = append(c.seen, 0)
	}
	if isNew {
		c.states[s], c.stw[s] = Undetermined, 0
	}
	c.seen[s] = uint32(c.gens)
	c.slots[k+1] = s
	return s
}

// nameReason finds out why a goroutine stopped.
func (c *consumer) nameReason(e *Event) {
	var l localString
	if int(e.Name) < len(c.strs) {
		l = c.strs[e.Name]
	}
	e.Name, e.Reason = 0, l.reason
	if l.reason == ReasonPreempted && e.To == Runnable {
		e.Reason = ReasonTimeslice // the same word for both
	}
	if l.reason == ReasonNone || l.reason == ReasonOther {
		e.Reason, e.Name = ReasonOther, l.id
	}
}

// other does the same for the kinds that are rare.
func (c *consumer) other(e *Event) {
	if e.Slot != NoSlot {
		e.Slot = c.slot(e.Slot, e.G)
	}
	if e.Name != 0 {
		e.Name = c.str(uint64(e.Name))
	}
	switch e.Kind {
	case KindProc:
		c.proc(e)
	case KindGap:
		// What was known does not hold from here on.
		for i := range c.states {
			c.states[i] = Undetermined
		}
		for i := range c.procs {
			c.procs[i] = Undetermined
		}
		e.Arg[0] = max(e.Arg[0], uint64(e.Time))
	case KindRangeBegin:
		if e.Range == RangeSTW && e.Slot != NoSlot {
			c.stw[e.Slot] = e.Name
		}
	case KindRangeEnd:
		if e.Range == RangeSTW && e.Slot != NoSlot {
			e.Name, c.stw[e.Slot] = c.stw[e.Slot], 0
		}
	case KindTaskBegin:
		if c.tasks == nil {
			c.tasks = map[uint64]task{}
		}
		if len(c.tasks) < maxTasks {
			c.tasks[e.Arg[0]] = task{e.Name, e.Arg[1]}
		}
	case KindTaskEnd:
		if t, ok := c.tasks[e.Arg[0]]; ok {
			e.Name, e.Arg[1] = t.name, t.parent
			delete(c.tasks, e.Arg[0])
		}
	case KindLog:
		e.Arg[1] = uint64(c.str(e.Arg[1]))
	case KindSample:
		if e.G != NoGoroutine {
			if s, ok := c.t.slots.ids.get(uint64(e.G)); ok {
				e.Slot, e.OnSlot = s, s
			}
		}
	}
}

// proc fills in the state of a P before its status was written. It also does so for a theft of
// which the worker had only a status.
func (c *consumer) proc(e *Event) {
	for int(e.Proc) >= len(c.procs) {
		c.procs = append(c.procs, Undetermined)
	}
	known := c.procs[e.Proc]
	if e.Reason == ReasonStatus {
		e.From = known
		if e.Arg[0] == 1 {
			e.Arg[0] = 0
			if known == Running || known == Syscall {
				// Its status says that it is lost to a thief. The generation before still had it in
				// a syscall.
				e.From, e.To = Syscall, Syscall
			}
		}
	} else if e.From == Idle && e.To == Idle && known == Syscall {
		e.From = Syscall
	}
	c.procs[e.Proc] = e.To
}

// reason finds the Reason of a string, and remembers it.
func (c *consumer) reason(id StringID) Reason {
	r, ok := c.reasons[id]
	if !ok {
		if c.reasons == nil {
			c.reasons = map[StringID]Reason{}
		}
		r = reasons[c.t.tables.string(id)]
		c.reasons[id] = r
	}
	return r
}
