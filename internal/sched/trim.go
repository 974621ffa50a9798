package sched

import "slices"

// trim gives up the older half, by time, once the columns are larger than they may be, and again
// until they are not. So the cost of copying is small beside that of what was read.
func (b *builder) trim() {
	for b.bytes > b.limit && b.begin < b.end {
		b.cut(b.begin + (b.end-b.begin)/2 + 1)
	}
	if b.bytes > b.limit && len(b.events) > 1 {
		b.cut(b.end) // all at one instant: no kernel wrote this
		b.bytes -= len(b.events) * eventBytes
		b.events = b.events[:0]
	}
}

// cut forgets what ended before t. The columns then start at t.
func (b *builder) cut(t int64) {
	b.bytes = 0
	for i := range b.threads {
		th := &b.threads[i]
		b.bytes += threadBytes + len(th.lives)*lifeBytes
		if at := th.at(t); at >= 0 {
			th.segs = th.segs[:copy(th.segs, th.segs[at:])]
			th.segs[0].begin = max(th.segs[0].begin, min(t, b.end))
		}
		first := uint32(0)
		for _, s := range th.segs {
			if s.off != 0 && (first == 0 || s.off < first) {
				first = s.off
			}
		}
		if first > 1 {
			th.offs = th.offs[:copy(th.offs, th.offs[first-1:])]
			for j := range th.segs {
				if th.segs[j].off != 0 {
					th.segs[j].off -= first - 1
				}
			}
		} else if first == 0 {
			th.offs = th.offs[:0]
		}
		b.bytes += len(th.segs)*segBytes + len(th.offs)*offBytes
	}
	for i := range b.cpus {
		c := &b.cpus[i]
		if at := c.at(t); at >= 0 {
			c.runs = c.runs[:copy(c.runs, c.runs[at:])]
			c.runs[0].begin = max(c.runs[0].begin, min(t, b.end))
		}
		c.lost = slices.DeleteFunc(c.lost, func(s Span) bool { return s.End <= t })
		c.held = slices.DeleteFunc(c.held, func(h hold) bool { return h.end <= t })
		b.bytes += len(c.runs)*runBytes + len(c.lost)*spanBytes + len(c.held)*holdBytes
	}
	b.events = slices.DeleteFunc(b.events, func(e Event) bool { return e.End < t })
	b.bytes += len(b.events) * eventBytes
	b.begin = min(t, b.end)
	b.dropped = b.begin
}
