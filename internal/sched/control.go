package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
)

// Control counts how many stretches of time look as if something had held a thread up.
type Control struct {
	N       int64 // stretches looked at
	Covered int64 // of which it was held up for at least 80 %
	Edge    int64 // and that it ended at most 0.5 ms after it came back to a CPU
}

const edgeNS = 5e5

// HeldUp tells for how much of [lo,hi) thread tid was held up, on no account of its own: throttled, queued, or blocked in
// the kernel's own affairs; whether that is at least 80 %; and whether it last came to a CPU at most 0.5 ms before hi.
func (k *Timeline) HeldUp(tid uint32, lo, hi int64) (ns int64, covered, edge bool) {
	th := k.find(tid)
	if th == nil || lo >= hi {
		return 0, false, false
	}
	came := int64(0)
	k.each(th, clampTime(lo), clampTime(hi), func(s *Stretch) bool {
		switch {
		case s.Doing == Throttled, s.Doing == Queued,
			s.Doing == Blocked && s.Block >= BlockDisk && s.Block <= BlockNUMA:
			ns += s.End - s.Begin
		case s.Doing == OnCPU && s.Whole.Begin > lo:
			came = s.Whole.Begin
		}
		return true
	})
	covered = ns*5 >= (hi-lo)*4
	return ns, covered, covered && came != 0 && hi-came <= edgeNS
}

func (c *Control) add(covered, edge bool) {
	c.N++
	if covered {
		c.Covered++
	}
	if edge {
		c.Edge++
	}
}

// Fair is the fair control: pairs of transitions of one thread, as far apart as the lengths given, n of each. What share of
// them looks like a pause that something held up is what such a look is worth.
func (a *Aligner) Fair(lengths []int64, n int) (c Control) {
	var threads []*aligned
	for _, x := range a.threads {
		if len(x.kept) > 0 {
			threads = append(threads, x)
		}
	}
	slices.SortFunc(threads, func(x, y *aligned) int { return cmp.Compare(x.tid, y.tid) })
	total := a.n
	if total == 0 {
		return c
	}
	rnd := rand.New(rand.NewPCG(1, uint64(total))) // the same answer each time
	for _, length := range lengths {
		if length <= 0 {
			continue
		}
		for got, tries := 0, 0; got < n && tries < 20*n; tries++ {
			// any transition, each as likely
			at := rnd.IntN(total)
			var x *aligned
			for _, x = range threads {
				if at < len(x.kept) {
					break
				}
				at -= len(x.kept)
			}
			l := x.kept
			j := sort.Search(len(l), func(i int) bool { return l[i] >= l[at]+length })
			if j == len(l) || l[j]-l[at] > length+length/5+20_000 {
				continue
			}
			_, covered, edge := a.k.HeldUp(x.tid, l[at], l[j])
			c.add(covered, edge)
			got++
		}
	}
	return c
}

// RandomWindows is the control by windows of the lengths given that begin where a thread comes to a CPU, n of each.
func (k *Timeline) RandomWindows(lengths []int64, n int) (c Control) {
	if len(k.threads) == 0 {
		return c
	}
	rnd := rand.New(rand.NewPCG(2, uint64(len(k.threads))))
	for _, length := range lengths {
		for got, tries := 0, 0; got < n && tries < 20*n; tries++ {
			th := &k.threads[rnd.IntN(len(k.threads))]
			if len(th.segs) == 0 {
				continue
			}
			s := &th.segs[rnd.IntN(len(th.segs))]
			if length <= 0 || s.doing() != OnCPU || s.begin+length > k.end {
				continue
			}
			_, covered, edge := k.HeldUp(th.tid, s.begin, s.begin+length)
			c.add(covered, edge)
			got++
		}
	}
	return c
}

// Uninvolved is the control by the threads that a pause had nothing to do with: neither its initiator nor awaited.
func (k *Timeline) Uninvolved(pauses []Pause) (c Control) {
	for i := range pauses {
		p := &pauses[i]
		for j := range k.threads {
			th := &k.threads[j]
			if th.tid == p.Initiator || th.tid == p.Awaited {
				continue
			}
			if at := th.at(p.Begin); at < 0 || th.segs[at].doing() == Unknown || th.segs[at].doing() == Gone {
				continue
			}
			_, covered, edge := k.HeldUp(th.tid, p.Begin, p.End)
			c.add(covered, edge)
		}
	}
	return c
}
