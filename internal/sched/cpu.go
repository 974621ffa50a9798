package sched

import (
	"cmp"
	"slices"
	"sort"
)

// Behind appends the threads that held the CPU at which tid was queued or throttled in [lo,hi),
// largest share first. The shares add up to hi-lo. NobodyKnown has the time in which tid was not
// waiting for a CPU, in which that CPU is not known, and in which it is not known who was on it.
// While switches of other programs are folded the last includes the time in which the CPU was idle,
// of which the recorder then says nothing.
func (k *Timeline) Behind(tid uint32, lo, hi int64, dst []Share) []Share {
	lo, hi = clampTime(lo), clampTime(hi)
	if lo >= hi {
		return dst
	}
	from := len(dst)
	add := func(tid uint32, ns int64) {
		if ns <= 0 {
			return
		}
		for i := from; i < len(dst); i++ {
			if dst[i].TID == tid {
				dst[i].NS += ns
				return
			}
		}
		dst = append(dst, Share{tid, ns})
	}
	at := lo
	if th := k.find(tid); th != nil {
		i := th.at(at)
		if i < 0 {
			i = 0
		}
		for ; i < len(th.segs) && th.segs[i].begin < hi; i++ {
			s := &th.segs[i]
			b, e := max(s.begin, at), min(k.segEnd(th, i), hi)
			if e <= b || s.cpu < 0 || s.doing() != Queued && s.doing() != Throttled {
				continue
			}
			add(NobodyKnown, b-at)
			k.runs(int(s.cpu), b, e, func(r Run) { add(r.TID, r.End-r.Begin) })
			at = e
		}
	}
	add(NobodyKnown, hi-at)
	slices.SortStableFunc(dst[from:], func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.TID, b.TID))
	})
	return dst
}

// Run is a thread on a CPU for a stretch of time.
type Run struct {
	Begin, End int64
	TID        uint32 // 0: idle; NobodyKnown
}

// Runs appends the threads that were on a CPU in [lo,hi), oldest first. They tile it exactly.
func (k *Timeline) Runs(cpu int, lo, hi int64, dst []Run) []Run {
	k.runs(cpu, clampTime(lo), clampTime(hi), func(r Run) { dst = append(dst, r) })
	return dst
}

// runs calls f with runs that tile [lo,hi) of a CPU.
func (k *columns) runs(cpu int, lo, hi int64, f func(Run)) {
	if lo >= hi {
		return
	}
	if cpu < 0 || cpu >= len(k.cpus) || len(k.cpus[cpu].runs) == 0 {
		f(Run{lo, hi, NobodyKnown})
		return
	}
	c := &k.cpus[cpu]
	at := lo
	if first := c.runs[0].begin; at < first {
		to := min(first, hi)
		f(Run{at, to, NobodyKnown})
		at = to
	}
	lost := sort.Search(len(c.lost), func(i int) bool { return c.lost[i].End > at })
	for i := c.at(at); i >= 0 && i < len(c.runs) && at < hi; i++ {
		end := max(k.end, c.runs[i].begin)
		if i+1 < len(c.runs) {
			end = c.runs[i+1].begin
		}
		end = min(end, hi)
		for at < end {
			r := Run{at, end, c.runs[i].tid}
			if c.runs[i].bad {
				r.TID = NobodyKnown
			}
			for lost < len(c.lost) && c.lost[lost].End <= at {
				lost++
			}
			if lost < len(c.lost) {
				if l := c.lost[lost]; l.Begin <= at {
					r.End, r.TID = min(end, l.End), NobodyKnown
				} else {
					r.End = min(end, l.Begin)
				}
			}
			at = r.End
			if c.runs[i].bad {
				c.fill(r, f)
			} else {
				f(r)
			}
		}
	}
	if at < hi {
		f(Run{at, hi, NobodyKnown})
	}
}

// CPUs lists the CPUs that were online, or had a record.
func (k *Timeline) CPUs() (list []int) {
	list = append(list, k.header.CPUs...)
	for i := range k.cpus {
		if len(k.cpus[i].runs) > 0 {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// fill calls f with what tiles a stretch in which switches are missing, by what is recorded of it
// otherwise.
func (c *cpuLog) fill(r Run, f func(Run)) {
	at := r.Begin
	for i := sort.Search(len(c.held),
		func(i int) bool { return c.held[i].end > at }); i < len(c.held) && c.held[i].begin < r.End; i++ {
		h := &c.held[i]
		if h.begin > at {
			f(Run{at, h.begin, NobodyKnown})
			at = h.begin
		}
		if end := min(h.end, r.End); end > at {
			f(Run{at, end, h.tid})
			at = end
		}
	}
	if at < r.End {
		f(Run{at, r.End, NobodyKnown})
	}
}

// Share is a thread that held a CPU, and how long.
type Share struct {
	TID uint32 // 0: idle; NobodyKnown
	NS  int64
}

// NobodyKnown stands for a thread that is not known.
const NobodyKnown = ^uint32(0)
