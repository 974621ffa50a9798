package detect

import (
	"math/rand/v2"
	"testing"

	"github.com/whystall/whystall/internal/finding"
)

// earned holds what is ruled out to its promise: it has a bound for each scope in which its
// detector looked, and none that would be a finding.
func earned(t *testing.T, r *run) {
	t.Helper()
	out := r.result()
	for _, ps := range r.causes() {
		i := -1
		for n := range out.RuledOut {
			if out.RuledOut[n].Cause == ps[0].det.Name {
				i = n
			}
		}
		if i < 0 {
			continue
		}
		scopes := map[finding.Scope]bool{}
		for _, b := range out.RuledOut[i].Bounds {
			scopes[b.Scope] = true
			switch {
			case b.Of == finding.OfMemory:
			case b.Share < 0 || b.Share > 1 || b.NS < 0:
				t.Errorf("%s: bound %+v", ps[0].det.Name, b)
			case b.Scope == finding.Process && b.Share >= max(processShare, gcShareRoom),
				b.Scope == finding.Usual && b.Share >= usualFloor.Share && b.NS >= usualFloor.NS:
				t.Errorf("%s: ruled out with %+v", ps[0].det.Name, b)
			}
		}
		for _, p := range ps {
			if !scopes[p.board.scope] && !scopes[finding.Process] {
				t.Errorf("%s: ruled out without a bound of the scope %s", p.det.Name, p.board.scope)
			}
		}
	}
}

// TestUnboundedIsNotChecked: a detector that says "not there" and cannot say what it costs the
// process is one that did not look.
func TestUnboundedIsNotChecked(t *testing.T) {
	d := &Detector{Name: "some-cause", Needs: []string{KernelRecords},
		Scopes: []finding.Scope{finding.Slow, finding.Process}, Look: func(p *Pass) { p.Clear("nothing of it") }}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 13))
		r := randomResult(rnd)
		randomKernel(rnd, r)
		out := look([]*Detector{d}, r, nil, Facts{}).result()
		if len(out.RuledOut) != 0 || len(out.NotChecked) != 1 {
			t.Fatalf("seed %d: %+v", seed, out)
		}
	}
}
