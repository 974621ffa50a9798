package exectrace

// rare handles the events that the hot loop leaves. i is the index of the arguments, behind the
// time ts. It gives the index behind them, and whether the event fits.
func (s *v2Sums) rare(m *v2SumM, typ byte, d []byte, i int, ts uint64) (int, bool) {
	if !timed(typ) {
		return i, false
	}
	var v [4]uint64
	for k := range v[:v2Shapes[typ].args] {
		v[k], i = uvarint(d, i)
	}
	if i > len(d) {
		return i, false
	}
	val := ts | one
	switch typ {
	case evGoStart, evGoUnblock, evGoStatus, evGoStatusStack, evGoSwitch, evGoSwitchDestroy,
		evGoCreate, evGoCreateBlocked, evGoCreateSyscall, evGCMarkAssistActive:
		if v[0]-1 >= maxGo {
			return i, false
		}
	}
	switch typ {
	case evGoStart, evGoUnblock, evGoBlock, evGoStop, evGoSyscallBegin, evGoSyscallEnd:
		return i, s.long(m, typ, &v, val)
	case evGoStatus, evGoStatusStack:
		return i, s.goStatus(m, &v, ts)
	case evProcStatus:
		return i, s.procStatus(m, &v, ts)
	case evProcStart, evProcStop, evProcSteal:
		return i, s.proc(m, typ, &v, val)
	case evGoSyscallEndBlocked, evGoDestroy, evGoDestroySyscall, evGoCreateSyscall, evGoSwitch, evGoSwitchDestroy:
		return i, s.goroutine(m, typ, &v, ts)
	case evGoCreate:
		s.create(accRunnable, v[0], uint64(stackID(v[1])), ts)
	case evGoCreateBlocked:
		s.create(accWaiting, v[0], uint64(stackID(v[1])), ts)
	case evSTWBegin, evSTWEnd:
		if m.g == nil {
			return i, false
		}
		k := mark{ts: ts, g: GoID(m.g.id), rng: RangeSTW, kind: KindRangeEnd}
		if typ == evSTWBegin {
			k.kind, k.name, k.stack = KindRangeBegin, stringID(v[0]), stackID(v[1])
		}
		s.mark(k)
	case evGCActive, evGCBegin, evGCEnd:
		k := mark{ts: ts, g: NoGoroutine, rng: RangeGC, kind: KindRangeActive}
		if typ == evGCBegin {
			k.kind, k.stack = KindRangeBegin, stackID(v[1])
		} else if typ == evGCEnd {
			k.kind = KindRangeEnd
		}
		s.mark(k)
	case evGCSweepActive:
		s.sweep.active++
		s.sweep.activeTicks += int64(ts)
	case evGCSweepBegin:
		s.sweep.open++
		s.sweep.ticks -= int64(ts)
	case evGCSweepEnd:
		s.sweep.open--
		s.sweep.ticks += int64(ts)
		s.counts.SweptBytes += v[0]
		s.counts.ReclaimedBytes += v[1]
	case evGCMarkAssistActive:
		s.assist.active++
		s.assist.activeTicks += int64(ts)
	case evGCMarkAssistBegin:
		s.assist.open++
		s.assist.ticks -= int64(ts)
	case evGCMarkAssistEnd:
		s.assist.open--
		s.assist.ticks += int64(ts)
	case evHeapAlloc:
		s.counts.HeapLiveMax = max(s.counts.HeapLiveMax, v[0])
	case evUserTaskBegin:
		s.counts.Tasks++
	case evUserRegionBegin:
		s.counts.Regions++
	case evUserLog:
		s.counts.Logs++
	case evProcsChange, evHeapGoal, evGoLabel, evUserTaskEnd, evUserRegionEnd:
		// No sum has it.
	default:
		if typ < evSpan {
			return i, false // it may change a state: read in order
		}
		s.w.end.stats.Experimental++
		s.n--
	}
	return i, !s.bad
}

// proc adds up an event that only changes the state of a P.
func (s *v2Sums) proc(m *v2SumM, typ byte, v *[4]uint64, val uint64) bool {
	switch typ {
	case evProcStart:
		if v[0] >= maxProc || m.p != nil && !m.syscall {
			return false
		}
		p := s.p(v[0])
		p.acc[accPIdle] += val
		p.acc[accPRunning] -= val
		m.p, m.syscall = p, false
	case evProcStop:
		if m.p == nil {
			return false
		}
		p := m.p
		if m.syscall {
			p.acc[accPSyscall] += val
		} else {
			p.acc[accPRunning] += val
		}
		p.acc[accPIdle] -= val
		m.p, m.syscall = nil, false
	case evProcSteal:
		if v[0] >= maxProc {
			return false
		}
		p := s.p(v[0])
		if p.lost && v[1] == 1 {
			p.acc[accPLost] += val
		} else {
			p.acc[accPSyscall] += val
		}
		p.acc[accPIdle] -= val
		if v[2] == m.m {
			m.p, m.syscall = nil, false
		}
		// Any other victim finds out where its syscall ends blocked.
	}
	return !s.bad
}

// goroutine adds up the rarer transitions of goroutines.
func (s *v2Sums) goroutine(m *v2SumM, typ byte, v *[4]uint64, ts uint64) bool {
	val := ts | one
	switch typ {
	case evGoSyscallEndBlocked:
		if m.g == nil && !s.pend(m) {
			return false
		}
		g := m.g
		g.acc[accSyscall] += val
		g.acc[accRunnable] -= val
		m.g = nil
		if m.syscall {
			m.p, m.syscall = nil, false
		}
	case evGoDestroy:
		if m.g == nil {
			return false
		}
		g := m.g
		g.acc[accRunning] += val
		g.end = ts
		m.g = nil
	case evGoDestroySyscall:
		if m.g == nil && !s.pend(m) || m.p != nil {
			return false // with a P, what becomes of it depends on the order
		}
		g := m.g
		g.acc[accSyscall] += val
		g.end = ts
		m.g = nil
	case evGoCreateSyscall:
		g := s.ids.get(v[0])
		if g.first != noTime || m.g != nil {
			return false
		}
		g.first = ts
		g.acc[accSyscall] -= val
		m.g, m.fresh = g, false
	case evGoSwitch, evGoSwitchDestroy:
		if m.g == nil {
			return false
		}
		cur, next := m.g, s.ids.get(v[0])
		cur.acc[accRunning] += val
		if typ == evGoSwitch {
			cur.acc[accWaiting] -= val
		} else {
			cur.end = ts
		}
		next.acc[accWaiting] += val
		next.acc[accRunning] -= val
		m.g = next
		s.n += 2
	}
	return !s.bad
}

// long does what the hot loop does, for events that are too long for it.
func (s *v2Sums) long(m *v2SumM, typ byte, v *[4]uint64, val uint64) bool {
	var g *sumG
	switch typ {
	case evGoStart, evGoUnblock:
		g = s.ids.get(v[0])
	default:
		if g = m.g; g == nil {
			return false
		}
		if g.stack == 0 && typ != evGoSyscallEnd {
			g.stack = uint32(stackID(v[1]))
		}
	}
	switch typ {
	case evGoStart:
		if m.g != nil {
			return false
		}
		g.acc[accRunnable] += val
		g.acc[accRunning] -= val
		m.g, m.fresh = g, false
	case evGoUnblock:
		g.acc[accWaiting] += val
		g.acc[accRunnable] -= val
	case evGoBlock:
		g.acc[accRunning] += val
		g.acc[accWaiting] -= val
		m.g = nil
	case evGoStop:
		g.acc[accRunning] += val
		g.acc[accRunnable] -= val
		m.g = nil
	case evGoSyscallBegin, evGoSyscallEnd:
		if m.p == nil || m.syscall == (typ == evGoSyscallBegin) {
			return false
		}
		g.acc[accRunning] += val
		g.acc[accSyscall] -= val
		m.p.acc[accPRunning] += val
		m.p.acc[accPSyscall] -= val
		if typ == evGoSyscallEnd {
			g.acc[accRunning] -= 2 * val
			g.acc[accSyscall] += 2 * val
			m.p.acc[accPRunning] -= 2 * val
			m.p.acc[accPSyscall] += 2 * val
		}
		m.syscall = typ == evGoSyscallBegin
	}
	return true
}

// maxMarks bounds the pauses and cycles of one generation.
const maxMarks = 64 << 10

func (s *v2Sums) mark(k mark) {
	if len(s.marks) < maxMarks {
		s.marks = append(s.marks, k)
	}
}

func (s *v2Sums) goStatus(m *v2SumM, v *[4]uint64, ts uint64) bool {
	if v[2] == 0 || v[2] >= uint64(len(goStates)) {
		return false
	}
	g := s.ids.get(v[0])
	if g.first != noTime {
		return false
	}
	g.first, g.state = ts, uint8(v[2])
	g.acc[accOf[v[2]]] -= ts | one
	if g.stack == 0 {
		g.stack = uint32(stackID(v[3]))
	}
	switch v[2] {
	case goRunning:
		if m.g != nil {
			return false
		}
		m.g, m.fresh = g, false
	case goSyscall:
		o := m
		if v[1] != m.m {
			if ThreadID(v[1]) == NoThread {
				return true
			}
			o = s.thread(v[1])
		}
		if o.fresh {
			o.g, o.fresh = g, false
			return true
		}
		if o.pending == nil {
			return false
		}
		s.fold(o, g)
	}
	return true
}

// fold adds to g what was added up for its stand-in, which o had.
func (s *v2Sums) fold(o *v2SumM, g *sumG) {
	p := o.pending
	for a := range g.acc {
		g.acc[a] += p.acc[a]
	}
	if p.end != 0 {
		g.end = p.end
	}
	if o.g == o.pending {
		o.g = g
	}
	*p = sumG{}
	o.pending = nil
}

// accOf is the sum of a status.
var accOf = [...]uint8{goRunnable: accRunnable, goRunning: accRunning, goSyscall: accSyscall, goWaiting: accWaiting}

func (s *v2Sums) procStatus(m *v2SumM, v *[4]uint64, ts uint64) bool {
	if v[0] >= maxProc || v[1] == 0 || v[1] >= uint64(len(procStates)) {
		return false
	}
	p := s.p(v[0])
	if p.state != 0 {
		return false
	}
	p.first, p.state, p.lost = ts, uint8(v[1]), v[1] == procAbandoned
	p.acc[v[1]-1] -= ts | one
	if v[1] == procRunning || v[1] == procSyscall {
		if m.p != nil {
			return false
		}
		m.p, m.syscall = p, v[1] == procSyscall
	}
	return true
}

func (s *v2Sums) p(id uint64) *v2SumP {
	for uint64(len(s.ps)) <= id {
		s.ps = append(s.ps, nil)
	}
	if s.ps[id] == nil {
		s.ps[id] = new(v2SumP)
	}
	return s.ps[id]
}

// close ends each state that is open at the generation's end. It reports whether all sums hold.
func (s *v2Sums) close() bool {
	end := s.max
	for _, g := range s.pends {
		if g.first == noTime {
			return false // no status says for which goroutine it stands
		}
	}
	for g := range s.all() {
		n, ok := closeSums(g.acc[:], end)
		if !ok || g.first == noTime || g.id == 0 || (n == 0) != (g.end != 0) || n > 1 {
			return false
		}
	}
	for k := range s.ps {
		p := s.ps[k]
		if p == nil {
			continue
		}
		n, ok := closeSums(p.acc[:], end)
		if !ok || n > 1 || p.state == 0 && p.acc != [4]uint64{} {
			return false
		}
	}
	return true
}
