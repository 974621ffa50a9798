package sched

import "sort"

// cutGaps makes unknown what threads did on a CPU while its records were lost: those on it or in
// its queue, and those that had come from it or went to it next.
func (b *builder) cutGaps() {
	any := false
	for i := range b.cpus {
		if len(b.cpus[i].lost) > 0 {
			any = true
		}
	}
	var out []segment
	for i := range b.threads {
		th := &b.threads[i]
		if any {
			out = out[:0]
			cut := false
			for j := range th.segs {
				out, cut = b.cutSegment(th, j, out, cut)
			}
			if cut {
				th.segs = append([]segment(nil), out...)
			}
		}
		for j := range th.segs {
			if s := &th.segs[j]; s.doing() == Unknown && s.meta&segMissing != 0 {
				b.totals.BreakNS = min(b.totals.BreakNS+b.segEnd(th, j)-s.begin, maxTimeNS)
			}
		}
	}
}

// cutSegment appends segment j of th to out, without what the losses of its CPUs cover. It returns
// cut, or true if there was any. A thread that is not on a CPU has up to three: that of its queue,
// the one it came from and the one it went to, of which each may have had the record that is
// missing.
func (b *builder) cutSegment(th *thread, j int, out []segment, cut bool) ([]segment, bool) {
	s := th.segs[j]
	end := b.segEnd(th, j)
	if d := s.doing(); d == Unknown || d == Gone || end <= s.begin {
		return append(out, s), cut
	}
	cpus := [3]int16{s.cpu, -1, -1}
	if s.doing() != OnCPU {
		for i := j - 1; i >= 0 && i >= j-4; i-- {
			if th.segs[i].doing() == OnCPU {
				cpus[1] = th.segs[i].cpu
				break
			}
		}
		for i := j + 1; i < len(th.segs) && i <= j+4; i++ {
			if th.segs[i].doing() == OnCPU {
				cpus[2] = th.segs[i].cpu
				break
			}
		}
	}
	from := s.begin
	for from < end {
		// The first loss of any of them.
		var hole Span
		found := false
		for i, c := range cpus {
			if c < 0 || int(c) >= len(b.cpus) || i > 0 && c == cpus[0] || i == 2 && c == cpus[1] {
				continue
			}
			l := b.cpus[c].lost
			n := sort.Search(len(l), func(n int) bool { return l[n].End > from })
			if n < len(l) && l[n].Begin < end && (!found || l[n].Begin < hole.Begin) {
				hole, found = l[n], true
			}
		}
		if !found {
			break
		}
		cut = true
		if hole.Begin > from {
			piece := s
			piece.begin = from
			out = append(out, piece)
		}
		at := max(hole.Begin, from)
		if n := len(out); n == 0 || out[n-1].begin < at {
			out = append(out, segment{begin: at, cpu: -1, meta: uint16(Unknown) | segMissing})
		} else {
			out[n-1] = segment{begin: out[n-1].begin, cpu: -1, meta: uint16(Unknown) | segMissing}
		}
		from = min(hole.End, end)
	}
	if from < end {
		s.begin = from
		out = append(out, s)
	}
	return out, cut
}
