package exectrace

// block puts the trace's ids for the generation's, in place, and fills in what only earlier generations know.
func (c *consumer) block(b []Event) {
	last := c.last
	for i := range b {
		e := &b[i]
		if e.Time >= last {
			last = e.Time
		} else if !c.t.ownTimes {
			e.Time = last
		}
		if e.Stack != 0 {
			e.Stack = c.stack(e.Stack)
		}
		if e.OnStack != 0 {
			e.OnStack = c.stack(e.OnStack)
		}
		if e.OnSlot != NoSlot {
			e.OnSlot = c.slot(e.OnSlot, e.On)
		}
		if e.Kind != KindGoroutine {
			c.other(e)
			continue
		}
		local := e.Slot
		slot := c.slot(local, e.G)
		e.Slot = slot
		switch e.Reason {
		case reasonByName:
			c.nameReason(e)
		case ReasonStatus:
			e.From = c.states[slot]
		case ReasonEnd:
			c.slots[local] = 0
			c.states[slot] = NotExist
			c.t.slots.end(e.G)
			continue
		}
		c.states[slot] = e.To
	}
	c.last = last
}

func (c *consumer) stack(id StackID) StackID {
	if int(id) < len(c.stacks) {
		return c.stacks[id]
	}
	return 0
}

// slot is the trace's slot of the generation's goroutine k, which is g.
func (c *consumer) slot(k uint32, g GoID) uint32 {
	if uint(k) < uint(len(c.slots)) {
		if s := c.slots[k]; s != 0 {
			return s - 1
		}
	}
	return c.newSlot(k, g)
}

func (c *consumer) newSlot(k uint32, g GoID) uint32 {
	for int(k) >= len(c.slots) {
		c.slots = append(c.slots, 0)
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
	c.slots[k] = s + 1
	return s
}

// nameReason resolves why a goroutine stopped.
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
		// What was known is not, from here on.
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

// proc fills in what a P did before its status was written, and what a thief that had only a status knew.
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
				// Its status says it is lost to a thief; the generation before still had it in a syscall.
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
