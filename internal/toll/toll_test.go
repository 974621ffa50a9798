package toll

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

var all = []evidence.Counted{evidence.CountedCPU, evidence.CountedQueued, evidence.CountedThrottled,
	evidence.CountedSwitches, evidence.CountedRead, evidence.CountedNet}

// stage is n slices of 200 ms in which work KB are read, each for cpu ns; jitter is by how much
// every second slice has more, and every other less.
func stage(name evidence.StageName, n int, work, cpu, jitter float64) evidence.Stage {
	s := evidence.Stage{Name: name}
	for i := range n {
		j := 1 + jitter*float64(1-i%2*2)
		s.Slices = append(s.Slices, evidence.Slice{
			NS: 200e6, CPUNS: int64(work * cpu * j), QueuedNS: int64(work * cpu / 4),
			Switches: int64(2 * work), ReadBytes: int64(work * 1024), Reads: int64(work * 2),
			NetBytes: int64(work * 1024), NetPackets: int64(work * 2),
		})
	}
	return s
}

func weigh(counters []evidence.Counted, stages ...evidence.Stage) *Bill {
	return Weigh(&evidence.Toll{Budget: 0.06, LimitCPUs: 2, Counters: counters, Stages: stages})
}

func TestWeigh(t *testing.T) {
	alone := stage(evidence.StageCounters, 10, 100, 1e6, 0.01)
	for _, c := range []struct {
		name    string
		then    evidence.Stage
		measure Measure
		want    Said
		changed bool
	}{
		{"the same", stage(evidence.StageKernel, 10, 100, 1e6, 0.01), CPU, Within, false},
		{"dearer", stage(evidence.StageKernel, 10, 100, 1.2e6, 0.01), CPU, Beyond, false},
		{"dearer, held up", stage(evidence.StageKernel, 10, 100, 1.2e6, 0.01), Held, Beyond, false},
		{"the same switches", stage(evidence.StageKernel, 10, 100, 1.2e6, 0.01), Switches, Within, false},
		{"dearer, beside noise", stage(evidence.StageKernel, 10, 100, 1.1e6, 0.5), CPU, Untold, false},
		{"half the work", stage(evidence.StageKernel, 10, 50, 1.0e6, 0.01), CPU, Within, true},
		{"half the work, held up", stage(evidence.StageKernel, 10, 50, 1.2e6, 0.01), Held, Untold, true},
		{"too few slices", stage(evidence.StageKernel, 3, 100, 2e6, 0.01), CPU, NotKnown, false},
		{"too little work", stage(evidence.StageKernel, 10, 2, 1e6, 0.01), CPU, NotKnown, false},
	} {
		b := weigh(all, alone, c.then)
		if e, _ := b.Of(evidence.StageKernel, c.measure); e.Said != c.want || b.LoadChanged != c.changed {
			t.Errorf("%s: %s is %+v, load changed %v; want %s, %v", c.name, c.measure, e,
				b.LoadChanged, c.want, c.changed)
		}
	}
}

// Of a target that does nearly nothing, a large share is little.
func TestIdleTarget(t *testing.T) {
	b := weigh(all, stage(evidence.StageCounters, 10, 100, 1e4, 0.01),
		stage(evidence.StageKernel, 10, 100, 1.2e4, 0.01))
	if e, _ := b.Of(evidence.StageKernel, CPU); e.Said != Within || e.Growth < 0.15 {
		t.Errorf("%+v", e)
	}
}

// Half of what a stage costs is told by the right stage.
func TestHarm(t *testing.T) {
	b := weigh(all, stage(evidence.StageCounters, 10, 100, 1e6, 0.01),
		stage(evidence.StageKernel, 10, 100, 1.01e6, 0.01), stage(evidence.StageAll, 20, 100, 1.5e6, 0.01))
	if e, ok := b.Harm(evidence.StageKernel); ok {
		t.Errorf("the kernel's records harm: %+v", e)
	}
	if e, ok := b.Harm(evidence.StageAll); !ok || e.Growth < 0.45 || e.Growth > 0.55 {
		t.Errorf("the trace harms: %+v, %v; want 0.5", e, ok)
	}
}

func TestUnit(t *testing.T) {
	without := func(c evidence.Counted) (out []evidence.Counted) {
		for _, x := range all {
			if x != c {
				out = append(out, x)
			}
		}
		return out
	}
	a, k := stage(evidence.StageCounters, 10, 100, 1e6, 0), stage(evidence.StageKernel, 10, 100, 1e6, 0)
	if b := weigh(all, a, k); b.Unit != UnitRead {
		t.Errorf("unit %q", b.Unit)
	}
	if b := weigh(without(evidence.CountedRead), a, k); b.Unit != UnitNet {
		t.Errorf("without reads: unit %q", b.Unit)
	}
	// Of others the namespace received a tenth: that is no price of the target's.
	less := stage(evidence.StageKernel, 10, 10, 1e7, 0)
	if e, _ := weigh(without(evidence.CountedRead), a, less).Of(evidence.StageKernel, CPU); e.Said != Untold {
		t.Errorf("a tenth of the packets: %+v", e)
	}
	if e, _ := weigh(all, a, less).Of(evidence.StageKernel, CPU); e.Said != Beyond {
		t.Errorf("a tenth of the reads: %+v", e)
	}
	if b := weigh([]evidence.Counted{evidence.CountedCPU}, a, k); b.Unit != UnitNone {
		t.Errorf("without work: unit %q", b.Unit)
	} else if e, _ := b.Of(evidence.StageKernel, CPU); e.Said != NotKnown {
		t.Errorf("without work: %+v", e)
	}
}

func TestNothingToCompare(t *testing.T) {
	if b := Weigh(nil); b != nil {
		t.Errorf("%+v", b)
	}
	if b := weigh(all, stage(evidence.StageCounters, 10, 100, 1e6, 0)); b != nil {
		t.Errorf("%+v", b)
	}
	if b := weigh(all, stage(evidence.StageKernel, 10, 100, 1e6, 0),
		stage(evidence.StageAll, 10, 100, 1e6, 0)); b != nil {
		t.Errorf("%+v", b)
	}
}
