package account

import "testing"

// TestOnCPUOf: an account is divided by its own samples where they are enough, then as its column
// is, and else only its bounds are known.
func TestOnCPUOf(t *testing.T) {
	own := &OnCPU{NS: 100, Samples: 20, Works: []Work{{Kind: WorkFault, NS: 60, Low: 40, High: 80},
		{Kind: WorkOwn, NS: 40, Low: 20, High: 60}}}
	few := &OnCPU{NS: 100, Samples: 19}
	whole := &OnCPU{NS: 1000, Samples: 200,
		Works: []Work{{Kind: WorkFault, NS: 200, Low: 150, High: 260}, {Kind: WorkOwn, NS: 800, Low: 700, High: 900}}}
	for name, x := range map[string]struct {
		column, own   *OnCPU
		leaf          Leaf
		ns, low, high int64
	}{
		"own samples":      {whole, own, LeafOnCPU, 60, 40, 80},
		"too few":          {whole, few, LeafOnCPU, 20, 15, 26},
		"none":             {whole, nil, LeafOnCPU, 20, 15, 26},
		"column has few":   {few, few, LeafOnCPU, 0, 0, 100},
		"no samples taken": {nil, nil, LeafOnCPU, 0, 0, 100},
		"not on a CPU":     {whole, nil, LeafNetwork, 0, 0, 0},
	} {
		c := Column{OnCPU: x.column}
		got := c.OnCPUOf(&Account{Leaf: x.leaf, NS: 100, OnCPU: x.own}, WorkFault)
		if got.NS != x.ns || got.Low != x.low || got.High != x.high {
			t.Errorf("%s: %d, from %d to %d; want %d, from %d to %d", name, got.NS, got.Low,
				got.High, x.ns, x.low, x.high)
		}
	}
}
