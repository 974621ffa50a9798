package sched

import (
	"slices"

	"github.com/whystall/whystall/internal/evidence/kernel"
)

// mostSampled is how many periods of a thread's CPU time one of its samples stands for at most. The
// samples of a thread that runs in short turns come irregularly; with this bound all of them
// together still stand for 98 % of its time.
const mostSampled = 4

// sampled lays what the kernel stacks of th's samples say over its time on a CPU, where no record
// says what it was in the middle of. It does so for work whose start and end have no records:
// flushing TLBs, which spins until the other CPUs answered, and looking for pages to move between
// NUMA nodes. Each sample stands for the CPU time since the one before it, so the sums are right,
// and single instants are not.
func (k *columns) sampled(th *thread, stacks *stackClasses) {
	var found []overlaid
	prev := k.begin
	for _, n := range th.events {
		e := &k.events[n]
		if e.Kind != kernel.Sample {
			continue
		}
		if b := stacks.of(e.Kernel).block; b == BlockTLB || b == BlockNUMA {
			from := len(found)
			found = k.standFor(th, found, b, prev, e.Begin, mostSampled*int64(min(e.Arg[0], maxTimeNS/mostSampled)))
			slices.Reverse(found[from:]) // they came latest first
		}
		prev = e.Begin
	}
	if len(found) == 0 {
		return
	}
	th.overlay = append(th.overlay, found...)
	slices.SortFunc(th.overlay, func(x, y overlaid) int {
		if x.begin < y.begin {
			return -1
		}
		return 1 // they are disjoint
	})
}

// standFor appends what a sample stands for: th was in block for the last ns nanoseconds of its
// time on a CPU in [lo,hi). Left out is the time over which something is laid already. The latest
// comes first: the walk goes back over segments and, within each, over what is laid over them.
func (k *columns) standFor(th *thread, dst []overlaid, block Block, lo, hi, ns int64) []overlaid {
	over := len(th.overlay) - 1
	for i := th.at(hi); i >= 0 && ns > 0; i-- {
		s := &th.segs[i]
		end := min(hi, k.segEnd(th, i))
		if end <= lo {
			break
		}
		if s.doing() != OnCPU {
			continue
		}
		begin := max(lo, s.begin)
		for end > begin && ns > 0 {
			for over >= 0 && th.overlay[over].begin >= end {
				over--
			}
			from := begin
			if over >= 0 && th.overlay[over].end > begin {
				from = max(begin, th.overlay[over].end)
			}
			if from < end {
				from = max(from, end-ns)
				dst = append(dst, overlaid{from, end, block, true})
				ns -= end - from
			}
			if over < 0 || th.overlay[over].end <= begin {
				break
			}
			end = th.overlay[over].begin
		}
	}
	return dst
}
