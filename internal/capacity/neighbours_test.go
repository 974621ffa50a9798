package capacity

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestCPUHolders: whatever the threads do, the walk over runs and queues gives the sum of what each
// queued stretch says by itself.
func TestCPUHolders(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	queued := 0
	for range 200 {
		var b strings.Builder
		b.WriteString("header source=bpf pid=10 cpus=0,1,2 alltasks\n")
		time := 1000
		for range 300 {
			time += rnd.IntN(256)
			flags := []string{"target,othertarget", "target,othertarget,preempted", "target",
				"othertarget", "target,preempted"}[rnd.IntN(5)]
			kind, cpu, tid, other := "switch", rnd.IntN(3), rnd.IntN(6), rnd.IntN(6)
			if rnd.IntN(3) == 0 {
				kind = "waking"
			}
			fmt.Fprintf(&b, "%s t=%d cpu=%d tid=%d other=%d flags=%s args=%d\n", kind, time, cpu,
				tid, other, flags, rnd.IntN(3))
		}
		k := schedtest.Timeline(t, b.String())
		begin, end := k.Span()
		want := map[uint32]int64{}
		k.Each(begin, end, func(tid uint32, s *sched.Stretch) {
			if s.Doing != sched.Queued {
				return
			}
			for _, x := range k.Behind(tid, s.Begin, s.End, nil) {
				if x.TID != sched.NobodyKnown {
					want[x.TID] += x.NS
				}
			}
		})
		got := CPUHolders(k)
		for tid, ns := range want {
			queued++
			if got[tid] != ns {
				t.Errorf("thread %d: %d ns, want %d", tid, got[tid], ns)
			}
		}
		for tid, ns := range got {
			if want[tid] != ns {
				t.Errorf("thread %d: %d ns, want %d", tid, ns, want[tid])
			}
		}
	}
	if queued == 0 {
		t.Error("nobody was queued")
	}
}
