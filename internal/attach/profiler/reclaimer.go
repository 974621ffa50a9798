package profiler

import (
	"fmt"
	"slices"
	"strings"

	"github.com/whystall/whystall/internal/account"
	"github.com/whystall/whystall/internal/attach"
	"github.com/whystall/whystall/internal/evidence/kernel"
)

// reclaimer is who frees memory in a sample. Only a thread that asked for memory loses time by it.
type reclaimer int

const (
	anybody        reclaimer = iota // a function alone does not say
	reclaimsItself                  // a thread that wants memory
	ofKernel                        // kswapd and its like, in the background
)

var (
	// directFrames are the functions in which a thread that wants memory frees some itself.
	directFrames = words(`try_to_free_pages do_try_to_free_pages __alloc_pages_slowpath __alloc_pages_direct_reclaim __alloc_pages_direct_compact
		try_to_compact_pages try_to_free_mem_cgroup_pages mem_cgroup_try_charge try_charge try_charge_memcg reclaim_high mem_cgroup_handle_over_high
		node_reclaim __node_reclaim zone_reclaim page_fault asm_exc_page_fault handle_mm_fault do_syscall_64 entry_SYSCALL_64_after_hwframe
		system_call_fastpath el0_svc`)
	kernelThreadFrames = words("kswapd balance_pgdat kcompactd kcompactd_do_work khugepaged kthread worker_thread ret_from_fork ret_from_fork_asm kernel_thread_helper")
	// reaperNames are threads of file systems that bring their own caches; kernelThread knows the
	// others.
	reaperNames = []string{"ksmd", "arc_reap", "arc_reclaim", "arc_prune", "arc_evict", "arc_adapt",
		"spl_kmem_cache", "spl_dynamic", "dbuf_evict"}
)

// reclaimerOf says who frees memory in a sample, by the name of the thread or by its stack.
func reclaimerOf(s *sample) reclaimer {
	comm := strings.Trim(s.comm, "[]")
	if kernelThread(comm) {
		return ofKernel
	}
	for _, name := range reaperNames {
		if strings.HasPrefix(comm, name) {
			return ofKernel
		}
	}
	who := anybody
	for i := range s.kernel {
		switch name := s.kernel[i].Func; {
		case kernelThreadFrames[name]:
			return ofKernel
		case directFrames[name]:
			who = reclaimsItself
		}
	}
	if s.comm != "" || len(s.program) > 0 {
		return reclaimsItself
	}
	return who
}

// reclaimFrames are the functions below which a thread frees memory, whatever it does there.
var reclaimFrames = words(`try_to_free_pages do_try_to_free_pages try_to_free_mem_cgroup_pages __alloc_pages_direct_reclaim shrink_node shrink_zone
	shrink_slab shrink_lruvec shrink_node_memcg shrink_inactive_list shrink_active_list shrink_page_list shrink_folio_list evict_folios`)

// reclaimsInStack reports whether a stack of the kernel is below one that frees memory.
func reclaimsInStack(stack []kernel.Frame) bool {
	return slices.ContainsFunc(stack, func(f kernel.Frame) bool {
		name, _, _ := strings.Cut(f.Func, ".")
		return reclaimFrames[name]
	})
}

// reclaimers says what reclaim costs of which no thread is known that did it for itself.
func (t *tally) reclaimers(r *attach.Reading, least float64) {
	if share := t.share(t.kthreads); share >= least {
		r.Figures = append(r.Figures,
			fmt.Sprintf("%s of %s is memory reclaim by threads of the kernel: none of the service waits in it", pct(share), t.time()))
	}
	share := t.share(t.kinds[account.WorkReclaim] + t.reclaimSpin + t.someoneSpin - t.kthreads)
	if share < least {
		return
	}
	if packs := t.share(t.names[account.WorkReclaim][compaction]); packs >= 0.9*share {
		t.compacting(r, packs)
		return
	}
	proof := fmt.Sprintf("%s of %s is memory reclaim; whether threads of the service do it or kswapd, functions alone do not say", pct(share), t.time())
	r.Signs = append(r.Signs, attach.Sign{Cause: "direct-reclaim", Grade: attach.Candidate,
		Share: share, Proof: []string{proof}})
	r.Next = append(r.Next, ask("grep -E 'allocstall|pgscan_(direct|kswapd)' /proc/vmstat; sleep 10; grep -E 'allocstall|pgscan_(direct|kswapd)' /proc/vmstat", 0,
		"whether threads free memory themselves, or kswapd alone"))
}

// compaction is the name of the work that moves pages to make large free blocks.
const compaction = "compaction"

// compacting says what compaction costs of which no thread is known: khugepaged and kcompactd do it
// for nobody, so functions alone are no sign of a thread that waits for memory.
func (t *tally) compacting(r *attach.Reading, share float64) {
	r.State = attach.CannotTell
	r.Means = fmt.Sprintf("%s of %s is compaction of memory; whether threads of the service do it, khugepaged or kcompactd, functions alone do not say.", pct(share), t.time())
	r.Next = append(r.Next, ask("grep -E 'compact_(stall|daemon_wake)|thp_collapse' /proc/vmstat; sleep 10; grep -E 'compact_(stall|daemon_wake)|thp_collapse' /proc/vmstat", 0,
		"compact_stall that rises says that threads wait in it; else it is the kernel's own"))
}
