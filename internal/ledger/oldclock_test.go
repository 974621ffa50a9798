package ledger

import (
	"context"
	"math/rand/v2"
	"testing"
)

// An old trace whose clock is found is joined like any other: with threads, and as a whole no more.
func TestRunOldClock(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 2))
	between := func(lo, hi int64) func() int64 { return func() int64 { return lo + rnd.Int64N(hi-lo) } }
	const shift = 7_123_456_789
	src, k := bothSides(t, 300, shift, between(300, 5000), between(200, 9000))
	r, err := Run(context.Background(), src, Options{Kernel: k})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Kernel.OldClock
	if !c.Found() || c.Threads != 1 {
		t.Fatalf("the clock was not found: %+v", c)
	}
	if !r.Kernel.Joined || r.Kernel.Whole || !r.Monotonic {
		t.Errorf("joined %v, as a whole %v, on the kernel's clock %v", r.Kernel.Joined, r.Kernel.Whole, r.Monotonic)
	}
	want := int64(shift)
	for block := range src.Blocks() {
		want += int64(block[0].Time)
		break
	}
	if d := r.Begin - want; max(d, -d) > c.ErrorNS {
		t.Errorf("the trace begins at %d, want %d give or take %d", r.Begin, want, c.ErrorNS)
	}
	if a := r.Kernel.Align; a.OffCPU > 0 || a.Transitions < 100 {
		t.Errorf("of %d transitions %d fall off the CPU", a.Transitions, a.OffCPU)
	}

	// The records of another process say nothing of it.
	_, other := bothSides(t, 300, shift, between(300, 5000), between(200, 9000))
	r, err = Run(context.Background(), src, Options{Kernel: other})
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Kernel.OldClock; c.Found() || c.Refused == "" || r.Kernel.Joined || r.Monotonic {
		t.Errorf("joined with another process' records: %+v", c)
	}
}
