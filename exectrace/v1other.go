package exectrace

// v1Builtin marks a string that is not the file's: it is an index into v1STW.
const v1Builtin = 1 << 31

// other handles the events that need no order but that of time.
func (m *v1Merge) other(c *v1Cursor, r *v1Rec) {
	m.tick(r.ts)
	switch r.typ {
	case v1Gomaxprocs:
		m.endInit() // the runtime has introduced all goroutines and starts the world
		m.metric(c, MetricGOMAXPROCS, r).Stack = StackID(r.stk)
	case v1HeapAlloc:
		if x := m.pack(m.holdsSlot(c), OpHeapLive, c.slot, c, ReasonNone); x != nil {
			x.Arg, x.Name = uint32(r.a[0]), StringID(r.a[0]>>32)
		} else {
			m.metric(c, MetricHeapLive, r)
		}
	case v1HeapGoal:
		m.metric(c, MetricHeapGoal, r)

	case v1ProcStart, v1ProcStop:
		e := m.emit(KindProc)
		e.Proc = ProcID(c.pid)
		if c.epoch == m.epoch {
			e.From = c.state
		}
		e.To, e.Arg[0] = Running, r.a[0]
		if r.typ == v1ProcStop {
			e.To, e.P, e.Arg[0] = Idle, e.Proc, 0
			c.g, c.slot = 0, NoSlot
		}
		c.state, c.epoch = e.To, m.epoch

	case v1GCStart:
		e := m.emitOn(c, KindRangeBegin)
		e.Range, e.Stack = RangeGC, StackID(r.stk)
	case v1GCDone:
		m.emitOn(c, KindRangeEnd).Range = RangeGC
	case v1STWStart:
		m.stw, m.stwSlot = NoGoroutine, NoSlot
		if c.g != 0 {
			m.stw, m.stwSlot = c.g, c.slot
		}
		m.stwKind = v1Builtin | v1STWKind(m.version, r.a[0])
		m.emitSTW(c, KindRangeBegin)
	case v1STWDone:
		m.emitSTW(c, KindRangeEnd)
		m.stw, m.stwSlot, m.stwKind = NoGoroutine, NoSlot, v1Builtin
	case v1SweepStart:
		e := m.emitOn(c, KindRangeBegin)
		e.Range, e.Proc, e.Stack = RangeSweep, ProcID(c.pid), StackID(r.stk)
	case v1SweepDone:
		e := m.emitOn(c, KindRangeEnd)
		e.Range, e.Proc = RangeSweep, ProcID(c.pid)
		e.Arg[0], e.Arg[1] = r.a[0], r.a[1]
	case v1AssistStart:
		m.emitSelf(c, KindRangeBegin, r).Range = RangeAssist
	case v1AssistDone:
		m.emitSelf(c, KindRangeEnd, r).Range = RangeAssist

	case v1TaskCreate:
		e := m.emitSelf(c, KindTaskBegin, r)
		e.Arg[0], e.Arg[1], e.Name = r.a[0], r.a[1], StringID(r.a[2])
	case v1TaskEnd:
		m.emitSelf(c, KindTaskEnd, r).Arg[0] = r.a[0]
	case v1Region:
		op := OpRegionBegin
		switch r.a[1] {
		case 0:
		case 1:
			op = OpRegionEnd
		default:
			m.dropped++
			return
		}
		if x := m.pack(m.holdsSlot(c) && r.a[0]>>32 == 0, op, c.slot, c, ReasonNone); x != nil {
			x.Arg, x.Name, x.Stack = uint32(r.a[0]), StringID(r.a[2]), StackID(r.stk)
		} else {
			e := m.emitSelf(c, opEvents[op].Kind, r)
			e.Arg[0], e.Name = r.a[0], StringID(r.a[2])
		}
	case v1Log:
		e := m.emitSelf(c, KindLog, r)
		// The message stands in the file. Arg[1] is its offset, until the block is handed out.
		e.Arg[0], e.Arg[1], e.Name = r.a[0], r.a[2], StringID(r.a[1])

	case v1None:
		c.g, c.slot = 0, NoSlot
	}
}

func (m *v1Merge) metric(c *v1Cursor, k Metric, r *v1Rec) *Event {
	e := m.emitOn(c, KindMetric)
	e.Metric, e.Arg[0] = k, r.a[0]
	return e
}

// emitSelf gives an event of c's goroutine about itself, to fill in.
func (m *v1Merge) emitSelf(c *v1Cursor, k Kind, r *v1Rec) *Event {
	e := m.emitOn(c, k)
	e.G, e.Slot = e.On, e.OnSlot
	e.Stack = StackID(r.stk)
	return e
}

// emitSTW gives an event of a stop-the-world. It is about the goroutine that stopped the world,
// whichever starts it again.
func (m *v1Merge) emitSTW(c *v1Cursor, k Kind) {
	e := m.emitOn(c, k)
	e.Range, e.Name = RangeSTW, StringID(m.stwKind)
	e.G, e.Slot = m.stw, m.stwSlot
}

func (m *v1Merge) sample(x dueAt[v1Sample]) {
	m.tick(x.ts)
	s := &x.v
	e := m.emit(KindSample)
	e.P, e.Stack = ProcID(s.pid), StackID(s.stk)
	if s.g != 0 {
		slot, isNew := m.slots.get(GoID(s.g))
		if isNew {
			if int(slot) >= len(m.gs) {
				m.gs = append(m.gs, v1G{})
			}
			m.gs[slot] = v1G{epoch: m.epoch - 1, p: -1} // a sample does not say its state
		}
		e.G, e.Slot = GoID(s.g), slot
		e.On, e.OnSlot = e.G, slot
	}
}
