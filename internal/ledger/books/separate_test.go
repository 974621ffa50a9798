package books

import "testing"

// TestSeparate: one wait that many units share is one event, and small parts are none.
func TestSeparate(t *testing.T) {
	const account = 0
	unit := func(begin, end, ns int64) *Kept {
		return &Kept{Begin: begin, End: end, facts: []fact{{account, 0, uint64(ns)<<8 | uint64(FactNS)}}}
	}
	for name, x := range map[string]struct {
		units []*Kept
		want  int
	}{
		"shared":         {[]*Kept{unit(0, 100, 50), unit(10, 110, 50), unit(20, 101, 50)}, 1},
		"apart":          {[]*Kept{unit(200, 300, 50), unit(0, 100, 50), unit(100, 200, 50)}, 3},
		"around two":     {[]*Kept{unit(0, 300, 50), unit(10, 100, 50), unit(110, 200, 50)}, 2},
		"chain":          {[]*Kept{unit(0, 100, 50), unit(90, 190, 50), unit(180, 280, 50)}, 2},
		"a small one":    {[]*Kept{unit(0, 100, 90), unit(100, 200, 1), unit(200, 300, 89)}, 2},
		"one unit alone": {[]*Kept{unit(0, 100, 1)}, 1},
	} {
		b := &Books{accounts: accounts{keys: []Key{{}}}}
		if got := b.column(x.units, nil).sums[account].events; got != x.want {
			t.Errorf("%s: %d events, want %d", name, got, x.want)
		}
	}
}
