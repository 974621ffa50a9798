package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

const mostNeighbours = 20

// neighbours names who held CPUs, at a time. Idle is nobody. All threads of the target are one
// entry.
func neighbours(k *sched.Timeline, held map[uint32]int64, at int64) []account.Neighbour {
	sums := map[account.Neighbour]int64{}
	for tid, ns := range held {
		if tid == 0 {
			continue
		}
		t, _ := k.Name(tid, at)
		n := account.Neighbour{Comm: sched.PlainComm(t.Comm), PID: t.PID, Cgroup: t.Cgroup, Own: t.Target}
		if t.Target {
			n = account.Neighbour{Comm: account.OwnThreads, PID: t.PID, Own: true}
		}
		if t.Kernel {
			n.PID = 0
		}
		sums[n] += ns
	}
	l := make([]account.Neighbour, 0, len(sums))
	for n, ns := range sums {
		n.NS = ns
		l = append(l, n)
	}
	slices.SortFunc(l, func(a, b account.Neighbour) int {
		return cmp.Or(cmp.Compare(b.NS, a.NS), cmp.Compare(a.Comm, b.Comm),
			cmp.Compare(a.PID, b.PID), cmp.Compare(a.Cgroup, b.Cgroup))
	})
	return l[:min(len(l), mostNeighbours)]
}

// CPUHolders adds up, by thread, how long it held a CPU while threads of the target were queued
// there, once for each of them.
//
//  1. For each CPU, the edges of the queued stretches are put in order of time.
//  2. One walk over the CPU's runs and these edges keeps count of how many are queued.
//  3. What the recorder folded while it recorded is not in the runs. It is added from its own
//     records.
//
// To ask for each queued stretch who ran meanwhile would cost the square of how many are queued.
// With 500 threads that yield all the time it took half a minute for 2 s.
func CPUHolders(k *sched.Timeline) map[uint32]int64 {
	begin, end := k.Span()
	edges := map[int32][]queueEdge{}
	k.Each(begin, end, func(_ uint32, s *sched.Stretch) {
		if s.Doing == sched.Queued && s.CPU >= 0 {
			edges[s.CPU] = append(edges[s.CPU], queueEdge{s.Begin, 1}, queueEdge{s.End, -1})
		}
	})
	held := map[uint32]int64{}
	var runs []sched.Run
	for cpu, l := range edges {
		slices.SortFunc(l, func(a, b queueEdge) int { return cmp.Compare(a.time, b.time) })
		runs = k.Runs(int(cpu), begin, end, runs[:0])
		addHeld(held, runs, l)
	}
	k.Events(begin, end+1, func(e *sched.Event) bool {
		held[e.Other] += int64(min(e.Arg[0], uint64(end-begin)))
		return true
	}, kernel.Held)
	return held
}

// queueEdge is a thread that comes into the queue of a CPU, or leaves it.
type queueEdge struct {
	time   int64
	change int64
}

// addHeld is step 2 for one CPU.
func addHeld(held map[uint32]int64, runs []sched.Run, edges []queueEdge) {
	next, queued := 0, int64(0)
	for _, r := range runs {
		for lo := r.Begin; lo < r.End; {
			for next < len(edges) && edges[next].time <= lo {
				queued += edges[next].change
				next++
			}
			hi := r.End
			if next < len(edges) {
				hi = min(hi, edges[next].time)
			}
			if r.TID != sched.NobodyKnown && queued > 0 {
				held[r.TID] += queued * (hi - lo)
			}
			lo = hi
		}
	}
}
