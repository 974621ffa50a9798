package books

import (
	"math/rand/v2"
	"testing"
)

// TestDraw: the units that are drawn beforehand are those that a sample taken one by one ends with.
func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var g Group
	all := make([]*Kept, 3000)
	for i := range all {
		k := &Kept{Running: r.Int64N(1 << r.IntN(12)), Hash: r.Uint64(), Group: &g}
		all[i] = k
		g.Draw(k.Running, k.Hash)
		if g.Wants(k.Running, k.Hash) {
			g.sample(k)
		}
	}
	sampled := map[*Kept]bool{}
	for _, k := range g.sampled() {
		sampled[k] = true
	}
	if len(sampled) < 2*PerOctave {
		t.Errorf("only %d units are in the sample", len(sampled))
	}
	for _, k := range all {
		if drawn := g.Drawn(k.Running, k.Hash); drawn != sampled[k] {
			t.Errorf("a unit that ran for %d ns is drawn: %v, in the sample: %v", k.Running, drawn, sampled[k])
		}
	}
}
