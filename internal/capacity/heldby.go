package capacity

import (
	"cmp"
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// heldBy adds up, by thread, how long it held a CPU while threads of the target were queued there: once for each of them. To ask
// for each queued stretch would cost the square of how many are queued; with 500 that yield all the time it took half a minute for 2 s.
func HeldBy(k *sched.Timeline) map[uint32]int64 {
	type edge struct {
		at int64
		in int64
	}
	lo, hi := k.Span()
	byCPU := map[int32][]edge{}
	k.Each(lo, hi, func(_ uint32, s *sched.Stretch) {
		if s.Doing == sched.Queued && s.CPU >= 0 {
			byCPU[s.CPU] = append(byCPU[s.CPU], edge{s.Begin, 1}, edge{s.End, -1})
		}
	})
	held := map[uint32]int64{}
	var runs []sched.Run
	for cpu, edges := range byCPU {
		slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
		runs = k.Runs(int(cpu), lo, hi, runs[:0])
		at, queued := 0, int64(0)
		for _, r := range runs {
			from := r.Begin
			for from < r.End {
				for at < len(edges) && edges[at].at <= from {
					queued += edges[at].in
					at++
				}
				to := r.End
				if at < len(edges) {
					to = min(to, edges[at].at)
				}
				if r.TID != sched.NobodyKnown && queued > 0 {
					held[r.TID] += queued * (to - from)
				}
				from = to
			}
		}
	}
	// What was folded while recording is not in the runs.
	k.Events(lo, hi+1, func(e *sched.Event) bool {
		held[e.Other] += int64(min(e.Arg[0], uint64(hi-lo)))
		return true
	}, kernel.Held)
	return held
}
