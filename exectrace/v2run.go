package exectrace

// Why run came back.
const (
	ranOn    = iota // the next event is later than the limit
	ranOut          // the M has no more events
	ranStuck        // the next event's number does not fit yet
	ranBad          // the event's arguments are none that a runtime writes
	sprinted        // of sprint: the next event is not one of its own
)

// run decodes c's events up to limit, or one event if once is set. It is the hot path, so each case
// decodes its own arguments and fills an Event in place.
//
//  1. The fast path (sprint, or sprintRecords for batches) takes events as long as they are common,
//     short and fit. What follows is for the event at which it stopped, whose type and time are
//     decoded already.
//  2. Decode the arguments. If they do not end within the batch, or are none that a runtime writes,
//     the rest of the batch is damaged.
//  3. Check that the event fits: its goroutine or P is in the state that it leaves, and has the
//     sequence number before the event's. If not, the M is stuck: an event of another M must come
//     first. A forced event is applied all the same, behind a gap.
//  4. Change the states of the goroutine, the P and the cursor, and emit the Event. An event of a
//     goroutine that is not known to run here is dropped (goto next).
//  5. Go on to the M's next event, until it is later than limit.
//
// It returns ranOn, ranOut or ranStuck.
func (w *worker) run(c *cursor, limit uint64, once bool) int {
	for {
		if !once && w.mul != 0 {
			var r int
			if w.batch != nil {
				r = w.sprintRecords(c, limit)
			} else {
				r = w.sprint(c, limit)
			}
			if r != sprinted {
				return r
			}
		}
		d, i := c.d, c.i
		if len(w.buf) > cap(w.buf)-4 {
			if !w.flush() {
				return ranOut
			}
		}
		now := w.time(c.ts)
		switch c.typ {
		case evGoStart:
			var id, seq uint64
			id, i = uvarint(d, i)
			seq, i = uvarint(d, i)
			seq &= seqBits
			if i > len(d) || id-1 >= maxGo {
				i = pastEnd
				break
			}
			k, ok := w.ids.get(id)
			if !ok || w.gs[k].status != goRunnable || w.gs[k].seq+1 != seq || c.p < 0 || c.g >= 0 {
				// Where waitFor sees no use in waiting, a loss took what this M ran before: the
				// start puts that right, and needs no gap of its own.
				if !w.force && w.waitFor(c, ok, k) {
					return ranStuck
				}
				if !ok {
					k = w.newG(id)
				}
				if w.force {
					w.inconsistent(c, "a start out of order")
				}
				w.force = false
				w.takeG(c, k)
			}
			w.gs[k].status, w.gs[k].seq = goRunning, seq
			*w.next() = Event{
				Time: now, G: GoID(id), On: NoGoroutine, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: k, OnSlot: NoSlot,
				Kind: KindGoroutine, From: Runnable, To: Running, Reason: ReasonStart,
			}
			c.g = int32(k)

		case evGoUnblock:
			var id, seq, stack uint64
			id, i = uvarint(d, i)
			seq, i = uvarint(d, i)
			seq &= seqBits
			stack, i = uvarint(d, i)
			if i > len(d) || id-1 >= maxGo {
				i = pastEnd
				break
			}
			k, ok := w.ids.get(id)
			if !ok || w.gs[k].status != goWaiting || w.gs[k].seq+1 != seq {
				if !w.force {
					return ranStuck
				}
				w.force = false
				if !ok {
					k = w.newG(id)
				}
				w.inconsistent(c, "a waking out of order")
			}
			w.gs[k].status, w.gs[k].seq = goRunnable, seq
			on, onSlot := w.running(c)
			*w.next() = Event{
				Time: now, G: GoID(id), On: on, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: k,
				OnSlot: onSlot, OnStack: stackID(stack),
				Kind: KindGoroutine, From: Waiting, To: Runnable, Reason: ReasonUnblock,
			}

		case evGoBlock, evGoStop:
			var why, stack uint64
			why, i = uvarint(d, i)
			stack, i = uvarint(d, i)
			if i > len(d) {
				break
			}
			if !w.mustRun(c, goRunning) {
				w.end.stats.Dropped++
				c.g = -1
				goto next
			}
			to, status := Waiting, uint8(goWaiting)
			if c.typ == evGoStop {
				to, status = Runnable, goRunnable
			}
			g := &w.gs[c.g]
			g.status = status
			*w.next() = Event{
				Time: now, G: GoID(g.id), On: GoID(g.id), M: c.m, P: ProcID(c.p), Proc: NoProc,
				Slot: uint32(c.g), OnSlot: uint32(c.g),
				Stack: stackID(stack), Name: stringID(why), Kind: KindGoroutine, From: Running,
				To: to, Reason: reasonByName,
			}
			c.g = -1

		case evGoSyscallBegin:
			var seq, stack uint64
			seq, i = uvarint(d, i)
			seq &= seqBits
			stack, i = uvarint(d, i)
			if i > len(d) {
				break
			}
			if !w.mustRun(c, goRunning) {
				w.end.stats.Dropped++
				goto next
			}
			if c.p >= 0 {
				p := &w.ps[c.p]
				if p.seq+1 != seq && p.status != 0 {
					w.inconsistent(c, "a syscall's P has another number")
				}
				p.status, p.seq = procSyscall, seq
			}
			g := &w.gs[c.g]
			g.status = goSyscall
			*w.next() = Event{
				Time: now, G: GoID(g.id), On: GoID(g.id), M: c.m, P: ProcID(c.p), Proc: NoProc,
				Slot: uint32(c.g), OnSlot: uint32(c.g),
				Stack: stackID(stack), Kind: KindGoroutine, From: Running, To: Syscall, Reason: ReasonSyscall,
			}

		case evGoSyscallEnd:
			if !w.mustRun(c, goSyscall) {
				w.end.stats.Dropped++
				goto next
			}
			if c.p >= 0 {
				w.ps[c.p].status = procRunning
			}
			g := &w.gs[c.g]
			g.status = goRunning
			*w.next() = Event{
				Time: now, G: GoID(g.id), On: GoID(g.id), M: c.m, P: ProcID(c.p), Proc: NoProc,
				Slot: uint32(c.g), OnSlot: uint32(c.g),
				Kind: KindGoroutine, From: Syscall, To: Running, Reason: ReasonSyscall,
			}

		case evGoSyscallEndBlocked:
			// The goroutine came back without its P, so another M must have stolen the P first.
			if c.p >= 0 && w.ps[c.p].status == procSyscall {
				if !w.force {
					return ranStuck
				}
				w.force = false
				w.inconsistent(c, "a syscall's P was never stolen")
				w.ps[c.p].status = 0
				c.p = -1
			}
			if !w.mustRun(c, goSyscall) {
				w.end.stats.Dropped++
				c.g = -1
				goto next
			}
			g := &w.gs[c.g]
			g.status = goRunnable
			*w.next() = Event{
				Time: now, G: GoID(g.id), On: GoID(g.id), M: c.m, P: ProcID(c.p), Proc: NoProc,
				Slot: uint32(c.g), OnSlot: uint32(c.g),
				Kind: KindGoroutine, From: Syscall, To: Runnable, Reason: ReasonSyscallBlocked,
			}
			c.g = -1

		case evProcStart:
			var id, seq uint64
			id, i = uvarint(d, i)
			seq, i = uvarint(d, i)
			if i > len(d) || id >= maxProc {
				i = pastEnd
				break
			}
			p := w.proc(id)
			if p.status != procIdle || p.seq+1 != seq || c.p >= 0 {
				if !w.force {
					return ranStuck
				}
				w.force = false
				w.inconsistent(c, "a P starts out of order")
				w.takeP(c, int32(id))
			}
			p.status, p.seq = procRunning, seq
			on, onSlot := w.running(c)
			*w.next() = Event{
				Time: now, G: NoGoroutine, On: on, M: c.m, P: NoProc, Proc: ProcID(id), Slot: NoSlot, OnSlot: onSlot,
				Kind: KindProc, From: Idle, To: Running,
			}
			c.p = int32(id)

		case evProcStop:
			if c.p < 0 {
				w.inconsistent(c, "a P stops that never ran")
				w.end.stats.Dropped++
				goto next
			}
			p := &w.ps[c.p]
			from := Running
			if p.status == procSyscall {
				from = Syscall
			}
			p.status = procIdle
			on, onSlot := w.running(c)
			*w.next() = Event{
				Time: now, G: NoGoroutine, On: on, M: c.m, P: ProcID(c.p), Proc: ProcID(c.p),
				Slot: NoSlot, OnSlot: onSlot,
				Kind: KindProc, From: from, To: Idle,
			}
			c.p = -1

		case evGoCreate, evGoCreateBlocked:
			var id, start, stack uint64
			id, i = uvarint(d, i)
			start, i = uvarint(d, i)
			stack, i = uvarint(d, i)
			if i > len(d) || id-1 >= maxGo {
				i = pastEnd
				break
			}
			k, ok := w.ids.get(id)
			if ok {
				w.inconsistent(c, "a goroutine is created twice")
			} else {
				k = w.newG(id)
			}
			to, status := Runnable, uint8(goRunnable)
			if c.typ == evGoCreateBlocked {
				to, status = Waiting, goWaiting
			}
			w.gs[k].status, w.gs[k].seq = status, 0
			on, onSlot := w.running(c)
			*w.next() = Event{
				Time: now, G: GoID(id), On: on, M: c.m, P: ProcID(c.p), Proc: NoProc, Slot: k, OnSlot: onSlot,
				Stack: stackID(start), OnStack: stackID(stack), Kind: KindGoroutine, From: NotExist,
				To: to, Reason: ReasonCreate,
			}

		case evGoDestroy:
			if !w.mustRun(c, goRunning) {
				w.end.stats.Dropped++
				c.g = -1
				goto next
			}
			w.destroy(c, now, Running)

		default:
			var r int
			if i, r = w.other(c, now); r == ranStuck {
				return r
			} else if r == ranOut {
				w.end.stats.Dropped++
			}
		}
		if i > len(d) {
			// Arguments that do not end, or that no runtime writes.
			w.damaged(c)
			i = len(c.d)
		}
	next:
		c.i = i
		if !w.advance(c) {
			return ranOut
		}
		if c.ts > limit || once {
			return ranOn
		}
	}
}

// next gives room for an event. The caller has seen to it that there is some.
func (w *worker) next() *Event {
	n := len(w.buf)
	w.buf = w.buf[:n+1]
	return &w.buf[n]
}

// emit appends ev to the block, which it hands over if it is full.
func (w *worker) emit(ev Event) {
	n := len(w.buf)
	if n == cap(w.buf) {
		if !w.flush() {
			return
		}
		n = 0
	}
	w.buf = w.buf[:n+1]
	w.buf[n] = ev
}

// flush hands the block over. It reports whether more is wanted.
func (w *worker) flush() bool {
	if w.batch != nil {
		return w.flushBatch()
	}
	if w.stopped {
		w.buf = w.buf[:0]
		return false
	}
	w.end.stats.Events += int64(len(w.buf))
	buf, ok := w.send(w.buf)
	w.buf = buf[:0]
	if !ok {
		w.stopped = true
	}
	return ok
}

// No runtime writes an id of more than 32 bits. In a damaged trace the upper bits are left out, as
// by sprint's short varints: the same event may come by either way.
func stackID(v uint64) StackID   { return StackID(v) }
func stringID(v uint64) StringID { return StringID(v) }

// seqBits is what varint keeps of a sequence number. So run keeps no more.
const seqBits = 1<<35 - 1

// reasonByName makes the consumer look the reason up by Name.
const reasonByName = reasonCount

// running gives the goroutine on c.
func (w *worker) running(c *cursor) (GoID, uint32) {
	if c.g < 0 {
		return NoGoroutine, NoSlot
	}
	return GoID(w.gs[c.g].id), uint32(c.g)
}

// mustRun reports whether c has a goroutine in this status. If not, it emits a gap. A status that a
// loss left unknown will do.
func (w *worker) mustRun(c *cursor, status uint8) bool {
	if c.g < 0 {
		w.inconsistent(c, "an event of a goroutine that never started here")
		return false
	}
	if g := &w.gs[c.g]; g.status != status {
		w.inconsistent(c, "an event of a goroutine in another state")
		if g.status != 0 {
			return false
		}
	}
	return true
}

// waitFor reports whether a start that does not fit is worth holding back. Where a loss took the
// M's own context, nothing that others do will help.
func (w *worker) waitFor(c *cursor, known bool, k uint32) bool {
	return !w.lossy || !known || w.gs[k].status != goRunnable || c.p >= 0 && c.g < 0
}

// newG makes room for a goroutine that no event of this generation had yet.
func (w *worker) newG(id uint64) uint32 {
	var k uint32
	if n := len(w.gfree); n > 0 {
		k = uint32(w.gfree[n-1])
		w.gfree = w.gfree[:n-1]
		w.gs[k] = goroutine{id: id}
	} else {
		k = uint32(len(w.gs))
		w.gs = append(w.gs, goroutine{id: id})
	}
	w.ids.put(id, k)
	return k
}

// takeG takes goroutine k from any other M that was thought to run it, and from c the goroutine
// that c ran.
func (w *worker) takeG(c *cursor, k uint32) {
	if w.gs[k].status == goRunning || w.gs[k].status == goSyscall {
		for j := range w.cur {
			if w.cur[j].g == int32(k) {
				w.cur[j].g = -1
			}
		}
	}
	if c.g >= 0 && c.g != int32(k) {
		w.gs[c.g].status = 0
	}
	c.g = -1
}

// takeP does the same for a P.
func (w *worker) takeP(c *cursor, p int32) {
	for j := range w.cur {
		if w.cur[j].p == p {
			w.cur[j].p = -1
		}
	}
	if c.p >= 0 && c.p != p {
		w.ps[c.p].status = 0
	}
	c.p = -1
}

// proc gives the P's state. The number is below maxProc.
func (w *worker) proc(id uint64) *proc {
	for uint64(len(w.ps)) <= id {
		w.ps = append(w.ps, proc{})
	}
	return &w.ps[id]
}

// destroy ends c's goroutine.
func (w *worker) destroy(c *cursor, now Time, from State) {
	k := c.g
	g := &w.gs[k]
	*w.next() = Event{
		Time: now, G: GoID(g.id), On: GoID(g.id), M: c.m, P: ProcID(c.p), Proc: NoProc,
		Slot: uint32(k), OnSlot: uint32(k),
		Kind: KindGoroutine, From: from, To: NotExist, Reason: ReasonEnd,
	}
	w.ids.del(g.id)
	*g = goroutine{}
	w.gfree = append(w.gfree, k)
	c.g = -1
}
