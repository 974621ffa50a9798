package capacity

import (
	"math/rand/v2"
	"testing"
)

// TestOverlap: the set is the union of its spans, and an empty span has no part in anything.
func TestOverlap(t *testing.T) {
	set := Times{{50, 60}, {10, 20}, {15, 30}, {70, 70}}.Merge()
	for _, c := range []struct {
		span Span
		want int64
	}{
		{Span{0, 100}, 30}, {Span{12, 25}, 13}, {Span{30, 50}, 0}, {Span{25, 55}, 10},
		{Span{60, 90}, 0}, {Span{55, 55}, 0},
	} {
		if got := set.overlap(c.span); got != c.want {
			t.Errorf("%v: %d ns are in the set, want %d", c.span, got, c.want)
		}
		var without int64
		for _, s := range set.Without(c.span.Lo, c.span.Hi) {
			without += s.Hi - s.Lo
		}
		if want := c.span.Hi - c.span.Lo - c.want; without != want {
			t.Errorf("%v: %d ns are not in the set, want %d", c.span, without, want)
		}
	}
}

// TestFlight: in whatever order requests come, their union stays in order, disjoint and as long as
// it is.
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
			t.Fatalf("%d ns are under way, want %d", ns, want)
		}
	}
}
