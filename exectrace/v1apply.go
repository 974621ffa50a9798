package exectrace

// find gives a goroutine's slot and what is known of it, nil if nothing is.
func (m *v1Merge) find(g uint64) (uint32, *v1G) {
	slot, ok := m.slots.ids.get(g)
	if !ok {
		return NoSlot, nil
	}
	if s := &m.gs[slot]; s.epoch == m.epoch {
		return slot, s
	}
	return slot, nil
}

// know gives a goroutine's slot for good.
func (m *v1Merge) know(g uint64) (uint32, *v1G) {
	slot, isNew := m.slots.get(GoID(g))
	if int(slot) >= len(m.gs) {
		m.gs = append(m.gs, v1G{})
	}
	s := &m.gs[slot]
	if isNew {
		*s = v1G{epoch: m.epoch, p: -1, free: true}
	} else if s.epoch != m.epoch {
		s.epoch, s.state, s.free, s.where = m.epoch, Undetermined, true, v1Dead
	}
	return slot, s
}

// claim checks that goroutine g is where an event finds it, and makes it so if force is set. seq counts unless
// local. It gives nil when the event must wait.
func (m *v1Merge) claim(g uint64, where uint8, seq uint64, local, tie, force bool) (uint32, *v1G) {
	slot, s := m.find(g)
	if s != nil {
		if s.where == where && (local || s.free || s.seq == uint32(seq)) {
			return slot, s
		}
	} else if where == v1Dead || m.lossy && !tie {
		return m.know(g)
	}
	if !force {
		return slot, nil
	}
	if s != nil || !m.lossy {
		m.broken(g, s)
	}
	return m.know(g)
}

// count goes on to the sequence number that the goroutine's next event must have.
func (s *v1G) count(r *v1Rec) {
	if r.local {
		s.seq++
		return
	}
	s.seq, s.free = uint32(r.a[1])+1, false
}

// v1Quiet is how long after a gap what does not fit is still put down to it.
const v1Quiet = 10_000_000

// broken is called when an event contradicts what is known of its goroutine and no other event can mend it: some
// events are missing, and if those are, others may be.
func (m *v1Merge) broken(g uint64, s *v1G) {
	if m.holeEnd != 0 || m.quiet && m.now < m.lastGap+v1Quiet {
		if s != nil {
			s.epoch--
		}
		return
	}
	begin := m.now
	if s != nil {
		begin = min(begin, m.clock.at(s.last))
	}
	m.quiet, m.lastGap = true, m.now
	e := m.emit(KindGap)
	e.Arg[0], e.Arg[1] = uint64(m.now), uint64(begin)
	why := "events are missing: a goroutine runs that nobody started"
	if g != 0 {
		why = "events of goroutine " + utoa(g) + " are missing"
	}
	m.out.gaps = append(m.out.gaps, Gap{Begin: begin, End: m.now, Reason: why})
	m.epoch++
	m.lossy = true
	m.gcKnown = false
}

// current gives the goroutine that runs on c, nil if the event must wait or, when forced, is to be dropped.
func (m *v1Merge) current(c *v1Cursor, tie, force bool) *v1G {
	if c.g != 0 && m.slots.goid[c.slot] == c.g {
		s := &m.gs[c.slot]
		if s.epoch == m.epoch {
			if s.where == v1Running && s.p == c.idx {
				return s
			}
		} else if m.lossy {
			c.slot, s = m.know(uint64(c.g))
			s.where, s.p = v1Running, c.idx
			return s
		}
		if force {
			m.broken(uint64(c.g), s)
		}
	} else if force && !m.lossy {
		m.broken(0, nil)
	}
	if force {
		c.g, c.slot = 0, NoSlot
	}
	return nil
}

// v1Blocks tells why the events that block do so.
var v1Blocks = [v1Count]Reason{
	v1GoStop: ReasonForever, v1GoSleep: ReasonSleep, v1GoBlockSend: ReasonChanSend, v1GoBlockRecv: ReasonChanRecv,
	v1GoBlockSelect: ReasonSelect, v1GoBlockSync: ReasonSync, v1GoBlockCond: ReasonCond, v1GoBlockNet: ReasonNetwork,
	v1GoBlockGC: ReasonAssistCredit,
}

// apply makes of a record what it says. It gives false, and changes nothing, when another P's event must come first;
// not if force is set. tie: another P has an event at this very time.
func (m *v1Merge) apply(c *v1Cursor, r *v1Rec, tie, force bool) bool {
	switch r.typ {
	case v1GoStart, v1GoStartLabel:
		slot, s := m.claim(r.a[0], v1Runnable, r.a[1], r.local, tie, force)
		if s == nil {
			return false
		}
		m.tick(r.ts)
		s.count(r)
		s.where, s.last, s.p = v1Running, r.ts, c.idx
		c.g, c.slot = GoID(r.a[0]), slot
		if c.g == 0 {
			c.slot = NoSlot // a damaged trace may say that 0 runs, which is nobody
		}
		if m.init {
			m.status(slot, s, Running, c.pid)
			break
		}
		if m.pack(s.state == Runnable, OpStart, slot, c, ReasonStart) == nil {
			e := m.emit(KindGoroutine)
			e.G, e.Slot, e.P = c.g, slot, ProcID(c.pid)
			e.From, e.To, e.Reason = s.state, Running, ReasonStart
		}
		s.state = Running
		if r.typ == v1GoStartLabel {
			e := m.on(c, KindLabel)
			e.G, e.Slot = c.g, slot
			e.Name = StringID(r.a[2])
		}

	case v1GoUnblock:
		slot, s := m.claim(r.a[0], v1Waiting, r.a[1], r.local, tie, force)
		if s == nil {
			return false
		}
		m.tick(r.ts)
		s.count(r)
		s.where, s.last = v1Runnable, r.ts
		if x := m.pack(s.state == Waiting, OpWake, slot, c, ReasonUnblock); x != nil {
			x.Stack = StackID(r.stk)
		} else {
			e := m.on(c, KindGoroutine)
			e.G, e.Slot = GoID(r.a[0]), slot
			e.OnStack = StackID(r.stk)
			e.From, e.To, e.Reason = s.state, Runnable, ReasonUnblock
		}
		s.state = Runnable

	case v1GoSysExit:
		slot, s := m.claim(r.a[0], v1Waiting, r.a[1], r.local, tie, force)
		if s == nil {
			return false
		}
		m.tick(r.ts)
		s.count(r)
		s.where, s.last = v1Runnable, r.ts
		if s.state != Runnable {
			m.back(GoID(r.a[0]), slot, s)
		}

	case v1GoCreate:
		slot, s := m.claim(r.a[0], v1Dead, 0, true, tie, force)
		if s == nil {
			return false
		}
		m.tick(r.ts)
		s.where, s.last, s.entry = v1Runnable, r.ts, uint32(r.a[1])
		s.seq, s.free = 1, false
		if m.init {
			m.pending = append(m.pending, slot)
			break
		}
		was := s.told
		s.told = true
		if x := m.pack(true, OpCreate, slot, c, ReasonCreate); x != nil {
			x.Stack, x.Name = StackID(s.entry), StringID(r.stk)
			m.out.batch.Born = append(m.out.batch.Born, GoID(r.a[0]))
		} else {
			s.told = was
			e := m.on(c, KindGoroutine)
			e.G, e.Slot = GoID(r.a[0]), slot
			e.Stack, e.OnStack = StackID(s.entry), StackID(r.stk)
			e.From, e.To, e.Reason = NotExist, Runnable, ReasonCreate
		}
		s.state = Runnable

	case v1GoWaiting, v1GoInSyscall:
		slot, s := m.claim(r.a[0], v1Runnable, 1, false, tie, force)
		if s == nil {
			return false
		}
		m.tick(r.ts)
		s.where, s.last = v1Waiting, r.ts
		s.seq, s.free = 2, false
		to := Waiting
		if r.typ == v1GoInSyscall {
			to = Syscall
		}
		m.status(slot, s, to, -1)

	case v1GoSched, v1GoPreempt, v1GoEnd, v1GoStop, v1GoSleep, v1GoBlock, v1GoBlockSend, v1GoBlockRecv, v1GoBlockSelect,
		v1GoBlockSync, v1GoBlockCond, v1GoBlockNet, v1GoBlockGC:
		s := m.current(c, tie, force)
		if s == nil {
			return m.without(c, r, force)
		}
		m.running(r)
		s.last = r.ts
		op, why := OpBlock, v1Blocks[r.typ]
		s.where = v1Waiting
		switch r.typ {
		case v1GoSched:
			op, why, s.where = OpStop, ReasonYield, v1Runnable
		case v1GoPreempt:
			op, why, s.where = OpStop, ReasonTimeslice, v1Runnable
		case v1GoEnd:
			op, why, s.where = OpEnd, ReasonEnd, v1Dead
		}
		if x := m.pack(s.state == Running, op, c.slot, c, why); x != nil {
			x.Stack = StackID(r.stk)
		} else {
			e := m.on(c, KindGoroutine)
			e.G, e.Slot, e.Stack = c.g, c.slot, StackID(r.stk)
			e.From, e.To, e.Reason = s.state, opEvents[op].To, why
		}
		if op == OpEnd {
			m.slots.end(c.g)
		}
		s.state = opEvents[op].To
		c.g, c.slot = 0, NoSlot

	case v1GoSysCall:
		s := m.current(c, tie, force)
		if s == nil {
			return m.without(c, r, force)
		}
		m.running(r)
		s.last = r.ts
		if x := m.pack(s.state == Running, OpSyscall, c.slot, c, ReasonSyscall); x != nil {
			x.Stack = StackID(r.stk)
		} else {
			e := m.on(c, KindGoroutine)
			e.G, e.Slot, e.Stack = c.g, c.slot, StackID(r.stk)
			e.From, e.To, e.Reason = s.state, Syscall, ReasonSyscall
		}
		s.state = Syscall
		if !c.blocked() {
			if m.pack(true, OpSyscallEnd, c.slot, c, ReasonSyscall) == nil {
				e := m.on(c, KindGoroutine)
				e.G, e.Slot = c.g, c.slot
				e.From, e.To, e.Reason = Syscall, Running, ReasonSyscall
			}
			s.state = Running
		}

	case v1GoSysBlock:
		s := m.current(c, tie, force)
		if s == nil {
			return m.without(c, r, force)
		}
		m.running(r)
		if s.state != Syscall {
			e := m.on(c, KindGoroutine)
			e.G, e.Slot = c.g, c.slot
			e.From, e.To, e.Reason = s.state, Syscall, ReasonSyscall
			s.state = Syscall
		}
		s.where, s.last = v1Waiting, r.ts
		c.g, c.slot = 0, NoSlot

	case v1GCStart:
		if m.gcKnown && m.gcSeq != r.a[0] && !force {
			return false
		}
		m.gcKnown, m.gcSeq = true, r.a[0]+1
		fallthrough
	default:
		m.other(c, r)
	}
	return true
}

// without drops an event of a P of which it is not known what it runs.
func (m *v1Merge) without(c *v1Cursor, r *v1Rec, force bool) bool {
	if !force && !(c.g == 0 && m.lossy) {
		return false
	}
	m.tick(r.ts)
	m.dropped++
	return true
}

// running is tick, for events that only a goroutine of a running world makes. Wake-ups by the network poller stand before
// the first GOMAXPROCS.
func (m *v1Merge) running(r *v1Rec) {
	if m.init {
		m.endInit()
	}
	m.tick(r.ts)
}

// on gives an event that happens on c's P and goroutine.
func (m *v1Merge) on(c *v1Cursor, k Kind) *Event {
	e := m.emit(k)
	e.P = ProcID(c.pid)
	if c.g != 0 {
		e.On, e.OnSlot = c.g, c.slot
	}
	return e
}

// blocked tells whether the syscall at the cursor blocked: whether the goroutine's next event says so. Only events about
// other goroutines can lie between.
func (c *v1Cursor) blocked() bool {
	for i := c.i + 1; i < len(c.buf); i++ {
		switch n := &c.buf[i]; n.typ {
		case v1GoSysBlock:
			return true
		case v1GoSysExit, v1GoWaiting, v1GoInSyscall:
			if GoID(n.a[0]) == c.g {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// exit tells of a syscall's end, ahead of its record.
func (m *v1Merge) exit(x dueAt[uint64]) {
	slot, s := m.find(x.v)
	if s == nil || s.state != Syscall || s.where != v1Waiting || s.last > x.ts {
		return // the record will tell
	}
	m.tick(x.ts)
	s.last = x.ts
	m.back(GoID(x.v), slot, s)
}

// back is a goroutine's return from a syscall that had blocked. It has no P yet.
func (m *v1Merge) back(g GoID, slot uint32, s *v1G) {
	e := m.emit(KindGoroutine)
	e.G, e.Slot = g, slot
	e.On, e.OnSlot = g, slot
	e.From, e.To, e.Reason = s.state, Runnable, ReasonSyscallBlocked
	s.state = Runnable
}

// status tells what a goroutine did before the trace. Its stack is where it was started, of one frame: the format has no other.
func (m *v1Merge) status(slot uint32, s *v1G, to State, pid int32) {
	e := m.emit(KindGoroutine)
	e.G, e.Slot, e.P = m.slots.goid[slot], slot, ProcID(pid)
	e.Stack = StackID(s.entry)
	e.From, e.To, e.Reason = s.state, to, ReasonStatus
	s.state = to
}

// endInit: those of which nothing else was said are runnable.
func (m *v1Merge) endInit() {
	if !m.init {
		return
	}
	m.init, m.halted = false, m.halted || m.brief
	for _, slot := range m.pending {
		if s := &m.gs[slot]; s.epoch == m.epoch && s.state == Undetermined && s.where == v1Runnable {
			m.status(slot, s, Runnable, -1)
		}
	}
	m.pending = nil
}
