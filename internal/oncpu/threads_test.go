package oncpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestSamplesIn: whatever was asked before, the answer is the thread's samples of that time.
func TestSamplesIn(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteString("header cpus=0,1\nstack id=1 flush_tlb_mm_range@kernel\n")
	at := map[uint32][]int64{}
	for tid := uint32(1); tid <= 40; tid++ {
		fmt.Fprintf(&b, "thread tid=%d pid=1 comm=app target\n", tid)
		for range rnd.IntN(50) {
			ns := rnd.Int64N(1000)
			fmt.Fprintf(&b, "sample t=%d tid=%d flags=target args=1000000\n", ns, tid)
			fmt.Fprintf(&b, "sample t=%d tid=%d flags=target args=1000000 kernel=1\n", ns, tid)
			at[tid] = append(at[tid], ns)
		}
		slices.Sort(at[tid])
	}
	k := schedtest.Timeline(t, b.String())
	s := NewSamples(k, New(k))
	for range 100_000 {
		tid, lo := uint32(rnd.IntN(42)), rnd.Int64N(1100)-50
		hi := lo + rnd.Int64N(60)
		var want, got []int64
		for _, ns := range at[tid] {
			if ns >= lo && ns < hi {
				want = append(want, ns)
			}
		}
		for _, x := range s.In(tid, lo, hi) {
			got = append(got, x.At)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("thread %d from %d to %d: %d, want %d", tid, lo, hi, got, want)
		}
	}
}

// TestMergeAs: samples that are made to stand for another time keep their shares, their weight as
// evidence, and what they leave out.
func TestMergeAs(t *testing.T) {
	var a, b Sum
	a.AddMany(1, 30, 30e6)
	a.AddMany(2, 70, 70e6)
	b.MergeAs(&a, 200e6, 2e9)
	if b.all.ns != 1e9 || b.parts[1].ns != 3e8 || b.Samples() != 100 {
		t.Errorf("%+v", b)
	}
	if n := b.effective(); n < 99 || n > 100 {
		t.Errorf("counts as %.1f samples, want 100", n)
	}
}
