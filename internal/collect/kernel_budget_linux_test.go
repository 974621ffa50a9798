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

// TestMay: what is free for a target of its own quota is not where we share it.
func TestMay(t *testing.T) {
	const second = 1e9
	b := &bpfBudget{share: 0.06}
	for _, c := range []struct {
		name                    string
		quota, used, ours, want float64
	}{
		{"a busy target", 0, 1, 0.5, 0.06},
		{"a small one", 0, 0.16, 0.01, 0.02 + 0.01},
		{"our own threads are free to a point", 0, 0.16, 0.5, 0.02 + 0.03},
		{"a small one that shares its quota", 0.16, 0.16, 0.5, 0.06 * 0.16},
		{"one that does nothing", 0.16, 0, 0.5, 0.02 * 0.16},
		{"a large shared quota", 8, 0, 0.5, 0.02},
	} {
		b.quota = c.quota
		if got := b.may(c.used*second, second, c.ours*second) / second; got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %.4f of a CPU, want %.4f", c.name, got, c.want)
		}
	}
}

// TestWithin: others' switches are in their time.
func TestWithin(t *testing.T) {
	b := &bpfBudget{ran: bpf.Ran{All: 100, Within: 40, Switch: 40}, others: 0.75}
	if got := b.within(1000); got != 500 {
		t.Errorf("%.0f of 1000 ns, want 500", got)
	}
}
