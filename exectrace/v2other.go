package exectrace

// other is run for the kinds of events that are rare. It decodes c's event, and gives the index
// behind its arguments and why run must stop, as place does.
func (w *worker) other(c *cursor, now Time) (int, int) {
	d, i := c.d, c.i
	var v [4]uint64
	n := v2Shapes[c.typ].args
	for k := range v[:n] {
		v[k], i = uvarint(d, i)
	}
	if i > len(d) {
		return i, ranOn
	}
	if w.stateless(c, now, &v) {
		return i, ranOn
	}
	r := w.place(c, now, &v)
	if r == ranBad {
		return pastEnd, ranOn
	}
	return i, r
}

// place checks that an event with the arguments v fits, changes states, and emits what it says.
//
// It returns ranOn, or ranStuck where the event must wait, ranOut where it could be decoded but not
// placed, ranBad where no runtime writes such arguments.
func (w *worker) place(c *cursor, now Time, v *[4]uint64) int {
	switch c.typ {
	case evGoStatus, evGoStatusStack:
		return w.goStatus(c, now, v)
	case evProcStatus:
		return w.procStatus(c, now, v)
	case evProcSteal:
		return w.procSteal(c, now, v)
	case evGoSwitch, evGoSwitchDestroy:
		return w.goSwitch(c, now, v)
	case evGoCreateSyscall:
		if v[0]-1 >= maxGo {
			return ranBad
		}
		k, ok := w.ids.get(v[0])
		if ok {
			w.inconsistent(c, "a goroutine is created twice")
		} else {
			k = w.newG(v[0])
		}
		w.gs[k].status, w.gs[k].seq = goSyscall, 0
		ev := w.event(c, now)
		ev.G, ev.Slot, ev.Kind, ev.From, ev.To, ev.Reason = GoID(v[0]), k, KindGoroutine, NotExist,
			Syscall, ReasonCreate
		c.g = int32(k)
		w.emit(ev)
	case evGoDestroySyscall:
		if !w.mustRun(c, goSyscall) {
			c.g = -1
			return ranOut
		}
		if c.p >= 0 {
			// The thread goes back to C: its P is as good as stolen.
			ev := w.event(c, now)
			ev.G, ev.Slot, ev.Kind, ev.Proc, ev.From, ev.To = NoGoroutine, NoSlot, KindProc, ProcID(c.p), Syscall, Idle
			ev.Arg[0] = uint64(c.m)
			w.emit(ev)
			w.ps[c.p].status = procAbandoned
		}
		w.destroy(c, now, Syscall)
		c.p = -1
	case evGCActive, evGCBegin, evGCEnd:
		return w.gc(c, now, v)
	case evGCSweepActive:
		if v[0] >= maxProc {
			return ranBad
		}
		ev := w.event(c, now)
		ev.G, ev.Slot, ev.Kind, ev.Range, ev.Proc = NoGoroutine, NoSlot, KindRangeActive, RangeSweep, ProcID(v[0])
		w.emit(ev)
	case evGCMarkAssistActive:
		if v[0]-1 >= maxGo {
			return ranBad
		}
		k, ok := w.ids.get(v[0])
		if !ok {
			k = w.newG(v[0])
		}
		ev := w.event(c, now)
		ev.G, ev.Slot, ev.Kind, ev.Range = GoID(v[0]), k, KindRangeActive, RangeAssist
		w.emit(ev)
	default: // of an experiment
		w.end.stats.Experimental++
	}
	return ranOn
}

// event is what most events on c have in common: the goroutine there is what they are about, and
// what made them happen.
func (w *worker) event(c *cursor, now Time) Event {
	on, onSlot := w.running(c)
	return Event{
		Time: now, G: on, On: on, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: onSlot, OnSlot: onSlot,
	}
}

// stateless emits an event that changes the state of no goroutine and no P, in place: run has seen
// to the room. It reports whether c's event is such a one.
func (w *worker) stateless(c *cursor, now Time, v *[4]uint64) bool {
	ev := w.next()
	*ev = w.event(c, now)
	switch c.typ {
	case evSTWBegin:
		ev.Kind, ev.Range, ev.Name, ev.Stack = KindRangeBegin, RangeSTW, stringID(v[0]), stackID(v[1])
	case evSTWEnd:
		ev.Kind, ev.Range = KindRangeEnd, RangeSTW
	case evGCSweepBegin:
		ev.Kind, ev.Range, ev.Proc, ev.Stack = KindRangeBegin, RangeSweep, ProcID(c.p), stackID(v[0])
	case evGCSweepEnd:
		ev.Kind, ev.Range, ev.Proc, ev.Arg = KindRangeEnd, RangeSweep, ProcID(c.p), [2]uint64{v[0], v[1]}
	case evGCMarkAssistBegin:
		ev.Kind, ev.Range, ev.Stack = KindRangeBegin, RangeAssist, stackID(v[0])
	case evGCMarkAssistEnd:
		ev.Kind, ev.Range = KindRangeEnd, RangeAssist
	case evHeapAlloc:
		ev.G, ev.Slot, ev.Kind, ev.Metric, ev.Arg[0] = NoGoroutine, NoSlot, KindMetric, MetricHeapLive, v[0]
	case evHeapGoal:
		ev.G, ev.Slot, ev.Kind, ev.Metric, ev.Arg[0] = NoGoroutine, NoSlot, KindMetric, MetricHeapGoal, v[0]
	case evProcsChange:
		ev.G, ev.Slot, ev.Kind, ev.Metric, ev.Arg[0], ev.Stack = NoGoroutine, NoSlot, KindMetric,
			MetricGOMAXPROCS, v[0], stackID(v[1])
	case evGoLabel:
		ev.Kind, ev.Name = KindLabel, stringID(v[0])
	case evUserTaskBegin:
		ev.Kind, ev.Arg, ev.Name, ev.Stack = KindTaskBegin, [2]uint64{v[0], v[1]}, stringID(v[2]), stackID(v[3])
	case evUserTaskEnd:
		ev.Kind, ev.Arg[0], ev.Stack = KindTaskEnd, v[0], stackID(v[1])
	case evUserRegionBegin:
		ev.Kind, ev.Arg[0], ev.Name, ev.Stack = KindRegionBegin, v[0], stringID(v[1]), stackID(v[2])
	case evUserRegionEnd:
		ev.Kind, ev.Arg[0], ev.Name, ev.Stack = KindRegionEnd, v[0], stringID(v[1]), stackID(v[2])
	case evUserLog:
		ev.Kind, ev.Arg[0], ev.Name, ev.Arg[1], ev.Stack = KindLog, v[0], stringID(v[1]),
			uint64(stringID(v[2])), stackID(v[3])
	default:
		w.buf = w.buf[:len(w.buf)-1]
		return false
	}
	return true
}

// gc emits the start, the end or the being underway of a GC cycle. Start and end are written by
// different threads; their number is the whole trace's.
func (w *worker) gc(c *cursor, now Time, v *[4]uint64) int {
	if w.gcSeen && v[0] != w.gcSeq+1 {
		if !w.force {
			return ranStuck
		}
		w.force = false
		w.inconsistent(c, "a GC phase out of order")
	}
	w.gcSeen, w.gcSeq = true, v[0]
	ev := w.event(c, now)
	ev.G, ev.Slot, ev.Range = NoGoroutine, NoSlot, RangeGC
	switch c.typ {
	case evGCActive:
		ev.Kind = KindRangeActive
	case evGCBegin:
		ev.Kind, ev.Stack = KindRangeBegin, stackID(v[1])
	case evGCEnd:
		ev.Kind = KindRangeEnd
	}
	w.emit(ev)
	return ranOn
}

// goStatus says what a goroutine does at the generation's start. Its numbers count from here; and
// if it runs or is in a syscall, its M has it from here on.
func (w *worker) goStatus(c *cursor, now Time, v *[4]uint64) int {
	if v[0]-1 >= maxGo || v[2] == 0 || v[2] >= uint64(len(goStates)) {
		return ranBad
	}
	k, ok := w.ids.get(v[0])
	if !ok {
		k = w.newG(v[0])
	} else if s := w.gs[k].status; s != uint8(v[2]) && s != 0 {
		w.inconsistent(c, "a goroutine's status is not what it was")
	}
	w.gs[k].status, w.gs[k].seq = uint8(v[2]), 0
	on := c
	if v[2] == goSyscall && ThreadID(v[1]) != c.m && ThreadID(v[1]) != NoThread {
		on = w.cur[w.cursorOf(v[1])]
	}
	if v[2] == goRunning || v[2] == goSyscall {
		on.g = int32(k)
	}
	ev := Event{
		Time: now, G: GoID(v[0]), On: NoGoroutine, M: on.m, P: ProcID(on.p), Proc: NoProc, Slot: k, OnSlot: NoSlot,
		Kind: KindGoroutine, To: goStates[v[2]], Reason: ReasonStatus, Stack: stackID(v[3]),
	}
	if v[2] == goRunnable || v[2] == goWaiting {
		// The M that wrote the status has nothing to do with it.
		ev.M, ev.P = NoThread, NoProc
	}
	w.emit(ev)
	return ranOn
}

// procStatus does the same for a P.
func (w *worker) procStatus(c *cursor, now Time, v *[4]uint64) int {
	if v[0] >= maxProc || v[1] == 0 || v[1] >= uint64(len(procStates)) {
		return ranBad
	}
	p := w.proc(v[0])
	if p.status != 0 && p.status != uint8(v[1]) && !(v[1] == procAbandoned && p.status == procSyscall) {
		w.inconsistent(c, "a P's status is not what it was")
	}
	ev := Event{
		Time: now, G: NoGoroutine, On: NoGoroutine, M: c.m, P: NoProc, Proc: ProcID(v[0]), Slot: NoSlot, OnSlot: NoSlot,
		Kind: KindProc, To: procStates[v[1]], Reason: ReasonStatus,
	}
	switch v[1] {
	case procAbandoned:
		ev.Arg[0] = 1 // for the consumer, which may know more
		ev.M = NoThread
	case procIdle:
		ev.M = NoThread
	}
	p.status, p.seq = uint8(v[1]), 0
	if v[1] == procRunning || v[1] == procSyscall {
		c.p = int32(v[0])
	}
	w.emit(ev)
	return ranOn
}

// procSteal takes a P from a thread in a syscall.
func (w *worker) procSteal(c *cursor, now Time, v *[4]uint64) int {
	if v[0] >= maxProc {
		return ranBad
	}
	p := w.proc(v[0])
	if p.status != procSyscall && p.status != procAbandoned || p.seq+1 != v[1] {
		if !w.force {
			return ranStuck
		}
		w.force = false
		w.inconsistent(c, "a P is stolen out of order")
	}
	on, onSlot := w.running(c)
	ev := Event{
		Time: now, G: NoGoroutine, On: on, M: c.m, P: ProcID(c.p), Proc: ProcID(v[0]), Slot: NoSlot, OnSlot: onSlot,
		Kind: KindProc, From: Syscall, To: Idle, Arg: [2]uint64{v[2]},
	}
	if p.status == procAbandoned {
		ev.From = Idle
	} else if j, ok := w.ms.get(v[2]); ok && w.cur[j].p == int32(v[0]) {
		w.cur[j].p = -1
	} else if w.ps[v[0]].status == procSyscall {
		w.takeP(c, int32(v[0]))
	}
	p.status, p.seq = procIdle, v[1]
	w.emit(ev)
	return ranOn
}

// goSwitch hands the M from one coroutine to another: the other is woken, this one waits or ends,
// the other runs.
func (w *worker) goSwitch(c *cursor, now Time, v *[4]uint64) int {
	if v[0]-1 >= maxGo {
		return ranBad
	}
	k, ok := w.ids.get(v[0])
	if !ok || w.gs[k].status != goWaiting || w.gs[k].seq+1 != v[1] {
		if !w.force {
			return ranStuck
		}
		w.force = false
		if !ok {
			k = w.newG(v[0])
		}
		w.inconsistent(c, "a coroutine switch out of order")
	}
	on, onSlot := w.running(c)
	ev := Event{
		Time: now, G: GoID(v[0]), On: on, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: k, OnSlot: onSlot,
		Kind: KindGoroutine, From: Waiting, To: Runnable, Reason: ReasonUnblock,
	}
	w.emit(ev)
	if c.g >= 0 && c.g != int32(k) {
		if c.typ == evGoSwitchDestroy {
			w.destroy(c, now, Running)
		} else {
			w.gs[c.g].status = goWaiting
			w.emit(Event{
				Time: now, G: on, On: on, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: onSlot, OnSlot: onSlot,
				Kind: KindGoroutine, From: Running, To: Waiting, Reason: ReasonCoroutine,
			})
		}
	}
	w.gs[k].status, w.gs[k].seq = goRunning, v[1]
	ev.On, ev.OnSlot, ev.From, ev.To, ev.Reason = NoGoroutine, NoSlot, Runnable, Running, ReasonStart
	w.emit(ev)
	c.g = int32(k)
	return ranOn
}

// emitSample hands out the next CPU sample.
func (w *worker) emitSample() {
	s := w.samples[w.nextS]
	w.nextS++
	ev := blank
	ev.Time, ev.Kind, ev.M, ev.Stack = w.time(s.ts), KindSample, ThreadID(s.m), stackID(s.stack)
	if s.p < maxProc {
		ev.P = ProcID(s.p)
	}
	if s.g-1 < maxGo {
		ev.G, ev.On = GoID(s.g), GoID(s.g)
	}
	w.emit(ev)
}
