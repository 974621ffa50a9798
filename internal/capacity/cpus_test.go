package capacity

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/whystall/whystall/internal/evidence"
)

// TestAllowed: lists as the kernel writes them, and nothing of what it never writes.
func TestAllowed(t *testing.T) {
	for text, want := range map[string][]int{"0-1": {0, 1}, "0,2-3": {0, 2, 3}, "7\n": {7}, "": nil, "3-1": nil, "0-999999999": nil, "x": nil, "-1": nil} {
		set := &evidence.Set{}
		set.Add(evidence.Record{Stream: "/process/cpus-allowed:list", Shape: evidence.Fact, Text: text})
		if got := allowed(set); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}

// TestFlight: whatever the order in which requests are told, their union stays sorted, disjoint and as long as it is.
func TestFlight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var f Flight
		under := make([]bool, 300)
		for range rnd.IntN(60) {
			lo := rnd.IntN(280)
			hi := lo + rnd.IntN(20)
			f.Add(int64(lo), int64(hi))
			for n := lo; n < hi; n++ {
				under[n] = true
			}
		}
		var ns, want int64
		for i, s := range f.List {
			ns += s.Hi - s.Lo
			if s.Lo >= s.Hi || i > 0 && s.Lo <= f.List[i-1].Hi {
				t.Fatalf("not disjoint: %v", f.List)
			}
		}
		for _, u := range under {
			if u {
				want++
			}
		}
		if ns != want {
			t.Fatalf("%d ns of %d", ns, want)
		}
	}
}
