package exectrace

import "math/bits"

// sprint does what run does, for the few kinds of events that most events are, as long as each is
// short and fits. It leaves any other event to run, untouched.
//
//  1. The state of the cursor is in local variables, which stay in registers: index i, time ts,
//     type typ, goroutine g and P p.
//  2. The arguments are loaded as eight bytes at once, in a. as marks where varints end
//     (v2varint.go), as1 is as without the first end, as2 without the first two. x and y are where
//     the second and third argument start, in bits. A mark that is 0, or a first varint of more
//     than five bytes (as&short), makes the event run's.
//  3. The event is checked as in run, and if it does not fit it is run's. Nothing was changed until
//     then.
//  4. The index goes on by the length of the arguments. For kinds of which nearly all events have
//     one length, a branch on that length takes the place of reckoning it: the branch is predicted,
//     and the next load need not wait.
//  5. The event is copied from a template, and its fields set (see below).
//  6. The next event's type and time are loaded the same way. If the time has at most four bytes
//     and is not past the limit, the loop goes on; else advance takes over.
//
// It returns ranOn and ranOut as run does, and sprinted when the pending event is not its own.
//
// There are two such functions, since what each writes is most of what it does. Events could be
// made from Records instead, so that this one would go. Tried with 0.9 and 5.7 million events of Go
// 1.26, by 25 pairs of runs: Blocks takes 7 to 14 % more CPU time, and 22 % more instructions. Made
// in the consumer's loop (records), where the ids are at hand, it still takes 6 to 14 % more, and
// that loop gets slower for Batches too: 5 % more instructions.
func (w *worker) sprint(c *cursor, limit uint64) int {
	d, end := c.d, len(c.d)
	i, ts, typ := c.i, c.ts, c.typ
	g, p := c.g, c.p
	upTo := min(limit, c.upTo)
	mul := w.mul
	n := len(w.buf)
	buf := w.buf[:cap(w.buf)]
	for n < len(buf)-4 && i+8 <= len(d) {
		a := first8(d, i)
		as := stopBits(a)
		switch typ {
		case evGoStart:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 || p < 0 || g >= 0 {
				goto out
			}
			x := bits.TrailingZeros64(as) + 1
			id, seq := varint(a, as), varint(a>>x, as>>x)
			k, ok := w.ids.get(id)
			if !ok {
				goto out
			}
			s := &w.gs[k]
			if s.status != goRunnable || s.seq+1 != seq {
				goto out
			}
			i += bits.TrailingZeros64(as1)>>3 + 1
			s.status, s.seq = goRunning, seq
			e := &buf[n]
			*e = startEvent
			e.Time = Time(ts * mul)
			e.G = GoID(id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = k
			g = int32(k)

		case evGoUnblock:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 {
				goto out
			}
			x, y := bits.TrailingZeros64(as)+1, bits.TrailingZeros64(as1)+1
			id, seq := varint(a, as), varint(a>>x, as>>x)
			k, ok := w.ids.get(id)
			if !ok {
				goto out
			}
			s := &w.gs[k]
			if s.status != goWaiting || s.seq+1 != seq {
				goto out
			}
			i += bits.TrailingZeros64(as2)>>3 + 1
			s.status, s.seq = goRunnable, seq
			e := &buf[n]
			*e = unblockEvent
			e.Time = Time(ts * mul)
			e.G = GoID(id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = k
			e.OnStack = StackID(varint(a>>y, as>>y))
			if g >= 0 {
				e.On, e.OnSlot = GoID(w.gs[g].id), uint32(g)
			}

		case evGoBlock, evGoStop:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 || g < 0 {
				goto out
			}
			s := &w.gs[g]
			if s.status != goRunning {
				goto out
			}
			x := bits.TrailingZeros64(as) + 1
			if uint16(as1) == 1<<15 {
				i += 2
			} else {
				i += bits.TrailingZeros64(as1)>>3 + 1
			}
			to := Waiting
			s.status = goWaiting
			if typ == evGoStop {
				to = Runnable
				s.status = goRunnable
			}
			e := &buf[n]
			*e = stopEvent
			e.Time = Time(ts * mul)
			e.G = GoID(s.id)
			e.On = GoID(s.id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = uint32(g)
			e.OnSlot = uint32(g)
			e.Stack = StackID(varint(a>>x, as>>x))
			e.Name = StringID(varint(a, as))
			e.To = to
			g = -1

		case evGoSyscallBegin:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 || g < 0 || p < 0 {
				goto out
			}
			s, q := &w.gs[g], &w.ps[p]
			x := bits.TrailingZeros64(as) + 1
			seq := varint(a, as)
			if s.status != goRunning || q.seq+1 != seq {
				goto out
			}
			i += bits.TrailingZeros64(as1)>>3 + 1
			q.status, q.seq = procSyscall, seq
			s.status = goSyscall
			e := &buf[n]
			*e = syscallEvent
			e.Time = Time(ts * mul)
			e.G = GoID(s.id)
			e.On = GoID(s.id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = uint32(g)
			e.OnSlot = uint32(g)
			e.Stack = StackID(varint(a>>x, as>>x))

		case evGoSyscallEnd:
			if g < 0 || p < 0 || w.gs[g].status != goSyscall {
				goto out
			}
			s := &w.gs[g]
			w.ps[p].status = procRunning
			s.status = goRunning
			e := &buf[n]
			*e = syscallEndEvent
			e.Time = Time(ts * mul)
			e.G = GoID(s.id)
			e.On = GoID(s.id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = uint32(g)
			e.OnSlot = uint32(g)

		case evUserRegionBegin, evUserRegionEnd:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 || g < 0 {
				goto out
			}
			x, y := bits.TrailingZeros64(as)+1, bits.TrailingZeros64(as1)+1
			i += bits.TrailingZeros64(as2)>>3 + 1
			s := &w.gs[g]
			kind := KindRegionBegin
			if typ == evUserRegionEnd {
				kind = KindRegionEnd
			}
			e := &buf[n]
			*e = regionEvent
			e.Time = Time(ts * mul)
			e.G = GoID(s.id)
			e.On = GoID(s.id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = uint32(g)
			e.OnSlot = uint32(g)
			e.Arg[0] = varint(a, as)
			e.Name = StringID(varint(a>>x, as>>x))
			e.Stack = StackID(varint(a>>y, as>>y))
			e.Kind = kind

		case evGoCreate:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 {
				goto out
			}
			id := varint(a, as)
			if _, ok := w.ids.get(id); ok || id == 0 {
				goto out // 0 is damage: see maxGo
			}
			x, y := bits.TrailingZeros64(as)+1, bits.TrailingZeros64(as1)+1
			i += bits.TrailingZeros64(as2)>>3 + 1
			k := w.newG(id)
			w.gs[k].status = goRunnable
			e := &buf[n]
			*e = createEvent
			e.Time = Time(ts * mul)
			e.G = GoID(id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = k
			e.Stack = StackID(varint(a>>x, as>>x))
			e.OnStack = StackID(varint(a>>y, as>>y))
			if g >= 0 {
				e.On, e.OnSlot = GoID(w.gs[g].id), uint32(g)
			}

		case evGoDestroy:
			if g < 0 || w.gs[g].status != goRunning {
				goto out
			}
			s := &w.gs[g]
			e := &buf[n]
			*e = endEvent
			e.Time = Time(ts * mul)
			e.G = GoID(s.id)
			e.On = GoID(s.id)
			e.M = c.m
			e.P = ProcID(p)
			e.Slot = uint32(g)
			e.OnSlot = uint32(g)
			w.ids.del(s.id)
			*s = goroutine{}
			w.gfree = append(w.gfree, g)
			g = -1

		default:
			goto out
		}
		n++
		// The next event's type and time, where they are as short as they nearly always are.
		if i < end && i+8 <= len(d) {
			h := first8(d, i)
			hs := stopBits(h) &^ 0xff
			at := bits.TrailingZeros64(hs)
			next := ts + varint4(h>>8, hs>>8)
			if at <= 40 && next <= upTo && byte(h)-evProcsChange <= evGoStatusStack-evProcsChange {
				typ, ts = byte(h), next
				if at == 15 {
					i += 2
				} else {
					i += at>>3 + 1
				}
				continue
			}
		}
		c.i, c.ts, c.g, c.p = i, ts, g, p
		w.buf = buf[:n]
		if !w.advance(c) {
			return ranOut
		}
		if c.ts > limit {
			return ranOn
		}
		d, end = c.d, len(c.d)
		i, ts, typ, g, p = c.i, c.ts, c.typ, c.g, c.p
		upTo = min(limit, c.upTo)
		n = len(w.buf)
		buf = w.buf[:cap(w.buf)]
	}
out:
	c.i, c.ts, c.typ, c.g, c.p = i, ts, typ, g, p
	w.buf = buf[:n]
	return sprinted
}

// The templates of sprint's events: what is always the same. To copy one and then set fields in
// place beats a composite literal. The compiler builds that one on the stack, and copies it in
// words wider than those just stored, which must wait for the stores.
var (
	startEvent = Event{On: NoGoroutine, Proc: NoProc, OnSlot: NoSlot, Kind: KindGoroutine,
		From: Runnable, To: Running, Reason: ReasonStart}
	unblockEvent = Event{On: NoGoroutine, Proc: NoProc, OnSlot: NoSlot, Kind: KindGoroutine,
		From: Waiting, To: Runnable, Reason: ReasonUnblock}
	stopEvent       = Event{Proc: NoProc, Kind: KindGoroutine, From: Running, Reason: reasonByName}
	syscallEvent    = Event{Proc: NoProc, Kind: KindGoroutine, From: Running, To: Syscall, Reason: ReasonSyscall}
	syscallEndEvent = Event{Proc: NoProc, Kind: KindGoroutine, From: Syscall, To: Running, Reason: ReasonSyscall}
	regionEvent     = Event{Proc: NoProc}
	createEvent     = Event{On: NoGoroutine, Proc: NoProc, OnSlot: NoSlot, Kind: KindGoroutine,
		From: NotExist, To: Runnable, Reason: ReasonCreate}
	endEvent = Event{Proc: NoProc, Kind: KindGoroutine, From: Running, To: NotExist, Reason: ReasonEnd}
)
