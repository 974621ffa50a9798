package exectrace

import "math/bits"

// sprintRecords is sprint for batches: it makes Records, and takes sweeps and heap sizes too. It
// differs in two more ways.
//
// An event is only its own if a Record can say it: the P's and the M's numbers are small enough,
// and each goroutine was introduced.
//
// The load of the next arguments does not wait for the length of the next event's time. That has
// one or two bytes, so what is behind either is loaded, and the right one chosen.
func (w *worker) sprintRecords(c *cursor, limit uint64) int {
	w.sync()
	if uint64(c.m) >= 1<<32-1 || c.p >= 1<<15 || c.g >= 0 && !w.gs[c.g].introduced {
		return sprinted // no Record can say it
	}
	if len(w.batch.Records) >= batchRecords && !w.flush() {
		return ranOut
	}
	var a uint64
	d, end := c.d, len(c.d)
	i, ts, typ := c.i, c.ts, c.typ
	g, p, m := c.g, c.p, uint32(c.m)
	upTo := min(limit, c.upTo)
	mul := w.mul
	n := len(w.batch.Records)
	buf := w.batch.Records[:batchRecords]
	if i+8 > len(d) {
		goto out
	}
	a = first8(d, i)
	for {
		as := stopBits(a)
		r := &buf[n]
		switch typ {
		case evGoStart:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 || p < 0 || g >= 0 {
				goto out
			}
			x := bits.TrailingZeros64(as) + 1
			id, seq := varint(a, as), varint(a>>(x&63), as>>(x&63))
			k, ok := w.ids.get(id)
			if !ok {
				goto out
			}
			s := &w.gs[k]
			if s.status != goRunnable || s.seq+1 != seq || !s.introduced {
				goto out
			}
			i += bits.TrailingZeros64(as1)>>3 + 1
			s.status, s.seq = goRunning, seq
			r.Slot, r.Arg, r.Stack, r.Name = k, NoSlot, 0, 0
			r.Op, r.Reason = OpStart, ReasonStart
			g = int32(k)

		case evGoUnblock:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 {
				goto out
			}
			x, y := bits.TrailingZeros64(as)+1, bits.TrailingZeros64(as1)+1
			id, seq := varint(a, as), varint(a>>(x&63), as>>(x&63))
			k, ok := w.ids.get(id)
			if !ok {
				goto out
			}
			s := &w.gs[k]
			if s.status != goWaiting || s.seq+1 != seq || !s.introduced {
				goto out
			}
			i += bits.TrailingZeros64(as2)>>3 + 1
			s.status, s.seq = goRunnable, seq
			r.Slot, r.Arg, r.Stack, r.Name = k, uint32(g), StackID(varint(a>>(y&63), as>>(y&63))), 0
			r.Op, r.Reason = OpWake, ReasonUnblock

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
			if uint16(as1) == 1<<15 { // predicted, as in sprint
				i += 2
			} else {
				i += bits.TrailingZeros64(as1)>>3 + 1
			}
			op := OpBlock
			s.status = goWaiting
			if typ == evGoStop {
				op = OpStop
				s.status = goRunnable
			}
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), NoSlot,
				StackID(varint(a>>(x&63), as>>(x&63))), StringID(varint(a, as))
			r.Op, r.Reason = op, reasonByName
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
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), NoSlot, StackID(varint(a>>(x&63), as>>(x&63))), 0
			r.Op, r.Reason = OpSyscall, ReasonSyscall

		case evGoSyscallEnd:
			if g < 0 || p < 0 || w.gs[g].status != goSyscall {
				goto out
			}
			w.ps[p].status = procRunning
			w.gs[g].status = goRunning
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), NoSlot, 0, 0
			r.Op, r.Reason = OpSyscallEnd, ReasonSyscall

		case evUserRegionBegin, evUserRegionEnd:
			as1 := as & (as - 1)
			as2 := as1 & (as1 - 1)
			if as2 == 0 || as&short == 0 || g < 0 {
				goto out
			}
			task := varint(a, as)
			if task>>32 != 0 {
				goto out
			}
			x, y := bits.TrailingZeros64(as)+1, bits.TrailingZeros64(as1)+1
			i += bits.TrailingZeros64(as2)>>3 + 1
			op := OpRegionBegin
			if typ == evUserRegionEnd {
				op = OpRegionEnd
			}
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), uint32(task),
				StackID(varint(a>>(y&63), as>>(y&63))), StringID(varint(a>>(x&63), as>>(x&63)))
			r.Op, r.Reason = op, ReasonNone

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
			w.gs[k].status, w.gs[k].introduced = goRunnable, true
			w.batch.Born = append(w.batch.Born, GoID(id))
			r.Slot, r.Arg, r.Stack, r.Name = k, uint32(g), StackID(varint(a>>(x&63), as>>(x&63))),
				StringID(varint(a>>(y&63), as>>(y&63)))
			r.Op, r.Reason = OpCreate, ReasonCreate

		case evGoDestroy:
			if g < 0 || w.gs[g].status != goRunning {
				goto out
			}
			s := &w.gs[g]
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), NoSlot, 0, 0
			r.Op, r.Reason = OpEnd, ReasonEnd
			w.ids.del(s.id)
			*s = goroutine{}
			w.gfree = append(w.gfree, g)
			g = -1

		case evHeapAlloc, evGCSweepBegin:
			if as&short == 0 {
				goto out
			}
			v := varint(a, as)
			i += bits.TrailingZeros64(as)>>3 + 1
			if typ == evHeapAlloc {
				r.Slot, r.Arg, r.Stack, r.Name = uint32(g), uint32(v), 0, StringID(v>>32)
				r.Op, r.Reason = OpHeapLive, ReasonNone
			} else {
				r.Slot, r.Arg, r.Stack, r.Name = uint32(g), 0, StackID(v), 0
				r.Op, r.Reason = OpSweepBegin, ReasonNone
			}

		case evGCSweepEnd:
			as1 := as & (as - 1)
			if as1 == 0 || as&short == 0 {
				goto out
			}
			x := bits.TrailingZeros64(as) + 1
			if as>>(x&63)&short == 0 {
				goto out
			}
			swept, reclaimed := varint(a, as), varint(a>>(x&63), as>>(x&63))
			if (swept|reclaimed)>>32 != 0 {
				goto out
			}
			i += bits.TrailingZeros64(as1)>>3 + 1
			r.Slot, r.Arg, r.Stack, r.Name = uint32(g), uint32(swept), 0, StringID(reclaimed)
			r.Op, r.Reason = OpSweepEnd, ReasonNone

		default:
			goto out
		}
		r.Time, r.M, r.P = Time(ts*mul), m, int16(p)
		n++
		// The next event's type and time, where the time has one or two bytes. Its arguments are
		// loaded from behind either, so that their load need not wait for its length.
		if i < end && i+11 <= len(d) && n < len(buf) {
			// Byte 1 of h is the time's first; its top bit says that the time has a second. So two
			// is 0 or 1, and -two a mask of no bits or of all.
			h := first8(d, i)
			two := h >> 15 & 1
			next := ts + (h>>8&0x7f | h>>9&0x3f80&-two)
			if h>>15&(h>>23)&1 == 0 && next <= upTo && byte(h)-evProcsChange <= evGoStatusStack-evProcsChange {
				one, other := first8(d, i+2), first8(d, i+3)
				typ, ts = byte(h), next
				i += 2 + int(two)
				a = one ^ (one^other)&-two
				continue
			}
		}
		c.i, c.ts, c.g, c.p = i, ts, g, p
		w.batch.Records = buf[:n]
		if !w.advance(c) {
			return ranOut
		}
		if c.ts > limit {
			return ranOn
		}
		w.sync() // a gap, where the batch was damaged
		if len(w.batch.Records) >= batchRecords && !w.flush() {
			return ranOut
		}
		d, end = c.d, len(c.d)
		i, ts, typ, g, p = c.i, c.ts, c.typ, c.g, c.p
		upTo = min(limit, c.upTo)
		n = len(w.batch.Records)
		buf = w.batch.Records[:batchRecords]
		if i+8 > len(d) {
			goto out
		}
		a = first8(d, i)
	}
out:
	c.i, c.ts, c.typ, c.g, c.p = i, ts, typ, g, p
	w.batch.Records = buf[:n]
	return sprinted
}
