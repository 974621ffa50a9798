package ledger

import (
	"testing"

	"github.com/whystall/whystall/internal/evidence/kernel"
	"github.com/whystall/whystall/internal/sched"
)

// Of two threads one waits for a CPU from 10 to 14 and from 20 to 21 us: the other's stretches make
// no difference.
func TestEnough(t *testing.T) {
	r := &randomKernel{header: kernel.Header{Source: "bpf", CPUs: []int{0, 1}, AllTasks: true, PerTask: true}}
	for _, tid := range []uint32{1000, 1001} {
		r.threads = append(r.threads, kernel.Thread{TID: tid, PID: 1000, Comm: "app", Target: true})
	}
	for _, x := range []struct {
		at       int64
		from, to uint32
		asleep   uint64
	}{{0, 0, 1000, 0}, {10, 1000, 5, 0}, {14, 5, 1000, 0}, {20, 1000, 5, 0}, {21, 5, 1000, 0}, {30, 1000, 0, 1}} {
		rec := kernel.Record{Kind: kernel.Switch, Time: x.at * 1e3, TID: x.from, Other: x.to, Arg: [3]uint64{x.asleep}}
		if x.from >= 1000 {
			rec.Flags |= kernel.Target
		}
		if x.to >= 1000 {
			rec.Flags |= kernel.OtherTarget
		}
		r.recs = append(r.recs, rec)
	}
	k, err := sched.New(r)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := k.Span()
	j := &joiner{k: k, begin: begin, end: end}
	for _, x := range []struct{ lo, hi, want int64 }{{0, 10, 10}, {5, 12, 5}, {10, 14, 0},
		{11, 13, 0}, {12, 22, 7}, {-100, 30, 25}, {21, 30, 9}, {40, 50, 0}} {
		if got := j.enough(x.lo*1e3, x.hi*1e3); got != x.want*1e3 {
			t.Errorf("of %d to %d us enough is %d ns, want %d us", x.lo, x.hi, got, x.want)
		}
	}
}
