package sched

import "math/rand/v2"

// randomWindows is the control by n windows of each length that start where a thread comes to a
// CPU.
func (k *Timeline) randomWindows(lengths []int64, n int) (c Control) {
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

// uninvolved is the control by the threads that had no part in a pause: neither initiator nor
// awaited.
func (k *Timeline) uninvolved(pauses []Pause) (c Control) {
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
