package capacity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/whystall/whystall/internal/oncpu"
	"github.com/whystall/whystall/internal/sched"
	"github.com/whystall/whystall/internal/sched/schedtest"
)

// TestSampled: a thread is on its CPU for 10 ms, and each second sample of 1 ms meets it waiting
// for other CPUs. So half the time is a TLB flush. What a record says keeps its time.
func TestSampled(t *testing.T) {
	var b strings.Builder
	b.WriteString(`
header cpus=0 pertask alltasks
thread tid=10 pid=10 comm=app target
stack id=1 smp_call_function_many_cond@kernel+0x1;on_each_cpu_cond_mask@kernel+0x1;flush_tlb_mm_range@kernel+0x1;unmap_region@kernel+0x1;__x64_sys_munmap@kernel+0x1
stack id=2 clear_page_erms@kernel+0x1
stack id=3 app::free@/app+0x10
switch t=0 cpu=0 tid=0 other=10 flags=othertarget
`)
	for ms := 1; ms < 10; ms++ {
		fmt.Fprintf(&b, "sample t=%d cpu=0 tid=10 flags=target kernel=%d user=3 args=1000000\n", ms*1_000_000, 1+ms%2)
	}
	// A migration takes the half of the last flush, by its own record.
	b.WriteString("numamove t=7500000 cpu=0 tid=10 flags=target args=500000,3,0x200010001\n")
	b.WriteString("switch t=10000000 cpu=0 tid=10 other=0 flags=target\n")
	// A fault takes 3 ms, and for 2 of them the thread has no CPU.
	b.WriteString("numamove t=9900000 cpu=0 tid=10 flags=target args=3000000,1,0x100000001\n")
	b.WriteString("switch t=12000000 cpu=0 tid=0 other=10 flags=othertarget\n")
	b.WriteString("switch t=13000000 cpu=0 tid=10 other=0 flags=target\n")
	k := schedtest.Timeline(t, b.String())
	r := Sums(k, oncpu.New(k), nil)
	if r.TLB.NS != 3.5e6 || len(r.TLB.Flags) != 1 || r.TLB.Flags[0].Who != "munmap" ||
		len(r.TLB.Sites) != 1 || r.TLB.Sites[0].Func != "app::free" {
		t.Errorf("flushes: %+v, want 3.5 ms in munmap by app::free", r.TLB)
	}
	if r.NUMA.NS != 15e5 || r.NUMA.N != 3 || r.NUMARemote != 1 || r.NUMAPages != 4 ||
		r.NUMA.Flags[0].Who != "on node 1" {
		t.Errorf("hinting faults: %+v, %d remote, %d pages; want 3 of 1.5 ms on CPUs on node 1, one of them remote, 4 pages", r.NUMA, r.NUMARemote, r.NUMAPages)
	}
	var end int64
	for _, s := range k.Stretches(10, 0, 1e7, nil) {
		if s.Begin != end {
			t.Errorf("a hole from %d to %d", end, s.Begin)
		}
		end = s.End
		if s.Block == sched.BlockTLB && !s.Sampled || s.Block == sched.BlockNUMA && s.Sampled {
			t.Errorf("%+v: what samples say is mixed up with what records say", s)
		}
	}
}
