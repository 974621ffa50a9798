package exectrace

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// What the first pass does where the file is damaged: it finds the next batch, and notes what is
// between as a hole.

// v1Hole is a stretch of the file that could not be read; its times are in ticks.
type v1Hole struct {
	start, end uint64
	proc       int
	off, bytes int64 // of the file
	why        string
}

// v1Probe is how many records must follow what looks like a batch's head behind damage.
const v1Probe = 24

// resync finds the next batch from off on. It gives len(data) if there is none.
func (s *v1Scan) resync(off int) int {
	for {
		if off >= len(s.data) {
			return len(s.data)
		}
		i := bytes.IndexByte(s.data[off:], v1BatchByte)
		if i < 0 {
			return len(s.data)
		}
		off += i
		if s.plausible(off) {
			return off
		}
		off++
	}
}

// plausible reports whether a batch can start at off: its head is one, and so are v1Probe records
// behind it.
func (s *v1Scan) plausible(off int) bool {
	pid, ticks, n, ok := v1Header(s.data, off)
	if !ok || s.first != 0 && (ticks < s.first || ticks-s.first > v1MaxDelta) {
		return false
	}
	if _, known := s.byPid[pid]; !known && (pid > v1MaxProcs || len(s.procs) >= v1MaxProcs) {
		return false
	}
	for k := 0; k < v1Probe && n < len(s.data); k++ {
		d := s.shapes[s.data[n]]
		n++
		values := int(d.values)
		switch d.shape {
		case shapeBad:
			return false
		case shapeBatch:
			if _, _, n, ok = v1Header(s.data, n-1); !ok {
				return false
			}
			continue
		case shapeString:
			values = 1
		case shapePrefixed, shapeStack:
			values = 0
		}
		log := s.data[n-1] == v1Log|3<<6
		for ; values > 0; values-- {
			if _, n = v1Uvarint(s.data, n); n == 0 {
				return false
			}
		}
		blobs := 0
		switch {
		case log:
			blobs = 2
		case d.shape == shapeString, d.shape == shapePrefixed, d.shape == shapeStack:
			blobs = 1
		}
		for ; blobs > 0; blobs-- {
			size, m := v1Uvarint(s.data, n)
			if m == 0 || size > v1MaxString || int(size) > len(s.data)-m {
				return false
			}
			n = m + int(size)
		}
	}
	return true
}

// maxV1Holes bounds the list. What comes after extends the last hole.
const maxV1Holes = 4096

// hole notes that [from,to) of the file is lost. finish sets its end in time.
func (s *v1Scan) hole(from, to int, why string) {
	h := v1Hole{proc: s.p, off: int64(from), bytes: int64(to - from),
		why: fmt.Sprintf("damage at byte %d: %s", from, why)}
	if s.p >= 0 {
		h.start = s.procs[s.p].ts
		h.why = fmt.Sprintf("a batch of P %d is damaged at byte %d: %s", s.procs[s.p].pid, from, why)
	}
	h.end = h.start
	if to < len(s.data) {
		if _, ticks, _, ok := v1Header(s.data, to); ok {
			h.end = max(h.start, ticks)
			if h.start == 0 {
				h.start = ticks
			}
		}
	}
	if n := len(s.holes); n >= maxV1Holes {
		l := &s.holes[n-1]
		l.start, l.end = min(l.start, h.start), max(l.end, h.end)
		l.bytes += h.bytes
		l.why = "more damage than is listed one by one"
	} else {
		s.holes = append(s.holes, h)
	}
	// What stood before the damage is closed; the next batch starts anew.
	s.p = -1
}

// finish ends each hole where its P's next batch starts, or with the trace.
func (s *v1Scan) finish() {
	slices.SortFunc(s.late, func(a, b v1Late) int { return cmp.Compare(a.ticks, b.ticks) })
	for i := range s.procs {
		s.last = max(s.last, s.procs[i].ts)
	}
	for i := range s.holes {
		h := &s.holes[i]
		if h.proc < 0 {
			continue
		}
		sp, end := s.procs[h.proc].spans, s.last
		k, _ := slices.BinarySearchFunc(sp, h.off, func(s v1Span, at int64) int { return cmp.Compare(s.off, at) })
		if k < len(sp) {
			if _, ticks, _, ok := v1Header(s.data, int(sp[k].off)); ok {
				end = ticks
			}
		}
		// Damage may have hit the times just before it, before it showed.
		h.start, h.end = min(h.start, end), end
	}
	slices.SortStableFunc(s.holes, func(a, b v1Hole) int { return cmp.Compare(a.start, b.start) })
}
