// What a thread of the target does for memory: stretches of reclaim, compaction, waiting for an address space, page faults; pages
// flushed and moved.
#pragma once
#include "thread.h"

// ours gives the memory of the current thread, if it is of the target.
INLINE struct thread *ours(u32 *tid)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	*tid = t->pid;
	return thread_of(t->pid);
}

INLINE void start(struct begin *b, u64 first, u64 second)
{
	b->at = ktime_get_ns();
	b->a = first;
	b->b = second;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim_begin(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		start(&t->reclaim, (u32)ctx[0], (u32)ctx[1]);
	return 0;
}

SEC("tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim_end(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(K_RECLAIM, 0, tid, &t->reclaim, 0);
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_begin")
int memcg_reclaim_begin(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		start(&t->memcg, (u32)ctx[0], (u32)ctx[1]);
	return 0;
}

SEC("tp_btf/mm_vmscan_memcg_reclaim_end")
int memcg_reclaim_end(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(K_RECLAIM, F_MEMCG, tid, &t->memcg, 0);
	return 0;
}

// Which order is asked for: told before each of the zones is compacted.
SEC("tp_btf/mm_compaction_try_to_compact_pages")
int compaction_try(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t) {
		t->compaction.a = (u32)ctx[0];
		t->compaction.b = (u32)ctx[1];
	}
	return 0;
}

SEC("tp_btf/mm_compaction_begin")
int compaction_begin(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		t->compaction.at = ktime_get_ns();
	return 0;
}

SEC("tp_btf/mm_compaction_end")
int compaction_end(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(K_COMPACTION, 0, tid, &t->compaction, 0);
	return 0;
}

// A wait shorter than this is no wait: the lock was free, or nearly.
#define SHORT 10000

SEC("tp_btf/mmap_lock_start_locking")
int mmap_lock_start(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		start(&t->mmap, ctx[0], 0);
	return 0;
}

SEC("tp_btf/mmap_lock_acquire_returned")
int mmap_lock_acquired(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(K_MMAP_LOCK, ctx[1] & 1 ? F_WRITE : 0, tid, &t->mmap, SHORT);
	return 0;
}

// Who flushes others, and its own by a change of its mappings; not what a switch or somebody's call makes.
SEC("tp_btf/tlb_flush")
int tlb_flush(u64 *ctx)
{
	u32 reason = ctx[0];
	if (reason != 3 && reason != 4) // TLB_LOCAL_MM_SHOOTDOWN, TLB_REMOTE_SEND_IPI
		return 0;
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target)
		return 0;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return 0;
	fill(&m->s, K_TLB_FLUSH, F_TARGET, ktime_get_ns(), t->pid, 0, 0);
	m->arg[0] = 0;
	m->arg[1] = ctx[1];
	m->arg[2] = reason;
	submit(m);
	return 0;
}

// Pages moved to the node of the CPU that a thread runs on, as it touched them.
SEC("tp_btf/mm_migrate_pages")
int migrate_pages(u64 *ctx)
{
	struct task_struct *t = get_current_task_btf();
	// Linux 6.7 put an argument before the reason.
	u32 reason;
	if (migrate_args >= 8) {
		reason = ctx[7];
		asm volatile("" : "+r"(reason)); // else the two become one, of an address that the verifier refuses
	} else {
		reason = ctx[6];
	}
	if (t->tgid != target || reason != ENUM(migrate_reason, MR_NUMA_MISPLACED))
		return 0;
	struct middle *m = reserve(sizeof(*m));
	if (!m)
		return 0;
	fill(&m->s, K_NUMA_MOVE, F_TARGET, ktime_get_ns(), t->pid, 0, 0);
	m->arg[0] = 0;
	m->arg[1] = ctx[0];
	m->arg[2] = get_numa_node_id();
	submit(m);
	return 0;
}

SEC("tp_btf/contention_begin")
int contention_begin(u64 *ctx)
{
	struct task_struct *task = get_current_task_btf();
	if (task->tgid != target || in_interrupt(task))
		return 0;
	struct thread *t = thread_of(task->pid);
	if (t)
		start(&t->lock, ctx[0], (u32)ctx[1]);
	return 0;
}

SEC("tp_btf/contention_end")
int contention_end(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	// An interrupt's own locks come between begin and end.
	if (t && t->lock.at && t->lock.a == ctx[0])
		end(K_KERNEL_LOCK, 0, tid, &t->lock, SHORT);
	return 0;
}

SEC("tp_btf/page_fault_user")
int page_fault(u64 *ctx)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		start(&t->fault, ctx[0], ctx[2]);
	return 0;
}

// The kernel's software events tell a fault as it ends, and whether it was a major one.
INLINE int fault_end(u16 flags, u64 floor)
{
	u32 tid;
	struct thread *t = ours(&tid);
	if (t)
		end(K_FAULT, flags, tid, &t->fault, floor);
	return 0;
}

SEC("perf_event")
int fault_minor(void *ctx)
{
	return fault_end(0, SHORT);
}

SEC("perf_event")
int fault_major(void *ctx)
{
	return fault_end(F_MAJOR, 0);
}

// A sample of what the target's threads execute.
SEC("perf_event")
int sample(void *ctx)
{
	struct task_struct *t = get_current_task_btf();
	if (t->tgid != target || !stacks)
		return 0;
	u64 user = stack_of(ctx, 1, 1), kernel = stack_of(ctx, 1, 0);
	struct large *l = reserve(sizeof(*l));
	if (!l)
		return 0;
	fill(&l->m.s, K_SAMPLE, F_TARGET, ktime_get_ns(), t->pid, 0, 0);
	l->m.arg[0] = sample_period;
	l->m.arg[1] = l->m.arg[2] = 0;
	l->kernel = kernel;
	l->user = user;
	submit(l);
	return 0;
}
