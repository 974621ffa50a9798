package exectrace

import "fmt"

// startLost emits the gap of a generation that is known to have lost something. Where is not known,
// so all of it is in doubt. Its events follow all the same.
func (w *worker) startLost() {
	g := w.gen
	if g.restart {
		w.gap(g.minTs, g.minTs, "a generation does not follow the one before it: something between them is missing", 0)
	}
	if len(g.lost) == 0 && g.complete {
		return
	}
	reason, bytes := "the generation's end is missing: the process ended or the trace was cut", int64(0)
	for k, l := range g.lost {
		if k == 0 {
			reason = l.reason
		}
		bytes += int64(l.end - l.off)
	}
	if n := len(g.lost); n > 1 {
		reason += fmt.Sprintf(", and %d more places", n-1)
	}
	w.lossy = true
	w.gap(g.minTs, w.lastTs(), reason, bytes)
}

// lastTs bounds the generation's last event from above: by where the next generation starts, or by
// the last event of the batches that can be read.
func (w *worker) lastTs() uint64 {
	if t := w.gen.endTs; t < w.gen.lastTs+tsSlack {
		return t
	}
	last := w.gen.lastTs
	for k := range w.gen.batches {
		if w.chain[k] >= 0 {
			continue
		}
		b := &w.gen.batches[k]
		d := w.data[b.off:b.end]
		ts := b.ts
		for i := 0; i < len(d); {
			typ := d[i]
			dt, j := uvarint(d, i+1)
			if !timed(typ) || j > len(d) || dt > tsSlack {
				break
			}
			ts += dt
			i = skipArgs(d, typ, j)
		}
		last = max(last, ts)
	}
	return last
}

// damaged emits the gap of a batch whose rest cannot be decoded. What the M runs from there on is
// unknown.
func (w *worker) damaged(c *cursor) {
	b := &w.gen.batches[c.batch]
	end := w.lastTs()
	if n := w.chain[c.batch]; n >= 0 {
		end = max(c.ts, w.gen.batches[n].ts)
	}
	rest := len(c.d) - min(c.i, len(c.d))
	reason := fmt.Sprintf("a batch of thread %d is damaged at offset %d: its last %d bytes are lost", c.m, b.off+len(c.d)-rest, rest)
	if b.cut || rest == 0 { // the missing bytes are not in the file
		reason = fmt.Sprintf("a batch of thread %d is cut off at offset %d", c.m, b.off+len(c.d))
	}
	w.gap(c.ts, end, reason, int64(rest))
	c.i = len(c.d)
	b.cut = false // the gap has been emitted
	w.unbind(c)
}

// unbind forgets what c's M runs: it lost events.
func (w *worker) unbind(c *cursor) {
	if c.g >= 0 {
		w.gs[c.g].status = 0
	}
	if c.p >= 0 && c.p < int32(len(w.ps)) {
		w.ps[c.p].status = 0
	}
	c.g, c.p = -1, -1
}

// gap emits a gap.
func (w *worker) gap(start, end uint64, reason string, bytes int64) {
	w.lossy = true
	end = max(start, end)
	b, e := w.time(start), w.time(end)
	if len(w.end.gaps) < maxGaps {
		w.end.gaps = append(w.end.gaps, Gap{Begin: b, End: e, Reason: reason, Bytes: bytes})
	} else {
		l := &w.end.gaps[maxGaps-1]
		l.Begin, l.End, l.Bytes = min(l.Begin, b), max(l.End, e), l.Bytes+bytes
	}
	w.gapEnd = max(w.gapEnd, end)
	ev := blank
	ev.Kind, ev.Time = KindGap, b
	ev.Arg[0], ev.Arg[1] = uint64(e), uint64(b)
	w.emit(ev)
}

// inconsistent emits a gap where c's event contradicts what is known: so something before it was
// lost.
func (w *worker) inconsistent(c *cursor, what string) {
	if w.lossy && c.ts <= w.gapEnd {
		return // the last gap covers it
	}
	w.gap(c.ts, c.ts+w.ticks(holdLossNS), fmt.Sprintf("thread %d: %s: something before it was lost", c.m, what), 0)
}
