package collect

import (
	"testing"

	"github.com/whystall/whystall/internal/sensor/bpf"
)

// TestWorth: a step that spares next to nothing is not taken, however much recording costs.
func TestWorth(t *testing.T) {
	ran := bpf.Ran{All: 1000}
	ran.Spared[bpf.Seldom], ran.Spared[bpf.Rare] = 30, 500
	b := &bpfBudget{ran: ran}
	const cost, programs = 2e6, 1e6
	for _, c := range []struct {
		step    bpf.Step
		foreign float64
		want    bool
	}{{bpf.Fold, 0.1, false}, {bpf.Fold, 0.6, true}, {bpf.Seldom, 0.6, false}, {bpf.Rare, 0.6, true}} {
		if got := b.worth(c.step, cost, programs, c.foreign); got != c.want {
			t.Errorf("%s, %.0f %% others': got %t", c.step, 100*c.foreign, got)
		}
	}
	b.blind = true
	if !b.worth(bpf.Seldom, cost, programs, 0) {
		t.Error("where nothing can be measured no step is worth it")
	}
}
