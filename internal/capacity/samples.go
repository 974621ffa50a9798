package capacity

import (
	"math"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/evidence"
	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
)

// sumSamples divides the CPU time of the target's threads by samples. Three uses have sums of
// their own: what looks for a lock or for work without sleeping, what makes and ends threads, and
// TLB flushes. Of the last the time is known better from stretches, so only the lists are taken.
func sumSamples(k *sched.Timeline, works *oncpu.Works, r *account.Kernel) {
	var all oncpu.Sum
	spin, flushed := newSpanSum(&r.Spin), account.Spans{}
	flush := newSpanSum(&flushed)
	k.Events(math.MinInt64, math.MaxInt64, func(e *sched.Event) bool {
		work, ns := works.Of(e), oncpu.SampleNS(e)
		all.Add(work, ns)
		key := works.Key(work)
		if key.Churn {
			r.Churn.CPUNS += ns
		}
		switch key.Kind {
		case account.WorkSpin:
			spin.add(k, e.TID, e.Begin, ns, e.User, "")
		case account.WorkTLB:
			flush.add(k, e.TID, e.Begin, ns, e.User, key.Name)
		}
		return true
	}, kernel.Sample)
	r.OnCPU = all.Write(works, r.OnNS)
	spin.write()
	flush.write()
	flush.writeThreads()
	r.TLB.Flags, r.TLB.Sites, r.TLB.By = flushed.Flags, flushed.Sites, flushed.By
}

// Profiled divides the process' CPU time by the CPU profile that its runtime took at the same
// moment; nil without one.
func Profiled(set *evidence.Set) *account.OnCPU {
	if set == nil {
		return nil
	}
	var p oncpu.Profile
	for _, s := range set.All("/pprof/cpu/time:ns") {
		if s.Shape == evidence.Sample {
			p.Add(s.Stack, s.N, int64(min(s.Value, 1e18)))
		}
	}
	return p.Write()
}
