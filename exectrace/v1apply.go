package exectrace

// What the merge does with an event of formats 1.11 to 1.21: one function a kind. The kinds that
// need no order but that of time are in v1other.go.

// v1Blocks is why a goroutine waits, by the event that says so.
var v1Blocks = [v1Count]Reason{
	v1GoStop: ReasonForever, v1GoSleep: ReasonSleep, v1GoBlockSend: ReasonChanSend, v1GoBlockRecv: ReasonChanRecv,
	v1GoBlockSelect: ReasonSelect, v1GoBlockSync: ReasonSync, v1GoBlockCond: ReasonCond, v1GoBlockNet: ReasonNetwork,
	v1GoBlockGC: ReasonAssistCredit,
}

// apply merges c's event r: it changes states, and hands out what the event says. It reports
// whether it did so. If not, nothing has changed, and an event of another P must come first.
func (m *v1Merge) apply(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	switch r.typ {
	case v1GoStart, v1GoStartLabel:
		return m.start(c, r, turn)
	case v1GoUnblock:
		return m.wake(c, r, turn)
	case v1GoSysExit:
		return m.sysExit(r, turn)
	case v1GoCreate:
		return m.create(c, r, turn)
	case v1GoWaiting, v1GoInSyscall:
		return m.waiting(r, turn)
	case v1GoSched, v1GoPreempt, v1GoEnd, v1GoStop, v1GoSleep, v1GoBlock, v1GoBlockSend, v1GoBlockRecv, v1GoBlockSelect,
		v1GoBlockSync, v1GoBlockCond, v1GoBlockNet, v1GoBlockGC:
		return m.leave(c, r, turn)
	case v1GoSysCall:
		return m.sysCall(c, r, turn)
	case v1GoSysBlock:
		return m.sysBlock(c, r, turn)
	case v1GCStart:
		if m.gcKnown && m.gcSeq != r.a[0] && turn != v1Forced {
			return false
		}
		m.gcKnown, m.gcSeq = true, r.a[0]+1
	}
	m.other(c, r)
	return true
}

// start lets a goroutine run.
func (m *v1Merge) start(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	slot, s := m.claim(r.a[0], v1Runnable, r.seq(), turn)
	if s == nil {
		return false
	}
	m.tick(r.ts)
	s.count(r)
	s.where, s.last, s.p = v1Running, r.ts, c.idx
	c.g, c.slot = GoID(r.a[0]), slot
	if c.g == 0 {
		c.slot = NoSlot // a damaged trace may say that 0 runs, which is no goroutine
	}
	if m.init {
		m.status(slot, s, Running, c.pid)
		return true
	}
	if m.pack(s.state == Runnable, OpStart, slot, c, ReasonStart) == nil {
		e := m.emit(KindGoroutine)
		e.G, e.Slot, e.P = c.g, slot, ProcID(c.pid)
		e.From, e.To, e.Reason = s.state, Running, ReasonStart
	}
	s.state = Running
	if r.typ == v1GoStartLabel {
		e := m.emitOn(c, KindLabel)
		e.G, e.Slot = c.g, slot
		e.Name = StringID(r.a[2])
	}
	return true
}

// wake makes a goroutine that waited runnable.
func (m *v1Merge) wake(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	slot, s := m.claim(r.a[0], v1Waiting, r.seq(), turn)
	if s == nil {
		return false
	}
	m.tick(r.ts)
	s.count(r)
	s.where, s.last = v1Runnable, r.ts
	if x := m.pack(s.state == Waiting, OpWake, slot, c, ReasonUnblock); x != nil {
		x.Stack = StackID(r.stk)
	} else {
		e := m.emitOn(c, KindGoroutine)
		e.G, e.Slot = GoID(r.a[0]), slot
		e.OnStack = StackID(r.stk)
		e.From, e.To, e.Reason = s.state, Runnable, ReasonUnblock
	}
	s.state = Runnable
	return true
}

// sysExit ends a syscall that had blocked, unless exitDue has done so already.
func (m *v1Merge) sysExit(r *v1Rec, turn v1Turn) bool {
	slot, s := m.claim(r.a[0], v1Waiting, r.seq(), turn)
	if s == nil {
		return false
	}
	m.tick(r.ts)
	s.count(r)
	s.where, s.last = v1Runnable, r.ts
	if s.state != Runnable {
		m.comeBack(GoID(r.a[0]), slot, s)
	}
	return true
}

// create makes a goroutine, or introduces one that existed before the trace.
func (m *v1Merge) create(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	slot, s := m.claim(r.a[0], v1Dead, v1Seq{any: true}, turn)
	if s == nil {
		return false
	}
	m.tick(r.ts)
	s.where, s.last, s.entry = v1Runnable, r.ts, uint32(r.a[1])
	s.seq, s.free = 1, false
	if m.init {
		m.pending = append(m.pending, slot)
		return true
	}
	was := s.introduced
	s.introduced = true
	if x := m.pack(true, OpCreate, slot, c, ReasonCreate); x != nil {
		x.Stack, x.Name = StackID(s.entry), StringID(r.stk)
		m.block.batch.Born = append(m.block.batch.Born, GoID(r.a[0]))
	} else {
		s.introduced = was
		e := m.emitOn(c, KindGoroutine)
		e.G, e.Slot = GoID(r.a[0]), slot
		e.Stack, e.OnStack = StackID(s.entry), StackID(r.stk)
		e.From, e.To, e.Reason = NotExist, Runnable, ReasonCreate
	}
	s.state = Runnable
	return true
}

// waiting says of a goroutine from before the trace that it waits or is in a syscall.
func (m *v1Merge) waiting(r *v1Rec, turn v1Turn) bool {
	slot, s := m.claim(r.a[0], v1Runnable, v1Seq{n: 1}, turn)
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
	return true
}

// leave takes c's goroutine off its P: it blocks, lets others run, or ends.
func (m *v1Merge) leave(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	s := m.current(c, turn)
	if s == nil {
		return m.drop(c, r, turn)
	}
	m.tickRunning(r)
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
		e := m.emitOn(c, KindGoroutine)
		e.G, e.Slot, e.Stack = c.g, c.slot, StackID(r.stk)
		e.From, e.To, e.Reason = s.state, opEvents[op].To, why
	}
	if op == OpEnd {
		m.slots.end(c.g)
	}
	s.state = opEvents[op].To
	c.g, c.slot = 0, NoSlot
	return true
}

// sysCall is a syscall's start. If the syscall does not block, the format has no event of its end:
// it ends at once.
func (m *v1Merge) sysCall(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	s := m.current(c, turn)
	if s == nil {
		return m.drop(c, r, turn)
	}
	m.tickRunning(r)
	s.last = r.ts
	if x := m.pack(s.state == Running, OpSyscall, c.slot, c, ReasonSyscall); x != nil {
		x.Stack = StackID(r.stk)
	} else {
		e := m.emitOn(c, KindGoroutine)
		e.G, e.Slot, e.Stack = c.g, c.slot, StackID(r.stk)
		e.From, e.To, e.Reason = s.state, Syscall, ReasonSyscall
	}
	s.state = Syscall
	if !c.blocked() {
		if m.pack(true, OpSyscallEnd, c.slot, c, ReasonSyscall) == nil {
			e := m.emitOn(c, KindGoroutine)
			e.G, e.Slot = c.g, c.slot
			e.From, e.To, e.Reason = Syscall, Running, ReasonSyscall
		}
		s.state = Running
	}
	return true
}

// sysBlock takes the P from a goroutine in a syscall.
func (m *v1Merge) sysBlock(c *v1Cursor, r *v1Rec, turn v1Turn) bool {
	s := m.current(c, turn)
	if s == nil {
		return m.drop(c, r, turn)
	}
	m.tickRunning(r)
	if s.state != Syscall {
		e := m.emitOn(c, KindGoroutine)
		e.G, e.Slot = c.g, c.slot
		e.From, e.To, e.Reason = s.state, Syscall, ReasonSyscall
		s.state = Syscall
	}
	s.where, s.last = v1Waiting, r.ts
	c.g, c.slot = 0, NoSlot
	return true
}

// tickRunning is tick for events that only a goroutine of a running world makes. The network
// poller's wake-ups stand before the first GOMAXPROCS, with which the world starts.
func (m *v1Merge) tickRunning(r *v1Rec) {
	if m.init {
		m.endInit()
	}
	m.tick(r.ts)
}

// emitOn gives an event that happens on c's P and goroutine, to fill in.
func (m *v1Merge) emitOn(c *v1Cursor, k Kind) *Event {
	e := m.emit(k)
	e.P = ProcID(c.pid)
	if c.g != 0 {
		e.On, e.OnSlot = c.g, c.slot
	}
	return e
}

// blocked reports whether the syscall at the cursor blocked: the goroutine's next event says so.
// Only events about other goroutines can lie between.
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

// exitDue ends a syscall at the time at which it ended: its record stands further on, where the
// goroutine got a P.
func (m *v1Merge) exitDue(x dueAt[uint64]) {
	slot, s := m.find(x.v)
	if s == nil || s.state != Syscall || s.where != v1Waiting || s.last > x.ts {
		return // left to the record
	}
	m.tick(x.ts)
	s.last = x.ts
	m.comeBack(GoID(x.v), slot, s)
}

// comeBack hands out a goroutine's return from a syscall that had blocked. It has no P yet.
func (m *v1Merge) comeBack(g GoID, slot uint32, s *v1G) {
	e := m.emit(KindGoroutine)
	e.G, e.Slot = g, slot
	e.On, e.OnSlot = g, slot
	e.From, e.To, e.Reason = s.state, Runnable, ReasonSyscallBlocked
	s.state = Runnable
}

// status says what a goroutine did before the trace. Its stack is where it was started, of one
// frame: the format has no other.
func (m *v1Merge) status(slot uint32, s *v1G, to State, pid int32) {
	e := m.emit(KindGoroutine)
	e.G, e.Slot, e.P = m.slots.goid[slot], slot, ProcID(pid)
	e.Stack = StackID(s.entry)
	e.From, e.To, e.Reason = s.state, to, ReasonStatus
	s.state = to
}

// endInit ends the introduction: those goroutines of which nothing but their creation was said are
// runnable.
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
