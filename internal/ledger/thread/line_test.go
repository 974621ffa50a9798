package thread

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/ledger/books"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestLine has 30 threads in a line for one lock, each asleep at a word of its own until the one
// before it is done, as Java's locks make them sleep. Who waits last waits for all of them, and for
// what each did while it had the lock: it computed.
func TestLine(t *testing.T) {
	const ms, first, last = 1_000_000, 11, 40
	var b strings.Builder
	line := func(f string, a ...any) { fmt.Fprintf(&b, f+"\n", a...) }
	line("header source=bpf kernel=6.18 pid=10 cpus=0-39 alltasks pertask")
	line("stack id=1 schedule;futex_do_wait;__futex_wait;futex_wait;do_futex")
	line("stack id=2 wake_up_q;futex_wake;do_futex")
	for tid := first; tid <= last; tid++ {
		line("thread tid=%d pid=10 comm=worker target", tid)
	}
	for tid := first; tid <= last; tid++ {
		line("switch t=%d cpu=%d other=%d flags=othertarget", tid, tid-first, tid)
	}
	for tid := first + 1; tid <= last; tid++ {
		line("switch t=%d cpu=%d tid=%d flags=target args=1,202,%d kernel=1", 100+tid, tid-first, tid, 0x5000+64*tid)
	}
	for tid := first + 1; tid <= last; tid++ {
		at := (tid - first) * ms
		line("waking t=%d tid=%d other=%d flags=target,othertarget kernel=2 args=0,202,%d", at, tid,
			tid-1, 0x5000+64*tid)
		line("switch t=%d cpu=%d other=%d flags=othertarget", at, tid-first, tid)
	}
	line("switch t=%d cpu=%d tid=%d flags=target", (last-first+1)*ms, last-first, last)
	computing := map[uint32]int64{}
	NewWalk(schedtest.Timeline(t, b.String())).Thread(last, ms/2, (last-first)*ms, func(p *Piece) {
		if p.Leaf != books.LeafOnCPU {
			t.Errorf("%d..%d: %s of thread %d, over %d others", p.Lo, p.Hi, p.Leaf, p.TID, len(p.Hops))
		}
		computing[p.TID] += p.Hi - p.Lo
	})
	for tid := uint32(first); tid < last; tid++ {
		if want := int64(ms); computing[tid] != want && (tid != first || computing[tid] != want/2) {
			t.Errorf("thread %d: waited for while it computed for %d ns, want %d", tid, computing[tid], want)
		}
	}
}
