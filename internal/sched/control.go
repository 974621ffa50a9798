package sched

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sort"
)

// Control counts how many stretches of time look as if something had held a thread up. A pause
// during which its thread was held up proves little where most stretches of that length look so.
type Control struct {
	N       int64 // stretches looked at
	Covered int64 // the thread was held up for at least 80 % of it
	Edge    int64 // covered, and it ended at most 0.5 ms after the thread came back to a CPU
}

// edgeNS is the most time between coming back to a CPU and the end of a stretch that it explains.
const edgeNS = 5e5

// HeldUp says for how much of [lo,hi) thread tid was held up by nothing that it asked for:
// throttled, queued, or blocked in the kernel's own business. covered: that is at least 80 %. edge:
// it is, and the thread last came to a CPU at most 0.5 ms before hi.
func (k *Timeline) HeldUp(tid uint32, lo, hi int64) (ns int64, covered, edge bool) {
	th := k.find(tid)
	if th == nil || lo >= hi {
		return 0, false, false
	}
	came := int64(0)
	k.each(th, clampTime(lo), clampTime(hi), func(s *Stretch) bool {
		switch {
		case s.Doing == Throttled, s.Doing == Queued,
			s.Doing == Blocked && s.Block.Stalls():
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

// Fair is the fair control: n pairs of transitions of one thread for each length, as far apart as
// that. The share of them that looks like a held-up pause says what such a look is worth. Its pairs
// are fair as they, too, start and end while the thread is on a CPU.
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
	rnd := rand.New(rand.NewPCG(1, uint64(total))) // a fixed seed: the same answer each time
	for _, length := range lengths {
		if length <= 0 {
			continue
		}
		for got, tries := 0, 0; got < n && tries < 20*n; tries++ {
			// Any transition, each as likely: at is its number over all threads, then in its own.
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
